/* Walks of stacks: by a cursor that steps from frame to frame, or by a callback for each frame.

     ju_cursor cursor;
     char name[256];
     ju_cursor_here(&cursor, NULL);
     do {
       if (ju_frame_name(&cursor, name, sizeof name, NULL) == JU_OK) puts(name);
     } while (ju_cursor_step(&cursor, NULL) == JU_OK);

   A cursor is the caller's memory: nothing is allocated, there is nothing to free, and a copy of the structure is an
   independent cursor. All functions are thread-safe for different cursors, and signal-safe unless their comments say
   otherwise; docs/contracts.md has their use of stack. Frames are in the order of the calls, the innermost first. */
#ifndef JITUNWIND_SDK_C_WALK_H
#define JITUNWIND_SDK_C_WALK_H

#include <stdint.h>

#include "jitunwind/sdk/c/base.h"
#include "jitunwind/sdk/c/registers.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** A position on a stack. One thread at a time may use it. */
typedef struct ju_cursor {
  uint64_t words[160]; /**< the library's own */
} ju_cursor;

/** The way in which the pc of a context was reached: by a call that has not returned, or by a signal. */
typedef enum ju_top { JU_RETURNED_TO = 0, JU_INTERRUPTED = 1, JU_TOP_ANY = 0x7fffffff } ju_top;
/** The callers that a walk accepts if only a heuristic finds them: docs/architecture.md "Guesses". */
typedef enum ju_guesses { JU_GUESSES_CONFIRMED = 0, JU_GUESSES_BOLD = 1, JU_GUESSES_ANY = 0x7fffffff } ju_guesses;

/** The reason why a walk ended. */
typedef enum ju_stop_reason {
  JU_STOP_NONE = 0,      /**< it has not ended */
  JU_STOP_OUTERMOST = 1, /**< a complete stack */
  JU_STOP_NO_INFO = 2,   /**< no source knows the code at this pc */
  JU_STOP_BROKEN = 3,    /**< a source covers this pc, but its data is broken */
  JU_STOP_CYCLIC = 4,    /**< the frames repeat */
  JU_STOP_LIMIT = 5,     /**< too many frames */
  JU_STOP_REASON_ANY = 0x7fffffff
} ju_stop_reason;

/** The source of the row that leads out of a frame. */
typedef enum ju_origin {
  JU_ORIGIN_NONE = 0,
  JU_ORIGIN_DIRECTIVES = 1, /**< registered code */
  JU_ORIGIN_TABLE = 2,      /**< registered code, in a table format */
  JU_ORIGIN_EH_FRAME = 3,
  JU_ORIGIN_DEBUG_FRAME = 4,
  JU_ORIGIN_SIGNAL_FRAME = 5,
  JU_ORIGIN_PLT_STUB = 6,
  JU_ORIGIN_CALLBACK = 7,
  JU_ORIGIN_FOLLOWED_CODE = 8, /**< this and all up to JU_ORIGIN_LEAF: a heuristic */
  JU_ORIGIN_BAD_CALL = 9,
  JU_ORIGIN_FRAME_POINTER = 10,
  JU_ORIGIN_LEAF = 11,
  JU_ORIGIN_ARM_EXIDX = 12,
  JU_ORIGIN_ANY = 0x7fffffff
} ju_origin;
/** The name of an origin, "eh_frame". Never null. */
const char* ju_origin_name(ju_origin origin);
/** The name of a reason, "no_info". Never null. */
const char* ju_stop_reason_name(ju_stop_reason reason);

/* Functions that begin a walk. */

/** Begins at the calling function's frame. A function with no instruction after the call may have no frame (a tail
    call). Errors: null_pointer; bad_handle: memory without the alignment of a ju_cursor. */
ju_status ju_cursor_here(ju_cursor* cursor, ju_error* error);
/** Begins at the frame in which a ucontext_t was captured: JU_INTERRUPTED for the third argument of a signal handler,
    JU_RETURNED_TO for the result of jitunwind_capture_context(). The cursor must not outlive the handler. The context
    belongs to the calling thread, or to a thread that does not run meanwhile. Errors: null_pointer, bad_handle,
    bad_value. */
