/* Descriptions of how a procedure builds and releases its frame. docs/builders.md defines each function, by its C++
   name.

     ju_builder* b;
     ju_describe(JU_CPU_HOST, "add", &b, &error);
     ju_push(b, 0, 1, JU_X86_64_RBP);
     ju_set_frame_pointer(b, 1, 4, JU_X86_64_RBP, 0);
     ju_pop(b, -2, -1, JU_X86_64_RBP);
     if (ju_build(b, &description, &error) != JU_OK) fputs(error.text, stderr);
     ju_builder_free(b);

   Functions that describe only record; ju_build() reports all mistakes. Their results may be ignored: JU_NULL_POINTER,
   JU_BAD_HANDLE or JU_FREED_HANDLE for a bad builder; JU_OTHER_CPU, JU_NO_SUCH_INSTRUCTION, JU_BAD_STRING or
   JU_OUT_OF_MEMORY for a recorded mistake.

   `begin` and `end` are the bytes of an instruction, begin inclusive, end exclusive, as offsets in the procedure.
   Negative offsets count from the procedure's end; its last byte is from -1 to 0. An instruction takes effect after its
   last byte; offsets from SP and frame pointer are those after it. One thread at a time may use a builder. No function
   here is signal-safe. */
#ifndef JITUNWIND_SDK_C_DESCRIBE_H
#define JITUNWIND_SDK_C_DESCRIBE_H

#include <stdint.h>

#include "jitunwind/sdk/c/base.h"
#include "jitunwind/sdk/c/registers.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** A description in progress. */
typedef struct ju_builder ju_builder;
/** Describes how to unwind a procedure, independent of the address of its code. Immutable; any number of threads may
    use it at a time. */
typedef struct ju_description ju_description;

/* Builders. */

/** Makes a builder for code of `cpu`. `name` is copied; null: none. Free it with ju_builder_free(). Thread-safe.
    Errors: null_pointer, bad_value, bad_string, out_of_memory. */
ju_status ju_describe(ju_cpu cpu, const char* name, ju_builder** builder, ju_error* error);
/** Makes marks: a builder for code that is like no other, which ju_register_marks() registers as it is. All functions
    below take it that an entry state and directives of one region can express: not ju_region(), ju_op(), rows, call
    sites and handlers; nor ju_build(). Allocates once, for each function with more than 48 directives, and for entry
    states. Thread-safe.
    Errors: null_pointer, bad_value, out_of_memory. */
ju_status ju_describe_marks(ju_cpu cpu, ju_builder** marks, ju_error* error);
/** Makes an independent copy of a builder. Errors: null_pointer, bad_handle, freed_handle, out_of_memory. */
ju_status ju_builder_copy(const ju_builder* builder, ju_builder** copy, ju_error* error);
/** Frees a builder. Null does nothing. Descriptions that it built stay. Errors: bad_handle, freed_handle. */
ju_status ju_builder_free(ju_builder* builder);

/** Makes a description of the recorded calls: chooses the format, shares the frame shape, and checks everything that
    docs/directives.md "Validation" lists. The builder stays usable. Free the description with ju_description_free();
    procedures that are registered with it stay. Errors: the code of the first finding, or of the first that is no
    warning; `error->text` has a line for each, ju_builder_findings() all of them. */
ju_status ju_build(const ju_builder* builder, ju_description** description, ju_error* error);
/** Every finding of this builder's last ju_build(), uncut, one per line; "" if it was not refused. Valid until the
    builder's next ju_build() or its end. Null for a bad handle. */
const char* ju_builder_findings(const ju_builder* builder);

/* The procedure as a whole. */

/** Sets the exact size of the procedure. Instructions may then lie anywhere, and ju_register() accepts this size
    only. */
ju_status ju_set_size(ju_builder* builder, uint64_t bytes);
/** Address of the personality routine, of type _Unwind_Personality_Fn. */
ju_status ju_set_personality(ju_builder* builder, uint64_t routine);
/** Address of the generator's own language-specific data, in place of a table made of ju_call_site(). */
ju_status ju_set_lsda(ju_builder* builder, uint64_t address);
/** Value of the global pointer, on CPUs that have one. */
ju_status ju_set_gp(ju_builder* builder, uint64_t value);
/** Declares that the code ends with its frame in place, in a jump or in a call that does not return. ju_build()
    refuses such an end otherwise. */
