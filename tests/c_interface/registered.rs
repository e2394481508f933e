//! Tests of the C interface, repeated with the safe types.
use jitunwind::{walk, Builder, Instruction::*};
use std::sync::Mutex;

extern "C" {
    fn mmap(at: *mut u8, bytes: usize, protection: i32, flags: i32, fd: i32, offset: i64) -> *mut u8;
}

// push rbx; call rdi; pop rbx; ret
const CALL: [u8; 5] = [0x53, 0xff, 0xd7, 0x5b, 0xc3];

fn executable() -> &'static [u8] {
    unsafe {
        let at = mmap(std::ptr::null_mut(), 4096, 7, 0x22, -1, 0);
        std::ptr::copy_nonoverlapping(CALL.as_ptr(), at, CALL.len());
        std::slice::from_raw_parts(at, CALL.len())
    }
}

static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

extern "C" fn look() {
    let mut names = Vec::new();
    walk(|frame| {
        names.push(frame.name.unwrap_or_default());
        true
    })
    .unwrap();
    *SEEN.lock().unwrap() = names;
}

fn described(name: &str) -> jitunwind::Description {
    Builder::new(name).say(0..1, Push("rbx")).say(3..4, Pop("rbx")).build().unwrap()
}

#[test]
fn registered_code_is_walked_and_named() {
    let code = executable();
    let registration = described("by_rust").register(code).unwrap();
    let call: extern "C" fn(extern "C" fn()) = unsafe { std::mem::transmute(code.as_ptr()) };
    call(look);
    let seen = SEEN.lock().unwrap().clone();
    assert_eq!(seen.iter().filter(|name| *name == "by_rust").count(), 1, "{:?}", seen);
    assert_eq!(jitunwind::symbolise(registration.range().start + 1), Some(("by_rust".into(), 1)));
    registration.cancel();
    assert_eq!(jitunwind::symbolise(code.as_ptr() as u64), None);
}

#[test]
fn mistakes_have_the_builders_text() {
    let refused = Builder::new("f").say(0..1, Push("rbx")).build().err().unwrap();
    assert_eq!(refused.name, "w_unbalanced");
    assert!(refused.text.contains("still allocated"));
    assert!(!refused.remedy.is_empty());
    let of_another_cpu = Builder::new("f").say(0..1, Push("x29")).build().err().unwrap();
    assert_eq!(of_another_cpu.name, "other_cpu");
}

#[test]
fn sizes_are_checked() {
    let of_five = Builder::new("f").say(0..1, Push("rbx")).say(3..4, Pop("rbx")).size(5).build().unwrap();
    assert_eq!(of_five.register(&[0; 6]).err().unwrap().name, "e_range");
}

#[test]
fn early_returns_and_rows() {
    let rows = Builder::new("f").size(12).say(0..1, Push("rbx")).remember().say(4..5, Pop("rbx")).say(5..6, Return)
        .say(10..11, Pop("rbx")).build().unwrap().rows(12);
    assert_eq!(rows.lines().count(), 5, "{}", rows);
    let given = Builder::new("f").row_at(2, "cfa=r10 ra=[cfa-8]").ends_without_return().build().unwrap();
    assert!(given.rows(8).contains("+2: cfa=r10 ra=[cfa-8]"));
}

#[test]
fn walks_end_where_they_are_told_to() {
    let mut count = 0;
    walk(|_| {
        count += 1;
        count < 2
    })
    .unwrap();
    assert_eq!(count, 2);
}

#[test]
fn panics_of_a_visitor_pass_the_walk() {
    assert!(std::panic::catch_unwind(|| walk(|_| panic!("of the visitor"))).is_err());
}

#[test]
fn descriptions_are_shared_by_threads() {
    let description = described("shared");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let code = [0u8; 5];
                for _ in 0..100 {
                    description.register(&code).unwrap().cancel();
                }
            });
        }
    });
}
