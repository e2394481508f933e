// One error enumeration for the whole project, and the value-or-error type that carries it.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "jitunwind/unwind_core/address.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Each error has one meaning. unwind_core/error_codes.def is the only list. Its columns are the name, the code
/// of <jitunwind/c.h>, the error that libunwind's functions report (unw_error_t, positive), and the text.
enum class ErrorCode : std::uint8_t {
#define JITUNWIND_ERROR(name, ju_status, unw_error, text) name,
#include "jitunwind/unwind_core/error_codes.def"
#undef JITUNWIND_ERROR
};

/// An error and its place. `at` is the target address that `what` speaks of, or the code offset for descriptions; 0 if
/// there is none. `what` is a string with static storage duration, so an Error can be made in a signal handler.
struct Error {
  ErrorCode code = ErrorCode::unspecified;
  Addr at = 0;
  const char* what = "";

  /// Returns a text such as "code offset behind the procedure (e_range, at 0x30)". Allocates.
  std::string text() const;

  friend bool operator==(const Error& a, const Error& b) noexcept { return a.code == b.code && a.at == b.at; }
};

/// Writes the text to standard error and aborts.
[[noreturn]] void stop_without_value(const char* text) noexcept;

/// The general text of a code. Never null. Signal-safe.
const char* error_text(ErrorCode code) noexcept;

/// The code's identifier, such as "sp_lost". Never null. Signal-safe.
const char* error_name(ErrorCode code) noexcept;

/// The positive unw_error_t (1..10) that the C interface negates. Signal-safe.
int unw_error(ErrorCode code) noexcept;

/// A T or an error; the error is an Error by default. Nothing throws, and only T may allocate.
template <class T, class E = Error>
class [[nodiscard]] Result {
 public:
  // The conversions are implicit on purpose: a function returns by `return value;` or `return Error{...};`.
  Result(T value) noexcept(std::is_nothrow_move_constructible_v<T>)
      : state_(std::in_place_index<0>, std::move(value)) {}
  Result(E error) noexcept : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  /// Precondition: has_value(). If E is an error that users see (a BuildError), the program otherwise ends with its
  /// text.
  T& value() & noexcept { return expect_value(), *std::get_if<0>(&state_); }
  const T& value() const& noexcept { return expect_value(), *std::get_if<0>(&state_); }
  T&& value() && noexcept { return expect_value(), std::move(*std::get_if<0>(&state_)); }
  T& operator*() & noexcept { return value(); }
  const T& operator*() const& noexcept { return value(); }
  T&& operator*() && noexcept { return std::move(*this).value(); }
  T* operator->() noexcept { return expect_value(), std::get_if<0>(&state_); }
  const T* operator->() const noexcept { return expect_value(), std::get_if<0>(&state_); }

  /// Precondition: !has_value().
  const E& error() const noexcept { return *std::get_if<1>(&state_); }

 private:
  void expect_value() const noexcept {
    if constexpr (!std::is_same_v<E, Error> && requires(const E& e) { e.text().c_str(); })
      if (!has_value()) [[unlikely]]
        stop_without_value(error().text().c_str());
  }

  std::variant<T, E> state_;
};

/// Success without a value.
struct Done {};
using Status = Result<Done>;

}  // namespace jitunwind
#pragma GCC visibility pop
