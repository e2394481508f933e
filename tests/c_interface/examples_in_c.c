/* Descriptions in C, as a JIT compiler in C makes them; examples_in_cpp.cpp has the same in C++. */
#include "examples.h"

static const ju_instruction probe_bound = {0, 8}, probe_step = {8, 15}, probe_back = {26, 28};

static void call_back(ju_builder* b, const void* type_a, const void* type_b) {
  ju_push(b, 0, 1, JU_X86_64_RBP);
  ju_push(b, 1, 2, JU_X86_64_RBX);
  ju_allocate(b, 2, 3, 8);
  ju_deallocate(b, 7, 11, 8);
  ju_pop(b, 11, 12, JU_X86_64_RBX);
  ju_pop(b, 12, 13, JU_X86_64_RBP);
  ju_set_size(b, 14);
  (void)type_a;
  (void)type_b;
}

static void frame_with_leave(ju_builder* b, const void* type_a, const void* type_b) {
  ju_push(b, 0, 1, JU_X86_64_RBP);
  ju_set_frame_pointer(b, 1, 4, JU_X86_64_RBP, 0);
  ju_allocate(b, 4, 8, 32);
  ju_leave(b, 20, 21);
  (void)type_a;
  (void)type_b;
}

static void entered(ju_builder* b, const void* type_a, const void* type_b) {
  ju_enter(b, 0, 4, 32);
  ju_leave(b, 16, 17);
  (void)type_a;
  (void)type_b;
}

static void saved_at_sp(ju_builder* b, const void* type_a, const void* type_b) {
  ju_allocate(b, 0, 4, 24);
  ju_save_at_sp(b, 4, 9, JU_X86_64_RBX, 8);
  ju_save_at_sp(b, 9, 14, JU_X86_64_R12, 16);
  ju_deallocate(b, 30, 34, 24);
  (void)type_a;
  (void)type_b;
}

static void frame_pointer_above_sp(ju_builder* b, const void* type_a, const void* type_b) {
  ju_allocate(b, 0, 7, 136);
  ju_save_at_sp(b, 7, 15, JU_X86_64_RBP, 128);
  ju_set_frame_pointer(b, 15, 23, JU_X86_64_RBP, 128);
  ju_reload(b, 32, 40, JU_X86_64_RBP);
  ju_deallocate(b, 40, 47, 136);
  (void)type_a;
  (void)type_b;
}

static void saved_at_fp(ju_builder* b, const void* type_a, const void* type_b) {
  ju_push(b, 0, 1, JU_X86_64_RBP);
  ju_set_frame_pointer(b, 1, 4, JU_X86_64_RBP, 0);
  ju_allocate(b, 4, 8, 16);
  ju_save_at_fp(b, 8, 12, JU_X86_64_RBX, -8);
  ju_restore_sp(b, 20, 23, JU_X86_64_RBP, 0);
  ju_pop(b, 23, 24, JU_X86_64_RBP);
  (void)type_a;
  (void)type_b;
}

static void variable(ju_builder* b, const void* type_a, const void* type_b) {
  ju_push(b, 0, 1, JU_X86_64_RBP);
  ju_set_frame_pointer(b, 1, 4, JU_X86_64_RBP, 0);
  ju_push(b, 4, 5, JU_X86_64_RBX);
  ju_allocate_variable(b, 5, 8);
  ju_restore_sp(b, 18, 22, JU_X86_64_RBP, -8);
  ju_pop(b, 22, 23, JU_X86_64_RBX);
  ju_pop(b, 23, 24, JU_X86_64_RBP);
  (void)type_a;
  (void)type_b;
}

static void realigned(ju_builder* b, const void* type_a, const void* type_b) {
  ju_push(b, 0, 1, JU_X86_64_RBX);
  ju_set_frame_pointer(b, 1, 4, JU_X86_64_RAX, 0);
  ju_realign(b, 4, 8);
  ju_allocate(b, 8, 15, 128);
  ju_store_sp(b, 15, 20, 64);
  ju_reload_sp(b, 32, 37);
  ju_pop(b, 37, 38, JU_X86_64_RBX);
  (void)type_a;
  (void)type_b;
}

static void probed(ju_builder* b, const void* type_a, const void* type_b) {
  ju_probe_loop(b, probe_bound, probe_step, probe_back, 65536, JU_X86_64_R11);
  ju_allocate(b, 28, 32, 104);
  ju_deallocate(b, 64, 71, 65640);
  (void)type_a;
  (void)type_b;
}

