/* The common parts of the C interface: results, errors with their remedies, versions.

   Every function's comment states which threads may call it, and whether signal handlers may. The default is:
   thread-safe for different handles, one thread at a time for one handle, not signal-safe. No function throws or
   calls longjmp(); callbacks must not let exceptions out. Strings are UTF-8, or the code generator's own names, and
   end with a NUL within 65536 bytes. Addresses, sizes and offsets are in bytes.

   Enumerations are 32 bits wide, and end with an _ANY that no function returns: callers may pass other numbers, which
   are refused.

   The headers need C99, or C++11. docs/c.md has a table of the C++ functions and their C functions. */
#ifndef JITUNWIND_SDK_C_BASE_H
#define JITUNWIND_SDK_C_BASE_H

#include <stddef.h>
#include <stdint.h>

#include "jitunwind/version.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** The result of every function that can fail. The numbers never change; newer libraries may return further ones. */
typedef enum ju_status {
  JU_OK = 0,
  JU_END = 1, /**< result of a step: this is the outermost frame */

  /* General. */
  JU_UNSPECIFIED = 2,          /**< unspecified error */
  JU_OUT_OF_MEMORY = 3,        /**< out of memory */
  JU_BAD_REGISTER = 4,         /**< bad register number */
  JU_READ_ONLY_REGISTER = 5,   /**< attempt to write a read-only register */
  JU_STOP_UNWIND = 6,          /**< stop unwinding */
  JU_INVALID_IP = 7,           /**< invalid instruction pointer */
  JU_BAD_FRAME = 8,            /**< bad frame */
  JU_INVALID_ARGUMENT = 9,     /**< unsupported operation or bad value */
  JU_UNSUPPORTED_VERSION = 10, /**< unwind information has an unsupported version */
  JU_NO_INFO = 11,             /**< no unwind information found */

  /* Bytes of a target. */
  JU_UNREADABLE_MEMORY = 20, /**< memory cannot be read */
  JU_TRUNCATED = 21,         /**< data ends too early */
  JU_BAD_ENCODING = 22,      /**< bad pointer or number encoding */
  JU_BAD_OPCODE = 23,        /**< unknown opcode */
  JU_BAD_AUGMENTATION = 24,  /**< unknown augmentation */
  JU_BAD_STRUCTURE = 25,     /**< structure contradicts itself */
  JU_TOO_DEEP = 26,          /**< nested too deeply or too long */
  JU_ROW_TOO_WIDE = 27,      /**< more register rules than a row holds */
  JU_BAD_ELF = 28,           /**< not a usable ELF image */
  JU_IO = 29,                /**< file cannot be opened or mapped */
  JU_CALLBACK_FAILED = 30,   /**< a callback of the address space failed */

  /* Walking. */
  JU_UNDEFINED_REGISTER = 40, /**< register has no value in this frame */
  JU_CYCLIC_FRAMES = 41,      /**< frames repeat */
  JU_FRAME_LIMIT = 42,        /**< more frames than the walk's limit */
  JU_BAD_SIGNATURE = 43,      /**< return address does not authenticate */
  JU_UNKNOWN_SIGNATURE = 44,  /**< return address with upper bits that nothing explains */

  /* Descriptions: docs/directives.md "Validation". */
  JU_E_RANGE = 60,       /**< empty or inverted code range, or length not a multiple of the instruction unit */
  JU_E_FORMAT = 61,      /**< unknown format */
  JU_E_FLAGS = 62,       /**< flags or padding not 0 */
  JU_E_TAG = 63,         /**< unknown directive before STOP */
  JU_E_QP = 64,          /**< predicate on a target without predicates */
  JU_E_NEG = 65,         /**< negative insn_count in a region that is not the last */
  JU_E_OVERLAP = 66,     /**< regions are longer than the procedure */
  JU_E_WHEN = 67,        /**< directive behind the end of its region */
  JU_E_REG = 68,         /**< no such register, or not one that can be saved */
  JU_E_ADD_REG = 69,     /**< ADD to a register that is neither SP nor the frame pointer */
  JU_E_ADD_ALIGN = 70,   /**< ADD on SP breaks the stack alignment */
  JU_E_NO_FP = 71,       /**< no frame pointer */
  JU_E_FP_CLOBBER = 72,  /**< frame pointer register overwritten before it is saved */
  JU_E_FP_UNKNOWN = 73,  /**< frame pointer set from an SP of unknown distance */
  JU_E_SP_LOST = 74,     /**< SP relation lost and no frame pointer */
  JU_E_SP_HIGH = 75,     /**< stack pointer raised above its value at entry */
  JU_E_LR = 76,          /**< return address of a calling frame in a scratch register */
  JU_E_SPILL_LOW = 77,   /**< slot below SP by more than the red zone */
  JU_E_SPILL_RA = 78,    /**< slot overlaps the return address */
  JU_E_POP = 79,         /**< POP_FRAMES of 0 or of more states than there are */
  JU_E_LABEL = 80,       /**< COPY_STATE of an unknown or later label */
  JU_E_ALIAS = 81,       /**< ALIAS is not the only directive of its region */
  JU_E_ALIAS_DEPTH = 82, /**< ALIAS nested too deeply */
  JU_E_ALIAS_STATE = 83, /**< arithmetic on a state taken over from static unwind information */
  JU_E_CYCLE = 84,       /**< region list too long or cyclic */
  JU_E_SAME_BYTES = 85,  /**< two instructions in the same bytes */
  JU_E_SLOT_TWICE = 86,  /**< slot that is in use, or register that is saved already */
  JU_E_POP_REG = 87,     /**< another register was saved where this one is popped from */
  JU_E_REG_LOST = 88,    /**< the caller's value of a register is nowhere */
  JU_E_RA_LOST = 89,     /**< the return address is nowhere */
  JU_E_CALL_SITE = 90,   /**< call site empty, overlapping another one, or outside of the procedure */
  JU_E_LANDING_PAD = 91, /**< landing pad at the first byte of the procedure, or outside of it */
  JU_E_CATCH_TYPE = 92,  /**< type to catch has no address */
  JU_W_UNBALANCED = 93,  /**< procedure ends with the frame still allocated */
  JU_W_UNSORTED = 94,    /**< directives not in the order of their instructions */

  /* Registration. */
  JU_ALREADY_REGISTERED = 120, /**< descriptor is registered already */
  JU_NOT_REGISTERED = 121,     /**< descriptor is not registered */
  JU_IN_SIGNAL_HANDLER = 122,  /**< registration interrupted by itself */
  JU_CODE_DISAGREES = 123,     /**< a row says what the code does not do */

  /* Mistakes of C callers that C++ types forbid. */
  JU_NULL_POINTER = 140, /**< a pointer that must not be null is */
  JU_BAD_HANDLE = 141,   /**< handle of another kind, or none at all */
  JU_FREED_HANDLE = 142, /**< handle that was freed: always noticed by libraries built with JITUNWIND_CHECK_HANDLES */
  JU_BAD_STRUCT_SIZE = 143,     /**< struct_size is not that of a structure of this interface */
  JU_BAD_VERSION = 144,         /**< the program was compiled with a newer header than this library has */
  JU_BAD_STRING = 145,          /**< string without end: no NUL in 65536 bytes, or before memory that cannot be read */
  JU_OTHER_CPU = 146,           /**< register of another CPU than the one that is described */
  JU_NO_SUCH_INSTRUCTION = 147, /**< instruction that this CPU does not have */
  JU_BAD_VALUE = 148,           /**< value that the enumeration does not have */
  JU_OUT_OF_RANGE = 149,        /**< number behind the last one there is */

  /* Reasons for having no target. */
  JU_NO_PROCESS = 160,            /**< no process has that number */
  JU_ZOMBIE = 161,                /**< it has ended, or is about to: the kernel has taken its memory */
  JU_KERNEL_THREAD = 162,         /**< a thread of the kernel's */
  JU_THIS_PROCESS = 163,          /**< the calling process: walk it as such */
  JU_TRACED_BY_ANOTHER = 164,     /**< a process has one tracer */
  JU_NO_PERMISSION = 165,         /**< the kernel does not let this user trace it */
  JU_OTHER_ARCHITECTURE = 166,    /**< its CPU, or its word size */
  JU_NO_SUCH_FILE = 167,          /**< it cannot be opened or read */
  JU_NO_CORE = 168,               /**< the file is no core file, or nothing of one is left */
  JU_CORE_OF_OTHER_PROGRAM = 169, /**< the program that was given is not the one that the core is of */
  JU_NO_SAMPLES = 170,            /**< the file has no samples of stacks, or they cannot be read */

  /* Reasons of a thread that does not answer. */
  JU_THREAD_GONE = 180,   /**< this process has no thread of that number */
  JU_THREAD_BLOCKS = 181, /**< it blocks all signals, or the one it is asked by */
  JU_THREAD_SILENT = 182, /**< it does not run: stopped by a debugger, or in an uninterruptible wait */
  JU_NO_SIGNAL = 183,     /**< all real-time signals are used for something else, or too many wait to be delivered */
  JU_THREADS_BUSY = 184,  /**< as many threads as there is room for are being asked */
  JU_STATUS_ANY = 0x7fffffff
} ju_status;

