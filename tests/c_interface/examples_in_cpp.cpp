// The descriptions of examples_in_c.c, by the C++ builder.
#include <span>
#include <stdexcept>
#include <typeinfo>

#include "jitunwind/builders/registers_aarch64.h"
#include "jitunwind/builders/registers_x86_64.h"
#include "tests/c_interface/examples_in_cpp.h"

using jitunwind::BuildError;
using jitunwind::Description;
using jitunwind::Result;
using Built = Result<Description, BuildError>;

namespace {

const std::type_info* const k_types[] = {&typeid(std::exception), &typeid(std::runtime_error)};

namespace of_x86_64 {
using namespace jitunwind::x86_64;

Built call_back() {
  return describe("call_back")
      .push({0, 1}, rbp)
      .push({1, 2}, rbx)
      .allocate({2, 3}, 8)
      .deallocate({7, 11}, 8)
      .pop({11, 12}, rbx)
      .pop({12, 13}, rbp)
      .size(14)
      .build();
}
Built frame_with_leave() {
  return describe("frame_with_leave")
      .push({0, 1}, rbp)
      .set_frame_pointer({1, 4}, rbp)
      .allocate({4, 8}, 32)
      .leave({20, 21})
      .build();
}
Built entered() { return describe("entered").enter({0, 4}, 32).leave({16, 17}).build(); }
Built saved_at_sp() {
  return describe("saved_at_sp")
      .allocate({0, 4}, 24)
      .save_at_sp({4, 9}, rbx, 8)
      .save_at_sp({9, 14}, r12, 16)
      .deallocate({30, 34}, 24)
      .build();
}
Built frame_pointer_above_sp() {
  return describe("frame_pointer_above_sp")
      .allocate({0, 7}, 136)
      .save_at_sp({7, 15}, rbp, 128)
      .set_frame_pointer({15, 23}, rbp, 128)
      .reload({32, 40}, rbp)
      .deallocate({40, 47}, 136)
      .build();
}
Built saved_at_fp() {
  return describe("saved_at_fp")
      .push({0, 1}, rbp)
      .set_frame_pointer({1, 4}, rbp)
      .allocate({4, 8}, 16)
      .save_at_fp({8, 12}, rbx, -8)
      .restore_sp({20, 23}, rbp)
      .pop({23, 24}, rbp)
      .build();
}
Built variable() {
  return describe("variable")
      .push({0, 1}, rbp)
      .set_frame_pointer({1, 4}, rbp)
      .push({4, 5}, rbx)
      .allocate_variable({5, 8})
      .restore_sp({18, 22}, rbp, -8)
      .pop({22, 23}, rbx)
      .pop({23, 24}, rbp)
      .build();
}
Built realigned() {
  return describe("realigned")
      .push({0, 1}, rbx)
      .set_frame_pointer({1, 4}, rax)
      .realign({4, 8})
      .allocate({8, 15}, 128)
      .store_sp({15, 20}, 64)
      .reload_sp({32, 37})
      .pop({37, 38}, rbx)
      .build();
}
Built probed() {
  return describe("probed")
      .probe_loop({{0, 8}, {8, 15}, {26, 28}, 65536}, r11)
      .allocate({28, 32}, 104)
      .deallocate({64, 71}, 65640)
      .build();
}
Built callee_that_pops() {
  return describe("callee_that_pops")
      .size(18)
      .allocate({0, 4}, 8)
      .push({4, 6})
      .push({6, 8})
      .callee_pops({8, 13}, 16)
      .deallocate({13, 17}, 8)
      .build();
}
Built popped_return_address() {
  return describe("popped_return_address").pop_return_address({0, 1}, rcx).ends_without_return().build();
}
Built red_zone() { return describe("red_zone").size(16).save_at_sp({0, 5}, rbx, -64).push({5, 6}).pop({6, 7}).build(); }
Built kept_in_register() {
  return describe("kept_in_register")
      .push({0, 1}, rbx)
      .move_to({1, 4}, r12, r8)
      .reload({8, 11}, r12)
      .pop({11, 12}, rbx)
      .build();
}
Built moved_frame_pointer() {
  return describe("moved_frame_pointer")
      .push({0, 1}, rbp)
      .set_frame_pointer({1, 4}, rbp)
      .move_frame_pointer({4, 8}, rbp, 16)
      .move_frame_pointer({16, 20}, rbp, -16)
      .restore_sp({20, 23}, rbp)
      .pop({23, 24}, rbp)
      .build();
}
Built early_returns() {
  return describe("early_returns")
      .size(48)
      .push({0, 1}, rbx)
      .allocate({1, 5}, 16)
      .remember()
      .deallocate({16, 20}, 16)
      .pop({20, 21}, rbx)
      .restore({21, 22})
      .deallocate({24, 28}, 16)
      .pop({28, 29}, rbx)
      .restore({29, 30})
      .deallocate({-6, -2}, 16)
      .pop({-2, -1}, rbx)
      .build();
}
Built labels_beside_remember() {
  return describe("labels_beside_remember")
      .region(16)
      .remember()
      .push({0, 1}, rbx)
      .label_state(0, 1)
      .remember()
      .pop({4, 5}, rbx)
      .restore({5, 6})
      .pop({8, 9}, rbx)
      .build();
}
Built mixed() {
  return describe("mixed").region(12).push({0, 1}, rbp).save_reg(3, rsp, rbp).region(-2).leave({-2, -1}).build();
}
Built leaf() { return describe("leaf").build(); }
Built facts() { return describe("facts").personality(4096).lsda(8192).gp(12288).size(8).build(); }
Built does_not_return() { return describe("does_not_return").size(10).push({0, 1}, rbx).ends_without_return().build(); }
Built example_1_in_one_region() {
  return describe("example_1_in_one_region")
      .region(44)
      .add(0, rsp, -8)
      .spill_sp_rel(0, rbp, 0)
      .save_reg(3, rsp, rbp)
      .add(4, rsp, -8)
      .spill_sp_rel(4, rbx, 0)
      .add(8, rsp, -24)
      .label_state(8, 1)
      .add(22, rsp, 24)
      .add(23, rsp, 8)
      .add(24, rsp, 8)
      .copy_state(25, 1)
      .add(40, rsp, 24)
      .add(41, rsp, 8)
      .add(42, rsp, 8)
      .build();
}
Built example_1_in_three_regions() {
  return describe("example_1_in_three_regions")
      .region(19)
      .add(0, rsp, -8)
      .spill_sp_rel(0, rbp, 0)
      .save_reg(3, rsp, rbp)
      .add(4, rsp, -8)
      .spill_sp_rel(4, rbx, 0)
      .add(8, rsp, -24)
      .stop()
      .region(7)
      .add(3, rsp, 24)
      .add(4, rsp, 8)
      .pop_frames(5, 1)
      .region(18)
      .add(14, rsp, 24)
      .add(15, rsp, 8)
      .pop_frames(16, 1)
      .build();
}
Built example_1_coarse() {
  return describe("example_1_coarse")
      .region(19)
      .add(0, rsp, -8)
      .spill_sp_rel(0, rbp, 0)
      .save_reg(3, rsp, rbp)
      .add(4, rsp, -8)
      .spill_sp_rel(4, rbx, 0)
      .add(8, rsp, -24)
      .region(7)
      .pop_frames(5, 1)
      .region(-12)
      .pop_frames(10, 1)
      .build();
}
Built example_1_in_random_order() {
  return describe("example_1_in_random_order")
      .region(44)
      .add(41, rsp, 8)
      .spill_sp_rel(4, rbx, 0)
      .copy_state(25, 1)
      .add(0, rsp, -8)
      .add(23, rsp, 8)
      .add(40, rsp, 24)
      .label_state(8, 1)
      .save_reg(3, rsp, rbp)
      .add(24, rsp, 8)
      .add(8, rsp, -24)
      .spill_sp_rel(0, rbp, 0)
      .add(42, rsp, 8)
      .add(4, rsp, -8)
      .add(22, rsp, 24)
      .build();
}
Built example_1_with_labels() {
  return describe("example_1_with_labels")
      .region(19)
      .add(0, rsp, -8)
      .spill_sp_rel(0, rbp, 0)
      .save_reg(3, rsp, rbp)
      .add(4, rsp, -8)
      .spill_sp_rel(4, rbx, 0)
      .add(8, rsp, -24)
      .label_state(-1, 100402)
      .region(7)
      .add(3, rsp, 24)
      .add(4, rsp, 8)
      .add(5, rsp, 8)
      .region(0)
      .copy_state(-1, 100402)
      .region(18)
      .add(14, rsp, 24)
      .add(15, rsp, 8)
      .add(16, rsp, 8)
      .build();
}
Built example_1_by_idioms() {
  return describe("example_1_by_idioms")
      .size(44)
      .push({0, 1}, rbp)
      .set_frame_pointer({1, 4}, rbp)
      .push({4, 5}, rbx)
      .allocate({5, 9}, 24)
      .remember()
      .deallocate({19, 23}, 24)
      .pop({23, 24}, rbx)
      .pop({24, 25}, rbp)
      .restore({25, 26})
      .deallocate({37, 41}, 24)
      .pop({41, 42}, rbx)
      .pop({42, 43}, rbp)
      .build();
}
Built example_2() { return describe("example_2").region(24).add(3, rsp, -40).add(22, rsp, 40).build(); }
Built example_4() {
  return describe("example_4")
      .push({0, 1}, rbp)
      .set_frame_pointer({1, 4}, rbp)
      .push({4, 5}, rbx)
      .push({5, 7}, r12)
      .pop({-5, -3}, r12)
      .pop({-3, -2}, rbx)
      .pop({-2, -1}, rbp)
      .build();
}
Built cold_part() {
  return describe("cold_part")
      .entry_state("cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]", 48)
      .deallocate({5, 9}, 24)
      .pop({9, 10}, rbx)
      .pop({10, 11}, rbp)
      .build();
}
Built entered_by_row() {
  return describe("entered_by_row").entry_state("cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]").leave({-2, -1}).build();
}
Built rows() {
  return describe("rows")
      .size(64)
      .row_at(5, "cfa=r10 ra=[cfa-8]")
      .row_at(17, "cfa=r10 rbp=[rbp] ra=[cfa-8]")
      .row_at(19, "cfa=[rbp-8] rbp=[rbp] ra=[cfa-8]")
      .row_at(-7, "cfa=r10 rbp=[rbp] ra=[cfa-8]")
      .row_at(-5, "cfa=r10 ra=[cfa-8]")
      .row_at(-1, "cfa=rsp+8 ra=[cfa-8]")
      .build();
}
Built expression() { return describe("expression").row_at(4, "cfa=expr(770889) ra=[cfa-8]").build(); }
Built fp_relative() {
  return describe("fp_relative")
      .region(16)
      .add(0, rsp, -8)
      .spill_sp_rel(0, rbp, 0)
      .save_reg(3, rsp, rbp)
      .spill_fp_rel(7, rbx, -8)
      .save_reg(12, rbp, rsp)
      .pop_frames(13, 1)
      .build();
}
Built alias() { return describe("alias").region(16).alias(-1, 65536).build(); }
Built raw_directives() {
  return describe("raw_directives")
      .region(8)
      .op(_U_dyn_op(4, 0, 0, 7, 18446744073709551608U))
      .op(_U_dyn_op(4, 0, 4, 7, 8))
      .build();
}
Built catches() {
  return describe("catches")
      .push({0, 1}, rbx)
      .remember()
      .pop({6, 7}, rbx)
      .restore({7, 8})
      .call_site({4, 6}, 8)
      .catches(typeid(std::exception))
      .pop({13, 14}, rbx)
      .size(15)
      .build();
}
Built every_reason() {
  return describe("every_reason")
      .push({0, 1}, rbx)
      .call_site({4, 6}, 20)
      .catches(typeid(std::runtime_error))
      .catches(typeid(std::exception))
      .call_site({6, 8}, 24)
      .allows(std::span<const std::type_info* const>(k_types))
      .cleans_up()
      .call_site({8, 10}, 28)
      .catches_all()
      .terminates({10, 12})
      .call({12, 14})
      .pop({30, 31}, rbx)
      .size(32)
      .build();
}

}  // namespace of_x86_64
namespace of_aarch64 {
using namespace jitunwind::aarch64;

Built pairs() {
  return describe("pairs")
      .store_pair_pre({0, 4}, x29, x30, -64)
      .set_frame_pointer({4, 8}, x29)
      .store_pair({8, 12}, x19, x20, 16)
      .save_at_sp({12, 16}, v8, 32)
      .load_pair_post({32, 36}, x29, x30, 64)
      .build();
}
Built reloaded_pair() {
  return describe("reloaded_pair")
      .allocate({0, 4}, 64)
      .store_pair({4, 8}, x29, x30, 32)
      .set_frame_pointer({8, 12}, x29, 32)
      .reload_pair({16, 20}, x29, x30)
      .deallocate({20, 24}, 64)
      .build();
}
Built one_register() {
  return describe("one_register").store_pre({0, 4}, x30, -16).load_post({8, 12}, x30, 16).build();
}
Built signed_return_address() {
  return describe("signed_return_address")
      .sign_return_address({0, 4})
      .store_pair_pre({4, 8}, x29, x30, -16)
      .load_pair_post({12, 16}, x29, x30, 16)
      .authenticate_return_address({16, 20})
      .build();
}
Built parked() { return describe("parked").move_to({0, 4}, x30, x17).reload({8, 12}, x30).build(); }
Built variable_on_aarch64() {
  return describe("variable_on_aarch64")
      .store_pair_pre({0, 4}, x29, x30, -16)
      .set_frame_pointer({4, 8}, x29)
      .allocate_variable({8, 12})
      .restore_sp({16, 20}, x29)
      .load_pair_post({20, 24}, x29, x30, 16)
      .build();
}
Built example_3() {
  return describe("example_3")
      .region(9)
      .add(0, sp, -32)
      .spill_sp_rel(0, x29, 0)
      .spill_sp_rel(0, x30, 8)
      .save_reg(1, sp, x29)
      .spill_sp_rel(2, x19, 16)
      .add(7, sp, 32)
      .build();
}

}  // namespace of_aarch64

}  // namespace