static void callee_that_pops(ju_builder* b, const void* type_a, const void* type_b) {
  ju_set_size(b, 18);
  ju_allocate(b, 0, 4, 8);
  ju_push_other(b, 4, 6);
  ju_push_other(b, 6, 8);
  ju_callee_pops(b, 8, 13, 16);
  ju_deallocate(b, 13, 17, 8);
  (void)type_a;
  (void)type_b;
}

static void popped_return_address(ju_builder* b, const void* type_a, const void* type_b) {
  ju_pop_return_address(b, 0, 1, JU_X86_64_RCX);
  ju_ends_without_return(b);
  (void)type_a;
  (void)type_b;
}

static void red_zone(ju_builder* b, const void* type_a, const void* type_b) {
  ju_set_size(b, 16);
  ju_save_at_sp(b, 0, 5, JU_X86_64_RBX, -64);
  ju_push_other(b, 5, 6);
  ju_pop_other(b, 6, 7);
  (void)type_a;
  (void)type_b;
}

static void kept_in_register(ju_builder* b, const void* type_a, const void* type_b) {
  ju_push(b, 0, 1, JU_X86_64_RBX);
  ju_move_to(b, 1, 4, JU_X86_64_R12, JU_X86_64_R8);
  ju_reload(b, 8, 11, JU_X86_64_R12);
  ju_pop(b, 11, 12, JU_X86_64_RBX);
  (void)type_a;
  (void)type_b;
}

static void moved_frame_pointer(ju_builder* b, const void* type_a, const void* type_b) {
  ju_push(b, 0, 1, JU_X86_64_RBP);
  ju_set_frame_pointer(b, 1, 4, JU_X86_64_RBP, 0);
  ju_move_frame_pointer(b, 4, 8, JU_X86_64_RBP, 16);
  ju_move_frame_pointer(b, 16, 20, JU_X86_64_RBP, -16);
  ju_restore_sp(b, 20, 23, JU_X86_64_RBP, 0);
  ju_pop(b, 23, 24, JU_X86_64_RBP);
  (void)type_a;
  (void)type_b;
}

static void early_returns(ju_builder* b, const void* type_a, const void* type_b) {
  ju_set_size(b, 48);
  ju_push(b, 0, 1, JU_X86_64_RBX);
  ju_allocate(b, 1, 5, 16);
  ju_remember(b);
  ju_deallocate(b, 16, 20, 16);
  ju_pop(b, 20, 21, JU_X86_64_RBX);
  ju_restore(b, 21, 22);
  ju_deallocate(b, 24, 28, 16);
  ju_pop(b, 28, 29, JU_X86_64_RBX);
  ju_restore(b, 29, 30);
  ju_deallocate(b, -6, -2, 16);
  ju_pop(b, -2, -1, JU_X86_64_RBX);
  (void)type_a;
  (void)type_b;
}

static void labels_beside_remember(ju_builder* b, const void* type_a, const void* type_b) {
  ju_region(b, 16);
  ju_remember(b);
  ju_push(b, 0, 1, JU_X86_64_RBX);
  ju_label_state(b, 0, 1);
  ju_remember(b);
  ju_pop(b, 4, 5, JU_X86_64_RBX);
  ju_restore(b, 5, 6);
  ju_pop(b, 8, 9, JU_X86_64_RBX);
  (void)type_a;
  (void)type_b;
}

static void mixed(ju_builder* b, const void* type_a, const void* type_b) {
  ju_region(b, 12);
  ju_push(b, 0, 1, JU_X86_64_RBP);
  ju_save_reg(b, 3, JU_X86_64_RSP, JU_X86_64_RBP);
  ju_region(b, -2);
  ju_leave(b, -2, -1);
  (void)type_a;
  (void)type_b;
}

static void leaf(ju_builder* b, const void* type_a, const void* type_b) {
  (void)b;
  (void)type_a;
  (void)type_b;
}

static void facts(ju_builder* b, const void* type_a, const void* type_b) {
  ju_set_personality(b, 4096);
  ju_set_lsda(b, 8192);
  ju_set_gp(b, 12288);
  ju_set_size(b, 8);
  (void)type_a;
  (void)type_b;
}

static void does_not_return(ju_builder* b, const void* type_a, const void* type_b) {
  ju_set_size(b, 10);
  ju_push(b, 0, 1, JU_X86_64_RBX);
  ju_ends_without_return(b);
  (void)type_a;
  (void)type_b;
}

