// Every function of the C interface, to be called with arguments that are all wrong in one way. documented_test.cpp
// checks that none is missing.
#pragma once

#include <jitunwind/c.h>

#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace every {

/// The arguments of the functions. Numbers are 0.
struct Arguments {
  void* handle = nullptr;  ///< wherever the function takes one, of whatever kind
  void* memory = nullptr;  ///< for results, structures and arrays
  const char* text = nullptr;
  ju_reg reg = JU_NO_REG;  ///< whatever has 32 bits without a sign
  ju_error* error = nullptr;
};

enum class Kind { none, builder, description, registration, batch, object, target, cursor, decision, code_segments };

template <class T>
constexpr Kind kind_of() {
  if (std::is_same_v<T, ju_builder>) return Kind::builder;
  if (std::is_same_v<T, ju_description>) return Kind::description;
  if (std::is_same_v<T, ju_registration>) return Kind::registration;
  if (std::is_same_v<T, ju_batch>) return Kind::batch;
  if (std::is_same_v<T, ju_object>) return Kind::object;
  if (std::is_same_v<T, ju_target>) return Kind::target;
  if (std::is_same_v<T, ju_decision>) return Kind::decision;
  if (std::is_same_v<T, ju_code_segments>) return Kind::code_segments;
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

/// The function's result, if that is a status.
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
    // A function that begins a cursor accepts any memory.
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

inline constexpr Function functions[] = {
#define JITUNWIND_FUNCTION(name) Caller<&name>::of(#name),
#include "jitunwind/sdk/c/every_function.def"
#undef JITUNWIND_FUNCTION
};

}  // namespace every
