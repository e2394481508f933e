/* Exceptions of the system's unwinder through code made at run time, in C: musl has no C++ run-time library here. One
   is caught by a frame with a personality routine, one runs all cleanups on its way, and _Unwind_Backtrace() passes,
   too. The unwinder is libgcc's, which asks the core, or LLVM's, which asks nobody and is told by the program. */
#include <unwind.h>

#include "tests/musl/walks.h"

#ifdef TELL
void __register_frame(const void* fde);
enum { k_fde_at = 24 };

/* Debian's LLVM is compiled for glibc, and calls this where it reports what it cannot do. */
int __fprintf_chk(FILE* file, int flag, const char* format, ...);
int __fprintf_chk(FILE* file, int flag, const char* format, ...) {
  (void)flag;
  return fputs(format, file);
}
#endif

static struct _Unwind_Exception exception;
static Code code;
static int cleanups, caught, frames_seen;

static void count_cleanup(int* unused) {
  (void)unused;
  ++cleanups;
}

/* Jumps here with the unwinder's registers; the stack pointer is that of `catching`. */
int catching(Callback callback);
__asm__(
    ".text\n"
    ".type catching, @function\n"
    "catching:\n"
    ".cfi_startproc\n"
    ".cfi_personality 0x1b, catch_here\n"
    "subq $8, %rsp\n"
    ".cfi_adjust_cfa_offset 8\n"
    "call *%rdi\n"
    "xorl %eax, %eax\n"
    "0: addq $8, %rsp\n"
    ".cfi_adjust_cfa_offset -8\n"
    "ret\n"
    ".cfi_adjust_cfa_offset 8\n"
    "landing: movl $1, %eax\n"
    "jmp 0b\n"
    ".cfi_endproc\n"
    ".size catching, . - catching\n");
extern const char landing[] __attribute__((visibility("hidden")));

__attribute__((used)) static _Unwind_Reason_Code catch_here(int version, _Unwind_Action actions,
                                                            _Unwind_Exception_Class kind,
                                                            struct _Unwind_Exception* thrown,
                                                            struct _Unwind_Context* context) {
  (void)kind;
  if (version != 1 || thrown != &exception) return _URC_FATAL_PHASE2_ERROR;
  if (actions & _UA_SEARCH_PHASE) return _URC_HANDLER_FOUND;
  if (!(actions & _UA_HANDLER_FRAME)) return _URC_CONTINUE_UNWIND;
  ++caught;
  _Unwind_SetIP(context, (uintptr_t)landing);
  return _URC_INSTALL_CONTEXT;
}

__attribute__((noinline)) static void throw_it(void) {
  _Unwind_RaiseException(&exception);
  fail("nobody catches");
}

__attribute__((noinline)) static void pass(Callback callback) {
  int cleaned __attribute__((cleanup(count_cleanup))) = 0;
  code(callback);
  (void)cleaned;
}

static void throw_through(void) { pass(throw_it); }

static _Unwind_Reason_Code stop(int version, _Unwind_Action actions, _Unwind_Exception_Class kind,
                                struct _Unwind_Exception* thrown, struct _Unwind_Context* context, void* until) {
  (void)version, (void)kind, (void)thrown;
  if (actions & _UA_END_OF_STACK) fail("the end of the stack");
  const uintptr_t function = _Unwind_GetRegionStart(context);
  if (function != (uintptr_t)until) return _URC_NO_REASON;
  printf("%d caught, %d cleanups, backtrace of %d\n", caught, cleanups, frames_seen);
  exit(0);
}

static void force(void) { _Unwind_ForcedUnwind(&exception, stop, (void*)(uintptr_t)catching); }
static void force_through(void) { pass(force); }

static _Unwind_Reason_Code see(struct _Unwind_Context* context, void* is_seen) {
  if (*(int*)is_seen) return _URC_NO_REASON;
  ++frames_seen;
  *(int*)is_seen = _Unwind_GetRegionStart(context) == (uintptr_t)catching;
  return _URC_NO_REASON;
}

/* see_all, the code, pass, see_through, catching. */
static void see_all(void) {
  int is_seen = 0;
  _Unwind_Backtrace(see, &is_seen);
}
static void see_through(void) { pass(see_all); }

int main(void) {
  code = make_code();
#ifdef TELL
  __register_frame(frames + k_fde_at);
#endif
  if (catching(see_through) != 0 || cleanups != 1) fail("a plain return");
  if (catching(throw_through) != 1 || caught != 1) fail("not caught");
  catching(force_through);
  fail("not forced");
}
