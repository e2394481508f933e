#include "jitunwind/sdk/uwx/answers/callbacks_p.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"

namespace jitunwind::uwx {

int status_of(const Error& error) noexcept {
  if (const int status = callback_result(error); status != 0) return status;
  switch (error.code) {
    case ErrorCode::out_of_memory:
      return UWX_ERR_NOMEM;
    case ErrorCode::no_info:
      return UWX_ERR_IPNOTFOUND;
    case ErrorCode::unreadable_memory:
      return UWX_ERR_COPYIN_MSTK;
    case ErrorCode::e_pop:
      return UWX_ERR_PROLOG_UF;
    case ErrorCode::e_label:
      return UWX_ERR_UNDEFLABEL;
    case ErrorCode::unspecified:
    case ErrorCode::stop_unwind:
    case ErrorCode::invalid_ip:
    case ErrorCode::bad_frame:
    case ErrorCode::undefined_register:
    case ErrorCode::cyclic_frames:
    case ErrorCode::frame_limit:
    case ErrorCode::bad_signature:
    case ErrorCode::unknown_signature:
    case ErrorCode::e_lr:
    case ErrorCode::e_sp_lost:
      return UWX_ERR_CANTUNWIND;
    default:
      return UWX_ERR_BADUDESC;
  }
}

std::size_t CopyinMemory::read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept {
  window.failure = 0;
  std::size_t done = 0;
  while (done < into.size()) {
    const Addr next = at + done;
    if (next < at) break;
    const std::size_t left = into.size() - done;
    const bool halves = request_ == UWX_COPYIN_UINFO && (next % 8 != 0 || left < 8);
    const int unit = halves ? 4 : 8;
    const Addr begin = next & ~static_cast<Addr>(unit - 1);
    alignas(8) std::array<char, 8> bytes{};
    if (callbacks_.copyin(request_, bytes.data(), begin, unit, callbacks_.token) != unit) {
      window.failure = failure_;
      break;
    }
    const auto skipped = static_cast<std::size_t>(next - begin);
    const std::size_t count = std::min(left, static_cast<std::size_t>(unit) - skipped);
    std::memcpy(into.data() + done, bytes.data() + skipped, count);
    done += count;
  }
  return done;
}

Result<std::uint64_t> copy_register(const Callbacks& callbacks, int regid, bool big_endian) noexcept {
  alignas(8) std::array<char, 8> bytes{};
  const auto id = static_cast<std::uint64_t>(regid);
  if (callbacks.copyin(UWX_COPYIN_REG, bytes.data(), id, 8, callbacks.token) != 8)
    return failure(UWX_ERR_COPYIN_REG, "register");
  std::uint64_t value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return big_endian == (std::endian::native == std::endian::big) ? value : __builtin_bswap64(value);
}

namespace {

bool has_vector(int kind) noexcept {
  return kind == UWX_LKUP_UTABLE || kind == UWX_LKUP_FDESC || kind == UWX_LKUP_SYMINFO || kind == UWX_LKUP_REMAP ||
         kind == UWX_LKUP_UINFO;
}

}  // namespace

Answer::Answer(const Callbacks& callbacks, int request, Addr ip, Question& question) noexcept
    : callbacks_(callbacks), vector_(question.words()) {
  kind_ = callbacks.lookupip(request, ip, callbacks.token, &vector_);
  // The client must not get back a vector that it did not give.
  if (!has_vector(kind_) || vector_ == question.words()) {
    vector_ = nullptr;
    if (kind_ != UWX_LKUP_NOTFOUND) kind_ = UWX_LKUP_ERR;
  }
}

Answer::~Answer() {
  if (vector_) (void)callbacks_.lookupip(UWX_LKUP_FREE, 0, callbacks_.token, &vector_);
}

bool Answer::read(std::size_t index, Pair& out, MemoryWindow& window) const noexcept {
  const Addr at = reinterpret_cast<std::uintptr_t>(vector_) + index * sizeof(Pair);
  return read_object(LocalMemory(), window, at, out);
}

}  // namespace jitunwind::uwx