/** The code as a word, "e_range". Never null. Thread-safe, signal-safe. */
const char* ju_status_name(ju_status status);
/** The meaning of the code, in one sentence. Never null. Thread-safe, signal-safe. */
const char* ju_status_text(ju_status status);
/** The remedy, in one sentence; "" if it depends on the case. Never null. Thread-safe, signal-safe. */
const char* ju_status_remedy(ju_status status);

/** Sizes in bytes of the texts in a ju_error, the NUL included. Longer texts are cut. */
enum { JU_PLACE_SIZE = 64, JU_TEXT_SIZE = 512 };

/** The description of an error. Every function that takes a `ju_error*` also takes null. Set struct_size before the
    first call, by ju_error_init(). One object may serve any number of calls, which write it only when they fail. */
typedef struct ju_error {
  size_t struct_size; /**< sizeof(ju_error): structures grow at their end */
  ju_status code;
  uint64_t at;               /**< address, code offset or number in the text; 0: none */
  const char* remedy;        /**< the remedy; "" if it depends on the case. Static storage */
  char place[JU_PLACE_SIZE]; /**< argument, instruction or directive at fault; "" if there is none */
  char text[JU_TEXT_SIZE];   /**< one sentence; a line for each finding of ju_build() */
} ju_error;

/** Makes an error empty, and sets its size. Signal-safe. */
static inline void ju_error_init(ju_error* error) {
  error->struct_size = sizeof *error;
  error->code = JU_OK;
  error->at = 0;
  error->remedy = "";
  error->place[0] = '\0';
  error->text[0] = '\0';
}

/** JITUNWIND_VERSION of the library that is loaded: 10000 * major + 100 * minor + patch. Thread-safe, signal-safe. */
unsigned ju_version(void);
/** Whether a program that was compiled with the headers of `compiled_with`, its JITUNWIND_VERSION, runs on this
   library. Errors: bad_version. Thread-safe, signal-safe. */
ju_status ju_check_version(unsigned compiled_with, ju_error* error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
