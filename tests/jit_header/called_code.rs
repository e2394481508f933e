//! Code at run time that calls back, and its frame: what the tests of the crate announce. x86-64.
use jitunwind_jit::{announce, does, Code, Frame, Known, Mark, Refusal};
use std::os::raw::{c_int, c_long, c_void};

/// `long twice(void (*watch)(void), long n)`: push rbx; mov rbx,rsi; call rdi; lea rax,[rbx+rbx]; pop rbx; ret
pub const TWICE: [u8; 12] = [0x53, 0x48, 0x89, 0xf3, 0xff, 0xd7, 0x48, 0x8d, 0x04, 0x1b, 0x5b, 0xc3];

extern "C" {
    fn mmap(at: *mut c_void, size: usize, access: c_int, kind: c_int, file: c_int, offset: c_long) -> *mut c_void;
    fn backtrace(into: *mut *mut c_void, count: c_int) -> c_int;
}

pub fn made() -> *const u8 {
    unsafe {
        let memory = mmap(std::ptr::null_mut(), 4096, 7, 0x22, -1, 0).cast::<u8>();
        memory.copy_from_nonoverlapping(TWICE.as_ptr(), TWICE.len());
        memory
    }
}

static mut SEEN: c_int = 0;
extern "C" fn watch() {
    let mut frames = [std::ptr::null_mut(); 16];
    unsafe { SEEN = backtrace(frames.as_mut_ptr(), 16) };
}

/// Whether a walk out of the code comes to its caller.
pub fn goes_on(code: *const u8) -> bool {
    let twice: extern "C" fn(extern "C" fn(), c_long) -> c_long = unsafe { std::mem::transmute(code) };
    assert_eq!(twice(watch, 21), 42);
    unsafe { SEEN > 2 }
}

pub fn frame() -> Frame {
    Frame::of_many(&[Mark::reg(does::PUSH, 1, 3), Mark::reg(does::POP, -1, 3)])
}

pub fn told(code: *const u8, size: usize, frame: &Frame) -> Result<Known, Refusal> {
    unsafe { announce(&Code::new(code, size, "twice", frame)) }
}

pub fn announced(code: *const u8) -> Result<Known, i32> {
    told(code, TWICE.len(), &frame()).map_err(|why| why.code)
}
