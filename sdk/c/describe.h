/* Describing how a procedure builds and releases its frame: docs/builders.md says what each word means, by its C++
   name.

     ju_builder* b;
     ju_describe(JU_CPU_HOST, "add", &b, &error);
     ju_push(b, 0, 1, JU_X86_64_RBP);
     ju_set_frame_pointer(b, 1, 4, JU_X86_64_RBP, 0);
     ju_pop(b, -2, -1, JU_X86_64_RBP);
     if (ju_build(b, &description, &error) != JU_OK) fputs(error.text, stderr);
     ju_builder_free(b);

   Functions that describe only record: mistakes come out of ju_build(), all of them. What they return may be ignored.
   It is JU_NULL_POINTER, JU_BAD_HANDLE or JU_FREED_HANDLE of a bad builder, and of what is recorded as a mistake
   JU_OTHER_CPU, JU_NO_SUCH_INSTRUCTION, JU_BAD_STRING or JU_OUT_OF_MEMORY.

   `begin` and `end` are the bytes of an instruction, begin inclusive, end exclusive, as offsets in the procedure.
   Negative offsets count from the procedure's end, -1 and 0 being its last byte. What an instruction does holds behind
   it; offsets from SP and frame pointer are those after it. A builder is used by one thread at a time; none of this is
   signal-safe. */
#ifndef JITUNWIND_SDK_C_DESCRIBE_H
#define JITUNWIND_SDK_C_DESCRIBE_H

#include <stdint.h>

#include "jitunwind/sdk/c/base.h"
#include "jitunwind/sdk/c/registers.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** What is being said of a procedure. */
typedef struct ju_builder ju_builder;
/** How to unwind a procedure, wherever its code is. Immutable; any number of threads at a time. */
typedef struct ju_description ju_description;

/* Builders. */

/** Makes a builder for code of `cpu`. `name` is copied; null: none. Free it with ju_builder_free(). Thread-safe.
    Errors: null_pointer, bad_value, bad_string, out_of_memory. */
ju_status ju_describe(ju_cpu cpu, const char* name, ju_builder** builder, ju_error* error);
/** Makes an independent builder that was told the same. Errors: null_pointer, bad_handle, freed_handle,
    out_of_memory. */
ju_status ju_builder_copy(const ju_builder* builder, ju_builder** copy, ju_error* error);
/** Frees a builder. Null does nothing. Descriptions that were built stay. Errors: bad_handle, freed_handle. */
ju_status ju_builder_free(ju_builder* builder);

/** Makes a description of what was said: chooses the format, shares the frame shape, and checks everything that
    docs/directives.md "Validation" lists. The builder stays usable. Free the description with ju_description_free();
    what is registered with it stays. Errors: the code of the first finding; `error->text` has a line for each,
    ju_builder_findings() all of them. */
ju_status ju_build(const ju_builder* builder, ju_description** description, ju_error* error);
/** Every finding of the last ju_build() of this builder that was refused, a line each, whole; "" where it was not.
   Valid until the next ju_build() of it, or its end. Null of a bad handle. */
const char* ju_builder_findings(const ju_builder* builder);

/* The procedure as a whole. */

/** The procedure has exactly this size. Instructions may then lie anywhere, and ju_register() insists on it. */
ju_status ju_set_size(ju_builder* builder, uint64_t bytes);
/** Address of the personality routine, of type _Unwind_Personality_Fn. */
ju_status ju_set_personality(ju_builder* builder, uint64_t routine);
/** Address of language-specific data of your own, in place of a table made of ju_call_site(). */
ju_status ju_set_lsda(ju_builder* builder, uint64_t address);
/** Value of the global pointer, on CPUs that have one. */
ju_status ju_set_gp(ju_builder* builder, uint64_t value);
/** The code ends in a call that does not return, or in a jump, with its frame in place: else that is refused. */
ju_status ju_ends_without_return(ju_builder* builder);

/* Instructions that build the frame. */

/** push reg, saving the caller's value of reg. Of SP it saves nothing. CPUs with push: x86-64, x86. */
ju_status ju_push(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg);
/** push of anything else: an argument, a scratch register, a register that was saved before. */
ju_status ju_push_other(ju_builder* builder, int64_t begin, int64_t end);
/** enter bytes,0 */
ju_status ju_enter(ju_builder* builder, int64_t begin, int64_t end, int64_t bytes);
/** sub sp,bytes */
ju_status ju_allocate(ju_builder* builder, int64_t begin, int64_t end, int64_t bytes);
/** reg := SP + above_sp, from where on the frame is found through reg. A preserved register must have been saved. */
ju_status ju_set_frame_pointer(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg, int64_t above_sp);
/** reg := reg + bytes while reg is the frame pointer. */
ju_status ju_move_frame_pointer(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg, int64_t bytes);
/** Saves the caller's value of reg at [SP + offset]; a negative offset lies in the red zone. */
ju_status ju_save_at_sp(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg, int64_t offset);
/** Saves the caller's value of reg at [frame pointer + offset]. */
ju_status ju_save_at_fp(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg, int64_t offset);
/** mov to,reg: the caller's value of reg is in register `to` from now on. */
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

