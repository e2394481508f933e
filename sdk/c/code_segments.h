/* Memory for code that tools see which were never told of this library: C++'s CodeSegments. docs/code_segments.md.

     ju_code_segments* segments;
     ju_code_room room;
     ju_code code;
     ju_code_new(NULL, &segments, &error);
     ju_code_allocate(segments, size, &room, &error);
     memcpy(room.writable, bytes, size);
     ju_code_init(&code, room.start, size);
     if (ju_code_commit(segments, description, &code, &error) != JU_OK) fputs(error.text, stderr);

   Any number of threads may use an object at a time. No function is signal-safe. Opening a segment waits for the
   dynamic linker's lock. */
#ifndef JITUNWIND_SDK_C_CODE_SEGMENTS_H
#define JITUNWIND_SDK_C_CODE_SEGMENTS_H

#include <stdint.h>

#include "jitunwind/sdk/c/register.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** An allocator of executable memory that is the text of libraries. */
typedef struct ju_code_segments ju_code_segments;

/** The size of each segment; a function that is larger has a segment of its own. 0: the default. */
typedef struct ju_code_options {
  size_t struct_size; /**< sizeof(ju_code_options) */
  size_t text_bytes;  /**< by default 1 MiB */
  size_t functions;   /**< by default 4096 */
  int changes_code;   /**< not 0: committed code is written to again, so that no file is renewed or sealed */
} ju_code_options;

/** Makes an allocator, which opens nothing yet. `options` may be null. Free it with ju_code_free(). Errors:
    null_pointer, bad_struct_size, bad_version, out_of_memory. */
ju_status ju_code_new(const ju_code_options* options, ju_code_segments** segments, ju_error* error);
/** Releases all code of an allocator, and frees it. Null does nothing. It waits for the thread that opens a segment, so
    it must not be called in a constructor that this thread waits for. Errors: bad_handle, freed_handle. */
ju_status ju_code_free(ju_code_segments* segments);
/** A handle of the allocator of a program that was started with JITUNWIND_PUBLISH=1 in its environment, by which code
    generators publish that were not told to. Null, without error, in other programs. Free it with ju_code_free(), which
    releases nothing: the allocator is there for good. Errors: null_pointer, out_of_memory. */
ju_status ju_code_of_environment(ju_code_segments** segments, ju_error* error);

/** Room for a function, whose bytes have two addresses. */
typedef struct ju_code_room {
  void* start;    /**< where the code runs: readable and executable, aligned to 16 */
  void* writable; /**< where it is written */
  size_t size;    /**< bytes of both; at least as many as were asked for */
} ju_code_room;

/** Allocates room for code of `size` bytes. Errors: null_pointer, bad_handle, freed_handle; e_range: 0 bytes, or more
    than 1 GiB; out_of_memory. */
ju_status ju_code_allocate(ju_code_segments* segments, size_t size, ju_code_room* room, ju_error* error);
/** Allocates room for code with at most `more_functions` that begin behind the room's start, at a multiple of
    `alignment`; 0: 16. Errors: those of ju_code_allocate(); e_range: as many functions as bytes, or an alignment that
    is not a power of two from 16 to 65536. */
ju_status ju_code_allocate_functions(ju_code_segments* segments, size_t size, size_t more_functions, size_t alignment,
                                     ju_code_room* room, ju_error* error);

/** Registers and publishes code whose bytes were written. `code->start` is that of a room, and `code->size` at most the
    room's. The description may be freed afterwards. Code that is registered but cannot be published is no error:
    ju_code_status_get() tells. Errors, after which the room stays allocated: not_registered: no room begins there, or
    it has code already; e_overlap: the code is larger than the room; those of ju_register(). */
ju_status ju_code_commit(ju_code_segments* segments, const ju_description* description, const ju_code* code,
                         ju_error* error);
/** Does the same with what marks have recorded, and forgets it. Errors: those of ju_code_commit() and
    ju_register_marks(). */
ju_status ju_code_commit_marks(ju_code_segments* segments, ju_builder* marks, const ju_code* code, ju_error* error);

/** Publishes what is registered in a stretch of a room by other means than ju_code_commit(). Functions of one room are
    published in the order of their addresses, by one call or by several. The caller cancels their registrations, and
    then releases the room. Code that cannot be published is no error: ju_code_status_get() tells. Errors: null_pointer,
    bad_handle, freed_handle; not_registered: no room has this code, or ju_code_commit() gave it code. */
ju_status ju_code_publish(ju_code_segments* segments, const void* start, size_t size, ju_error* error);

/** Takes the code at this start back, as ju_cancel() does: its room may have other code when this returns. Errors:
    null_pointer, bad_handle, freed_handle; not_registered: no room begins there; in_signal_handler, after which nothing
    has changed. */
ju_status ju_code_release(ju_code_segments* segments, const void* start, ju_error* error);

/** Seals all segments, for programs that make no code for a while. Errors: null_pointer, bad_handle, freed_handle; io:
   a segment's file could not be renewed, and is as it was. */
ju_status ju_code_seal(ju_code_segments* segments, ju_error* error);

/** The state at one moment. */
typedef struct ju_code_status {
  size_t struct_size; /**< sizeof(ju_code_status) */
  uint64_t segments;  /**< open, those that are published among them */
  uint64_t files;     /**< published segments */
  uint64_t functions; /**< committed, and not released */
  uint64_t published; /**< those of them that tools know by name, with call frame information */
  uint64_t refused;   /**< segments and functions that were not published, or not entirely */
  ju_status latest_refusal;
  const char* why; /**< reason for the latest refusal, in one sentence; "" if there was none. Static storage */
  uint64_t sealed; /**< files that have a build-id, and never change */
} ju_code_status;
/** Reads the state. Errors: null_pointer, bad_handle, freed_handle, bad_struct_size, out_of_memory. */
ju_status ju_code_status_get(const ju_code_segments* segments, ju_code_status* status, ju_error* error);
/** The folder of the newest published segment's file, cut to room - 1 bytes; "" if there is none. `length` may be
    null. */
ju_status ju_code_folder(const ju_code_segments* segments, char* into, size_t room, size_t* length);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
