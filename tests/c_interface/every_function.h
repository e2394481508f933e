// Every function of the C interface, to be called with arguments that are all wrong in one way. documented_test.cpp
// sees that none is missing.
#pragma once

#include <jitunwind/c.h>

#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace every {

/// What functions are handed. Numbers are 0.
struct Arguments {
  void* handle = nullptr;  ///< wherever the function takes one, of whatever kind
  void* memory = nullptr;  ///< for results, structures and arrays
  const char* text = nullptr;
  ju_reg reg = JU_NO_REG;  ///< whatever has 32 bits without a sign
  ju_error* error = nullptr;
};

enum class Kind { none, builder, description, registration, batch, object, target, cursor, decision };

template <class T>
constexpr Kind kind_of() {
  if (std::is_same_v<T, ju_builder>) return Kind::builder;
  if (std::is_same_v<T, ju_description>) return Kind::description;
  if (std::is_same_v<T, ju_registration>) return Kind::registration;
  if (std::is_same_v<T, ju_batch>) return Kind::batch;
  if (std::is_same_v<T, ju_object>) return Kind::object;
  if (std::is_same_v<T, ju_target>) return Kind::target;
  if (std::is_same_v<T, ju_decision>) return Kind::decision;
  return std::is_same_v<T, ju_cursor> ? Kind::cursor : Kind::none;
}

template <class T>
T argument(const Arguments& from) {
  if constexpr (std::is_pointer_v<T>) {
    using Pointee = std::remove_cv_t<std::remove_pointer_t<T>>;
    if constexpr (std::is_function_v<Pointee>) {
      return nullptr;
    } else if constexpr (kind_of<Pointee>() != Kind::none) {
      return static_cast<T>(from.handle);
    } else if constexpr (std::is_same_v<T, const char*>) {
      return from.text;
    } else if constexpr (std::is_same_v<T, ju_error*>) {
      return from.error;
    } else {
      return static_cast<T>(from.memory);
    }
  } else if constexpr (std::is_same_v<T, std::uint32_t>) {
    return from.reg;
  } else {
    return T{};
  }
}

/// What it returns, where that is a status.
using Answer = ju_status;
inline constexpr Answer k_no_status = JU_STATUS_ANY;

struct Function {
  const char* name;
  Answer (*call)(const Arguments& arguments);
  Kind kind;  ///< of its first argument
  bool has_text;
  bool has_reg;
  bool has_error;
};

template <auto function>
struct Caller;
template <class Result, class... Taken, Result (*function)(Taken...)>
struct Caller<function> {
  static Answer call(const Arguments& arguments) {
    if constexpr (std::is_same_v<Result, ju_status>) {
      return function(argument<Taken>(arguments)...);
    } else {
      (void)function(argument<Taken>(arguments)...);
      return k_no_status;
    }
  }
  template <class... All>
  static constexpr Kind kind_of_first() {
    if constexpr (sizeof...(All) == 0) {
      return Kind::none;
    } else {
      return kind_of<std::remove_cv_t<std::remove_pointer_t<std::tuple_element_t<0, std::tuple<All...>>>>>();
    }
  }
  static constexpr Function of(const char* name) {
    // What begins a cursor takes any memory.
    const std::string_view of = name;
    const bool begins = of == "ju_cursor_here" || of == "ju_cursor_at";
    return {name,
            &call,
            begins ? Kind::none : kind_of_first<Taken...>(),
            (std::is_same_v<Taken, const char*> || ...),
            (std::is_same_v<Taken, std::uint32_t> || ...),
            (std::is_same_v<Taken, ju_error*> || ...)};
  }
};

