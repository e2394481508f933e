// A row as an entry of .eh_frame in host memory, which is read as if it were the target's while somebody has it.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "jitunwind/unwind_core/emit/eh_frame.h"

namespace jitunwind::uwx {

class LentEntry {
 public:
  /// The row holds at `ip`, and nowhere else. Null: .eh_frame has no words for it.
  const std::byte* write(const FrameRow& row, Addr ip, const Arch& arch) noexcept {
    EhFrameWriter writer(arch, bytes_);
    writer.begin_cie({.signal_frame = row.signal_frame, .return_address = row.ra, .data_alignment = -1});
    const std::size_t entry = writer.size();
    writer.begin_fde({ip, ip + arch.unit}, 0);
    if (!writer.row(0, row)) return nullptr;
    writer.end_fde();
    is_lent_ = writer.fits();
    return is_lent_ ? bytes_.data() + entry : nullptr;
  }
  void take_back() noexcept { is_lent_ = false; }

  /// False: not a part of it.
  bool read(Addr at, std::span<std::byte> into) const noexcept {
    const Addr offset = at - reinterpret_cast<std::uintptr_t>(bytes_.data());
    if (!is_lent_ || offset > bytes_.size() || into.size() > bytes_.size() - offset) return false;
    std::memcpy(into.data(), bytes_.data() + offset, into.size());
    return true;
  }

 private:
  alignas(8) std::array<std::byte, 2048> bytes_{};
  bool is_lent_ = false;
};

}  // namespace jitunwind::uwx