ju_status ju_ends_without_return(ju_builder* builder);

/* Instructions that build the frame. */

/** push reg, saving the caller's value of reg. A push of SP saves no register. CPUs with push: x86-64, x86. */
ju_status ju_push(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg);
/** push of any other value: an argument, a scratch register, a register that was saved before. */
ju_status ju_push_other(ju_builder* builder, int64_t begin, int64_t end);
/** enter bytes,0 */
ju_status ju_enter(ju_builder* builder, int64_t begin, int64_t end, int64_t bytes);
/** sub sp,bytes */
ju_status ju_allocate(ju_builder* builder, int64_t begin, int64_t end, int64_t bytes);
/** reg := SP + above_sp; the frame is found through reg from now on. A preserved register must have been saved. */
ju_status ju_set_frame_pointer(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg, int64_t above_sp);
/** reg := reg + bytes while reg is the frame pointer. */
ju_status ju_move_frame_pointer(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg, int64_t bytes);
/** Saves the caller's value of reg at [SP + offset]; a negative offset lies in the red zone. */
ju_status ju_save_at_sp(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg, int64_t offset);
/** Saves the caller's value of reg at [frame pointer + offset]. */
ju_status ju_save_at_fp(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg, int64_t offset);
/** mov to,reg: register `to` holds the caller's value of reg from now on. */
ju_status ju_move_to(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg, ju_reg to);
/** stp first,second,[sp,offset]. CPUs with pairs: AArch64. */
ju_status ju_store_pair(ju_builder* builder, int64_t begin, int64_t end, ju_reg first, ju_reg second, int64_t offset);
/** stp first,second,[sp,moved]!  with moved < 0 */
ju_status ju_store_pair_pre(ju_builder* builder, int64_t begin, int64_t end, ju_reg first, ju_reg second,
                            int64_t moved);
/** str reg,[sp,moved]!  with moved < 0 */
ju_status ju_store_pre(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg, int64_t moved);
/** paciasp, pacibsp: the return address is signed from now on. */
ju_status ju_sign_return_address(ju_builder* builder, int64_t begin, int64_t end);

/* Instructions that move SP by an amount unknown to the generator. */

/** and sp,-alignment. The frame must be found through a frame pointer or a saved SP from now on. */
ju_status ju_realign(ju_builder* builder, int64_t begin, int64_t end);
/** sub sp,reg: allocates memory of variable size. The frame must be found as after ju_realign(). */
ju_status ju_allocate_variable(ju_builder* builder, int64_t begin, int64_t end);
/** mov [sp+offset],reg, where reg is the frame pointer: the frame is found through this slot from now on. */
ju_status ju_store_sp(ju_builder* builder, int64_t begin, int64_t end, int64_t offset);
/** mov sp,[sp+offset]: reloads SP from the slot of ju_store_sp(). */
ju_status ju_reload_sp(ju_builder* builder, int64_t begin, int64_t end);

/** The bytes of one instruction: begin inclusive, end exclusive. */
typedef struct ju_instruction {
  int64_t begin;
  int64_t end;
} ju_instruction;
/** A stack probe loop as compilers emit it: `bound` computes the final SP into `scratch`, `first_step` moves SP
    first, `back` is the jump that closes the loop. The loop lowers SP by `bytes`. */
ju_status ju_probe_loop(ju_builder* builder, ju_instruction bound, ju_instruction first_step, ju_instruction back,
                        int64_t bytes, ju_reg scratch);

/* Instructions that release the frame. */

/** pop reg: a preserved register that was saved in the slot holds its caller's value again. */
ju_status ju_pop(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg);
/** pop of any register, without a check of the register saved in the slot. */
ju_status ju_pop_other(ju_builder* builder, int64_t begin, int64_t end);
/** add sp,bytes */
ju_status ju_deallocate(ju_builder* builder, int64_t begin, int64_t end, int64_t bytes);
/** SP := fp + offset, where fp is the frame pointer. */
ju_status ju_restore_sp(ju_builder* builder, int64_t begin, int64_t end, ju_reg fp, int64_t offset);
/** leave */
ju_status ju_leave(ju_builder* builder, int64_t begin, int64_t end);
/** reg holds its caller's value again, although its slot is not released yet. */
ju_status ju_reload(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg);
/** ldp first,second,[sp,n] whose slots are not released yet */
ju_status ju_reload_pair(ju_builder* builder, int64_t begin, int64_t end, ju_reg first, ju_reg second);
/** ldp first,second,[sp],moved  with moved > 0 */
ju_status ju_load_pair_post(ju_builder* builder, int64_t begin, int64_t end, ju_reg first, ju_reg second,
                            int64_t moved);