/* SP moved by an amount that the generator does not know. */

/** and sp,-alignment. The frame must be found through a frame pointer or a saved SP from now on. */
ju_status ju_realign(ju_builder* builder, int64_t begin, int64_t end);
/** sub sp,reg: memory of variable size. As ju_realign(). */
ju_status ju_allocate_variable(ju_builder* builder, int64_t begin, int64_t end);
/** mov [sp+offset],reg, reg being the frame pointer: the frame is found through this slot from now on. */
ju_status ju_store_sp(ju_builder* builder, int64_t begin, int64_t end, int64_t offset);
/** mov sp,[sp+offset]: from the slot of ju_store_sp(). */
ju_status ju_reload_sp(ju_builder* builder, int64_t begin, int64_t end);

/** The bytes of one instruction, as everywhere here. */
typedef struct ju_instruction {
  int64_t begin;
  int64_t end;
} ju_instruction;
/** A stack probe loop as compilers emit it: `bound` computes the final SP into `scratch`, `first_step` moves SP first,
    `back` is the jump that closes the loop; SP is lower by `bytes` after it. */
ju_status ju_probe_loop(ju_builder* builder, ju_instruction bound, ju_instruction first_step, ju_instruction back,
                        int64_t bytes, ju_reg scratch);

/* Instructions that release the frame. */

/** pop reg: a preserved register that was saved there holds its caller's value again. */
ju_status ju_pop(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg);
/** pop of any register: no check of what was saved there. */
ju_status ju_pop_other(ju_builder* builder, int64_t begin, int64_t end);
/** add sp,bytes */
ju_status ju_deallocate(ju_builder* builder, int64_t begin, int64_t end, int64_t bytes);
/** SP := fp + offset, fp being the frame pointer. */
ju_status ju_restore_sp(ju_builder* builder, int64_t begin, int64_t end, ju_reg fp, int64_t offset);
/** leave */
ju_status ju_leave(ju_builder* builder, int64_t begin, int64_t end);
/** reg holds its caller's value again although its slot is not released yet. */
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
/** pop to, of the return address: it is found in register `to` from now on. */
ju_status ju_pop_return_address(ju_builder* builder, int64_t begin, int64_t end, ju_reg to);

/** Remembers the state of the body in front of an epilogue in the middle. */
ju_status ju_remember(ju_builder* builder);
/** The instruction that leaves (ret, a tail jump): code behind it has the state remembered last. */
ju_status ju_restore(ju_builder* builder, int64_t begin, int64_t end);

/** call: changes nothing, but lets ju_build() check that the frame can be left during the call. */
ju_status ju_call(ju_builder* builder, int64_t begin, int64_t end);
/** call of a procedure that pops `bytes` of arguments when it returns. */
ju_status ju_callee_pops(ju_builder* builder, int64_t begin, int64_t end, int64_t bytes);

/* Exceptions that pass calls of the procedure. Without any of these they pass. Types are `std::type_info` objects of
   C++ by their addresses, as the symbols _ZTI... have them. */

/** An exception that leaves a call in these bytes goes on at code offset `landing_pad`, for the reasons given right
    behind: ju_catches(), ju_catches_all(), ju_allows(), ju_cleans_up(); the first that fits counts. None: cleans up. */
ju_status ju_call_site(ju_builder* builder, int64_t begin, int64_t end, int64_t landing_pad);
/** Lands to catch exceptions of this C++ type, or of one derived from it. */
ju_status ju_catches(ju_builder* builder, const void* type_info);
/** Lands to catch everything, forced unwinding included, which must be thrown again. */
ju_status ju_catches_all(ju_builder* builder);
/** Lands, with a negative selector, for exceptions of other types than these. None: for every exception. */
ju_status ju_allows(ju_builder* builder, const void* const* type_infos, size_t count);
/** Lands with selector 0 for exceptions that a frame above catches, to run code and call _Unwind_Resume(). */
ju_status ju_cleans_up(ju_builder* builder);
/** A call that no exception leaves, as noexcept of C++: an exception that leaves a call in these bytes ends in
    std::terminate(). */
ju_status ju_terminates(ju_builder* builder, int64_t begin, int64_t end);
/** What a landing pad finds in the second exception register for this type, null for ju_catches_all(): 1, 2, ... in the
    order in which types are first named, here included. 0 of a bad builder. */
int ju_selector(ju_builder* builder, const void* type_info);

/* Frames built elsewhere, in the text form of rows: "cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]" (unwind_core/rows/row_text.h).
 */

