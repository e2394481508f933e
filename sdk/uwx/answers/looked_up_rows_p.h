// UWX_LKUP_LOOKUP as the source of rows of a target. The client finds the table, entry or frame for an address, and the
// engine reads it through the client's memory.
#pragma once

#include <cstdint>
#include <optional>

#include "jitunwind/sdk/uwx/answers/callbacks_p.h"
#include "jitunwind/unwind_core/row_source.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind::uwx {

/// Receives the facts of the frame besides its row, while the strings of the answer still exist.
class FactsListener {
 public:
  virtual void know(const FrameFacts& facts) const noexcept = 0;

 protected:
  ~FactsListener() = default;
};

/// Makes one request for each question, and a second one if the first was answered with UWX_LKUP_REMAP.
class LookedUpRows final : public RowSource {
 public:
  LookedUpRows(const Callbacks& callbacks, const FactsListener& listener) noexcept
      : callbacks_(callbacks), listener_(listener) {}

  /// Never false: unknown code has a leaf's row, or is an error. A context frame of FDESC has no row, but signal_frame
  /// is set.
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override;

 private:
  /// The values of UTABLE and UINFO; 0: none.
  struct Table {
    std::optional<Addr> text_base, begin, end, entry;
    std::uint64_t flags = UWX_UFLAGS_EH_FRAME_HDR;
    Addr gp = 0;

    CfiContext context(const Arch& arch) const noexcept {
      CfiContext made{arch};
      made.text_base = text_base.value_or(0);
      made.data_base = gp;
      return made;
    }
  };
  static Result<Table> read_table(const Answer& answer, FrameFacts& facts) noexcept;

  Found row_of(const Answer& answer, CodeAddress at, Lookup& lookup, FrameRow& out, FrameFacts& facts) const noexcept;
  Found row_by_table(const Table& table, CodeAddress at, Lookup& lookup, FrameRow& out, AddrRange& code) const noexcept;
  Found row_by_search(const Table& table, CodeAddress at, Lookup& lookup, FrameRow& out,
                      AddrRange& code) const noexcept;
  Found row_by_scan(const Table& table, AddrRange entries, CodeAddress at, Lookup& lookup, FrameRow& out,
                    AddrRange& code) const noexcept;
  Found row_by_entry(Addr entry, const Table& table, CodeAddress at, Lookup& lookup, FrameRow& out,
                     AddrRange& code) const noexcept;

  const Callbacks& callbacks_;
  const FactsListener& listener_;
  CopyinMemory tables_{callbacks_, UWX_COPYIN_UINFO, UWX_ERR_COPYIN_UTBL};
  CopyinMemory entries_{callbacks_, UWX_COPYIN_UINFO, UWX_ERR_COPYIN_UINFO};
};

}  // namespace jitunwind::uwx