const std::vector<ExampleInCpp>& examples_in_cpp() {
  static const std::vector<ExampleInCpp> all{
      {"call_back", of_x86_64::call_back},
      {"frame_with_leave", of_x86_64::frame_with_leave},
      {"entered", of_x86_64::entered},
      {"saved_at_sp", of_x86_64::saved_at_sp},
      {"frame_pointer_above_sp", of_x86_64::frame_pointer_above_sp},
      {"saved_at_fp", of_x86_64::saved_at_fp},
      {"variable", of_x86_64::variable},
      {"realigned", of_x86_64::realigned},
      {"probed", of_x86_64::probed},
      {"callee_that_pops", of_x86_64::callee_that_pops},
      {"popped_return_address", of_x86_64::popped_return_address},
      {"red_zone", of_x86_64::red_zone},
      {"kept_in_register", of_x86_64::kept_in_register},
      {"moved_frame_pointer", of_x86_64::moved_frame_pointer},
      {"early_returns", of_x86_64::early_returns},
      {"labels_beside_remember", of_x86_64::labels_beside_remember},
      {"mixed", of_x86_64::mixed},
      {"leaf", of_x86_64::leaf},
      {"facts", of_x86_64::facts},
      {"does_not_return", of_x86_64::does_not_return},
      {"example_1_in_one_region", of_x86_64::example_1_in_one_region},
      {"example_1_in_three_regions", of_x86_64::example_1_in_three_regions},
      {"example_1_coarse", of_x86_64::example_1_coarse},
      {"example_1_in_random_order", of_x86_64::example_1_in_random_order},
      {"example_1_with_labels", of_x86_64::example_1_with_labels},
      {"example_1_by_idioms", of_x86_64::example_1_by_idioms},
      {"example_2", of_x86_64::example_2},
      {"example_4", of_x86_64::example_4},
      {"cold_part", of_x86_64::cold_part},
      {"entered_by_row", of_x86_64::entered_by_row},
      {"rows", of_x86_64::rows},
      {"expression", of_x86_64::expression},
      {"fp_relative", of_x86_64::fp_relative},
      {"alias", of_x86_64::alias},
      {"raw_directives", of_x86_64::raw_directives},
      {"catches", of_x86_64::catches},
      {"every_reason", of_x86_64::every_reason},
      {"pairs", of_aarch64::pairs},
      {"reloaded_pair", of_aarch64::reloaded_pair},
      {"one_register", of_aarch64::one_register},
      {"signed_return_address", of_aarch64::signed_return_address},
      {"parked", of_aarch64::parked},
      {"variable_on_aarch64", of_aarch64::variable_on_aarch64},
      {"example_3", of_aarch64::example_3},
  };
  return all;
}

const void* const examples_type_a = &typeid(std::exception);
const void* const examples_type_b = &typeid(std::runtime_error);
