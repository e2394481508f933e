//! What `jitunwind_jit.h` is for C: tells jitunwind of code that a JIT compiler makes, in processes that have jitunwind.
//! Nothing is linked. The library is found as the header finds it: loaded already, by `JITUNWIND` in the environment, or
//! by [`look`]. Without it a call loads a pointer, tests it and returns.
//!
//! ```
//! use jitunwind_jit::{announce, does, Code, Frame, Mark, Refusal};
//! let frame = Frame::of_many(&[Mark::reg(does::PUSH, 1, 3), Mark::reg(does::POP, -1, 3)]); // rbx, by its DWARF number
//! # let bytes = [0u8; 16];
//! match unsafe { announce(&Code::new(bytes.as_ptr(), bytes.len(), "add", &frame)) } {
//!     Ok(known) => known.take_back().unwrap(), // before the code is freed
//!     Err(Refusal { code, .. }) => assert_eq!(code, jitunwind_jit::NO_LIBRARY),
//! }
//! ```
use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Arc;

/// The version of the header's interface.
const VERSION: c_uint = 1;
pub const NO_LIBRARY: i32 = -1;
pub const FULL: i32 = -2;
pub const OLD_LIBRARY: i32 = -3;
pub const NOT_LOADED: i32 = -4;
pub const OTHER_LIBRARY: i32 = -5;
pub const SWITCHED_OFF: i32 = -6;
/// Another thread hands this code to a library that has just come.
pub const BUSY: i32 = -7;
pub const BAD_CODE: i32 = -8;
/// This handler has interrupted the library, or a search for one.
pub const IN_HANDLER: i32 = 122;

/// What an instruction does to the frame; `enum ju_jit_does` of the header has the meaning of each.
pub mod does {
    macro_rules! numbered {
        ($at:expr;) => { #[cfg(test)] pub(crate) const COUNT: u16 = $at; };
        ($at:expr; $name:ident $($rest:ident)*) => { pub const $name: u16 = $at; numbered!($at + 1; $($rest)*); };
    }
    numbered! { 0; PUSH PUSH_OTHER ENTER ALLOCATE SET_FRAME_POINTER MOVE_FRAME_POINTER SAVE_AT_SP SAVE_AT_FP MOVE_TO
    STORE_PAIR STORE_PAIR_PRE STORE_PRE SIGN_RETURN_ADDRESS REALIGN ALLOCATE_VARIABLE STORE_SP RELOAD_SP POP
    POP_OTHER DEALLOCATE RESTORE_SP LEAVE RELOAD RELOAD_PAIR LOAD_PAIR_POST LOAD_POST AUTHENTICATE_RETURN_ADDRESS
    RESTORE CALLEE_POPS REMEMBER ENDS_WITHOUT_RETURN SPILL_SP_REL ADD_TO_SP }
}

/// An instruction that ends at the offset `end`; 0 and negative ones count from the code's end. Registers by their DWARF
/// numbers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    pub does: u16,
    pub reg: u16,
    pub other: u16,
    pub end: i32,
    pub value: i64,
}

impl Mark {
    pub const fn new(does: u16, end: i32, value: i64) -> Mark {
        Mark { does, reg: 0, other: 0, end, value }
    }
    pub const fn reg(does: u16, end: i32, reg: u16) -> Mark {
        Mark { does, reg, other: 0, end, value: 0 }
    }
}

#[repr(C)]
struct RawFrame {
    marks: *const Mark,
    mark_count: usize,
    serves_many: c_int,
    personality: *const c_void,
    made: *mut c_void,
}

struct OwnedFrame {
    raw: std::cell::UnsafeCell<RawFrame>,
    _marks: Box<[Mark]>,
}
// The library changes `made` by atomic instructions, and nothing else changes.
unsafe impl Send for OwnedFrame {}
unsafe impl Sync for OwnedFrame {}
impl Drop for OwnedFrame {
    fn drop(&mut self) {
        if let Some(library) = library() {
            unsafe { (library.forget)(self.raw.get()) };
        }
    }
}