#define JITUNWIND_FUNCTION(name) Caller<&name>::of(#name)
inline constexpr Function functions[] = {
    JITUNWIND_FUNCTION(ju_add),
    JITUNWIND_FUNCTION(ju_alias),
    JITUNWIND_FUNCTION(ju_allocate),
    JITUNWIND_FUNCTION(ju_allocate_variable),
    JITUNWIND_FUNCTION(ju_allows),
    JITUNWIND_FUNCTION(ju_attach_gdb),
    JITUNWIND_FUNCTION(ju_authenticate_return_address),
    JITUNWIND_FUNCTION(ju_backtrace),
    JITUNWIND_FUNCTION(ju_backtrace_at),
    JITUNWIND_FUNCTION(ju_batch_add),
    JITUNWIND_FUNCTION(ju_batch_cancel),
    JITUNWIND_FUNCTION(ju_batch_free),
    JITUNWIND_FUNCTION(ju_batch_new),
    JITUNWIND_FUNCTION(ju_batch_register),
    JITUNWIND_FUNCTION(ju_batch_retire),
    JITUNWIND_FUNCTION(ju_batch_size),
    JITUNWIND_FUNCTION(ju_build),
    JITUNWIND_FUNCTION(ju_builder_copy),
    JITUNWIND_FUNCTION(ju_builder_findings),
    JITUNWIND_FUNCTION(ju_builder_free),
    JITUNWIND_FUNCTION(ju_call),
    JITUNWIND_FUNCTION(ju_call_site),
    JITUNWIND_FUNCTION(ju_callee_pops),
    JITUNWIND_FUNCTION(ju_cancel),
    JITUNWIND_FUNCTION(ju_catch_at),
    JITUNWIND_FUNCTION(ju_catches),
    JITUNWIND_FUNCTION(ju_catches_all),
    JITUNWIND_FUNCTION(ju_check_version),
    JITUNWIND_FUNCTION(ju_clean_up_at),
    JITUNWIND_FUNCTION(ju_cleans_up),
    JITUNWIND_FUNCTION(ju_copy_state),
    JITUNWIND_FUNCTION(ju_cursor_at),
    JITUNWIND_FUNCTION(ju_cursor_here),
    JITUNWIND_FUNCTION(ju_cursor_set_guesses),
    JITUNWIND_FUNCTION(ju_cursor_step),
    JITUNWIND_FUNCTION(ju_cursor_stop_reason),
    JITUNWIND_FUNCTION(ju_cursor_why),
    JITUNWIND_FUNCTION(ju_deallocate),
    JITUNWIND_FUNCTION(ju_describe),
    JITUNWIND_FUNCTION(ju_description_check_size),
    JITUNWIND_FUNCTION(ju_description_copy),
    JITUNWIND_FUNCTION(ju_description_directives),
    JITUNWIND_FUNCTION(ju_description_free),
    JITUNWIND_FUNCTION(ju_description_get),
    JITUNWIND_FUNCTION(ju_description_name),
    JITUNWIND_FUNCTION(ju_description_row),
    JITUNWIND_FUNCTION(ju_description_rows),
    JITUNWIND_FUNCTION(ju_description_warnings),
    JITUNWIND_FUNCTION(ju_detach_gdb),
    JITUNWIND_FUNCTION(ju_dump_registry),
    JITUNWIND_FUNCTION(ju_dump_walk),
    JITUNWIND_FUNCTION(ju_ends_without_return),
    JITUNWIND_FUNCTION(ju_enter),
    JITUNWIND_FUNCTION(ju_entry_state),
    JITUNWIND_FUNCTION(ju_entry_state_at),
    JITUNWIND_FUNCTION(ju_flush_gdb),
    JITUNWIND_FUNCTION(ju_forget_rows),
    JITUNWIND_FUNCTION(ju_forget_walked_stacks),
    JITUNWIND_FUNCTION(ju_frame_demangled_name),
    JITUNWIND_FUNCTION(ju_frame_get),
    JITUNWIND_FUNCTION(ju_frame_get_reg),
    JITUNWIND_FUNCTION(ju_frame_name),
    JITUNWIND_FUNCTION(ju_frame_pc),
    JITUNWIND_FUNCTION(ju_frame_procedure),
    JITUNWIND_FUNCTION(ju_frame_row),
    JITUNWIND_FUNCTION(ju_frame_saved_at),
    JITUNWIND_FUNCTION(ju_frame_set_reg),
    JITUNWIND_FUNCTION(ju_frame_shapes),
    JITUNWIND_FUNCTION(ju_frame_sp),
    JITUNWIND_FUNCTION(ju_frame_user),
    JITUNWIND_FUNCTION(ju_gdb_statistics_get),
    JITUNWIND_FUNCTION(ju_handled_by),
    JITUNWIND_FUNCTION(ju_host_cpu),
    JITUNWIND_FUNCTION(ju_keep_at_least),
    JITUNWIND_FUNCTION(ju_kept_rows),
    JITUNWIND_FUNCTION(ju_label_state),
    JITUNWIND_FUNCTION(ju_land_with),
    JITUNWIND_FUNCTION(ju_land_with_sp),
    JITUNWIND_FUNCTION(ju_leave),
    JITUNWIND_FUNCTION(ju_load_pair_post),
    JITUNWIND_FUNCTION(ju_load_post),
    JITUNWIND_FUNCTION(ju_log_fd),
    JITUNWIND_FUNCTION(ju_may_be_registered),
    JITUNWIND_FUNCTION(ju_move_frame_pointer),
    JITUNWIND_FUNCTION(ju_move_to),
    JITUNWIND_FUNCTION(ju_object_cancel),
    JITUNWIND_FUNCTION(ju_object_count),
    JITUNWIND_FUNCTION(ju_object_range),
    JITUNWIND_FUNCTION(ju_object_register),
    JITUNWIND_FUNCTION(ju_op),
    JITUNWIND_FUNCTION(ju_origin_name),
    JITUNWIND_FUNCTION(ju_passed_frame_get),
    JITUNWIND_FUNCTION(ju_pop),
    JITUNWIND_FUNCTION(ju_pop_frames),
    JITUNWIND_FUNCTION(ju_pop_other),
    JITUNWIND_FUNCTION(ju_pop_return_address),
    JITUNWIND_FUNCTION(ju_probe_loop),
    JITUNWIND_FUNCTION(ju_procedure_list),
    JITUNWIND_FUNCTION(ju_push),
    JITUNWIND_FUNCTION(ju_push_other),
    JITUNWIND_FUNCTION(ju_realign),
    JITUNWIND_FUNCTION(ju_reclaimed),
    JITUNWIND_FUNCTION(ju_region),
    JITUNWIND_FUNCTION(ju_register),
    JITUNWIND_FUNCTION(ju_register_by_name),
    JITUNWIND_FUNCTION(ju_register_name),
    JITUNWIND_FUNCTION(ju_register_number),
    JITUNWIND_FUNCTION(ju_registered),
    JITUNWIND_FUNCTION(ju_registration_bytes),
    JITUNWIND_FUNCTION(ju_registration_range),
    JITUNWIND_FUNCTION(ju_reload),
    JITUNWIND_FUNCTION(ju_reload_pair),
    JITUNWIND_FUNCTION(ju_reload_sp),
    JITUNWIND_FUNCTION(ju_remember),
    JITUNWIND_FUNCTION(ju_restore),
    JITUNWIND_FUNCTION(ju_restore_sp),
    JITUNWIND_FUNCTION(ju_resume),
    JITUNWIND_FUNCTION(ju_retire),
    JITUNWIND_FUNCTION(ju_row_at),
    JITUNWIND_FUNCTION(ju_save_at_fp),
    JITUNWIND_FUNCTION(ju_save_at_sp),
    JITUNWIND_FUNCTION(ju_save_reg),
    JITUNWIND_FUNCTION(ju_selector),
    JITUNWIND_FUNCTION(ju_set_frame_pointer),
    JITUNWIND_FUNCTION(ju_set_gp),
    JITUNWIND_FUNCTION(ju_set_log),
    JITUNWIND_FUNCTION(ju_set_lsda),
    JITUNWIND_FUNCTION(ju_set_personality),
    JITUNWIND_FUNCTION(ju_set_size),
    JITUNWIND_FUNCTION(ju_sign_return_address),
    JITUNWIND_FUNCTION(ju_spill_fp_rel),
    JITUNWIND_FUNCTION(ju_spill_sp_rel),
    JITUNWIND_FUNCTION(ju_statistics_get),
    JITUNWIND_FUNCTION(ju_statistics_text),
    JITUNWIND_FUNCTION(ju_status_name),
    JITUNWIND_FUNCTION(ju_status_remedy),
    JITUNWIND_FUNCTION(ju_status_text),
    JITUNWIND_FUNCTION(ju_stop),
    JITUNWIND_FUNCTION(ju_stop_reason_name),
    JITUNWIND_FUNCTION(ju_store_pair),
    JITUNWIND_FUNCTION(ju_store_pair_pre),
    JITUNWIND_FUNCTION(ju_store_pre),
    JITUNWIND_FUNCTION(ju_store_sp),
    JITUNWIND_FUNCTION(ju_symbolise),
    JITUNWIND_FUNCTION(ju_target_attach),
    JITUNWIND_FUNCTION(ju_target_cpu),
    JITUNWIND_FUNCTION(ju_target_cursor),
    JITUNWIND_FUNCTION(ju_target_free),
    JITUNWIND_FUNCTION(ju_target_let_go),
    JITUNWIND_FUNCTION(ju_target_list),
    JITUNWIND_FUNCTION(ju_target_of_sample),
    JITUNWIND_FUNCTION(ju_target_of_traced),
    JITUNWIND_FUNCTION(ju_target_open_core),
    JITUNWIND_FUNCTION(ju_target_process),
    JITUNWIND_FUNCTION(ju_target_renew),
    JITUNWIND_FUNCTION(ju_target_renew_sample),
    JITUNWIND_FUNCTION(ju_target_thread),
    JITUNWIND_FUNCTION(ju_target_threads),
    JITUNWIND_FUNCTION(ju_terminates),
    JITUNWIND_FUNCTION(ju_unwinder_path_name),
    JITUNWIND_FUNCTION(ju_unwinder_status_get),
    JITUNWIND_FUNCTION(ju_version),
    JITUNWIND_FUNCTION(ju_walk),
    JITUNWIND_FUNCTION(ju_walk_at),
    JITUNWIND_FUNCTION(ju_walk_here),
    JITUNWIND_FUNCTION(ju_walk_thread),
    JITUNWIND_FUNCTION(ju_why_stopped),
};
#undef JITUNWIND_FUNCTION

}  // namespace every
