// The result of find_proc_info: checked, and given back once. The address spaces of libunwind's interface use it, and
// so does Unwind Express over the same accessors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "jitunwind/sdk/compat/target_p.h"
#include "jitunwind/unwind_core/emit/row_state.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/row_source.h"

namespace jitunwind {
inline namespace JITUNWIND_COMPAT {

/// 0 for success, else a negative error: positive numbers mean nothing and become -UNW_EUNSPEC.
constexpr int checked(int returned) noexcept { return returned > 0 ? -UNW_EUNSPEC : returned; }

// Bits of unw_proc_info_t's flags that are reserved for the library (UNW_PI_FLAG_FIRST_TDEP_BIT and up).

/// unwind_info is the address of an FDE in the target.
inline constexpr unw_word_t k_fde_flag = unw_word_t{1} << 30;
inline void mark_as_fde(unw_proc_info_t& info) noexcept {
  info.format = UNW_INFO_FORMAT_TABLE;
  info.flags |= k_fde_flag;
}

/// unwind_info is a RowState of this process: the row for the looked up address.
inline constexpr unw_word_t k_row_flag = unw_word_t{1} << 29;
inline void mark_as_row(unw_proc_info_t& info, const RowState& row) noexcept {
  info.format = UNW_INFO_FORMAT_TABLE;
  info.flags |= k_row_flag;
  info.unwind_info = const_cast<RowState*>(&row);
  info.unwind_info_size = static_cast<int>(row.whole_size());
}

/// Copies the known data of a procedure.
inline void fill(const ProcedureInfo& from, unw_proc_info_t& to) noexcept {
  to.start_ip = from.range.begin;
  to.end_ip = from.range.end;
  to.lsda = from.lsda;
  to.handler = from.handler;
  to.gp = from.gp;
  to.flags = from.flags;
  if (from.origin == RowOrigin::debug_frame) to.flags |= UNW_PI_FLAG_DEBUG_FRAME;
  to.format = from.format;
  to.unwind_info = pointer_to(from.unwind_info);
  to.unwind_info_size = static_cast<int>(from.unwind_info_size);
}

class FoundInfo {
 public:
  FoundInfo(const unw_accessors_t& accessors, unw_addr_space_t space, Addr at, bool needs_unwind_info,
            void* argument) noexcept
      : accessors_(accessors), space_(space), argument_(argument), needs_unwind_info_(needs_unwind_info) {
    const auto find = accessors_.find_proc_info;
    if (find) returned_ = checked(find(space_, at, &info_, needs_unwind_info, argument_));
  }
  FoundInfo(const FoundInfo&) = delete;
  FoundInfo& operator=(const FoundInfo&) = delete;
  ~FoundInfo() {
    const auto put = accessors_.put_unwind_info;
    if (returned_ != UNW_ESUCCESS || !needs_unwind_info_ || !put) return;
    // Data that dwarf_search_unwind_table has filled in does not belong to the callback. Some callbacks would free it.
    if (is_fde()) info_.unwind_info = nullptr;
    put(space_, &info_, argument_);
  }

  Found found() const noexcept {
    if (returned_ == -UNW_ENOINFO) return false;
    if (returned_ != UNW_ESUCCESS) return callback_error(returned_, "find_proc_info");
    return true;
  }
  /// unwind_info is the address of an FDE in the target's memory.
  bool is_fde() const noexcept { return (info_.flags & k_fde_flag) != 0; }
  Addr fde() const noexcept { return reinterpret_cast<std::uintptr_t>(info_.unwind_info); }

  /// unwind_info is a row in this process's memory.
  bool is_row() const noexcept { return (info_.flags & k_row_flag) != 0; }
  Status row(const Arch& arch, FrameRow& out) const noexcept {
    const auto state = row_state();
    if (!state) return state.error();
    if (const Status read = read_row_state(*state, arch, out); !read) return read.error();
    // The bytes are given back before the row is used.
    return out.own_expressions() ? Status(Done{}) : Error{ErrorCode::row_too_wide, info_.start_ip, k_unwind_info};
  }
  /// The bytes of the row, which are readable but may have any contents.
  Result<std::span<const std::byte>> row_state() const noexcept {
    MemoryWindow window;
    const auto size = static_cast<std::size_t>(info_.unwind_info_size);
    if (info_.unwind_info_size < 0 || size > sizeof(RowState) || !is_there(info_.unwind_info, size, window))
      return Error{ErrorCode::unreadable_memory, info_.start_ip, k_unwind_info};
    return std::span(static_cast<const std::byte*>(info_.unwind_info), size);
  }

  /// The equivalent descriptor of docs/directives.md: unwind_info points to the part of it that depends on the format,
  /// or to all of it. Memory of this process that it names is checked to be readable.
  Result<unw_dyn_info_t> descriptor() const noexcept {
    auto info = unchecked_descriptor();
    if (!info) return info;
    if (const Status checked = check_host_memory(*info); !checked) return checked.error();
    return info;
  }

  const unw_proc_info_t& operator*() const noexcept { return info_; }
  const unw_proc_info_t* operator->() const noexcept { return &info_; }

 private:
  static constexpr const char* k_unwind_info = "unwind_info of find_proc_info";

  Result<unw_dyn_info_t> unchecked_descriptor() const noexcept {
    const Error bad{ErrorCode::invalid_argument, info_.start_ip, k_unwind_info};
    unw_dyn_info_t info{};
    if (info_.unwind_info == nullptr || info_.unwind_info_size < 0) return bad;
    const auto size = static_cast<std::size_t>(info_.unwind_info_size);
    if (size >= sizeof info) {
      std::memcpy(&info, info_.unwind_info, sizeof info);
    } else {
      if (size < sizeof info.u) return bad;
      std::memcpy(&info.u, info_.unwind_info, sizeof info.u);
    }
    info.start_ip = info_.start_ip;
    info.end_ip = info_.end_ip;
    info.gp = info_.gp;
    info.format = info_.format;
    return info;
  }

  /// Whether `size` bytes of this process, named by a callback, can be read.
  static bool is_there(const void* at, std::uint64_t size, MemoryWindow& window) noexcept {
    constexpr std::uint64_t k_most = std::min(std::uint64_t{1} << 32, std::uint64_t{SIZE_MAX});
    return size == 0 || (size <= k_most && LocalMemory().view(reinterpret_cast<std::uintptr_t>(at),
                                                              static_cast<std::size_t>(size), window) != nullptr);
  }

  /// Registered descriptors vouch for their own regions and tables; a callback's answer may be wrong.
  static Status check_host_memory(const unw_dyn_info_t& info) noexcept {
    constexpr unsigned k_most_regions = 4096;  // readers of regions read no more
    const Error bad{ErrorCode::unreadable_memory, info.start_ip, k_unwind_info};
    MemoryWindow window;
    if (info.format == UNW_INFO_FORMAT_TABLE) {
      const std::uint64_t word = target_arch().word_size;
      const bool fits = info.u.ti.table_len <= UNW_WORD_MAX / word;
      if (!fits || !is_there(info.u.ti.table_data, info.u.ti.table_len * word, window)) return bad;
    }
    if (info.format != UNW_INFO_FORMAT_DYNAMIC) return Done{};
    const unw_dyn_region_info_t* region = info.u.pi.regions;
    for (unsigned seen = 0; region && seen < k_most_regions; ++seen, region = region->next) {
      if (reinterpret_cast<std::uintptr_t>(region) % alignof(unw_dyn_region_info_t) != 0) return bad;
      if (!is_there(region, _U_dyn_region_info_size(0), window)) return bad;
      if (!is_there(region->op, std::uint64_t{sizeof *region->op} * region->op_count, window)) return bad;
    }
    return Done{};
  }

  const unw_accessors_t& accessors_;
  unw_addr_space_t space_;
  void* argument_;
  bool needs_unwind_info_;
  int returned_ = -UNW_ENOINFO;
  unw_proc_info_t info_{};
};

}  // namespace JITUNWIND_COMPAT
}  // namespace jitunwind