static void example_1_in_one_region(ju_builder* b, const void* type_a, const void* type_b) {
  ju_region(b, 44);
  ju_add(b, 0, JU_X86_64_RSP, -8);
  ju_spill_sp_rel(b, 0, JU_X86_64_RBP, 0);
  ju_save_reg(b, 3, JU_X86_64_RSP, JU_X86_64_RBP);
  ju_add(b, 4, JU_X86_64_RSP, -8);
  ju_spill_sp_rel(b, 4, JU_X86_64_RBX, 0);
  ju_add(b, 8, JU_X86_64_RSP, -24);
  ju_label_state(b, 8, 1);
  ju_add(b, 22, JU_X86_64_RSP, 24);
  ju_add(b, 23, JU_X86_64_RSP, 8);
  ju_add(b, 24, JU_X86_64_RSP, 8);
  ju_copy_state(b, 25, 1);
  ju_add(b, 40, JU_X86_64_RSP, 24);
  ju_add(b, 41, JU_X86_64_RSP, 8);
  ju_add(b, 42, JU_X86_64_RSP, 8);
  (void)type_a;
  (void)type_b;
}

static void example_1_in_three_regions(ju_builder* b, const void* type_a, const void* type_b) {
  ju_region(b, 19);
  ju_add(b, 0, JU_X86_64_RSP, -8);
  ju_spill_sp_rel(b, 0, JU_X86_64_RBP, 0);
  ju_save_reg(b, 3, JU_X86_64_RSP, JU_X86_64_RBP);
  ju_add(b, 4, JU_X86_64_RSP, -8);
  ju_spill_sp_rel(b, 4, JU_X86_64_RBX, 0);
  ju_add(b, 8, JU_X86_64_RSP, -24);
  ju_stop(b);
  ju_region(b, 7);
  ju_add(b, 3, JU_X86_64_RSP, 24);
  ju_add(b, 4, JU_X86_64_RSP, 8);
  ju_pop_frames(b, 5, 1);
  ju_region(b, 18);
  ju_add(b, 14, JU_X86_64_RSP, 24);
  ju_add(b, 15, JU_X86_64_RSP, 8);
  ju_pop_frames(b, 16, 1);
  (void)type_a;
  (void)type_b;
}

static void example_1_coarse(ju_builder* b, const void* type_a, const void* type_b) {
  ju_region(b, 19);
  ju_add(b, 0, JU_X86_64_RSP, -8);
  ju_spill_sp_rel(b, 0, JU_X86_64_RBP, 0);
  ju_save_reg(b, 3, JU_X86_64_RSP, JU_X86_64_RBP);
  ju_add(b, 4, JU_X86_64_RSP, -8);
  ju_spill_sp_rel(b, 4, JU_X86_64_RBX, 0);
  ju_add(b, 8, JU_X86_64_RSP, -24);
  ju_region(b, 7);
  ju_pop_frames(b, 5, 1);
  ju_region(b, -12);
  ju_pop_frames(b, 10, 1);
  (void)type_a;
  (void)type_b;
}

static void example_1_in_random_order(ju_builder* b, const void* type_a, const void* type_b) {
  ju_region(b, 44);
  ju_add(b, 41, JU_X86_64_RSP, 8);
  ju_spill_sp_rel(b, 4, JU_X86_64_RBX, 0);
  ju_copy_state(b, 25, 1);
  ju_add(b, 0, JU_X86_64_RSP, -8);
  ju_add(b, 23, JU_X86_64_RSP, 8);
  ju_add(b, 40, JU_X86_64_RSP, 24);
  ju_label_state(b, 8, 1);
  ju_save_reg(b, 3, JU_X86_64_RSP, JU_X86_64_RBP);
  ju_add(b, 24, JU_X86_64_RSP, 8);
  ju_add(b, 8, JU_X86_64_RSP, -24);
  ju_spill_sp_rel(b, 0, JU_X86_64_RBP, 0);
  ju_add(b, 42, JU_X86_64_RSP, 8);
  ju_add(b, 4, JU_X86_64_RSP, -8);
  ju_add(b, 22, JU_X86_64_RSP, 24);
  (void)type_a;
  (void)type_b;
}

