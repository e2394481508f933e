//! The C interface of jitunwind as it is: `sdk/c/*.h` has what each function does, which threads may call it, and its
//! errors. The crate `jitunwind` has safe types.
#![allow(non_camel_case_types)]

use std::os::raw::{c_char, c_int, c_void};

pub type ju_status = i32;
pub type ju_reg = u32;
pub type ju_cpu = i32;

pub const JU_OK: ju_status = 0;
pub const JU_END: ju_status = 1;
pub const JU_STOP_UNWIND: ju_status = 6;
pub const JU_CPU_HOST: ju_cpu = 0;

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

    pub fn ju_description_free(description: *mut ju_description) -> ju_status;
    pub fn ju_description_rows(description: *const ju_description, bytes: u64, into: *mut c_char, room: usize, length: *mut usize) -> ju_status;

    pub fn ju_register(description: *const ju_description, code: *const ju_code, registration: *mut *mut ju_registration, error: *mut ju_error) -> ju_status;
    pub fn ju_cancel(registration: *mut ju_registration, error: *mut ju_error) -> ju_status;

    pub fn ju_walk_here(on_frame: ju_on_frame, context: *mut c_void, error: *mut ju_error) -> ju_status;
    pub fn ju_frame_get(cursor: *const ju_cursor, frame: *mut ju_frame, error: *mut ju_error) -> ju_status;
    pub fn ju_frame_name(cursor: *const ju_cursor, into: *mut c_char, room: usize, offset: *mut u64) -> ju_status;
    pub fn ju_symbolise(pc: u64, is_return_address: c_int, into: *mut c_char, room: usize, offset: *mut u64) -> ju_status;
}
