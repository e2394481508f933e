/* Deciding in C what an exception does to a frame of code made at run time: no table, a function that is asked about
   each frame which an exception is passing. docs/builders.md "Or a function decides". */
#ifndef JITUNWIND_SDK_C_HANDLERS_H
#define JITUNWIND_SDK_C_HANDLERS_H

#include <stdint.h>

#include "jitunwind/sdk/c/describe.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** A frame of a registered procedure, and the exception that passes it. Only valid during the call of the handler. */
typedef struct ju_passed_frame {
  size_t struct_size;
  int32_t in_search; /**< not 0: who catches is looked for, nothing must be changed yet; 0: the frame is being left */
  int32_t forced;    /**< not 0: pthread_exit(), pthread_cancel(): nobody may catch it */
  uint64_t start;    /**< first byte of the procedure */
  uint64_t pc;       /**< where the call would have returned to */
  uint64_t call_offset;    /**< of a byte of the call instruction, in the procedure */
  uint64_t sp;             /**< during the call */
  void* exception;         /**< struct _Unwind_Exception* of <unwind.h> */
  const void* thrown_type; /**< of a C++ exception its std::type_info; else null */
  void* thrown_object;     /**< of a C++ exception what was thrown; else null */
  const void* frame;       /**< the library's */
} ju_passed_frame;

/** What is to become of the frame: that the exception passes, unless said otherwise. */
typedef struct ju_decision ju_decision;

/** Asked in the search, and, where the exception is caught, once more when the frame is left: it must decide the same.
    Called by any thread that throws, several at once; may allocate and lock. It must not let exceptions out. What
    cannot be carried out ends in std::terminate(), after a line on standard error: docs/builders.md. */
typedef void (*ju_frame_handler)(const ju_passed_frame* frame, ju_decision* decision, void* context);

/** A function decides what exceptions do, in place of call sites: `handler` decides what exceptions do to each frame
    of the procedure. `release`, if it is not null, is called with `context` when neither builder, nor description,
    nor registered procedure needs it any more, by whichever thread that is. Not signal-safe. Errors: as all that
    describes. */
ju_status ju_handled_by(ju_builder* builder, ju_frame_handler handler, void* context, void (*release)(void* context));

/** What a general register that calls preserve holds in the frame. Errors: null_pointer, bad_struct_size, bad_handle,
    other_cpu, bad_register. */
ju_status ju_passed_frame_get(const ju_passed_frame* frame, ju_reg reg, uint64_t* value);

/** The exception ends here: the code goes on at address `pad` in the procedure, and owns the exception. */
void ju_catch_at(ju_decision* decision, uint64_t pad);
/** On the way to the frame that catches it the code at `pad` runs, which ends in _Unwind_Resume(). The handler is then
    asked again, at that call, and must not catch there: a frame that catches says so from the search on, and its code
    at the landing pad cleans up first. The same as passing in the search. */
void ju_clean_up_at(ju_decision* decision, uint64_t pad);
/** At the landing pad SP is that of the call; or this one: not below, inside of the frame, aligned. */
void ju_land_with_sp(ju_decision* decision, uint64_t sp);
/** At the landing pad preserved registers are those of the frame, the first exception register has the exception, the
    second 0; or this. Errors: null_pointer, bad_handle, other_cpu, out_of_memory. */
ju_status ju_land_with(ju_decision* decision, ju_reg reg, uint64_t value);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
