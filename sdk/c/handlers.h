/* A C function that decides how an exception treats a frame of code made at run time. The library calls it for each
   frame that an exception passes, and no table is needed. docs/builders.md "Or a function decides". */
#ifndef JITUNWIND_SDK_C_HANDLERS_H
#define JITUNWIND_SDK_C_HANDLERS_H

#include <stdint.h>

#include "jitunwind/sdk/c/describe.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** A frame of a registered procedure, and the exception that passes it. Valid only during the call of the handler. */
typedef struct ju_passed_frame {
  size_t struct_size;
  int32_t in_search;       /**< not 0: search phase, nothing must be changed yet; 0: the frame is being left */
  int32_t forced;          /**< not 0: pthread_exit(), pthread_cancel(): no frame may catch */
  uint64_t start;          /**< first byte of the procedure */
  uint64_t pc;             /**< return address of the call */
  uint64_t call_offset;    /**< offset of a byte of the call instruction from `start` */
  uint64_t sp;             /**< SP during the call */
  void* exception;         /**< struct _Unwind_Exception* of <unwind.h> */
  const void* thrown_type; /**< std::type_info of a C++ exception; else null */
  void* thrown_object;     /**< thrown object of a C++ exception; else null */
  const void* frame;       /**< the library's own */
} ju_passed_frame;

/** The handler's decision about the frame. The default is that the exception passes. */
typedef struct ju_decision ju_decision;

/** The handler runs in the search phase and, if the exception is caught, a second time when the frame is left or
    entered. Both calls must decide the same. Any thread that throws calls it, several at once. It may allocate and
    lock. It must not let exceptions out. An impossible decision ends in std::terminate(), after a line on standard
    error: docs/builders.md. */
typedef void (*ju_frame_handler)(const ju_passed_frame* frame, ju_decision* decision, void* context);

/** Sets a handler that decides what exceptions do to each frame of the procedure, in place of call sites. If
    `release` is not null, it is called with `context` when no builder, description or registered procedure needs it
    any more, by any thread. Not signal-safe. Errors: those of every function that describes. */
ju_status ju_handled_by(ju_builder* builder, ju_frame_handler handler, void* context, void (*release)(void* context));

/** Value of a general register that calls preserve. Errors: null_pointer, bad_struct_size, bad_handle, other_cpu,
    bad_register. */
ju_status ju_passed_frame_get(const ju_passed_frame* frame, ju_reg reg, uint64_t* value);

/** Catches the exception: the code continues at address `pad` in the procedure, and owns the exception. */
void ju_catch_at(ju_decision* decision, uint64_t pad);
/** Runs the code at `pad`, which ends in _Unwind_Resume(), on the way to the frame that catches. The handler is then
    called again, at that call, and must not catch there. A frame that catches decides so in the search phase already,
    and its code at the landing pad cleans up first. The search phase treats the decision as a pass. */
void ju_clean_up_at(ju_decision* decision, uint64_t pad);
/** Sets SP at the landing pad; the default is SP of the call. The value must be aligned, inside the frame, and not
    below SP of the call. */
void ju_land_with_sp(ju_decision* decision, uint64_t sp);
/** Sets a preserved register or an exception register at the landing pad. The defaults are the frame's values for the
    preserved ones, the exception for the first exception register, and 0 for the second. Errors: null_pointer,
    bad_handle, other_cpu, out_of_memory. */
ju_status ju_land_with(ju_decision* decision, ju_reg reg, uint64_t value);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
