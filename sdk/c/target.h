/* Walks of foreign stacks: those of another process, a core file, or a sample. docs/targets.md.

     ju_target* target = NULL;
     ju_cursor cursor;
     if (ju_target_attach(pid, JU_WHILE_ATTACHED, &target, &error) != JU_OK ||
         ju_target_cursor(target, 0, &cursor, &error) != JU_OK || ju_walk(&cursor, on_frame, NULL, &error) != JU_OK)
       fprintf(stderr, "%s\n", error.text);
     ju_target_free(target);

   Only one thread may use a target; for a process it is the thread that attached. Not signal-safe, except for the
   functions ju_frame_* other than those of names. Cursors of a target are void once it is freed, renewed or let go. */
#ifndef JITUNWIND_SDK_C_TARGET_H
#define JITUNWIND_SDK_C_TARGET_H

#include <stdint.h>

#include "jitunwind/sdk/c/walk.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** A target of walks. */
typedef struct ju_target ju_target;

/** The time for which a process is stopped: until it is let go, or while registers and stacks are copied. */
typedef enum ju_hold { JU_WHILE_ATTACHED = 0, JU_TO_COPY = 1, JU_HOLD_ANY = 0x7fffffff } ju_hold;

/** A file with memory that a core file leaves out. */
typedef struct ju_mapped_file {
  uint64_t address;
  const char* path;
} ju_mapped_file;
/** The places of the files of a core file or a sample. */
typedef struct ju_folders {
  size_t struct_size;          /**< sizeof(ju_folders) */
  const char* root;            /**< folder with the files at the target's paths; null: this machine's */
  const char* program;         /**< the file of its program, if it is at another place; null */
  const ju_mapped_file* files; /**< null: none */
  size_t file_count;
} ju_folders;

/** A register of a sample. */
typedef struct ju_reg_value {
  ju_reg reg;
  uint64_t value;
} ju_reg_value;
/** A profiler's record of a thread at one moment. */
typedef struct ju_sample {
  size_t struct_size; /**< sizeof(ju_sample) */
  ju_cpu cpu;
  const ju_reg_value* registers;
  size_t register_count;
  uint64_t stack_address; /**< address of the first byte of `stack` */
  const void* stack;      /**< must outlive the target */
  size_t stack_size;      /**< bytes */
  const char* maps;       /**< text of /proc/PID/maps; any length */
  int32_t process;
  int32_t thread;
} ju_sample;

/** Attaches to another process: stops all of its threads, which continue when the target ends. Errors: no_process and
    similar ones, with a remedy. */
ju_status ju_target_attach(int32_t process, ju_hold hold, ju_target** target, ju_error* error);
/** Opens a process that the calling thread traces already and has stopped. */
ju_status ju_target_of_traced(int32_t process, ju_target** target, ju_error* error);
/** Opens a core file, whole or cut off anywhere. `folders` may be null. */
ju_status ju_target_open_core(const char* path, const ju_folders* folders, ju_target** target, ju_error* error);
/** Opens a sample; only frames whose data is in the sample can be walked. `folders` may be null. */
ju_status ju_target_of_sample(const ju_sample* sample, const ju_folders* folders, ju_target** target, ju_error* error);
/** Frees a target; its process continues. Null does nothing. Errors: bad_handle, freed_handle. */
ju_status ju_target_free(ju_target* target);

/** Number of the process; 0 for a sample and for a bad handle. */
int32_t ju_target_process(const ju_target* target);
/** The target's CPU; JU_CPU_HOST for a bad handle. */
ju_cpu ju_target_cpu(const ju_target* target);
/** Number of threads; 0 for a bad handle. */
size_t ju_target_threads(const ju_target* target);

/** A thread of a target. */
typedef struct ju_thread {
  size_t struct_size; /**< sizeof(ju_thread) */
  int32_t id;
  int32_t signal;     /**< signal that ended it or that it is about to receive; 0: none */
  int32_t is_stopped; /**< 0: it does not stop, and cannot be walked */
  char name[64];      /**< cut to its size */
} ju_thread;
/** Thread number `i`, in the order of their ids. The first thread of a core file is the one for which it was made.
    Errors: null_pointer, bad_handle, freed_handle, bad_struct_size, out_of_range. */
ju_status ju_target_thread(const ju_target* target, size_t i, ju_thread* thread, ju_error* error);
/** The innermost frame of thread number `i`. Errors: as ju_target_thread(). */
ju_status ju_target_cursor(const ju_target* target, size_t i, ju_cursor* cursor, ju_error* error);

/** The source line of a frame's code, if its JIT compiler announced it (jitdumps). `cursor` is at a frame of the
    target. Writes the file, "" if none was announced, cut to room - 1 bytes; and the line, if `line` is not null.
    Errors: null_pointer, bad_handle, freed_handle; invalid_argument: the cursor belongs to another target; no_info:
    no source line was announced. */
ju_status ju_target_source_line(const ju_target* target, const ju_cursor* cursor, char* file, size_t room,
                                uint32_t* line, ju_error* error);

/** Lets a process continue; the copied part of it can still be walked. Errors: null_pointer, bad_handle,
    freed_handle. */
ju_status ju_target_let_go(ju_target* target, ju_error* error);
/** Stops a process that has continued, and reads its state again. */
ju_status ju_target_renew(ju_target* target, ju_error* error);
/** Opens another sample of the same process; a sample without maps has the mappings of the sample before. */
ju_status ju_target_renew_sample(ju_target* target, const ju_sample* sample, ju_error* error);
/** Address of list number `i` of registered procedures in the target; 0: there are no more. */
ju_status ju_target_list(const ju_target* target, size_t i, uint64_t* address, ju_error* error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
