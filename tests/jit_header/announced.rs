//! Programs that are not linked to the library, in every way of finding it. Each test runs this program again.
mod called_code;

use called_code::{announced, frame, goes_on, made};
use jitunwind_jit::{announce, keep, look, status, wanted, Code};
use std::os::raw::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

extern "C" {
    fn dlsym(object: *mut c_void, name: *const c_char) -> *mut c_void;
}

static OPENED: AtomicUsize = AtomicUsize::new(0);
/// Counts calls, those of the crate, too.
#[no_mangle]
extern "C" fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void {
    OPENED.fetch_add(1, SeqCst);
    let next = unsafe { dlsym(-1isize as *mut c_void, b"dlopen\0".as_ptr().cast()) };
    let next: extern "C" fn(*const c_char, c_int) -> *mut c_void = unsafe { std::mem::transmute(next) };
    next(file, flags)
}

fn library() -> String {
    format!("{}/libjitunwind.so.1", std::env::var("JITUNWIND_LIB_DIR").unwrap())
}

/// The work of the programs that the tests start, by the word in `ANNOUNCES`.
#[test]
#[ignore]
fn announces() {
    let code = made();
    match std::env::var("ANNOUNCES").unwrap_or_default().as_str() {
        "known" | "asked" => {
            if std::env::var("ANNOUNCES").unwrap() == "asked" {
                assert_eq!(look(Some("/dev/null")).unwrap_err().text, "/dev/null: file too short");
                look(Some(&library())).unwrap();
            }
            let known = announced(code).ok().unwrap();
            assert!(wanted() && goes_on(code));
            known.take_back().unwrap();
            assert!(!goes_on(code));
            let frame = frame();
            let empty = Code::new(code, 0, "empty", &frame);
            let why = unsafe { announce(&empty) }.err().unwrap();
            assert!(why.code > 0 && why.text.contains("without code"), "{}", why);
        }
        "late" => {
            if std::env::var("JITUNWIND").is_err() {
                keep();
            }
            let (gone, kept) = (announced(made()).ok().unwrap(), announced(code).ok().unwrap());
            gone.take_back().unwrap();
            assert_eq!((status().kept, goes_on(code)), (1, false));
            look(Some(&library())).unwrap();
            assert_eq!((status().kept, status().refused, goes_on(code)), (0, 0, true));
            kept.take_back().unwrap();
            assert!(!goes_on(code));
        }
        "opened" => {
            keep();
            let all: Vec<_> = (0..100).map(|_| announced(code).ok().unwrap()).collect();
            assert_eq!((OPENED.load(SeqCst), status().kept, goes_on(code)), (3, 100, false)); // a search, three names
            let file = std::ffi::CString::new(std::env::var("OPENS").unwrap()).unwrap();
            assert!(!dlopen(file.as_ptr(), 2).is_null());
            assert_eq!((status().kept, status().refused, goes_on(code)), (0, 0, true));
            all.into_iter().for_each(|one| one.take_back().unwrap());
            assert!(!goes_on(code));
        }
        "full" => {
            keep();
            let all: Vec<_> = (0..4096).map(|_| announced(code).ok().unwrap()).collect();
            assert_eq!(announced(code).err(), Some(jitunwind_jit::FULL));
            assert_eq!((status().kept, status().lost), (4096, 1));
            all.into_iter().for_each(|one| one.take_back().unwrap());
            assert!(announced(code).is_ok());
        }
        _ => {
            assert_eq!(announced(code).err(), Some(jitunwind_jit::NO_LIBRARY));
            assert!(!wanted() && !goes_on(code) && jitunwind_jit::allocate(16).is_err());
        }
    }
}

fn run(does: &str, environment: &[(&str, &str)]) -> String {
    let mut program = std::process::Command::new(std::env::current_exe().unwrap());
    program.args(["--ignored", "--nocapture", "--exact", "announces"]).env("ANNOUNCES", does).env_remove("JITUNWIND");
    let done = program.envs(environment.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{}{}", String::from_utf8_lossy(&done.stdout), text);
    text
}

#[test]
fn without_the_library() {
    run("nothing", &[]);
    assert!(
        run("nothing", &[("JITUNWIND", "/nowhere")]).contains("jitunwind: JITUNWIND=/nowhere: /nowhere: cannot open")
    );
    run("nothing", &[("JITUNWIND", "0"), ("LD_PRELOAD", &library())]);
}

#[test]
fn with_the_library() {
    let folder = std::env::var("JITUNWIND_LIB_DIR").unwrap();
    run("known", &[("JITUNWIND", &library())]);
    run("known", &[("JITUNWIND", "1"), ("LD_LIBRARY_PATH", &folder)]);
    run("known", &[("LD_PRELOAD", &library())]);
    run("asked", &[]);
}

#[test]
fn before_the_library() {
    run("late", &[]);
    run("late", &[("JITUNWIND", "late")]);
    run("full", &[]);
    for file in [library(), library().replace(".so", "-listen.so")] {
        run("opened", &[("OPENS", &file)]);
    }
}