/// How code builds its frame.
#[derive(Clone)]
pub struct Frame(Arc<OwnedFrame>);

impl Frame {
    /// A frame that any number of functions have. It is checked once, by the first announcement.
    pub fn of_many(marks: &[Mark]) -> Frame {
        Frame::new(marks, 1)
    }
    /// A frame of one function. Only places and registers are checked.
    pub fn of_one(marks: &[Mark]) -> Frame {
        Frame::new(marks, 0)
    }
    fn new(marks: &[Mark], serves_many: c_int) -> Frame {
        let marks: Box<[Mark]> = marks.into();
        let raw = RawFrame {
            marks: marks.as_ptr(),
            mark_count: marks.len(),
            serves_many,
            personality: null(),
            made: null_mut(),
        };
        Frame(Arc::new(OwnedFrame { raw: raw.into(), _marks: marks }))
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub offset: u64,
    pub line: u32,
}

/// Code that is in place.
#[derive(Clone)]
pub struct Code<'a> {
    pub start: *const u8,
    pub size: usize,
    pub name: &'a str,
    pub frame: &'a Frame,
    pub user: *mut c_void,
    pub file: &'a str,
    pub lines: &'a [Line],
}

impl<'a> Code<'a> {
    pub fn new(start: *const u8, size: usize, name: &'a str, frame: &'a Frame) -> Code<'a> {
        Code { start, size, name, frame, user: null_mut(), file: "", lines: &[] }
    }
}

#[repr(C)]
struct RawCode {
    struct_size: usize,
    start: *const u8,
    size: usize,
    name: *const c_char,
    frame: *mut RawFrame,
    eh_frame: *const c_void,
    eh_frame_size: usize,
    lsda: *const c_void,
    user: *mut c_void,
    file: *const c_char,
    lines: *const Line,
    line_count: usize,
}

/// A copy of a `Code` in the library's form.
struct OwnedCode {
    raw: RawCode,
    _frame: Frame,
    _texts: [CString; 2],
    _lines: Box<[Line]>,
}
unsafe impl Send for OwnedCode {}

impl OwnedCode {
    fn new(code: &Code) -> Result<OwnedCode, Refusal> {
        let text = |of: &str| CString::new(of).map_err(|_| Refusal::own(BAD_CODE, "a name or file has a NUL"));
        let texts = [text(code.name)?, text(code.file)?];
        let lines: Box<[Line]> = code.lines.into();
        let raw = RawCode {
            struct_size: std::mem::size_of::<RawCode>(),
            start: code.start,
            size: code.size,
            name: texts[0].as_ptr(),
            frame: code.frame.0.raw.get(),
            eh_frame: null(),
            eh_frame_size: 0,
            lsda: null(),
            user: code.user,
            file: texts[1].as_ptr(),
            lines: lines.as_ptr(),
            line_count: lines.len(),
        };
        Ok(OwnedCode { raw, _frame: code.frame.clone(), _texts: texts, _lines: lines })
    }
}

#[repr(C)]
struct RawError {
    struct_size: usize,
    code: c_int,
    at: u64,
    remedy: *const c_char,
    place: [c_char; 64],
    text: [c_char; 512],
}

/// Why a call did nothing: a negative number of the header, or a `ju_status`, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: i32,
    pub text: String,
}

impl Refusal {
    fn own(code: i32, text: &str) -> Refusal {
        Refusal { code, text: text.into() }
    }
    fn other_library() -> Refusal {
        Refusal::own(OTHER_LIBRARY, "another library of jitunwind serves this program already")
    }
    fn in_search() -> Refusal {
        Refusal::own(IN_HANDLER, "this handler has interrupted a search for a library")
    }
    #[cold]
    fn no_library() -> Refusal {
        Refusal::own(NO_LIBRARY, "no library of jitunwind serves this program")
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, to: &mut std::fmt::Formatter) -> std::fmt::Result {
        to.write_str(&self.text)
    }
}
impl std::error::Error for Refusal {}

/// Room for code: where it runs, where it is written, its size.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Room {
    pub start: *mut u8,
    pub writable: *mut u8,
    pub size: usize,
}