/** The frame as it is when this code is entered: a cold part, a second entry point. */
ju_status ju_entry_state(ju_builder* builder, const char* row);
/** The same where CFA - SP is known and the row does not say it. */
ju_status ju_entry_state_at(ju_builder* builder, const char* row, int64_t sp_distance);
/** The row from this code offset on (negative: from the end), up to the next row or instruction that says something. */
ju_status ju_row_at(ju_builder* builder, int64_t offset, const char* row);

/* Directives: docs/directives.md. `when` counts instruction units (bytes on x86-64, instructions on AArch64) from the
   start of the region; negative: from its start on. */

/** Begins the next region: so many units; 0: an empty region; negative: the last units of the procedure. */
ju_status ju_region(ju_builder* builder, int32_t insn_count);
/** The caller's `reg` is in register `in`. */
ju_status ju_save_reg(ju_builder* builder, int32_t when, ju_reg reg, ju_reg in);
/** The caller's `reg` is at an offset from SP. */
ju_status ju_spill_sp_rel(ju_builder* builder, int32_t when, ju_reg reg, int64_t offset);
/** The caller's `reg` is at an offset from the frame pointer. */
ju_status ju_spill_fp_rel(ju_builder* builder, int32_t when, ju_reg reg, int64_t offset);
/** reg := reg + value; INT64_MIN: by an amount that is not known. */
ju_status ju_add(ju_builder* builder, int32_t when, ju_reg reg, int64_t value);
/** The frame state is that of `count` regions before. */
ju_status ju_pop_frames(ju_builder* builder, int32_t when, int64_t count);
/** The state here gets a number; `when` -1: after the directives in front of it in this region. */
ju_status ju_label_state(ju_builder* builder, int32_t when, uint64_t label);
/** The state is the one that got this number. */
ju_status ju_copy_state(ju_builder* builder, int32_t when, uint64_t label);
/** Behaves like the code at `address`. Must be alone in its region. */
ju_status ju_alias(ju_builder* builder, int32_t when, uint64_t address);
/** Ends the region's directives. */
ju_status ju_stop(ju_builder* builder);
/** Any directive as it is (unw_dyn_op_t): tag, predicate, when, register by libunwind's number, value. */
ju_status ju_op(ju_builder* builder, int8_t tag, int8_t predicate, int32_t when, int16_t reg, uint64_t value);

/* Descriptions. */

/** Makes another handle of the same description. Errors: null_pointer, bad_handle, freed_handle, out_of_memory. */
ju_status ju_description_copy(const ju_description* description, ju_description** copy, ju_error* error);
/** Frees a description. Null does nothing. Errors: bad_handle, freed_handle. */
ju_status ju_description_free(ju_description* description);

/** What is said of a description. */
typedef struct ju_description_facts {
  size_t struct_size;   /**< sizeof(ju_description_facts) */
  uint64_t size;        /**< the only size in bytes that it fits; 0: any from min_size on */
  uint64_t min_size;    /**< bytes */
  uint64_t personality; /**< 0: none */
  uint64_t lsda;        /**< 0: none */
  uint64_t gp;
  size_t warnings; /**< how many; ju_description_warnings() */
  int32_t format;  /**< UNW_INFO_FORMAT_*: directives, or a table */
  ju_cpu cpu;
  size_t shape_users; /**< descriptions and registered procedures that share its frame shape, at this moment */
  size_t shape_bytes; /**< memory that they share */
} ju_description_facts;
/** What is known of a description. Errors: null_pointer, bad_handle, freed_handle, bad_struct_size. */
ju_status ju_description_get(const ju_description* description, ju_description_facts* facts, ju_error* error);
/** Whether a procedure of `bytes` can be described like this. Errors: e_range, e_overlap, e_landing_pad. */
ju_status ju_description_check_size(const ju_description* description, uint64_t bytes, ju_error* error);

/* Texts: written to `into`, cut to `room` - 1 bytes and NUL-terminated; nothing where room is 0. `length` gets the
   bytes of the whole text without the NUL; it may be null. Errors: null_pointer, bad_handle, freed_handle,
   out_of_memory. */

/** The name of a description; "" where there is none. */
ju_status ju_description_name(const ju_description* description, char* into, size_t room, size_t* length);
/** Every row of a procedure of `bytes` with its offset, a line each. 0: of its own size. */
ju_status ju_description_rows(const ju_description* description, uint64_t bytes, char* into, size_t room,
                              size_t* length);
/** The row at a code offset of a procedure of `bytes`. Errors besides: e_range. */
ju_status ju_description_row(const ju_description* description, uint64_t offset, uint64_t bytes, char* into,
                             size_t room, size_t* length);
/** The directives, a line each. */
ju_status ju_description_directives(const ju_description* description, char* into, size_t room, size_t* length);
/** What is legal but may be a mistake, a line each. */
ju_status ju_description_warnings(const ju_description* description, char* into, size_t room, size_t* length);

/** Frame shapes of this process now, and their bytes. Either may be null. Thread-safe. */
void ju_frame_shapes(size_t* shapes, size_t* bytes);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
