//! A JIT compiler in Rust, which has the crate in place of the header. Its first argument says what it does; it fails if
//! a result is not the expected one. x86-64.
mod called_code;

use called_code::{announced, frame, goes_on, made, told, TWICE};
use jitunwind_jit::{does, look, status, Frame, Mark};
use std::os::raw::c_int;

extern "C" {
    fn fork() -> c_int;
    fn waitpid(child: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
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

/// By a newer library, which is at the path or is found by its name.
fn serve(newer: Option<&str>) {
    look(newer).unwrap();
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
        "serve" => serve(words.get(2).map(|path| &path[..])),
        "mistakes" => make_mistakes(),
        "fork" => announce_in_children(),
        _ => announce_to_nobody(),
    }
    println!("as expected");
}
