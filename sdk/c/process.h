/* This process as a whole: the library's statistics, its log, and other readers of the registry. */
#ifndef JITUNWIND_SDK_C_PROCESS_H
#define JITUNWIND_SDK_C_PROCESS_H

#include <stdint.h>

#include "jitunwind/sdk/c/base.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** Statistics of one cache. */
typedef struct ju_table_statistics {
  uint64_t hits;     /**< 0 unless counts_hits */
  uint64_t misses;   /**< lookups that needed a search */
  uint64_t refusals; /**< number of misses whose result was not cached */
} ju_table_statistics;

/** Numbers since the process began, except for those marked "now": docs/diagnostics.md. */
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
  ju_table_statistics last_walks; /**< always 0: walks are no longer recorded */
  uint64_t last_walks_recorded;   /**< always 0 */
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
/** Reads the statistics of this process. Thread-safe, signal-safe. Errors: null_pointer, bad_struct_size. */
ju_status ju_statistics_get(ju_statistics* statistics, ju_error* error);
/** The statistics of this process as text, one line per number, cut to room - 1 bytes; `length` may be null.
    Thread-safe. */
ju_status ju_statistics_text(char* into, size_t room, size_t* length);

/** Writes one line per registered procedure to a file. Thread-safe. Errors: out_of_memory, in_signal_handler. */
ju_status ju_dump_registry(int fd);

/** The topics of the log, as bits. */
enum { JU_LOG_WALK = 1, JU_LOG_ROWS = 2, JU_LOG_REGISTRY = 4 };
/** Sends lines about these topics to `fd` from now on; 0 stands for no topics. Thread-safe, signal-safe. */
void ju_set_log(uint32_t topics, int fd);
/** The file descriptor of the log. Thread-safe, signal-safe. */
int ju_log_fd(void);

/* Debuggers: GDB, LLDB and other readers of GDB's interface for code made at run time. docs/debuggers.md. All
   functions are thread-safe. Errors: out_of_memory, in_signal_handler. */

/** Publishes the registered procedures to debuggers, now and after each registration. */
ju_status ju_attach_gdb(ju_error* error);
/** Makes debuggers drop all published procedures. */
ju_status ju_detach_gdb(ju_error* error);
/** Publishes the waiting procedures now. */
ju_status ju_flush_gdb(ju_error* error);

/** The state of the published procedures at one moment. */
typedef struct ju_gdb_statistics {
  size_t struct_size; /**< sizeof(ju_gdb_statistics) */
  int32_t attached;
  uint32_t copies;     /**< attached copies of this library in the process */
  uint64_t procedures; /**< number that debuggers know */
  uint64_t waiting;    /**< number that wait to be published together */
  uint64_t files;
  uint64_t bytes;   /**< size of all files */
  uint64_t refused; /**< procedures that debuggers know by name only, or not at all */
  ju_status latest_refusal;
} ju_gdb_statistics;
/** Reads the state of the published procedures. Errors: null_pointer, bad_struct_size. */
ju_status ju_gdb_statistics_get(ju_gdb_statistics* statistics, ju_error* error);

/* perf, and profilers that read its files: /tmp/perf-PID.map and jit-PID.dump. docs/profilers.md. All functions are
   thread-safe. Errors: io, out_of_memory, in_signal_handler. */

/** Writes the registered procedures to perf's files, now and before each registration returns: attach_perf() of C++
    with its default options. */
ju_status ju_attach_perf(ju_error* error);
/** Ends the files. */
ju_status ju_detach_perf(ju_error* error);

/** The code from this offset up to that of the next line is of this line. */
typedef struct ju_source_line {
  uint64_t offset;  /**< from the begin of the code */
  const char* file; /**< null: not told */
  uint32_t line;    /**< 0: the code is of no line */
} ju_source_line;
/** Writes the source lines of code that is registered next: perf takes those that precede it. The last line is that of
    the rest. Does nothing if no dump is written. Errors: null_pointer; bad_string: the name of a file;
   invalid_argument: more than 65536 lines. */
ju_status ju_tell_perf_lines(const void* start, size_t size, const ju_source_line* lines, size_t count,
                             ju_error* error);

/** The state of perf's files at one moment. */
typedef struct ju_perf_statistics {
  size_t struct_size; /**< sizeof(ju_perf_statistics) */
  int32_t attached;
  int32_t has_map;     /**< not 0: a map is written */
  int32_t has_dump;    /**< not 0: a dump is written */
  uint64_t procedures; /**< written to one of them at least */
  uint64_t refused;    /**< procedures that are in no file, or not as they should be */
  ju_status latest_refusal;
} ju_perf_statistics;
/** Reads the state of perf's files. Errors: null_pointer, bad_struct_size. */
ju_status ju_perf_statistics_get(ju_perf_statistics* statistics, ju_error* error);

/* C++ exceptions, pthread_cancel(), backtrace() of the C library. docs/exceptions.md. */

/** The path by which the unwinder of the C++ run-time finds registered procedures. */
typedef enum ju_unwinder_path {
  JU_PATH_NONE = 0,                /**< it does not find them */
  JU_PATH_INTERPOSED = 1,          /**< it calls the library's _Unwind_Find_FDE */
  JU_PATH_REGISTERED_SECTIONS = 2, /**< __register_frame, a section per 64 KiB of code */
  JU_PATH_REGISTERED_FDES = 3,     /**< __register_frame, an FDE per procedure */
  JU_PATH_OWN_RUNTIME = 4,         /**< it is libjitunwind-eh */
  JU_PATH_JUMP_SLOT = 5,           /**< its jump slot leads to the library's function */
  JU_UNWINDER_PATH_ANY = 0x7fffffff
} ju_unwinder_path;
/** The name of a path, "interposed". Never null. Thread-safe, signal-safe. */
const char* ju_unwinder_path_name(ju_unwinder_path path);
/** The result of C++'s system_unwinder_status(). */
typedef struct ju_unwinder_status {
  size_t struct_size; /**< sizeof(ju_unwinder_status) */
  ju_unwinder_path path;
  const char* why;  /**< attempts and their results; static storage */
  int32_t has_next; /**< not 0: another definition serves code that is not registered */
  uint32_t slots;
  uint32_t unreached;
  const char* why_unreached; /**< static storage */
  uint64_t refused;          /**< lookups of registered procedures that failed */
  ju_status latest_refusal;
} ju_unwinder_status;
/** Looks a private address up through the unwinder, and records the functions it calls. Thread-safe. Errors:
    null_pointer, bad_struct_size. */
ju_status ju_unwinder_status_get(ju_unwinder_status* status, ju_error* error);
/** The first frame, from the caller's up, that an exception would not pass, as one line; its number counts frames of
    this library, too. The text is cut to room - 1 bytes; `length` may be null. Allocates. */
ju_status ju_why_stopped(char* into, size_t room, size_t* length);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