#[repr(C)]
struct Table {
    struct_size: usize,
    library: c_uint,
    announce: unsafe extern "C" fn(*const RawCode, *mut *mut c_void, *mut RawError) -> c_int,
    take_back: unsafe extern "C" fn(*mut c_void, *mut RawError) -> c_int,
    forget: unsafe extern "C" fn(*mut RawFrame) -> c_int,
    allocate: unsafe extern "C" fn(usize, *mut Room, *mut RawError) -> c_int,
    commit: unsafe extern "C" fn(*const RawCode, *mut RawError) -> c_int,
    release: unsafe extern "C" fn(*const c_void, *mut RawError) -> c_int,
    text: unsafe extern "C" fn(c_int) -> *const c_char,
}

extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(object: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
    fn secure_getenv(name: *const c_char) -> *const c_char;
    static ju_jit_rust_note_1: [c_uint; 6];
}
const LAZY_AND_STAYS: c_int = 1 | 0x1000;
const LOADED_ONLY: c_int = 4;
const FUNCTION: &[u8] = b"ju_jit_functions\0";
const NAMES: [&[u8]; 3] = [b"libjitunwind-listen.so.1\0", b"libjitunwind.so.1\0", b"libjitunwind-core.so.1\0"];

// Libraries that are loaded later find this note of each program and shared object, and call the function.
std::arch::global_asm!(
    ".pushsection .note.jitunwind.jit_rust,\"a\",%note\n.balign 4\n.hidden ju_jit_rust_come_1, ju_jit_rust_note_1",
    ".globl ju_jit_rust_note_1\nju_jit_rust_note_1: .long 10, 4, 2\n.asciz \"jitunwind\"\n.balign 4",
    ".long ju_jit_rust_come_1 - .\n.popsection",
);

/// Null: no call goes anywhere. `FIRST`: nothing was looked for yet, or a library may come.
static NOW: AtomicPtr<Table> = AtomicPtr::new(FIRST);
const FIRST: *mut Table = 1 as *mut Table;
static LIBRARY: AtomicPtr<Table> = AtomicPtr::new(null_mut());
/// 0: announcements are not kept. 2: they are, and a search has begun, after which a library brings itself.
static KEEPS: AtomicUsize = AtomicUsize::new(0);
static IS_TOLD: AtomicBool = AtomicBool::new(false);
static LOST: AtomicUsize = AtomicUsize::new(0);
static REFUSED: AtomicUsize = AtomicUsize::new(0);
const MOST_KEPT: usize = 4096;
thread_local! {
    /// Whether this thread looks for a library: its handlers must not do so, too.
    static LOOKS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// An announcement that is kept. There is no lock, which children of `fork()` could find held.
struct Slot {
    holder: AtomicUsize, // one of these, or the library's handle
    copy: AtomicPtr<OwnedCode>,
}
const FREE: usize = 0;
const TAKEN: usize = 1; // a thread works on it
const WAITS: usize = 2; // `copy` is the announcement
const NOT_SERVED: usize = 3; // the library has refused it
#[allow(clippy::declare_interior_mutable_const)] // each slot is a copy of it
const FREE_SLOT: Slot = Slot { holder: AtomicUsize::new(FREE), copy: AtomicPtr::new(null_mut()) };
static KEPT: [Slot; MOST_KEPT] = [FREE_SLOT; MOST_KEPT];

impl Slot {
    fn take(&self, holder: usize) -> bool {
        self.holder.compare_exchange(holder, TAKEN, SeqCst, SeqCst).is_ok()
    }
    /// Precondition: this thread has taken it.
    fn leave(&self, holder: usize) {
        let copy = self.copy.swap(null_mut(), SeqCst);
        self.holder.store(holder, SeqCst);
        drop((!copy.is_null()).then(|| unsafe { Box::from_raw(copy) }));
    }
    fn hand_over(&self, library: &Table) {
        let mut known = null_mut();
        match unsafe { (library.announce)(&(*self.copy.load(SeqCst)).raw, &mut known, null_mut()) } {
            0 => self.leave(known as usize),
            IN_HANDLER => self.holder.store(WAITS, SeqCst), // the next look() does it
            _ => {
                REFUSED.fetch_add(1, SeqCst);
                self.leave(NOT_SERVED);
            }
        }
    }
    fn give_up(&self) -> Result<(), Refusal> {
        let states = (0..1000).map(|_| self.holder.load(SeqCst));
        let waits = |holder: &usize| *holder == TAKEN && (std::thread::yield_now(), true).1;
        let holder = states.skip_while(waits).next().filter(|&holder| self.take(holder));
        let busy = || Refusal::own(BUSY, "another thread hands this code to a library that has just come");
        let holder = holder.ok_or_else(busy)?;
        let result = match holder {
            WAITS | NOT_SERVED => Ok(()),
            known => take_back(known as *mut c_void),
        };
        self.leave(FREE);
        result
    }
}

fn library() -> Option<&'static Table> {
    unsafe { LIBRARY.load(SeqCst).as_ref() }
}

