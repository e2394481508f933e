//! Describing, registering and walking code made at run time, by the C interface of jitunwind.
//!
//! A [`Registration`] borrows the code that it speaks of: code cannot be freed while it is registered, and what was
//! cancelled cannot be used again.
//!
//! ```
//! use jitunwind::{Builder, Instruction::*};
//! let description = Builder::new("f")
//!     .say(0..1, Push("rbx"))
//!     .say(-2..-1, Pop("rbx"))
//!     .build()?;
//! assert!(description.rows(8).contains("rbx=[cfa-16]"));
//! # Ok::<(), jitunwind::Error>(())
//! ```
//!
//! ```compile_fail
//! # use jitunwind::Builder;
//! let leaf = Builder::new("leaf").build().unwrap();
//! let code = vec![0xc3u8];
//! let registration = leaf.register(&code).unwrap();
//! drop(code); // borrowed by the registration
//! registration.cancel();
//! ```
//!
//! ```compile_fail
//! # use jitunwind::Builder;
//! # let leaf = Builder::new("leaf").build().unwrap();
//! # let code = vec![0xc3u8];
//! let registration = leaf.register(&code).unwrap();
//! registration.cancel();
//! registration.range(); // moved
//! ```
use jitunwind_sys as sys;
use std::ffi::{CStr, CString};
use std::marker::PhantomData;
use std::ops::Range;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr;

/// What was refused: the code's name, a sentence, what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub name: String,
    pub text: String,
    pub remedy: String,
    pub at: u64,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.text.trim_end(), self.name)
    }
}
impl std::error::Error for Error {}

fn text_at(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // Texts of the library end with a NUL.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Calls a function whose last argument is a ju_error.
fn call(function: impl FnOnce(*mut sys::ju_error) -> sys::ju_status) -> Result<sys::ju_status, Error> {
    let mut error: sys::ju_error = unsafe { std::mem::zeroed() };
    error.struct_size = std::mem::size_of::<sys::ju_error>();
    match function(&mut error) {
        status @ (sys::JU_OK | sys::JU_END) => Ok(status),
        status => Err(Error {
            name: text_at(unsafe { sys::ju_status_name(status) }),
            text: text_at(error.text.as_ptr()),
            remedy: text_at(error.remedy),
            at: error.at,
        }),
    }
}

/// A name without NULs: what is behind one is left out.
fn c_string(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or("")).unwrap_or_default()
}

/// JITUNWIND_VERSION of the library.
pub fn version() -> u32 {
    unsafe { sys::ju_version() }
}