/** ldr reg,[sp],moved  with moved > 0 */
ju_status ju_load_post(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg, int64_t moved);
/** autiasp, autibsp: the return address is plain again. */
ju_status ju_authenticate_return_address(ju_builder* builder, int64_t begin, int64_t end);
/** pop to, where the slot holds the return address: register `to` holds it from now on. */
ju_status ju_pop_return_address(ju_builder* builder, int64_t begin, int64_t end, ju_reg to);

/** Remembers the state of the body before an epilogue in the middle. */
ju_status ju_remember(ju_builder* builder);
/** The instruction that leaves (ret, a tail jump). Code after it has the state remembered last. */
ju_status ju_restore(ju_builder* builder, int64_t begin, int64_t end);

/** call: changes nothing, but lets ju_build() check that a walk can leave the frame during the call. */
ju_status ju_call(ju_builder* builder, int64_t begin, int64_t end);
/** call of a procedure that pops `bytes` of arguments when it returns. */
ju_status ju_callee_pops(ju_builder* builder, int64_t begin, int64_t end, int64_t bytes);

/* Exceptions that pass calls of the procedure. A procedure without any of these lets them pass. Types are addresses
   of C++ `std::type_info` objects, which have the symbols _ZTI... . */

/** An exception that leaves a call in these bytes continues at code offset `landing_pad`. The reasons follow:
    ju_catches(), ju_catches_all(), ju_allows(), ju_cleans_up(); the first that fits counts. A site that has no reason
    is a cleanup. */
ju_status ju_call_site(ju_builder* builder, int64_t begin, int64_t end, int64_t landing_pad);
/** Lands to catch exceptions of this C++ type, or of a type derived from it. */
ju_status ju_catches(ju_builder* builder, const void* type_info);
/** Lands to catch everything, forced unwinding included, which must be thrown again. */
ju_status ju_catches_all(ju_builder* builder);
/** Lands, with a negative selector, for exceptions of other types than these. An empty list lands for every
    exception. */
ju_status ju_allows(ju_builder* builder, const void* const* type_infos, size_t count);
/** Lands with selector 0 for exceptions that a frame above catches, to run code and call _Unwind_Resume(). */
ju_status ju_cleans_up(ju_builder* builder);
/** An exception that leaves a call in these bytes ends in std::terminate(), as in a noexcept function of C++. */
ju_status ju_terminates(ju_builder* builder, int64_t begin, int64_t end);
/** The value of the second exception register at a landing pad for this type, null for ju_catches_all(): 1, 2, ... in
    the order in which types are first named, this call included. 0 for a bad builder. */
int ju_selector(ju_builder* builder, const void* type_info);

/* Frames built elsewhere, in the text form of rows (unwind_core/rows/row_text.h): "cfa=rbp+16 rbp=[cfa-16]
   ra=[cfa-8]". */

/** The frame at the entry of this code: a cold part, a second entry point, a trace. Marks have an entry state
    in front of everything else. */
ju_status ju_entry_state(ju_builder* builder, const char* row);
/** The frame at the entry, where CFA - SP is known and the row does not contain it. */
ju_status ju_entry_state_at(ju_builder* builder, const char* row, int64_t sp_distance);
/** The row from this code offset on (negative: from the end), up to the next row or the next instruction that changes
    it. */
ju_status ju_row_at(ju_builder* builder, int64_t offset, const char* row);

/* Directives: docs/directives.md. `when` counts instruction units (bytes on x86-64, instructions on AArch64) from the
   start of the region; a negative `when` takes effect at the region's start. */

/** Begins the next region, of so many units. 0 is an empty region; a negative count is the last units of the
    procedure. */