static void example_1_with_labels(ju_builder* b, const void* type_a, const void* type_b) {
  ju_region(b, 19);
  ju_add(b, 0, JU_X86_64_RSP, -8);
  ju_spill_sp_rel(b, 0, JU_X86_64_RBP, 0);
  ju_save_reg(b, 3, JU_X86_64_RSP, JU_X86_64_RBP);
  ju_add(b, 4, JU_X86_64_RSP, -8);
  ju_spill_sp_rel(b, 4, JU_X86_64_RBX, 0);
  ju_add(b, 8, JU_X86_64_RSP, -24);
  ju_label_state(b, -1, 100402);
  ju_region(b, 7);
  ju_add(b, 3, JU_X86_64_RSP, 24);
  ju_add(b, 4, JU_X86_64_RSP, 8);
  ju_add(b, 5, JU_X86_64_RSP, 8);
  ju_region(b, 0);
  ju_copy_state(b, -1, 100402);
  ju_region(b, 18);
  ju_add(b, 14, JU_X86_64_RSP, 24);
  ju_add(b, 15, JU_X86_64_RSP, 8);
  ju_add(b, 16, JU_X86_64_RSP, 8);
  (void)type_a;
  (void)type_b;
}

static void example_1_by_idioms(ju_builder* b, const void* type_a, const void* type_b) {
  ju_set_size(b, 44);
  ju_push(b, 0, 1, JU_X86_64_RBP);
  ju_set_frame_pointer(b, 1, 4, JU_X86_64_RBP, 0);
  ju_push(b, 4, 5, JU_X86_64_RBX);
  ju_allocate(b, 5, 9, 24);
  ju_remember(b);
  ju_deallocate(b, 19, 23, 24);
  ju_pop(b, 23, 24, JU_X86_64_RBX);
  ju_pop(b, 24, 25, JU_X86_64_RBP);
  ju_restore(b, 25, 26);
  ju_deallocate(b, 37, 41, 24);
  ju_pop(b, 41, 42, JU_X86_64_RBX);
  ju_pop(b, 42, 43, JU_X86_64_RBP);
  (void)type_a;
  (void)type_b;
}

static void example_2(ju_builder* b, const void* type_a, const void* type_b) {
  ju_region(b, 24);
  ju_add(b, 3, JU_X86_64_RSP, -40);
  ju_add(b, 22, JU_X86_64_RSP, 40);
  (void)type_a;
  (void)type_b;
}

static void example_4(ju_builder* b, const void* type_a, const void* type_b) {
  ju_push(b, 0, 1, JU_X86_64_RBP);
  ju_set_frame_pointer(b, 1, 4, JU_X86_64_RBP, 0);
  ju_push(b, 4, 5, JU_X86_64_RBX);
  ju_push(b, 5, 7, JU_X86_64_R12);
  ju_pop(b, -5, -3, JU_X86_64_R12);
  ju_pop(b, -3, -2, JU_X86_64_RBX);
  ju_pop(b, -2, -1, JU_X86_64_RBP);
  (void)type_a;
  (void)type_b;
}

static void cold_part(ju_builder* b, const void* type_a, const void* type_b) {
  ju_entry_state_at(b, "cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]", 48);
  ju_deallocate(b, 5, 9, 24);
  ju_pop(b, 9, 10, JU_X86_64_RBX);
  ju_pop(b, 10, 11, JU_X86_64_RBP);
  (void)type_a;
  (void)type_b;
}

static void entered_by_row(ju_builder* b, const void* type_a, const void* type_b) {
  ju_entry_state(b, "cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]");
  ju_leave(b, -2, -1);
  (void)type_a;
  (void)type_b;
}

static void rows(ju_builder* b, const void* type_a, const void* type_b) {
  ju_set_size(b, 64);
  ju_row_at(b, 5, "cfa=r10 ra=[cfa-8]");
  ju_row_at(b, 17, "cfa=r10 rbp=[rbp] ra=[cfa-8]");
  ju_row_at(b, 19, "cfa=[rbp-8] rbp=[rbp] ra=[cfa-8]");
  ju_row_at(b, -7, "cfa=r10 rbp=[rbp] ra=[cfa-8]");
  ju_row_at(b, -5, "cfa=r10 ra=[cfa-8]");
  ju_row_at(b, -1, "cfa=rsp+8 ra=[cfa-8]");
  (void)type_a;
  (void)type_b;
}

static void expression(ju_builder* b, const void* type_a, const void* type_b) {
  ju_row_at(b, 4, "cfa=expr(770889) ra=[cfa-8]");
  (void)type_a;
  (void)type_b;
}