fn keeps() -> bool {
    KEEPS.load(SeqCst) != 0
}

fn take_back(known: *mut c_void) -> Result<(), Refusal> {
    let library = library().ok_or_else(Refusal::no_library)?;
    ask(|error| unsafe { (library.take_back)(known, error) })
}

/// Calls a function of the library that takes an error.
fn ask(call: impl FnOnce(*mut RawError) -> c_int) -> Result<(), Refusal> {
    let mut error: RawError = unsafe { std::mem::zeroed() };
    error.struct_size = std::mem::size_of::<RawError>();
    match call(&mut error) {
        0 => Ok(()),
        code => {
            let text = unsafe { CStr::from_ptr(error.text.as_ptr()) }.to_string_lossy().into_owned();
            Err(Refusal { code, text })
        }
    }
}

enum Place {
    Library(*mut c_void),
    Slot(usize),
}

/// Announced code, which stays announced until [`Known::take_back`].
#[must_use]
pub struct Known {
    place: Place,
    _frame: Frame,
}
unsafe impl Send for Known {}

impl Known {
    /// Takes the code back, before it is freed or written over.
    pub fn take_back(self) -> Result<(), Refusal> {
        match self.place {
            Place::Library(known) => take_back(known),
            Place::Slot(slot) => KEPT[slot].give_up(),
        }
    }
}

/// Whether announcements go anywhere: JITs without it need not collect marks.
#[inline]
pub fn wanted() -> bool {
    !NOW.load(Relaxed).is_null()
}

/// Announces code.
///
/// # Safety
/// The marks must be right, and the code must stay in place until it is taken back.
#[inline]
pub unsafe fn announce(code: &Code) -> Result<Known, Refusal> {
    if wanted() {
        announce_now(code)
    } else {
        Err(Refusal::no_library())
    }
}

fn announce_now(code: &Code) -> Result<Known, Refusal> {
    let library = found();
    if library.is_none() && LOOKS.with(|looks| looks.get()) && !keeps() {
        return Err(Refusal::in_search());
    }
    let owned = OwnedCode::new(code)?;
    let _frame = code.frame.clone();
    if let Some(library) = library {
        let mut known = null_mut();
        ask(|error| unsafe { (library.announce)(&owned.raw, &mut known, error) })?;
        return Ok(Known { place: Place::Library(known), _frame });
    } else if !keeps() {
        return Err(Refusal::no_library());
    } else if code.size == 0 || code.size > usize::MAX - code.start as usize {
        return Err(Refusal::own(BAD_CODE, "the code's range is empty or wraps"));
    }
    let free = KEPT.iter().position(|slot| slot.holder.load(SeqCst) == FREE && slot.take(FREE));
    let slot = free.ok_or_else(|| {
        LOST.fetch_add(1, SeqCst);
        Refusal::own(FULL, "not kept for a later library: as much as there is room for is kept already")
    })?;
    KEPT[slot].copy.store(Box::into_raw(Box::new(owned)), SeqCst);
    KEPT[slot].holder.store(WAITS, SeqCst);
    if let Some(library) = self::library() {
        hand_over(library); // it came meanwhile
    }
    Ok(Known { place: Place::Slot(slot), _frame })
}

