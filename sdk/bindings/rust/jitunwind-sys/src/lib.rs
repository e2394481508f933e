//! Declares the C interface of jitunwind. `sdk/c/*.h` documents each function: its effect, its errors, and the threads
//! that may call it. The crate `jitunwind` has safe types.
#![allow(non_camel_case_types)]

use std::os::raw::{c_char, c_int, c_void};

pub type ju_status = i32;
pub type ju_reg = u32;
pub type ju_cpu = i32;

pub const JU_OK: ju_status = 0;
pub const JU_END: ju_status = 1;
pub const JU_STOP_UNWIND: ju_status = 6;
pub const JU_CPU_HOST: ju_cpu = 0;
pub const JU_CPU_X86_64: ju_cpu = 62;
pub const JU_CPU_AARCH64: ju_cpu = 183;

macro_rules! opaque {
    ($($name:ident)*) => { $(
        /// A handle.
        #[repr(C)]
        pub struct $name { _private: [u8; 0] }
    )* };
}
opaque! { ju_builder ju_description ju_registration ju_target ju_decision }

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ju_error {
    pub struct_size: usize,
    pub code: ju_status,
    pub at: u64,
    pub remedy: *const c_char,
    pub place: [c_char; 64],
    pub text: [c_char; 512],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ju_code {
    pub struct_size: usize,
    pub start: u64,
    pub size: u64,
    pub name: *const c_char,
    pub lsda: u64,
    pub landing_pad_base: u64,
    pub user: *mut c_void,
}

/// The bytes of one instruction.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ju_instruction {
    pub begin: i64,
    pub end: i64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ju_description_facts {
    pub struct_size: usize,
    pub size: u64,
    pub min_size: u64,
    pub personality: u64,
    pub lsda: u64,
    pub gp: u64,
    pub warnings: usize,
    pub format: i32,
    pub cpu: ju_cpu,
    pub shape_users: usize,
    pub shape_bytes: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ju_cursor {
    pub words: [u64; 160],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ju_frame {
    pub struct_size: usize,
    pub pc: u64,
    pub sp: u64,
    pub depth: u32,
    pub origin: i32,
    pub is_guess: i32,
    pub is_signal_frame: i32,
    pub is_return_address: i32,
}

pub type ju_on_frame = unsafe extern "C" fn(*const ju_cursor, *mut c_void) -> c_int;

extern "C" {
    pub fn ju_version() -> u32;
    pub fn ju_status_name(status: ju_status) -> *const c_char;
    pub fn ju_status_text(status: ju_status) -> *const c_char;
    pub fn ju_register_by_name(cpu: ju_cpu, name: *const c_char) -> ju_reg;

    pub fn ju_describe(cpu: ju_cpu, name: *const c_char, builder: *mut *mut ju_builder, error: *mut ju_error) -> ju_status;
    pub fn ju_builder_free(builder: *mut ju_builder) -> ju_status;
    pub fn ju_build(builder: *const ju_builder, description: *mut *mut ju_description, error: *mut ju_error) -> ju_status;
    pub fn ju_builder_findings(builder: *const ju_builder) -> *const c_char;
    pub fn ju_set_size(builder: *mut ju_builder, bytes: u64) -> ju_status;
    pub fn ju_ends_without_return(builder: *mut ju_builder) -> ju_status;
    pub fn ju_push(builder: *mut ju_builder, begin: i64, end: i64, reg: ju_reg) -> ju_status;
    pub fn ju_pop(builder: *mut ju_builder, begin: i64, end: i64, reg: ju_reg) -> ju_status;
    pub fn ju_allocate(builder: *mut ju_builder, begin: i64, end: i64, bytes: i64) -> ju_status;
    pub fn ju_deallocate(builder: *mut ju_builder, begin: i64, end: i64, bytes: i64) -> ju_status;
    pub fn ju_set_frame_pointer(builder: *mut ju_builder, begin: i64, end: i64, reg: ju_reg, above_sp: i64) -> ju_status;
    pub fn ju_save_at_sp(builder: *mut ju_builder, begin: i64, end: i64, reg: ju_reg, offset: i64) -> ju_status;
    pub fn ju_save_at_fp(builder: *mut ju_builder, begin: i64, end: i64, reg: ju_reg, offset: i64) -> ju_status;
    pub fn ju_restore_sp(builder: *mut ju_builder, begin: i64, end: i64, fp: ju_reg, offset: i64) -> ju_status;
    pub fn ju_leave(builder: *mut ju_builder, begin: i64, end: i64) -> ju_status;
    pub fn ju_remember(builder: *mut ju_builder) -> ju_status;
    pub fn ju_restore(builder: *mut ju_builder, begin: i64, end: i64) -> ju_status;
    pub fn ju_row_at(builder: *mut ju_builder, offset: i64, row: *const c_char) -> ju_status;

    pub fn ju_builder_copy(builder: *const ju_builder, copy: *mut *mut ju_builder, error: *mut ju_error) -> ju_status;
    pub fn ju_set_personality(builder: *mut ju_builder, routine: u64) -> ju_status;
    pub fn ju_set_lsda(builder: *mut ju_builder, address: u64) -> ju_status;
    pub fn ju_set_gp(builder: *mut ju_builder, value: u64) -> ju_status;
    pub fn ju_push_other(builder: *mut ju_builder, begin: i64, end: i64) -> ju_status;
    pub fn ju_enter(builder: *mut ju_builder, begin: i64, end: i64, bytes: i64) -> ju_status;
    pub fn ju_move_frame_pointer(builder: *mut ju_builder, begin: i64, end: i64, reg: ju_reg, bytes: i64) -> ju_status;
    pub fn ju_move_to(builder: *mut ju_builder, begin: i64, end: i64, reg: ju_reg, to: ju_reg) -> ju_status;
    pub fn ju_store_pair(builder: *mut ju_builder, begin: i64, end: i64, first: ju_reg, second: ju_reg, offset: i64) -> ju_status;
    pub fn ju_store_pair_pre(builder: *mut ju_builder, begin: i64, end: i64, first: ju_reg, second: ju_reg, moved: i64) -> ju_status;
    pub fn ju_store_pre(builder: *mut ju_builder, begin: i64, end: i64, reg: ju_reg, moved: i64) -> ju_status;
    pub fn ju_sign_return_address(builder: *mut ju_builder, begin: i64, end: i64) -> ju_status;
    pub fn ju_realign(builder: *mut ju_builder, begin: i64, end: i64) -> ju_status;
    pub fn ju_allocate_variable(builder: *mut ju_builder, begin: i64, end: i64) -> ju_status;
    pub fn ju_store_sp(builder: *mut ju_builder, begin: i64, end: i64, offset: i64) -> ju_status;
    pub fn ju_reload_sp(builder: *mut ju_builder, begin: i64, end: i64) -> ju_status;
    pub fn ju_probe_loop(builder: *mut ju_builder, bound: ju_instruction, first_step: ju_instruction, back: ju_instruction, bytes: i64, scratch: ju_reg) -> ju_status;
    pub fn ju_pop_other(builder: *mut ju_builder, begin: i64, end: i64) -> ju_status;
    pub fn ju_reload(builder: *mut ju_builder, begin: i64, end: i64, reg: ju_reg) -> ju_status;
    pub fn ju_reload_pair(builder: *mut ju_builder, begin: i64, end: i64, first: ju_reg, second: ju_reg) -> ju_status;
    pub fn ju_load_pair_post(builder: *mut ju_builder, begin: i64, end: i64, first: ju_reg, second: ju_reg, moved: i64) -> ju_status;
    pub fn ju_load_post(builder: *mut ju_builder, begin: i64, end: i64, reg: ju_reg, moved: i64) -> ju_status;
    pub fn ju_authenticate_return_address(builder: *mut ju_builder, begin: i64, end: i64) -> ju_status;
    pub fn ju_pop_return_address(builder: *mut ju_builder, begin: i64, end: i64, to: ju_reg) -> ju_status;
    pub fn ju_call(builder: *mut ju_builder, begin: i64, end: i64) -> ju_status;
    pub fn ju_callee_pops(builder: *mut ju_builder, begin: i64, end: i64, bytes: i64) -> ju_status;
    pub fn ju_call_site(builder: *mut ju_builder, begin: i64, end: i64, landing_pad: i64) -> ju_status;
    pub fn ju_catches(builder: *mut ju_builder, type_info: *const c_void) -> ju_status;
    pub fn ju_catches_all(builder: *mut ju_builder) -> ju_status;
    pub fn ju_allows(builder: *mut ju_builder, type_infos: *const *const c_void, count: usize) -> ju_status;
    pub fn ju_cleans_up(builder: *mut ju_builder) -> ju_status;
    pub fn ju_terminates(builder: *mut ju_builder, begin: i64, end: i64) -> ju_status;
    pub fn ju_selector(builder: *mut ju_builder, type_info: *const c_void) -> c_int;
    pub fn ju_entry_state(builder: *mut ju_builder, row: *const c_char) -> ju_status;
    pub fn ju_entry_state_at(builder: *mut ju_builder, row: *const c_char, sp_distance: i64) -> ju_status;
    pub fn ju_region(builder: *mut ju_builder, insn_count: i32) -> ju_status;
    pub fn ju_save_reg(builder: *mut ju_builder, when: i32, reg: ju_reg, into_reg: ju_reg) -> ju_status;
    pub fn ju_spill_sp_rel(builder: *mut ju_builder, when: i32, reg: ju_reg, offset: i64) -> ju_status;
    pub fn ju_spill_fp_rel(builder: *mut ju_builder, when: i32, reg: ju_reg, offset: i64) -> ju_status;
    pub fn ju_add(builder: *mut ju_builder, when: i32, reg: ju_reg, value: i64) -> ju_status;
    pub fn ju_pop_frames(builder: *mut ju_builder, when: i32, count: i64) -> ju_status;
    pub fn ju_label_state(builder: *mut ju_builder, when: i32, label: u64) -> ju_status;
    pub fn ju_copy_state(builder: *mut ju_builder, when: i32, label: u64) -> ju_status;
    pub fn ju_alias(builder: *mut ju_builder, when: i32, address: u64) -> ju_status;
    pub fn ju_stop(builder: *mut ju_builder) -> ju_status;
    pub fn ju_op(builder: *mut ju_builder, tag: i8, predicate: i8, when: i32, reg: i16, value: u64) -> ju_status;
    pub fn ju_description_copy(description: *const ju_description, copy: *mut *mut ju_description, error: *mut ju_error) -> ju_status;
    pub fn ju_description_get(description: *const ju_description, facts: *mut ju_description_facts, error: *mut ju_error) -> ju_status;
    pub fn ju_description_check_size(description: *const ju_description, bytes: u64, error: *mut ju_error) -> ju_status;
    pub fn ju_description_name(description: *const ju_description, into: *mut c_char, room: usize, length: *mut usize) -> ju_status;
    pub fn ju_description_row(description: *const ju_description, offset: u64, bytes: u64, into: *mut c_char, room: usize, length: *mut usize) -> ju_status;
    pub fn ju_description_directives(description: *const ju_description, into: *mut c_char, room: usize, length: *mut usize) -> ju_status;
    pub fn ju_description_warnings(description: *const ju_description, into: *mut c_char, room: usize, length: *mut usize) -> ju_status;
    pub fn ju_frame_shapes(shapes: *mut usize, bytes: *mut usize);

    pub fn ju_description_free(description: *mut ju_description) -> ju_status;
    pub fn ju_description_rows(description: *const ju_description, bytes: u64, into: *mut c_char, room: usize, length: *mut usize) -> ju_status;

    pub fn ju_register(description: *const ju_description, code: *const ju_code, registration: *mut *mut ju_registration, error: *mut ju_error) -> ju_status;
    pub fn ju_cancel(registration: *mut ju_registration, error: *mut ju_error) -> ju_status;

    pub fn ju_walk_here(on_frame: ju_on_frame, context: *mut c_void, error: *mut ju_error) -> ju_status;
    pub fn ju_frame_get(cursor: *const ju_cursor, frame: *mut ju_frame, error: *mut ju_error) -> ju_status;
    pub fn ju_frame_name(cursor: *const ju_cursor, into: *mut c_char, room: usize, offset: *mut u64) -> ju_status;
    pub fn ju_symbolise(pc: u64, is_return_address: c_int, into: *mut c_char, room: usize, offset: *mut u64) -> ju_status;
}