ju_status ju_cursor_at(ju_cursor* cursor, const void* ucontext, ju_top top, ju_error* error);
/** Stores the calling function's registers, as after the call, in a ucontext_t. Returns 0. */
#ifdef __cplusplus
int jitunwind_capture_context(void* ucontext) noexcept;
#else
int jitunwind_capture_context(void* ucontext);
#endif
/** Sets the heuristics for the rest of the walk. Errors: null_pointer, bad_handle, bad_value. */
ju_status ju_cursor_set_guesses(ju_cursor* cursor, ju_guesses guesses);

/* Steps. */

/** Steps to the caller. JU_OK: moved. JU_END: this is the outermost frame, now and at every further call. Errors: the
    caller is unknown, in which case the cursor stays, ju_cursor_stop_reason() gives the reason, and every further
    call returns the same error; null_pointer, bad_handle. */
ju_status ju_cursor_step(ju_cursor* cursor, ju_error* error);
/** The reason why a walk ended; JU_STOP_NONE while there may be more frames, and for a bad cursor. */
ju_stop_reason ju_cursor_stop_reason(const ju_cursor* cursor);
/** The reason why a walk ended, as text: "complete", or one sentence that names pc, reason and place. The text is cut
    to room - 1 bytes; `length` may be null. Allocates: not signal-safe. */
ju_status ju_cursor_why(const ju_cursor* cursor, char* into, size_t room, size_t* length);

/* The frame at the cursor. */

/** The return address, or the pc itself if the frame was interrupted; 0 for a bad cursor. */
uint64_t ju_frame_pc(const ju_cursor* cursor);
/** Stack pointer; 0 for a bad cursor. */
uint64_t ju_frame_sp(const ju_cursor* cursor);

/** The properties of a frame. */
typedef struct ju_frame {
  size_t struct_size; /**< sizeof(ju_frame) */
  uint64_t pc;
  uint64_t sp;
  uint32_t depth;            /**< 0: the innermost */
  ju_origin origin;          /**< JU_ORIGIN_NONE: no row */
  int32_t is_guess;          /**< not 0: it may be wrong */
  int32_t is_signal_frame;   /**< not 0: the kernel's trampoline; the next frame was interrupted, not calling */
  int32_t is_return_address; /**< not 0: pc follows a call; 0: it is the next instruction */
} ju_frame;
/** Reads the properties of the frame at the cursor. Errors: null_pointer, bad_handle, bad_struct_size. */
ju_status ju_frame_get(const ju_cursor* cursor, ju_frame* frame, ju_error* error);

/** The registered name, or the name in the symbol table, NUL-terminated and cut to room - 1 bytes; nothing is written
    if room is 0. `offset` gets pc - start; it may be null. Errors: null_pointer, bad_handle; no_info: there is no
    name. */
ju_status ju_frame_name(const ju_cursor* cursor, char* into, size_t room, uint64_t* offset);
/** The demangled name of a frame, otherwise as ju_frame_name(). Allocates: not signal-safe. Further errors:
    out_of_memory. */
ju_status ju_frame_demangled_name(const ju_cursor* cursor, char* into, size_t room, uint64_t* offset);
/** The pointer with which the code was registered, ju_code::user; null if there is none. */
void* ju_frame_user(const ju_cursor* cursor);

/** The description of a frame's code. */
typedef struct ju_procedure {
  size_t struct_size; /**< sizeof(ju_procedure) */
  uint64_t begin;     /**< both 0: not known */
  uint64_t end;
  uint64_t personality; /**< 0: none */
  uint64_t lsda;        /**< 0: none */
  uint64_t gp;
  uint64_t unwind_info; /**< address of an FDE, or of a unw_dyn_info_t */
  uint64_t unwind_info_size;
  void* user; /**< ju_code::user */
  ju_origin origin;
  int32_t format; /**< UNW_INFO_FORMAT_* */
} ju_procedure;
/** Reads the description of a frame's code. Errors: null_pointer, bad_handle, bad_struct_size; no_info: no source
    knows the code, or it is unloaded by now. */
