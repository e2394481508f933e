#include "jitunwind/sdk/dialects/itt_event.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "jitunwind/sdk/dialects/told_name.h"

namespace jitunwind {
namespace {

/// iJIT_JVM_EVENT.
enum Event : std::int32_t {
  e_load_finished = 13,
  e_unload_start = 14,
  e_inline_load_finished = 16,
  e_load_finished_v2 = 21,
  e_load_finished_v3 = 22,
};

/// What all of iJIT_Method_Load and its later forms begin with. iJIT_Method_Inline_Load has the parent's number where
/// the others have padding.
struct MethodLoad {
  std::uint32_t method;
  std::uint32_t padding;
  Addr name;
  Addr address;
  std::uint32_t size;
};

std::string read_text(Addr at, const Memory& memory, MemoryWindow& window) {
  std::string text;
  std::array<std::byte, 64> piece;
  while (at != 0 && text.size() < k_longest_told_name) {
    // No piece reaches into another page than the one in which the text may end.
    const auto wanted = std::span(piece).first(piece.size() - at % piece.size());
    const std::size_t size = memory.read(at, wanted, window);
    const auto* const begin = reinterpret_cast<const char*>(piece.data());
    const std::size_t length = strnlen(begin, size);
    text.append(begin, length);
    if (length < size || size < wanted.size()) break;
    at += size;
  }
  return text;
}

}  // namespace

Result<IttEvent> read_itt_event(std::int32_t event, Addr data, const Memory& memory) {
  IttEvent out;
  MemoryWindow window;
  const bool is_load = event == e_load_finished || event == e_load_finished_v2 || event == e_load_finished_v3 ||
                       event == e_inline_load_finished;
  if (!is_load && event != e_unload_start) return out;
  MethodLoad load{};
  const std::size_t wanted = is_load ? sizeof load : sizeof load.method;
  if (memory.read(data, std::as_writable_bytes(std::span(&load, 1)).first(wanted), window) != wanted)
    return unreadable(window, data, "event of ITT");
  out.method = load.method;
  out.kind = is_load ? IttEvent::Kind::loaded : IttEvent::Kind::unloaded;
  if (!is_load) return out;
  out.code = {load.address, load.address + load.size};
  if (out.code.end <= out.code.begin) return Error{ErrorCode::e_range, load.address, "method of ITT without code"};
  out.name = read_text(load.name, memory, window);
  return out;
}

}  // namespace jitunwind
