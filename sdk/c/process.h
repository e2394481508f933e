/* This process as a whole: what the library has kept and counted, its log, and who else knows what is registered. */
#ifndef JITUNWIND_SDK_C_PROCESS_H
#define JITUNWIND_SDK_C_PROCESS_H

#include <stdint.h>

#include "jitunwind/sdk/c/base.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** Of one table of what was found before. */
typedef struct ju_table_statistics {
  uint64_t hits;     /**< 0 unless counts_hits */
  uint64_t misses;   /**< had to be found the long way */
  uint64_t refusals; /**< of these, what was found and not kept */
} ju_table_statistics;

/** Numbers since the process began, but for those of which "now" is said: docs/diagnostics.md. */
typedef struct ju_statistics {
  size_t struct_size;  /**< sizeof(ju_statistics) */
  int32_t counts_hits; /**< not 0: the library was built with JITUNWIND_COUNT */
  ju_table_statistics rows;
  uint64_t rows_kept;
  uint64_t rows_of_more;
  uint64_t rows_not_compact;
  uint64_t rows_met_once;
  uint64_t rows_in_table; /**< now */
  uint64_t guesses;
  ju_table_statistics walks_of_addresses;
  ju_table_statistics last_walks;
  uint64_t last_walks_recorded;
  ju_table_statistics cies;
  ju_table_statistics modules;
  ju_table_statistics fdes;
  uint64_t registrations;
  uint64_t cancelled;
  uint64_t retired;
  uint64_t registry_refusals;
  uint64_t cancel_waits;
  uint64_t registered;     /**< now */
  uint64_t index_bytes;    /**< now */
  uint64_t registry_bytes; /**< now */
} ju_statistics;
/** What this process has counted. Thread-safe, signal-safe. Errors: null_pointer, bad_struct_size. */
ju_status ju_statistics_get(ju_statistics* statistics, ju_error* error);
/** What this process has counted as text, a line for each number; cut to room - 1 bytes, `length` may be null.
    Thread-safe. */
ju_status ju_statistics_text(char* into, size_t room, size_t* length);

/** A line for each registered procedure, to a file. Thread-safe. Errors: out_of_memory, in_signal_handler. */
ju_status ju_dump_registry(int fd);

/** What the log is about, as bits. */
enum { JU_LOG_WALK = 1, JU_LOG_ROWS = 2, JU_LOG_REGISTRY = 4 };
/** Lines about these topics go to `fd` from now on; 0: none. Thread-safe, signal-safe. */
void ju_set_log(uint32_t topics, int fd);
/** Where lines of the log go. Thread-safe, signal-safe. */
int ju_log_fd(void);

/* Debuggers: GDB, LLDB and whoever else reads GDB's interface for code made at run time. docs/debuggers.md. All are
   thread-safe. Errors: out_of_memory, in_signal_handler. */

/** From here on debuggers know what is registered, and what is registered already. */
ju_status ju_attach_gdb(ju_error* error);
/** Debuggers forget what they were told. */
ju_status ju_detach_gdb(ju_error* error);
/** What waits to be handed on together is handed on now. */
ju_status ju_flush_gdb(ju_error* error);

/** What debuggers are shown, at one moment. */
typedef struct ju_gdb_statistics {
  size_t struct_size; /**< sizeof(ju_gdb_statistics) */
  int32_t attached;
  uint32_t copies;     /**< of this library in the process that are attached */
  uint64_t procedures; /**< that debuggers know */
  uint64_t waiting;    /**< to be handed on together */
  uint64_t files;
  uint64_t bytes;   /**< of the files */
  uint64_t refused; /**< procedures that debuggers know by name only, or not at all */
  ju_status latest_refusal;
} ju_gdb_statistics;
/** What debuggers are shown. Errors: null_pointer, bad_struct_size. */
ju_status ju_gdb_statistics_get(ju_gdb_statistics* statistics, ju_error* error);

/* C++ exceptions, pthread_cancel(), backtrace() of the C library. docs/exceptions.md. */

/** How the unwinder of the C++ run-time learns of registered procedures. */
typedef enum ju_unwinder_path {
  JU_PATH_NONE = 0,                /**< it does not */
  JU_PATH_INTERPOSED = 1,          /**< it asks our _Unwind_Find_FDE */
  JU_PATH_REGISTERED_SECTIONS = 2, /**< __register_frame, a section for 64 KiB of code */
  JU_PATH_REGISTERED_FDES = 3,     /**< __register_frame, an FDE a procedure */
  JU_PATH_OWN_RUNTIME = 4,         /**< it is libjitunwind-eh */
  JU_PATH_JUMP_SLOT = 5,           /**< its jump slot leads to ours */
  JU_UNWINDER_PATH_ANY = 0x7fffffff
} ju_unwinder_path;
/** The name of a path, "interposed". Never null. Thread-safe, signal-safe. */
const char* ju_unwinder_path_name(ju_unwinder_path path);
/** What system_unwinder_status() of C++ says. */
typedef struct ju_unwinder_status {
  size_t struct_size; /**< sizeof(ju_unwinder_status) */
  ju_unwinder_path path;
  const char* why;  /**< what was tried and how it came out; static storage */
  int32_t has_next; /**< not 0: another definition answers for code that is not registered */
  uint32_t slots;
  uint32_t unreached;
  const char* why_unreached; /**< static storage */
  uint64_t refused;          /**< questions about registered procedures that could not be answered */
  ju_status latest_refusal;
} ju_unwinder_status;
/** Asks the unwinder about a private address, and sees who is asked in turn. Thread-safe. Errors: null_pointer,
    bad_struct_size. */
ju_status ju_unwinder_status_get(ju_unwinder_status* status, ju_error* error);
/** The first frame, from the caller's up, that an exception would not pass, as one line; its number counts frames of
   this library, too. Cut to room - 1 bytes, `length` may be null. Allocates. */
ju_status ju_why_stopped(char* into, size_t room, size_t* length);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
