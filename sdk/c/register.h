/* Making described code known to every walk, exception and debugger, and taking it back. docs/builders.md
   "Registrations".

   Registering and cancelling are O(1) at any number of procedures, in any order, while other threads walk. Thread-safe
   for different handles; one thread at a time for one handle; none is signal-safe unless it says so: in a handler that
   interrupted one of them they are refused with JU_IN_SIGNAL_HANDLER, and nothing has changed. */
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
/** Many registered procedures that come and go together. */
typedef struct ju_batch ju_batch;
/** The procedures of an object with call frame information of its own. */
typedef struct ju_object ju_object;

/** Where code ended up, and what is particular to it. ju_code_init() first. */
typedef struct ju_code {
  size_t struct_size;        /**< sizeof(ju_code) */
  uint64_t start;            /**< first byte, in this process */
  uint64_t size;             /**< bytes */
  const char* name;          /**< copied; null or "": the description's */
  uint64_t lsda;             /**< 0: the description's */
  uint64_t landing_pad_base; /**< what call-site tables are relative to; 0: start. Needs language-specific data */
  void* user;                /**< yours: what ju_frame_user() gives back, never looked into */
} ju_code;

/** Fills in where code lies, and nothing else. Signal-safe. */
static inline void ju_code_init(ju_code* code, const void* start, size_t bytes) {
  code->struct_size = sizeof *code;
  code->start = (uint64_t)(uintptr_t)start;
  code->size = bytes;
  code->name = NULL;
  code->lsda = 0;
  code->landing_pad_base = 0;
  code->user = NULL;
}

/** Makes code known that a description fits. The description may be freed afterwards. Errors, and nothing is
    registered then: null_pointer, bad_handle, freed_handle, bad_struct_size, bad_version, bad_string; e_range,
    e_overlap, e_landing_pad: the description does not fit; invalid_argument: it is for another CPU than this
    process; out_of_memory; in_signal_handler. */
ju_status ju_register(const ju_description* description, const ju_code* code, ju_registration** registration,
                      ju_error* error);

/** Code is not known any more. O(1), then waits for walks that are reading the description right now. On return
    nothing reads it, the code may be reused, and the handle is void. Null does nothing. Errors: bad_handle: nothing
    that is registered, and its memory stays as it is; freed_handle; in_signal_handler, and it is still registered. */
ju_status ju_cancel(ju_registration* registration, ju_error* error);

/** A batch that was retired; one of all zeros counts as reclaimed. */
typedef struct ju_ticket {
  uint64_t serial;
  uint32_t batch;
  uint32_t skipped; /**< how many were not registered */
} ju_ticket;
/** Code is not known any more. As ju_cancel(), and never waits: memory is freed by itself once no walk can be
    reading it. `ticket` may be null. */
ju_status ju_retire(ju_registration* registration, ju_ticket* ticket, ju_error* error);
/** Whether what was retired is read any more. 1: nothing of it is. 0: it may be, or that cannot be told at once.
    Never waits. */
int ju_reclaimed(const ju_ticket* ticket);

/** Where registered code lies: first byte, and the one behind the last. Errors: null_pointer, bad_handle,
    freed_handle. Signal-safe. */
ju_status ju_registration_range(const ju_registration* registration, uint64_t* begin, uint64_t* end);
/** Bytes of this procedure alone, the shared shape not included; 0 of a bad handle. Signal-safe. */
size_t ju_registration_bytes(const ju_registration* registration);

/* Batches. */

/** Makes an empty batch. Errors: null_pointer, out_of_memory. */
ju_status ju_batch_new(ju_batch** batch, ju_error* error);
/** Registers `count` codes, code i by description i, or none of them. Errors as ju_register(); `error->at` is the
   number of the item where an argument is wrong. */
ju_status ju_batch_register(ju_batch* batch, const ju_description* const* descriptions, const ju_code* codes,
                            size_t count, ju_error* error);
/** Takes a registration over into a batch: its handle is void then. Errors: out_of_memory, and it is still yours. */
ju_status ju_batch_add(ju_batch* batch, ju_registration* registration, ju_error* error);
/** How many registrations a batch has; 0 of a bad handle. */
size_t ju_batch_size(const ju_batch* batch);
/** Cancels all of a batch: as ju_cancel(), with one wait; the batch is empty afterwards, and stays. */
ju_status ju_batch_cancel(ju_batch* batch, ju_error* error);
/** Retires all of a batch: as ju_retire(); the batch is empty afterwards, and stays. */
ju_status ju_batch_retire(ju_batch* batch, ju_ticket* ticket, ju_error* error);
/** Cancels what is left in a batch, and frees it. Null does nothing. Errors as ju_cancel(). */
ju_status ju_batch_free(ju_batch* batch, ju_error* error);

/* Code that comes with call frame information of its own, as a linker has placed it in memory. */

/** Addresses from begin on, up to end, exclusive. */
typedef struct ju_range {
  uint64_t begin;
  uint64_t end;
} ju_range;
/** A function as the object's symbol table has it. */
typedef struct ju_function {
  uint64_t start;
  uint64_t size;    /**< bytes; 0: not known */
  const char* name; /**< null: none */
} ju_function;
/** What an object consists of. Arrays and names are read by ju_object_register() only. */
typedef struct ju_object_code {
  size_t struct_size;   /**< sizeof(ju_object_code) */
  const ju_range* code; /**< its sections of code */
  size_t code_count;
  ju_range eh_frame;            /**< its .eh_frame, relocated; empty: none. Ends there or at a terminator */
  const ju_function* functions; /**< in any order; may be null where there are none */
  size_t function_count;
} ju_object_code;

/** Makes an object known: all functions that `eh_frame` describes, and all functions that it does not. `eh_frame`
    must stay in place, readable and unchanged until all is cancelled. Errors, with the address of the entry:
    e_range, truncated and what else is wrong with call frame information, those of ju_register(). */
ju_status ju_object_register(const ju_object_code* object, ju_object** registered, ju_error* error);
/** How many procedures there are, and how many of them have no call frame information. Either may be null. */
ju_status ju_object_count(const ju_object* object, size_t* procedures, size_t* undescribed);
/** Procedure number `i`, in the order of their entries, then those without one. Errors: out_of_range. */
ju_status ju_object_range(const ju_object* object, size_t i, ju_range* range);
/** An object is not known any more: as ju_cancel() of all, with one wait. The handle is void. */
ju_status ju_object_cancel(ju_object* object, ju_error* error);

/* The registry. */

/** How many procedures are registered now, and the library's memory for them, bytes. Either may be null. */
void ju_registered(size_t* procedures, size_t* bytes);
/** The list that other processes read, unw_dyn_info_list_t of libunwind. Signal-safe. */
const void* ju_procedure_list(void);
/** Whether a registered procedure covers `pc`. 0: none does. 1: perhaps one does. Signal-safe. */
int ju_may_be_registered(uint64_t pc);
/** What is kept of code from begin to end is looked up anew. Signal-safe. */
void ju_forget_rows(uint64_t begin, uint64_t end);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