ju_status ju_frame_procedure(const ju_cursor* cursor, ju_procedure* procedure, ju_error* error);
/** The row that leads out of this frame, as text, cut to room - 1 bytes; `length` may be null. Errors: no_info. */
ju_status ju_frame_row(const ju_cursor* cursor, char* into, size_t room, size_t* length);

/** Value of a register. Errors: null_pointer, bad_handle, other_cpu; undefined_register: no value in this frame. */
ju_status ju_frame_get_reg(const ju_cursor* cursor, ju_reg reg, uint64_t* value, ju_error* error);
/** Writes to the place of this frame's register: C++'s Cursor::set() documents the place and when the write takes
    effect. Further errors: read_only_register. */
ju_status ju_frame_set_reg(ju_cursor* cursor, ju_reg reg, uint64_t value, ju_error* error);
/** Address of the memory in which the register was saved; 0: it is still in a register, or has no place. */
ju_status ju_frame_saved_at(const ju_cursor* cursor, ju_reg reg, uint64_t* address, ju_error* error);

/** Continues in the frame of this cursor, of the calling thread, with the registers of that frame, as C++'s resume().
    Does not return on success. Errors: invalid_ip, bad_frame, invalid_argument. */
ju_status ju_resume(const ju_cursor* cursor, ju_error* error);

/* Walks by callback. */

/** Called for each frame, the innermost first; `cursor` is at the frame, and must stay there. 0 continues; any other
    value ends the walk, and JU_STOP_UNWIND is returned. The walk's caller calls it, without any lock held. */
typedef int (*ju_on_frame)(const ju_cursor* cursor, void* context);
/** Calls the function for each frame from the calling function on. JU_OK: up to the outermost frame. Errors:
    null_pointer, stop_unwind; the reason why the walk ended. */
ju_status ju_walk_here(ju_on_frame on_frame, void* context, ju_error* error);
/** Calls the function for each frame from a ucontext_t on, as ju_cursor_at(). */
ju_status ju_walk_at(const void* ucontext, ju_top top, ju_on_frame on_frame, void* context, ju_error* error);
/** Calls the function for each frame from the cursor's frame on; the cursor stays there. */
ju_status ju_walk(const ju_cursor* cursor, ju_on_frame on_frame, void* context, ju_error* error);

/** Return addresses of the calling function and its callers, as many as fit. Returns their number. This is the
    fastest walk. */
int ju_backtrace(void** addresses, int size);
/** The pc of the frame that a ucontext_t was captured in, and the return addresses of its callers, as many as fit. */
size_t ju_backtrace_at(const void* ucontext, ju_top top, void** addresses, size_t size);

/** Makes another thread of this process walk its own stack and continue. `frames` gets at most `room` frames of it;
    `count` gets the number of frames, at most 512. Waits for at most `wait_ns`, and for up to as long again if the
    thread has begun to answer. Uses 48 KiB of stack. JU_OK: up to the outermost frame. Errors: null_pointer,
    bad_struct_size (of frames[0], whose size every frame has), thread_gone and similar ones; or the reason why the
    walk ended, in which case the frames are there, too. */
ju_status ju_walk_thread(int32_t thread, uint64_t wait_ns, ju_frame* frames, size_t room, size_t* count,
                         ju_error* error);

/* Names of addresses. */

/** The name of this process's code at `pc`, and pc - start. `is_return_address`: pc follows a call. The text is cut
    to room - 1 bytes. Errors: null_pointer, no_info. */
ju_status ju_symbolise(uint64_t pc, int is_return_address, char* into, size_t room, uint64_t* offset);

/* Texts for bug reports. */

/** Writes one line per frame from the cursor on, and the reason why the walk ended, to a file. Uses 8 KiB of stack.
 */
ju_status ju_dump_walk(const ju_cursor* cursor, int fd);

/** Drops the record of readable stack memory of all threads, for programs that unmap pages of a stack. */
void ju_forget_walked_stacks(void);
/** Makes room for that many cached rows, or more. Errors: out_of_memory. Not signal-safe. */
ju_status ju_keep_at_least(size_t rows);
/** Number of cached rows. */
size_t ju_kept_rows(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
