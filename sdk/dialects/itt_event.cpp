#include "jitunwind/sdk/dialects/itt_event.h"

#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"

namespace jitunwind {
namespace {

/// Values of iJIT_JVM_EVENT.
enum Event : std::int32_t {
  e_load_finished = 13,
  e_unload_start = 14,
  e_inline_load_finished = 16,
  e_load_finished_v2 = 21,
  e_load_finished_v3 = 22,
};

/// The common beginning of iJIT_Method_Load and its later forms. Only iJIT_Method_Inline_Load has the parent's number
/// in place of the padding.
struct MethodLoad {
  std::uint32_t method;
  std::uint32_t padding;
  Addr name;
  Addr address;
  std::uint32_t size;
  std::uint32_t line_count;
  Addr line_table;
};
/// The offset of the source's file name. It follows the class's number, which inlined methods lack, and the class's
/// file.
constexpr Addr k_source_file = 56, k_source_file_of_inlined = 48;

/// LineNumberInfo: the code up to the offset is of the line.
struct LineNumber {
  std::uint32_t offset;
  std::uint32_t line;
};

std::string read_text(Addr at, const Memory& memory, MemoryWindow& window) {
  std::string text;
  std::array<std::byte, 64> piece;
  while (at != 0 && text.size() < k_longest_told_name) {
    // No piece crosses a page boundary, because the next page may be unreadable.
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

/// An entry gives the offset where its line ends (jitprofiling.h).
SourceLines read_lines(const MethodLoad& load, Addr source_file, const Memory& memory, MemoryWindow& window) {
  if (load.line_count == 0 || load.line_count > SourceLines::k_most) return {};
  std::vector<LineNumber> table(load.line_count);
  const auto bytes = std::as_writable_bytes(std::span(table));
  Addr file_at = 0;
  if (memory.read(load.line_table, bytes, window) != bytes.size() || !read_object(memory, window, source_file, file_at))
    return {};
  const std::string file = read_text(file_at, memory, window);
  std::vector<ToldLine> told;
  std::uint32_t begin = 0;
  for (const LineNumber& entry : table) told.push_back({std::exchange(begin, entry.offset), entry.line, file});
  return SourceLines(told);
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
  const Addr source_file = event == e_inline_load_finished ? k_source_file_of_inlined : k_source_file;
  out.lines = read_lines(load, data + source_file, memory, window);
  return out;
}

}  // namespace jitunwind