/// Announces what was kept. A slot that another thread works on is handed over by that thread.
fn hand_over(library: &Table) {
    KEPT.iter().filter(|slot| slot.take(WAITS)).for_each(|slot| slot.hand_over(library));
}

/// Room for code that tools see. Errors: [`NO_LIBRARY`], after which JITs use memory of their own.
pub fn allocate(size: usize) -> Result<Room, Refusal> {
    let mut room = Room { start: null_mut(), writable: null_mut(), size: 0 };
    let library = found().ok_or_else(Refusal::no_library)?;
    ask(|error| unsafe { (library.allocate)(size, &mut room, error) })?;
    Ok(room)
}

/// Announces code whose bytes were written to a room.
///
/// # Safety
/// As [`announce`].
pub unsafe fn commit(code: &Code) -> Result<(), Refusal> {
    let library = found().ok_or_else(Refusal::no_library)?;
    let owned = OwnedCode::new(code)?;
    ask(|error| (library.commit)(&owned.raw, error))
}

/// Takes code of a room back, and frees the room.
///
/// # Safety
/// Nothing runs the code.
pub unsafe fn release(start: *const u8) -> Result<(), Refusal> {
    let library = found().ok_or_else(Refusal::no_library)?;
    ask(|error| (library.release)(start.cast(), error))
}

/// The library, if there is one or if it is found now. A library that comes after the search brings itself.
fn found() -> Option<&'static Table> {
    if wanted() && library().is_none() && KEEPS.load(SeqCst) != 2 && !LOOKS.with(|looks| looks.get()) {
        let _ = look(None);
    }
    library()
}

#[no_mangle]
extern "C" fn ju_jit_rust_come_1(functions: Functions) {
    if keeps() {
        let _ = serve(functions);
    }
}

/// Keeps announcements from now on, if there is no library: 4096 at a time. The next one looks for a loaded library.
pub fn keep() {
    KEEPS.store(1, SeqCst);
    if library().is_none() {
        NOW.store(FIRST, SeqCst);
    }
}

/// The version of the library, 10000 * major + 100 * minor + patch, or 0; announcements that wait, that were lost beyond
/// the bound, and that the library refused when it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    pub library: u32,
    pub kept: usize,
    pub lost: usize,
    pub refused: usize,
}

pub fn status() -> Status {
    Status {
        library: library().map_or(0, |table| table.library),
        kept: KEPT.iter().filter(|slot| slot.holder.load(SeqCst) == WAITS).count(),
        lost: LOST.load(SeqCst),
        refused: REFUSED.load(SeqCst),
    }
}

/// Looks for a library again: `None` as the first call does, else this file. Hands it what was kept.
pub fn look(path: Option<&str>) -> Result<(), Refusal> {
    let word = unsafe { secure_getenv(c(b"JITUNWIND\0")) };
    let word = if word.is_null() { "".into() } else { unsafe { CStr::from_ptr(word) }.to_string_lossy() };
    if LOOKS.with(|looks| looks.replace(true)) {
        return Err(Refusal::in_search());
    }
    if word == "late" {
        keep();
    }
    let asked = if word == "late" || IS_TOLD.load(SeqCst) { "" } else { &word };
    let note = unsafe { std::ptr::read_volatile(&ju_jit_rust_note_1) }; // the linker takes it along
    if word == "0" {
        KEEPS.store(0, SeqCst);
    } else if keeps() && note[0] != 0 {
        KEEPS.store(2, SeqCst);
    }
    let result = match &*word {
        "0" => Err(Refusal::own(SWITCHED_OFF, "switched off by JITUNWIND=0 in the environment")),
        _ => search(path, asked),
    };
    LOOKS.with(|looks| looks.set(false));
    if let Err(why) = &result {
        if path.is_none() && !asked.is_empty() && why.code != SWITCHED_OFF {
            eprintln!("jitunwind: JITUNWIND={}: {}", asked, why);
            IS_TOLD.store(true, SeqCst);
        }
        let goes_on = keeps() || library().is_some();
        NOW.store(if goes_on { FIRST } else { null_mut() }, SeqCst);
    }
    result
}