static void fp_relative(ju_builder* b, const void* type_a, const void* type_b) {
  ju_region(b, 16);
  ju_add(b, 0, JU_X86_64_RSP, -8);
  ju_spill_sp_rel(b, 0, JU_X86_64_RBP, 0);
  ju_save_reg(b, 3, JU_X86_64_RSP, JU_X86_64_RBP);
  ju_spill_fp_rel(b, 7, JU_X86_64_RBX, -8);
  ju_save_reg(b, 12, JU_X86_64_RBP, JU_X86_64_RSP);
  ju_pop_frames(b, 13, 1);
  (void)type_a;
  (void)type_b;
}

static void alias(ju_builder* b, const void* type_a, const void* type_b) {
  ju_region(b, 16);
  ju_alias(b, -1, 65536);
  (void)type_a;
  (void)type_b;
}

static void raw_directives(ju_builder* b, const void* type_a, const void* type_b) {
  ju_region(b, 8);
  ju_op(b, 4, 0, 0, 7, 18446744073709551608U);
  ju_op(b, 4, 0, 4, 7, 8);
  (void)type_a;
  (void)type_b;
}

static void catches(ju_builder* b, const void* type_a, const void* type_b) {
  ju_push(b, 0, 1, JU_X86_64_RBX);
  ju_remember(b);
  ju_pop(b, 6, 7, JU_X86_64_RBX);
  ju_restore(b, 7, 8);
  ju_call_site(b, 4, 6, 8);
  ju_catches(b, type_a);
  ju_pop(b, 13, 14, JU_X86_64_RBX);
  ju_set_size(b, 15);
  (void)type_b;
}

static void every_reason(ju_builder* b, const void* type_a, const void* type_b) {
  const void* types[2];
  types[0] = type_a;
  types[1] = type_b;
  ju_push(b, 0, 1, JU_X86_64_RBX);
  ju_call_site(b, 4, 6, 20);
  ju_catches(b, type_b);
  ju_catches(b, type_a);
  ju_call_site(b, 6, 8, 24);
  ju_allows(b, types, 2);
  ju_cleans_up(b);
  ju_call_site(b, 8, 10, 28);
  ju_catches_all(b);
  ju_terminates(b, 10, 12);
  ju_call(b, 12, 14);
  ju_pop(b, 30, 31, JU_X86_64_RBX);
  ju_set_size(b, 32);
}

static void pairs(ju_builder* b, const void* type_a, const void* type_b) {
  ju_store_pair_pre(b, 0, 4, JU_AARCH64_X29, JU_AARCH64_X30, -64);
  ju_set_frame_pointer(b, 4, 8, JU_AARCH64_X29, 0);
  ju_store_pair(b, 8, 12, JU_AARCH64_X19, JU_AARCH64_X20, 16);
  ju_save_at_sp(b, 12, 16, JU_AARCH64_V8, 32);
  ju_load_pair_post(b, 32, 36, JU_AARCH64_X29, JU_AARCH64_X30, 64);
  (void)type_a;
  (void)type_b;
}

static void reloaded_pair(ju_builder* b, const void* type_a, const void* type_b) {
  ju_allocate(b, 0, 4, 64);
  ju_store_pair(b, 4, 8, JU_AARCH64_X29, JU_AARCH64_X30, 32);
  ju_set_frame_pointer(b, 8, 12, JU_AARCH64_X29, 32);
  ju_reload_pair(b, 16, 20, JU_AARCH64_X29, JU_AARCH64_X30);
  ju_deallocate(b, 20, 24, 64);
  (void)type_a;
  (void)type_b;
}

static void one_register(ju_builder* b, const void* type_a, const void* type_b) {
  ju_store_pre(b, 0, 4, JU_AARCH64_X30, -16);
  ju_load_post(b, 8, 12, JU_AARCH64_X30, 16);
  (void)type_a;
  (void)type_b;
}

static void signed_return_address(ju_builder* b, const void* type_a, const void* type_b) {
  ju_sign_return_address(b, 0, 4);
  ju_store_pair_pre(b, 4, 8, JU_AARCH64_X29, JU_AARCH64_X30, -16);
  ju_load_pair_post(b, 12, 16, JU_AARCH64_X29, JU_AARCH64_X30, 16);
  ju_authenticate_return_address(b, 16, 20);
  (void)type_a;
  (void)type_b;
}

static void parked(ju_builder* b, const void* type_a, const void* type_b) {
  ju_move_to(b, 0, 4, JU_AARCH64_X30, JU_AARCH64_X17);
  ju_reload(b, 8, 12, JU_AARCH64_X30);
  (void)type_a;
  (void)type_b;
}