ju_status ju_region(ju_builder* builder, int32_t insn_count);
/** The caller's `reg` is in register `in`. */
ju_status ju_save_reg(ju_builder* builder, int32_t when, ju_reg reg, ju_reg in);
/** The caller's `reg` is at an offset from SP. */
ju_status ju_spill_sp_rel(ju_builder* builder, int32_t when, ju_reg reg, int64_t offset);
/** The caller's `reg` is at an offset from the frame pointer. */
ju_status ju_spill_fp_rel(ju_builder* builder, int32_t when, ju_reg reg, int64_t offset);
/** reg := reg + value. INT64_MIN stands for an unknown amount. */
ju_status ju_add(ju_builder* builder, int32_t when, ju_reg reg, int64_t value);
/** Restores the frame state of `count` regions before. */
ju_status ju_pop_frames(ju_builder* builder, int32_t when, int64_t count);
/** Gives the state here a number; `when` -1 means the state after the preceding directives of this region. */
ju_status ju_label_state(ju_builder* builder, int32_t when, uint64_t label);
/** Restores the state with this number. */
ju_status ju_copy_state(ju_builder* builder, int32_t when, uint64_t label);
/** The procedure unwinds like the code at `address`. The directive must be alone in its region. */
ju_status ju_alias(ju_builder* builder, int32_t when, uint64_t address);
/** Ends the region's directives. */
ju_status ju_stop(ju_builder* builder);
/** Any directive unchanged (unw_dyn_op_t): tag, predicate, when, register by libunwind's number, value. */
ju_status ju_op(ju_builder* builder, int8_t tag, int8_t predicate, int32_t when, int16_t reg, uint64_t value);

/* Descriptions. */

/** Makes another handle of the same description. Errors: null_pointer, bad_handle, freed_handle, out_of_memory. */
ju_status ju_description_copy(const ju_description* description, ju_description** copy, ju_error* error);
/** Frees a description. Null does nothing. Errors: bad_handle, freed_handle. */
ju_status ju_description_free(ju_description* description);

/** The properties of a description. */
typedef struct ju_description_facts {
  size_t struct_size;   /**< sizeof(ju_description_facts) */
  uint64_t size;        /**< the only size in bytes that it fits; 0: any from min_size on */
  uint64_t min_size;    /**< bytes */
  uint64_t personality; /**< 0: none */
  uint64_t lsda;        /**< 0: none */
  uint64_t gp;
  size_t warnings; /**< number of lines in ju_description_warnings() */
  int32_t format;  /**< UNW_INFO_FORMAT_*: directives, or a table */
  ju_cpu cpu;
  size_t shape_users; /**< descriptions and registered procedures that share its frame shape, at this moment */
  size_t shape_bytes; /**< bytes of memory that they share */
} ju_description_facts;
/** Reads the properties of a description. Errors: null_pointer, bad_handle, freed_handle, bad_struct_size. */
ju_status ju_description_get(const ju_description* description, ju_description_facts* facts, ju_error* error);
/** Checks that a procedure of `bytes` can have this description. Errors: e_range, e_overlap, e_landing_pad. */
ju_status ju_description_check_size(const ju_description* description, uint64_t bytes, ju_error* error);

/* Texts are written to `into`, cut to `room` - 1 bytes and NUL-terminated; nothing is written if room is 0. `length`
   gets the bytes of the whole text without the NUL; it may be null. Errors: null_pointer, bad_handle, freed_handle,
   out_of_memory. */

/** The name of a description; "" if it has none. */
ju_status ju_description_name(const ju_description* description, char* into, size_t room, size_t* length);
/** Every row of a procedure of `bytes` with its offset, one per line. 0 stands for the description's own size. */
ju_status ju_description_rows(const ju_description* description, uint64_t bytes, char* into, size_t room,
                              size_t* length);
/** The row at a code offset of a procedure of `bytes`. Further errors: e_range. */
ju_status ju_description_row(const ju_description* description, uint64_t offset, uint64_t bytes, char* into,
                             size_t room, size_t* length);
/** The directives, one per line. */
ju_status ju_description_directives(const ju_description* description, char* into, size_t room, size_t* length);
/** Warnings about legal constructs that may be a mistake, one per line. */
ju_status ju_description_warnings(const ju_description* description, char* into, size_t room, size_t* length);

/** Number and bytes of the frame shapes that exist in this process at this moment. Either may be null. Thread-safe.
 */
void ju_frame_shapes(size_t* shapes, size_t* bytes);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
