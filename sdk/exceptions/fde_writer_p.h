// Rows of a registered procedure to a CIE and an FDE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/dyn_info/procedure_rows_internal.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/emit/eh_frame.h"

namespace jitunwind {

enum class Slots : std::uint8_t { of_words, of_bytes };

/// Writes CIE and FDE of a procedure, with the rows of a part of it.
class [[gnu::visibility("default")]] FdeWriter final : public RowListener {
 public:
  enum class Outcome : std::uint8_t {
    written,      ///< as far as there is room
    too_long,     ///< more bytes than wanted, or too many lookups
    other_slots,  ///< impossible with such slots
    failed,       ///< error()
  };

  /// Gives up beyond `most` bytes. Code without a row has no caller, except at `pc`, where it is an error.
  FdeWriter(const ProcedureInfo& procedure, AddrRange code, Addr pc, Slots slots, std::span<std::byte> into,
            std::size_t most, Addr place = 0) noexcept
      : procedure_(procedure),
        code_(code),
        pc_(pc),
        slots_(slots),
        most_(most),
        writer_(local_space().arch, into, place) {}

  Outcome write() noexcept;
  /// Ends the last row, if the caller passes the rows itself.
  Outcome finish() noexcept;

  Outcome outcome() const noexcept { return outcome_; }
  const Error& error() const noexcept { return error_; }
  bool fits() const noexcept { return writer_.fits(); }
  std::size_t size() const noexcept { return writer_.size(); }
  std::size_t fde_at() const noexcept { return fde_at_; }

  bool row(const FrameRow& row) noexcept override;
  bool no_row(AddrRange code, const Error& why) noexcept override;

 private:
  bool end(Outcome outcome, const Error& error = {}) noexcept {
    outcome_ = outcome;
    error_ = error;
    return false;
  }
  bool going_on() const noexcept { return outcome_ == Outcome::written; }
  Addr look_up(Addr at) noexcept;
  void begin(const FrameRow& first) noexcept;
  bool put(Addr at, const FrameRow& row) noexcept;

  const ProcedureInfo& procedure_;
  const AddrRange code_;
  const Addr pc_;
  const Slots slots_;
  const std::size_t most_;
  EhFrameWriter writer_;
  std::size_t fde_at_ = 0;
  Outcome outcome_ = Outcome::written;
  Error error_{};
  unsigned lookups_ = 0;
  bool started_ = false;
  bool in_gap_ = false;
  bool behind_alias_ = false;
  CfaRule cfa_{};  // of the row before
  RegNum ra_ = k_no_reg;
  bool signal_frame_ = false;
};

}  // namespace jitunwind