fn c(text: &'static [u8]) -> *const c_char {
    text.as_ptr().cast()
}

/// The function of the first of these files that has it; else the reason why the first file has none.
fn function_of(names: &[CString], flags: c_int) -> Result<*mut c_void, Refusal> {
    let find = |name: &CString| unsafe {
        let file = dlopen(name.as_ptr(), flags);
        let function = if file.is_null() { file } else { dlsym(file, c(FUNCTION)) };
        if !function.is_null() {
            return Ok(function);
        }
        let why = if file.is_null() { dlerror() } else { null() };
        let none = "the file takes no announcements, as libjitunwind.so.1 does";
        let why = if why.is_null() { none.into() } else { CStr::from_ptr(why).to_string_lossy() };
        Err(Refusal::own(NOT_LOADED, &why))
    };
    let others = |first| names[1..].iter().find_map(|name| find(name).ok()).ok_or(first);
    find(&names[0]).or_else(others)
}

fn search(path: Option<&str>, asked: &str) -> Result<(), Refusal> {
    if let (None, Some(library)) = (path, library()) {
        hand_over(library);
        return Ok(());
    }
    let own_names = NAMES.map(|name| CStr::from_bytes_with_nul(name).unwrap().into());
    let mut function = null_mut();
    if path.is_none() {
        function = unsafe { dlsym(null_mut(), c(FUNCTION)) };
    }
    if path.is_none() && function.is_null() {
        function = function_of(&own_names, LAZY_AND_STAYS | LOADED_ONLY).unwrap_or(null_mut());
    }
    if function.is_null() {
        let names = match (path, asked) {
            (None, "") => return Err(Refusal::no_library()),
            (None, "1") => own_names.to_vec(),
            (None, asked) => vec![CString::new(asked).unwrap()],
            (Some(path), _) => vec![CString::new(path).map_err(|_| Refusal::own(NOT_LOADED, "the path has a NUL"))?],
        };
        let only = if library().is_some() { LOADED_ONLY } else { 0 };
        let other = |why| if only != 0 { Refusal::other_library() } else { why };
        function = function_of(&names, LAZY_AND_STAYS | only).map_err(other)?;
    }
    serve(unsafe { std::mem::transmute(function) })
}

type Functions = unsafe extern "C" fn(c_uint) -> *mut Table;

fn serve(functions: Functions) -> Result<(), Refusal> {
    let table = unsafe { functions(VERSION) };
    if table.is_null() {
        return Err(Refusal::own(OLD_LIBRARY, "the library is older than this program's jitunwind-jit"));
    }
    match LIBRARY.compare_exchange(null_mut(), table, SeqCst, SeqCst) {
        Err(other) if other != table => return Err(Refusal::other_library()),
        _ => NOW.store(table, SeqCst),
    }
    hand_over(unsafe { &*table });
    Ok(())
}

#[cfg(test)]
mod tests {
    /// Names and numbers are those of the header, in its order.
    #[test]
    fn marks_of_the_header() {
        let header = include_str!("../../../../../adapters/jit_header/include/jitunwind_jit.h");
        let list = &header[header.find("enum ju_jit_does {").unwrap()..header.find("JU_JIT_DOES_COUNT").unwrap()];
        let here = include_str!("lib.rs");
        let here = &here[here.find("numbered! { 0;").unwrap() + 14..];
        let here: Vec<&str> = here[..here.find('}').unwrap()].split_whitespace().collect();
        let there: Vec<&str> = list
            .split(|c: char| c != '_' && !c.is_ascii_alphanumeric())
            .filter_map(|word| word.strip_prefix("JU_JIT_"))
            .collect();
        assert_eq!(here, there);
        assert_eq!(usize::from(super::does::COUNT), there.len());
    }
}
