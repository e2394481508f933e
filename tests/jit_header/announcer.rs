//! A JIT compiler in Rust, which has the crate in place of the header. Its first argument says what it does; it fails if
//! a result is not the expected one. x86-64.
use jitunwind_jit::{announce, does, look, status, Code, Frame, Known, Mark, Refusal};
use std::os::raw::{c_int, c_long, c_void};

/// `long twice(void (*watch)(void), long n)`: push rbx; mov rbx,rsi; call rdi; lea rax,[rbx+rbx]; pop rbx; ret
const TWICE: [u8; 12] = [0x53, 0x48, 0x89, 0xf3, 0xff, 0xd7, 0x48, 0x8d, 0x04, 0x1b, 0x5b, 0xc3];

extern "C" {
    fn mmap(at: *mut c_void, size: usize, access: c_int, kind: c_int, file: c_int, offset: c_long) -> *mut c_void;
    fn backtrace(into: *mut *mut c_void, count: c_int) -> c_int;
    fn fork() -> c_int;
    fn waitpid(child: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
}

fn made() -> *const u8 {
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
fn goes_on(code: *const u8) -> bool {
    let twice: extern "C" fn(extern "C" fn(), c_long) -> c_long = unsafe { std::mem::transmute(code) };
    assert_eq!(twice(watch, 21), 42);
    unsafe { SEEN > 2 }
}

fn frame() -> Frame {
    Frame::of_many(&[Mark::reg(does::PUSH, 1, 3), Mark::reg(does::POP, -1, 3)])
}
fn told(code: *const u8, size: usize, frame: &Frame) -> Result<Known, Refusal> {
    unsafe { announce(&Code::new(code, size, "twice", frame)) }
}
fn announced(code: *const u8) -> Result<Known, i32> {
    told(code, TWICE.len(), &frame()).map_err(|why| why.code)
}
fn refusal(path: &str) -> i32 {
    look(Some(path)).unwrap_err().code
}

/// Files that are no library, or not the right one; the arguments are an older one, the library, and a newer one.
fn look_for(older: &str, library: &str, newer: &str) {
    let code = made();
    assert_eq!(refusal(older), jitunwind_jit::OLD_LIBRARY);
    assert_eq!(refusal("libm.so.6"), jitunwind_jit::NOT_LOADED);
    assert_eq!(refusal("/dev/null"), jitunwind_jit::NOT_LOADED);
    assert_eq!(announced(code).err(), Some(jitunwind_jit::NO_LIBRARY));
    look(Some(library)).unwrap();
    look(Some(library)).unwrap();
    assert_eq!(refusal(newer), jitunwind_jit::OTHER_LIBRARY);
    assert!(announced(code).is_ok() && goes_on(code));
}

fn serve(newer: &str) {
    look(Some(newer)).unwrap();
    assert_eq!(status().library, 20000);
    announced(made()).ok().unwrap().take_back().unwrap();
}

/// By a library, and while announcements are kept for one.
fn make_mistakes() {
    let (code, right) = (made(), frame());
    for size in [0, usize::MAX] {
        let why = told(code, size, &right).err().unwrap();
        assert!(why.code == jitunwind_jit::BAD_CODE || (why.code > 0 && status().library != 0));
    }
    for mark in [Mark::reg(999, 1, 3), Mark::reg(does::PUSH, i32::MIN, 3)] {
        let result = told(code, TWICE.len(), &Frame::of_one(&[mark]));
        assert_eq!(result.is_err(), status().library != 0); // kept ones are read later
    }
    assert!(!goes_on(code) && announced(code).is_ok());
}

fn announce_in_children() {
    let code = made();
    let known = announced(code).ok().unwrap();
    let was = goes_on(code);
    let child = unsafe { fork() };
    if child == 0 {
        let own = made();
        let theirs = announced(own).ok().unwrap();
        let right = goes_on(code) == was && goes_on(own) == was && known.take_back().is_ok();
        let ended = !goes_on(code) && theirs.take_back().is_ok();
        unsafe { _exit(if right && ended { 7 } else { 1 }) };
    }
    let mut result = 0;
    assert_eq!(unsafe { waitpid(child, &mut result, 0) }, child);
    assert_eq!((result, goes_on(code)), (7 << 8, was));
    known.take_back().unwrap();
    assert!(!goes_on(code));
}

/// In a program whose environment is ignored.
fn announce_to_nobody() {
    assert_eq!(announced(made()).err(), Some(jitunwind_jit::NO_LIBRARY));
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    match words.get(1).map_or("", |word| word) {
        "look" => look_for(&words[2], &words[3], &words[4]),
        "serve" => serve(&words[2]),
        "mistakes" => make_mistakes(),
        "fork" => announce_in_children(),
        _ => announce_to_nobody(),
    }
    println!("as expected");
}
