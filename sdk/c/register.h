/* Registration of described code for every walk, exception and debugger, and its cancellation. docs/builders.md
   "Registrations".

   Registering and cancelling are O(1) at any number of procedures, in any order, while other threads walk.
   Thread-safe for different handles; one thread at a time for one handle. No function is signal-safe unless its
   comment says so: a handler that interrupted one of them gets JU_IN_SIGNAL_HANDLER, and nothing has changed. */
#ifndef JITUNWIND_SDK_C_REGISTER_H
#define JITUNWIND_SDK_C_REGISTER_H

#include <stdint.h>

#include "jitunwind/sdk/c/describe.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** A registered procedure. It is also the address of its descriptor, unw_dyn_info_t of libunwind. */
typedef struct ju_registration ju_registration;
/** Many registered procedures with one lifetime. */
typedef struct ju_batch ju_batch;
/** The procedures of an object file that has call frame information. */
typedef struct ju_object ju_object;

/** The place of code, and the properties of this one procedure. ju_code_init() initialises it. */
typedef struct ju_code {
  size_t struct_size;        /**< sizeof(ju_code) */
  uint64_t start;            /**< first byte, in this process */
  uint64_t size;             /**< bytes */
  const char* name;          /**< copied; null or "": the description's. The caller promises that it can be read */
  uint64_t lsda;             /**< 0: the description's */
  uint64_t landing_pad_base; /**< base of call-site tables; 0: start. Needs language-specific data */
  void* user;                /**< the caller's own value, returned by ju_frame_user(), never dereferenced */
} ju_code;

/** Sets the place of the code, and clears the other members. Signal-safe. */
static inline void ju_code_init(ju_code* code, const void* start, size_t bytes) {
  code->struct_size = sizeof *code;
  code->start = (uint64_t)(uintptr_t)start;
  code->size = bytes;
  code->name = NULL;
  code->lsda = 0;
  code->landing_pad_base = 0;
  code->user = NULL;
}

/** Registers code with a description. The description may be freed afterwards. Errors, after which nothing is
    registered: null_pointer, bad_handle, freed_handle, bad_struct_size, bad_version, bad_string; e_range, e_overlap,
    e_landing_pad: the description does not fit; invalid_argument: it is for another CPU than this process;
    out_of_memory; in_signal_handler. */
ju_status ju_register(const ju_description* description, const ju_code* code, ju_registration** registration,
                      ju_error* error);

/** Registers code with what marks have recorded, and forgets it, so that they serve the next procedure. Nothing is
    checked but places and registers: mistakes that only ju_build() finds give wrong rows, and directives that
   contradict each other end a walk that meets them. Errors: those of ju_register(); the first mistake of a call that
   recorded; e_range, e_when: an instruction without bytes, or outside of the procedure; e_overlap: offsets from the end
   lie in front of others, without ju_set_size(); e_reg; e_label; too_deep; bad_value: the builder is none of
   ju_describe_marks(). */
ju_status ju_register_marks(ju_builder* marks, const ju_code* code, ju_registration** registration, ju_error* error);

/** Takes the procedure out in O(1), then waits for walks that read the description at this moment. On return nothing
    reads it, the code may be reused, and the handle is void. Null does nothing. Errors: bad_handle: the handle is not
    registered, and its memory stays unchanged; freed_handle; in_signal_handler: the procedure is still registered. */
ju_status ju_cancel(ju_registration* registration, ju_error* error);

/** A batch of retired procedures; a ticket of all zeros counts as reclaimed. */
typedef struct ju_ticket {
  uint64_t serial;
  uint32_t batch;
  uint32_t skipped; /**< number of procedures that were not registered */
} ju_ticket;
/** Takes the procedure out as ju_cancel(), but never waits: memory is freed once no walk can read it. `ticket` may be
    null. */
ju_status ju_retire(ju_registration* registration, ju_ticket* ticket, ju_error* error);
/** Whether the retired procedures are reclaimed. 1: no walk reads any of them. 0: a walk may read one, or the answer
    would take a wait. Never waits. */
int ju_reclaimed(const ju_ticket* ticket);

/** The place of registered code: first byte, and the byte after the last. Errors: null_pointer, bad_handle,
    freed_handle. Signal-safe. */
ju_status ju_registration_range(const ju_registration* registration, uint64_t* begin, uint64_t* end);
/** Bytes of this procedure alone, without the shared shape; 0 for a bad handle. Signal-safe. */
size_t ju_registration_bytes(const ju_registration* registration);

