//! Describes, registers and walks code made at run time, by the C interface of jitunwind.
//!
//! A [`Registration`] borrows its code: code cannot be freed while it is registered, and a cancelled registration
//! cannot be used again.
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

/// A refusal: the error code's name, a sentence, and a remedy.
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

/// Cuts a name before its first NUL.
fn c_string(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or("")).unwrap_or_default()
}

/// JITUNWIND_VERSION of the library.
pub fn version() -> u32 {
    unsafe { sys::ju_version() }
}

/// An instruction's effect on the frame. Registers are given by name, offsets and sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction<'a> {
    Push(&'a str),
    /// Pushes anything but a saved register: an argument, a scratch register.
    PushOther,
    Pop(&'a str),
    PopOther,
    Enter(i64),
    Allocate(i64),
    Deallocate(i64),
    /// The register, and its distance above SP.
    SetFramePointer(&'a str, i64),
    MoveFramePointer(&'a str, i64),
    SaveAtSp(&'a str, i64),
    SaveAtFp(&'a str, i64),
    /// Moves the caller's value of the first register to the second.
    MoveTo(&'a str, &'a str),
    StorePair(&'a str, &'a str, i64),
    StorePairPre(&'a str, &'a str, i64),
    StorePre(&'a str, i64),
    SignReturnAddress,
    Realign,
    AllocateVariable,
    StoreSp(i64),
    ReloadSp,
    RestoreSp(&'a str, i64),
    Leave,
    Reload(&'a str),
    ReloadPair(&'a str, &'a str),
    LoadPairPost(&'a str, &'a str, i64),
    LoadPost(&'a str, i64),
    AuthenticateReturnAddress,
    PopReturnAddress(&'a str),
    /// Leaves the procedure before its end: the code behind it has the state of the last [`Builder::remember`].
    Return,
    Call,
    /// Calls a procedure that pops so many bytes of arguments.
    CalleePops(i64),
    /// A call that no exception leaves.
    Terminates,
}

/// The CPU of the described code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cpu {
    /// The CPU that this process runs on.
    Host,
    X86_64,
    Aarch64,
}

impl Cpu {
    fn number(self) -> sys::ju_cpu {
        match self {
            Cpu::Host => sys::JU_CPU_HOST,
            Cpu::X86_64 => sys::JU_CPU_X86_64,
            Cpu::Aarch64 => sys::JU_CPU_AARCH64,
        }
    }
}

/// The C++ type of an exception: the address of its `std::type_info`, the symbol `_ZTI...`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExceptionType(*const c_void);

impl ExceptionType {
    /// # Safety
    /// A throw reads a `std::type_info` at this address, which must live as long as the description and its code.
    pub unsafe fn at(type_info: *const c_void) -> ExceptionType {
        ExceptionType(type_info)
    }
}

/// Directives, for code generators that count instruction units: docs/directives.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directive<'a> {
    SaveReg(&'a str, &'a str),
    SpillSpRel(&'a str, i64),
    SpillFpRel(&'a str, i64),
    Add(&'a str, i64),
    PopFrames(i64),
    LabelState(u64),
    CopyState(u64),
    Alias(u64),
    Stop,
    /// The fields of a directive in memory: tag, predicate, register by libunwind's number, value.
    Op(i8, i8, i16, u64),
}

/// Collects the description of a procedure. [`Builder::build`] reports all mistakes at once.
pub struct Builder {
    handle: *mut sys::ju_builder,
    cpu: Cpu,
}

// Any thread may use a handle, one at a time.
unsafe impl Send for Builder {}

impl Builder {
    /// Describes code of the CPU that this process runs on.
    pub fn new(name: &str) -> Builder {
        Builder::for_cpu(Cpu::Host, name)
    }
    /// Describes code of another CPU, which cannot be registered here.
    pub fn for_cpu(cpu: Cpu, name: &str) -> Builder {
        let mut handle = ptr::null_mut();
        let name = c_string(name);
        call(|error| unsafe { sys::ju_describe(cpu.number(), name.as_ptr(), &mut handle, error) })
            .expect("a builder takes memory, and a CPU that the library knows");
        Builder { handle, cpu }
    }

    fn reg(&self, name: &str) -> sys::ju_reg {
        unsafe { sys::ju_register_by_name(self.cpu.number(), c_string(name).as_ptr()) }
    }

    /// Describes the instruction in these bytes. Negative offsets count from the procedure's end.
    pub fn say(self, at: Range<i64>, instruction: Instruction<'_>) -> Builder {
        use Instruction::*;
        let (begin, end, b) = (at.start, at.end, self.handle);
        let reg = |name: &str| self.reg(name);
        unsafe {
            match instruction {
                Push(r) => sys::ju_push(b, begin, end, reg(r)),
                PushOther => sys::ju_push_other(b, begin, end),
                Pop(r) => sys::ju_pop(b, begin, end, reg(r)),
                PopOther => sys::ju_pop_other(b, begin, end),
                Enter(n) => sys::ju_enter(b, begin, end, n),
                Allocate(n) => sys::ju_allocate(b, begin, end, n),
                Deallocate(n) => sys::ju_deallocate(b, begin, end, n),
                SetFramePointer(r, n) => sys::ju_set_frame_pointer(b, begin, end, reg(r), n),
                MoveFramePointer(r, n) => sys::ju_move_frame_pointer(b, begin, end, reg(r), n),
                SaveAtSp(r, n) => sys::ju_save_at_sp(b, begin, end, reg(r), n),
                SaveAtFp(r, n) => sys::ju_save_at_fp(b, begin, end, reg(r), n),
                MoveTo(r, to) => sys::ju_move_to(b, begin, end, reg(r), reg(to)),
                StorePair(r, s, n) => sys::ju_store_pair(b, begin, end, reg(r), reg(s), n),
                StorePairPre(r, s, n) => sys::ju_store_pair_pre(b, begin, end, reg(r), reg(s), n),
                StorePre(r, n) => sys::ju_store_pre(b, begin, end, reg(r), n),
                SignReturnAddress => sys::ju_sign_return_address(b, begin, end),
                Realign => sys::ju_realign(b, begin, end),
                AllocateVariable => sys::ju_allocate_variable(b, begin, end),
                StoreSp(n) => sys::ju_store_sp(b, begin, end, n),
                ReloadSp => sys::ju_reload_sp(b, begin, end),
                RestoreSp(r, n) => sys::ju_restore_sp(b, begin, end, reg(r), n),
                Leave => sys::ju_leave(b, begin, end),
                Reload(r) => sys::ju_reload(b, begin, end, reg(r)),
                ReloadPair(r, s) => sys::ju_reload_pair(b, begin, end, reg(r), reg(s)),
                LoadPairPost(r, s, n) => sys::ju_load_pair_post(b, begin, end, reg(r), reg(s), n),
                LoadPost(r, n) => sys::ju_load_post(b, begin, end, reg(r), n),
                AuthenticateReturnAddress => sys::ju_authenticate_return_address(b, begin, end),
                PopReturnAddress(r) => sys::ju_pop_return_address(b, begin, end, reg(r)),
                Return => sys::ju_restore(b, begin, end),
                Call => sys::ju_call(b, begin, end),
                CalleePops(n) => sys::ju_callee_pops(b, begin, end, n),
                Terminates => sys::ju_terminates(b, begin, end),
            }
        };
        self
    }

    /// Describes a stack probe loop: the instructions that compute the final SP into `scratch`, that first move SP, and
    /// that jump back.
    pub fn probe_loop(self, bound: Range<i64>, first: Range<i64>, back: Range<i64>, bytes: i64, scratch: &str) -> Builder {
        let at = |range: Range<i64>| sys::ju_instruction { begin: range.start, end: range.end };
        unsafe { sys::ju_probe_loop(self.handle, at(bound), at(first), at(back), bytes, self.reg(scratch)) };
        self
    }

    /// Remembers the state here for the code behind every following [`Instruction::Return`].
    pub fn remember(self) -> Builder {
        unsafe { sys::ju_remember(self.handle) };
        self
    }
    /// Sets the procedure's exact size.
    pub fn size(self, bytes: usize) -> Builder {
        unsafe { sys::ju_set_size(self.handle, bytes as u64) };
        self
    }
    /// Declares that the code ends in a jump, or in a call that does not return.
    pub fn ends_without_return(self) -> Builder {
        unsafe { sys::ju_ends_without_return(self.handle) };
        self
    }
    /// Sets the row from this code offset on, as text.
    pub fn row_at(self, offset: i64, row: &str) -> Builder {
        unsafe { sys::ju_row_at(self.handle, offset, c_string(row).as_ptr()) };
        self
    }

    /// Sets the row at the code's entry, as text, and CFA - SP if the row does not give it.
    pub fn entry_state(self, row: &str, sp_distance: Option<i64>) -> Builder {
        let row = c_string(row);
        unsafe {
            match sp_distance {
                Some(distance) => sys::ju_entry_state_at(self.handle, row.as_ptr(), distance),
                None => sys::ju_entry_state(self.handle, row.as_ptr()),
            }
        };
        self
    }
    /// # Safety
    /// A throw calls the `_Unwind_Personality_Fn` at this address.
    pub unsafe fn personality(self, routine: u64) -> Builder {
        sys::ju_set_personality(self.handle, routine);
        self
    }
    /// # Safety
    /// The personality routine reads the memory at this address.
    pub unsafe fn lsda(self, address: u64) -> Builder {
        sys::ju_set_lsda(self.handle, address);
        self
    }
    /// Sets the value of the global pointer, on CPUs that have one.
    pub fn gp(self, value: u64) -> Builder {
        unsafe { sys::ju_set_gp(self.handle, value) };
        self
    }

    /// Makes an exception that leaves a call in these bytes continue at this code offset, for the reasons that the next
    /// calls give.
    pub fn call_site(self, at: Range<i64>, landing_pad: i64) -> Builder {
        unsafe { sys::ju_call_site(self.handle, at.start, at.end, landing_pad) };
        self
    }
    /// Lands for exceptions of this type.
    pub fn catches(self, of: ExceptionType) -> Builder {
        unsafe { sys::ju_catches(self.handle, of.0) };
        self
    }
    /// Lands for everything, forced unwinding included, which must be thrown again.
    pub fn catches_all(self) -> Builder {
        unsafe { sys::ju_catches_all(self.handle) };
        self
    }
    /// Lands for exceptions of other types than these.
    pub fn allows(self, types: &[ExceptionType]) -> Builder {
        let types: Vec<*const c_void> = types.iter().map(|of| of.0).collect();
        unsafe { sys::ju_allows(self.handle, types.as_ptr(), types.len()) };
        self
    }
    /// Lands for exceptions that a frame above catches.
    pub fn cleans_up(self) -> Builder {
        unsafe { sys::ju_cleans_up(self.handle) };
        self
    }

    /// Begins the next region of directives, of so many units. A negative count is for the last units of the procedure.
    pub fn region(self, insn_count: i32) -> Builder {
        unsafe { sys::ju_region(self.handle, insn_count) };
        self
    }
    /// Adds a directive to this region; `when` counts units from its start.
    pub fn directive(self, when: i32, directive: Directive<'_>) -> Builder {
        use Directive::*;
        let b = self.handle;
        unsafe {
            match directive {
                SaveReg(r, into) => sys::ju_save_reg(b, when, self.reg(r), self.reg(into)),
                SpillSpRel(r, n) => sys::ju_spill_sp_rel(b, when, self.reg(r), n),
                SpillFpRel(r, n) => sys::ju_spill_fp_rel(b, when, self.reg(r), n),
                Add(r, n) => sys::ju_add(b, when, self.reg(r), n),
                PopFrames(n) => sys::ju_pop_frames(b, when, n),
                LabelState(n) => sys::ju_label_state(b, when, n),
                CopyState(n) => sys::ju_copy_state(b, when, n),
                Alias(address) => sys::ju_alias(b, when, address),
                Stop => sys::ju_stop(b),
                Op(tag, predicate, reg, value) => sys::ju_op(b, tag, predicate, when, reg, value),
            }
        };
        self
    }

    /// Checks the whole description. The error's text has a line for each mistake.
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

// A description is immutable, so several threads may use it at a time.
unsafe impl Send for Description {}
unsafe impl Sync for Description {}

impl Description {
    fn text(&self, write: impl Fn(*mut c_char, usize, &mut usize) -> sys::ju_status) -> String {
        let mut length = 0;
        write(ptr::null_mut(), 0, &mut length);
        let mut text = vec![0u8; length + 1];
        write(text.as_mut_ptr().cast(), text.len(), &mut length);
        text.truncate(length);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Returns all rows of a procedure of that size, a line each. If it is 0, the procedure has its own size.
    pub fn rows(&self, bytes: usize) -> String {
        self.text(|into, room, length| unsafe {
            sys::ju_description_rows(self.handle, bytes as u64, into, room, length)
        })
    }
    /// Returns the row at a code offset of a procedure of that size.
    pub fn row(&self, offset: usize, bytes: usize) -> String {
        self.text(|into, room, length| unsafe {
            sys::ju_description_row(self.handle, offset as u64, bytes as u64, into, room, length)
        })
    }
    /// Returns the directives, a line each.
    pub fn directives(&self) -> String {
        self.text(|into, room, length| unsafe { sys::ju_description_directives(self.handle, into, room, length) })
    }
    /// Returns warnings about legal statements that may be mistakes, a line each.
    pub fn warnings(&self) -> String {
        self.text(|into, room, length| unsafe { sys::ju_description_warnings(self.handle, into, room, length) })
    }
    /// Returns the size in bytes of the code that it fits, if it fits one size only.
    pub fn size(&self) -> Option<usize> {
        let size = self.facts().size as usize;
        (size != 0).then_some(size)
    }
    /// Returns the least size in bytes of code that it fits.
    pub fn min_size(&self) -> usize {
        self.facts().min_size as usize
    }
    fn facts(&self) -> sys::ju_description_facts {
        let struct_size = std::mem::size_of::<sys::ju_description_facts>();
        let mut facts = sys::ju_description_facts { struct_size, ..Default::default() };
        unsafe { sys::ju_description_get(self.handle, &mut facts, ptr::null_mut()) };
        facts
    }

    /// Makes code known to every walk of this process, as long as the registration lives.
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

/// Registered code. Dropping it cancels the registration: on return nothing reads its description any more.
pub struct Registration<'code> {
    handle: *mut sys::ju_registration,
    range: Range<u64>,
    code: PhantomData<&'code [u8]>,
}

unsafe impl Send for Registration<'_> {}

impl Registration<'_> {
    /// Returns the addresses of the code.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }
    /// Cancels the registration, as dropping it does.
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
    /// The name in the symbol table or in the registration; not demangled.
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
    // A panic must not unwind the library's frames; it is resumed after the walk.
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (visit.see)(frame_at(cursor)))) {
        Ok(go_on) => c_int::from(!go_on),
        Err(panic) => {
            visit.panic = Some(panic);
            1
        }
    }
}

/// Walks the frames of this thread, the innermost first, as long as `see` returns true. Ok: the outermost frame was
/// reached, or `see` ended the walk.
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

/// Returns the name of code of this process, and the distance of `pc` from its start.
pub fn symbolise(pc: u64) -> Option<(String, u64)> {
    let (mut name, mut offset) = ([0 as c_char; 512], 0);
    let status = unsafe { sys::ju_symbolise(pc, 0, name.as_mut_ptr(), name.len(), &mut offset) };
    (status == sys::JU_OK).then(|| (text_at(name.as_ptr()), offset))
}