/// What an instruction does to the frame; registers by their names, offsets and sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction<'a> {
    Push(&'a str),
    Pop(&'a str),
    Allocate(i64),
    Deallocate(i64),
    /// Register, and how far above SP.
    SetFramePointer(&'a str, i64),
    SaveAtSp(&'a str, i64),
    SaveAtFp(&'a str, i64),
    RestoreSp(&'a str, i64),
    Leave,
    /// The instruction that leaves in the middle: code behind it has the state of the last [`Builder::remember`].
    Return,
}

/// What is said of a procedure. Mistakes come out of [`Builder::build`], all at once.
pub struct Builder {
    handle: *mut sys::ju_builder,
}

// A handle is used by one thread at a time, whichever it is.
unsafe impl Send for Builder {}

impl Builder {
    /// For code of the CPU that this process runs on.
    pub fn new(name: &str) -> Builder {
        let mut handle = ptr::null_mut();
        let name = c_string(name);
        call(|error| unsafe { sys::ju_describe(sys::JU_CPU_HOST, name.as_ptr(), &mut handle, error) })
            .expect("a builder takes memory, and a CPU that the library knows");
        Builder { handle }
    }

    /// The bytes of one instruction; negative offsets count from the procedure's end.
    pub fn say(self, at: Range<i64>, instruction: Instruction<'_>) -> Builder {
        let (begin, end, b) = (at.start, at.end, self.handle);
        let reg = |name: &str| unsafe { sys::ju_register_by_name(sys::JU_CPU_HOST, c_string(name).as_ptr()) };
        unsafe {
            match instruction {
                Instruction::Push(r) => sys::ju_push(b, begin, end, reg(r)),
                Instruction::Pop(r) => sys::ju_pop(b, begin, end, reg(r)),
                Instruction::Allocate(n) => sys::ju_allocate(b, begin, end, n),
                Instruction::Deallocate(n) => sys::ju_deallocate(b, begin, end, n),
                Instruction::SetFramePointer(r, n) => sys::ju_set_frame_pointer(b, begin, end, reg(r), n),
                Instruction::SaveAtSp(r, n) => sys::ju_save_at_sp(b, begin, end, reg(r), n),
                Instruction::SaveAtFp(r, n) => sys::ju_save_at_fp(b, begin, end, reg(r), n),
                Instruction::RestoreSp(r, n) => sys::ju_restore_sp(b, begin, end, reg(r), n),
                Instruction::Leave => sys::ju_leave(b, begin, end),
                Instruction::Return => sys::ju_restore(b, begin, end),
            }
        };
        self
    }

    /// The state here is that of code behind every [`Instruction::Return`] from now on.
    pub fn remember(self) -> Builder {
        unsafe { sys::ju_remember(self.handle) };
        self
    }
    /// The procedure has exactly this size.
    pub fn size(self, bytes: usize) -> Builder {
        unsafe { sys::ju_set_size(self.handle, bytes as u64) };
        self
    }
    /// The code ends in a jump, or in a call that does not return.
    pub fn ends_without_return(self) -> Builder {
        unsafe { sys::ju_ends_without_return(self.handle) };
        self
    }
    /// The row from this code offset on, as text.
    pub fn row_at(self, offset: i64, row: &str) -> Builder {
        unsafe { sys::ju_row_at(self.handle, offset, c_string(row).as_ptr()) };
        self
    }

    /// Checks everything. The error's text has a line for each mistake.
    pub fn build(&self) -> Result<Description, Error> {
        let mut handle = ptr::null_mut();
        call(|error| unsafe { sys::ju_build(self.handle, &mut handle, error) })?;
        Ok(Description { handle })
    }
}

impl Drop for Builder {
    fn drop(&mut self) {
        unsafe { sys::ju_builder_free(self.handle) };
    }
}

/// How to unwind a procedure, wherever its code is.
pub struct Description {
    handle: *mut sys::ju_description,
}

// Immutable; any number of threads at a time.
unsafe impl Send for Description {}
unsafe impl Sync for Description {}

impl Description {
    /// Every row of a procedure of that size, a line each.
    pub fn rows(&self, bytes: usize) -> String {
        let mut length = 0;
        let write = |into: *mut c_char, room, length: &mut usize| unsafe {
            sys::ju_description_rows(self.handle, bytes as u64, into, room, length)
        };
        write(ptr::null_mut(), 0, &mut length);
        let mut text = vec![0u8; length + 1];
        write(text.as_mut_ptr().cast(), text.len(), &mut length);
        text.truncate(length);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Makes code known to every walk of this process, for as long as the registration lives.
    pub fn register<'code>(&self, code: &'code [u8]) -> Result<Registration<'code>, Error> {
        let place = sys::ju_code {
            struct_size: std::mem::size_of::<sys::ju_code>(),
            start: code.as_ptr() as u64,
            size: code.len() as u64,
            name: ptr::null(),
            lsda: 0,
            landing_pad_base: 0,
            user: ptr::null_mut(),
        };
        let mut handle = ptr::null_mut();
        call(|error| unsafe { sys::ju_register(self.handle, &place, &mut handle, error) })?;
        Ok(Registration { handle, range: place.start..place.start + place.size, code: PhantomData })
    }
}

impl Drop for Description {
    fn drop(&mut self) {
        unsafe { sys::ju_description_free(self.handle) };
    }
}

/// Registered code. Dropping it cancels: on return nothing reads its description any more.
pub struct Registration<'code> {
    handle: *mut sys::ju_registration,
    range: Range<u64>,
    code: PhantomData<&'code [u8]>,
}

unsafe impl Send for Registration<'_> {}

impl Registration<'_> {
    /// Addresses of the code.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }
    /// The same as dropping it.
    pub fn cancel(self) {}
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        unsafe { sys::ju_cancel(self.handle, ptr::null_mut()) };
    }
}

/// A frame of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub pc: u64,
    pub sp: u64,
    pub depth: u32,
    /// As it is in symbol tables, or was registered.
    pub name: Option<String>,
    pub is_guess: bool,
}

fn frame_at(cursor: *const sys::ju_cursor) -> Frame {
    let mut frame = sys::ju_frame { struct_size: std::mem::size_of::<sys::ju_frame>(), ..Default::default() };
    let mut name = [0 as c_char; 512];
    unsafe { sys::ju_frame_get(cursor, &mut frame, ptr::null_mut()) };
    let named = unsafe { sys::ju_frame_name(cursor, name.as_mut_ptr(), name.len(), ptr::null_mut()) } == sys::JU_OK;
    let name = if named { Some(text_at(name.as_ptr())) } else { None };
    Frame { pc: frame.pc, sp: frame.sp, depth: frame.depth, name, is_guess: frame.is_guess != 0 }
}

struct Visit<'a> {
    see: &'a mut dyn FnMut(Frame) -> bool,
    panic: Option<Box<dyn std::any::Any + Send>>,
}

unsafe extern "C" fn on_frame(cursor: *const sys::ju_cursor, context: *mut c_void) -> c_int {
    let visit = &mut *(context as *mut Visit<'_>);
    // A panic must not pass the library's frames: it goes on behind the walk.
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (visit.see)(frame_at(cursor)))) {
        Ok(go_on) => c_int::from(!go_on),
        Err(panic) => {
            visit.panic = Some(panic);
            1
        }
    }
}

/// Frames of this thread, the innermost first, as long as `see` returns true. Ok: to the outermost frame, or to where
/// `see` said.
pub fn walk(mut see: impl FnMut(Frame) -> bool) -> Result<(), Error> {
    let mut visit = Visit { see: &mut see, panic: None };
    let walked = call(|error| unsafe {
        match sys::ju_walk_here(on_frame, &mut visit as *mut Visit<'_> as *mut c_void, error) {
            sys::JU_STOP_UNWIND => sys::JU_OK,
            status => status,
        }
    });
    if let Some(panic) = visit.panic {
        std::panic::resume_unwind(panic);
    }
    walked.map(|_| ())
}

/// The name of code of this process, and how far behind its start `pc` is.
pub fn symbolise(pc: u64) -> Option<(String, u64)> {
    let (mut name, mut offset) = ([0 as c_char; 512], 0);
    let status = unsafe { sys::ju_symbolise(pc, 0, name.as_mut_ptr(), name.len(), &mut offset) };
    (status == sys::JU_OK).then(|| (text_at(name.as_ptr()), offset))
}