/** Holds the description against the code, which must be in place, without running it: docs/testing.md. Writes a line
    for each stretch of rows that is wrong or cannot be compared, up to 64, cut to room - 1 bytes, or nothing if room is
    0. `wrong` and `untold` get the numbers of such instructions; each may be null. Allocates; thread-safe, not
    signal-safe. Errors: code_disagrees: a row is wrong; null_pointer, bad_handle, freed_handle, out_of_memory. */
ju_status ju_check(const ju_registration* registration, char* into, size_t room, size_t* wrong, size_t* untold);

/* Batches. */

/** Makes an empty batch. Errors: null_pointer, out_of_memory. */
ju_status ju_batch_new(ju_batch** batch, ju_error* error);
/** Registers `count` codes, code i by description i, or none of them. Code of size 0 ends where the next one begins.
    Errors as ju_register(); `error->at` is the number of the item with a bad argument. */
ju_status ju_batch_register(ju_batch* batch, const ju_description* const* descriptions, const ju_code* codes,
                            size_t count, ju_error* error);
/** Moves a registration into a batch. Its handle is void afterwards: only the batch cancels it. Errors: out_of_memory,
    after which the caller still owns it. */
ju_status ju_batch_add(ju_batch* batch, ju_registration* registration, ju_error* error);
/** Number of registrations in a batch; 0 for a bad handle. */
size_t ju_batch_size(const ju_batch* batch);
/** Cancels all registrations of a batch, as ju_cancel(), with one wait. The batch stays usable and is empty
    afterwards. */
ju_status ju_batch_cancel(ju_batch* batch, ju_error* error);
/** Retires all registrations of a batch, as ju_retire(). The batch stays usable and is empty afterwards. */
ju_status ju_batch_retire(ju_batch* batch, ju_ticket* ticket, ju_error* error);
/** Cancels the remaining registrations of a batch, and frees it. Null does nothing. Errors as ju_cancel(). */
ju_status ju_batch_free(ju_batch* batch, ju_error* error);

/* Code with call frame information of its own, which a linker has placed in memory. */

/** Addresses from begin on, up to end, exclusive. */
typedef struct ju_range {
  uint64_t begin;
  uint64_t end;
} ju_range;
/** A function as the object's symbol table lists it. */
typedef struct ju_function {
  uint64_t start;
  uint64_t size;    /**< bytes; 0: not known */
  const char* name; /**< null: none */
} ju_function;
/** The parts of an object. Only ju_object_register() reads the arrays and names. */
typedef struct ju_object_code {
  size_t struct_size;   /**< sizeof(ju_object_code) */
  const ju_range* code; /**< the sections of code */
  size_t code_count;
  ju_range eh_frame;            /**< the relocated .eh_frame, up to its end or a terminator; empty: none */
  const ju_function* functions; /**< in any order; may be null if there are none */
  size_t function_count;
} ju_object_code;

/** Registers an object: all functions that `eh_frame` describes, and all functions that it does not describe.
    `eh_frame` must stay in place, readable and unchanged until the object is cancelled. Errors, with the address of
    the entry: e_range, truncated and other defects of call frame information, those of ju_register(). */
ju_status ju_object_register(const ju_object_code* object, ju_object** registered, ju_error* error);
/** Number of procedures, and number of those without call frame information. Either may be null. */
ju_status ju_object_count(const ju_object* object, size_t* procedures, size_t* undescribed);
/** Range of procedure number `i`: the order is that of the entries, followed by procedures without an entry. Errors:
    out_of_range. */
ju_status ju_object_range(const ju_object* object, size_t i, ju_range* range);
/** Cancels all procedures of an object, as ju_cancel(), with one wait. The handle is void afterwards. */
ju_status ju_object_cancel(ju_object* object, ju_error* error);

/* The registry. */

/** Number of registered procedures, and the library's memory for them in bytes. Either may be null. */
void ju_registered(size_t* procedures, size_t* bytes);
/** The list that other processes read, unw_dyn_info_list_t of libunwind. Signal-safe. */
const void* ju_procedure_list(void);
/** Whether a registered procedure covers `pc`. 0: none does. 1: one may. Signal-safe. */
int ju_may_be_registered(uint64_t pc);
/** Drops cached rows of the code from begin to end. Signal-safe. */
void ju_forget_rows(uint64_t begin, uint64_t end);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