static void variable_on_aarch64(ju_builder* b, const void* type_a, const void* type_b) {
  ju_store_pair_pre(b, 0, 4, JU_AARCH64_X29, JU_AARCH64_X30, -16);
  ju_set_frame_pointer(b, 4, 8, JU_AARCH64_X29, 0);
  ju_allocate_variable(b, 8, 12);
  ju_restore_sp(b, 16, 20, JU_AARCH64_X29, 0);
  ju_load_pair_post(b, 20, 24, JU_AARCH64_X29, JU_AARCH64_X30, 16);
  (void)type_a;
  (void)type_b;
}

static void example_3(ju_builder* b, const void* type_a, const void* type_b) {
  ju_region(b, 9);
  ju_add(b, 0, JU_AARCH64_SP, -32);
  ju_spill_sp_rel(b, 0, JU_AARCH64_X29, 0);
  ju_spill_sp_rel(b, 0, JU_AARCH64_X30, 8);
  ju_save_reg(b, 1, JU_AARCH64_SP, JU_AARCH64_X29);
  ju_spill_sp_rel(b, 2, JU_AARCH64_X19, 16);
  ju_add(b, 7, JU_AARCH64_SP, 32);
  (void)type_a;
  (void)type_b;
}

const example_in_c examples_in_c[] = {
    {"call_back", JU_CPU_X86_64, call_back},
    {"frame_with_leave", JU_CPU_X86_64, frame_with_leave},
    {"entered", JU_CPU_X86_64, entered},
    {"saved_at_sp", JU_CPU_X86_64, saved_at_sp},
    {"frame_pointer_above_sp", JU_CPU_X86_64, frame_pointer_above_sp},
    {"saved_at_fp", JU_CPU_X86_64, saved_at_fp},
    {"variable", JU_CPU_X86_64, variable},
    {"realigned", JU_CPU_X86_64, realigned},
    {"probed", JU_CPU_X86_64, probed},
    {"callee_that_pops", JU_CPU_X86_64, callee_that_pops},
    {"popped_return_address", JU_CPU_X86_64, popped_return_address},
    {"red_zone", JU_CPU_X86_64, red_zone},
    {"kept_in_register", JU_CPU_X86_64, kept_in_register},
    {"moved_frame_pointer", JU_CPU_X86_64, moved_frame_pointer},
    {"early_returns", JU_CPU_X86_64, early_returns},
    {"labels_beside_remember", JU_CPU_X86_64, labels_beside_remember},
    {"mixed", JU_CPU_X86_64, mixed},
    {"leaf", JU_CPU_X86_64, leaf},
    {"facts", JU_CPU_X86_64, facts},
    {"does_not_return", JU_CPU_X86_64, does_not_return},
    {"example_1_in_one_region", JU_CPU_X86_64, example_1_in_one_region},
    {"example_1_in_three_regions", JU_CPU_X86_64, example_1_in_three_regions},
    {"example_1_coarse", JU_CPU_X86_64, example_1_coarse},
    {"example_1_in_random_order", JU_CPU_X86_64, example_1_in_random_order},
    {"example_1_with_labels", JU_CPU_X86_64, example_1_with_labels},
    {"example_1_by_idioms", JU_CPU_X86_64, example_1_by_idioms},
    {"example_2", JU_CPU_X86_64, example_2},
    {"example_4", JU_CPU_X86_64, example_4},
    {"cold_part", JU_CPU_X86_64, cold_part},
    {"entered_by_row", JU_CPU_X86_64, entered_by_row},
    {"rows", JU_CPU_X86_64, rows},
    {"expression", JU_CPU_X86_64, expression},
    {"fp_relative", JU_CPU_X86_64, fp_relative},
    {"alias", JU_CPU_X86_64, alias},
    {"raw_directives", JU_CPU_X86_64, raw_directives},
    {"catches", JU_CPU_X86_64, catches},
    {"every_reason", JU_CPU_X86_64, every_reason},
    {"pairs", JU_CPU_AARCH64, pairs},
    {"reloaded_pair", JU_CPU_AARCH64, reloaded_pair},
    {"one_register", JU_CPU_AARCH64, one_register},
    {"signed_return_address", JU_CPU_AARCH64, signed_return_address},
    {"parked", JU_CPU_AARCH64, parked},
    {"variable_on_aarch64", JU_CPU_AARCH64, variable_on_aarch64},
    {"example_3", JU_CPU_AARCH64, example_3},
};
const size_t examples_in_c_count = sizeof examples_in_c / sizeof examples_in_c[0];
