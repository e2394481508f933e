// Jitdumps as engines write them (Linux, tools/perf/Documentation/jitdump-specification.txt).
#pragma once

#include <cstdint>
#include <string_view>

#include "tests/builders/placed_eh_frame.h"
#include "tests/support/cfi_assembler.h"

namespace jitunwind::test {

inline Bytes dump_header(std::uint32_t size = 40) {
  return Bytes().u32(0x4a695444).u32(1).u32(size).u32(62).u32(0).u32(4711).u64(0).u64(0);
}
inline Bytes dump_record(std::uint32_t kind, const Bytes& body) {
  return Bytes().u32(kind).u32(16 + body.size()).u64(0).add(body);
}
inline Bytes dump_loaded(std::string_view name, Addr at, const Bytes& code) {
  return dump_record(0, Bytes().u32(4711).u32(4711).u64(at).u64(at).u64(code.size()).u64(0).text(name).add(code));
}
inline Bytes dump_moved(Addr from, Addr to, std::uint64_t size) {
  return dump_record(1, Bytes().u32(4711).u32(4711).u64(to).u64(from).u64(to).u64(size).u64(0));
}
/// Makes one line from the beginning of the code on.
inline Bytes dump_line(Addr code, std::uint32_t line, std::string_view file) {
  return dump_record(2, Bytes().u64(code).u64(1).u64(code).u32(line).u32(0).text(file));
}

/// Makes call frame information for the code that is loaded next, as V8 writes it: relative to the place behind the
/// code where perf puts it, and with a header of 20 bytes. The code begins with an instruction that saves a
/// register unless `instructions` say otherwise.
inline Bytes dump_frames(Addr code, std::uint64_t size, const Bytes& instructions = saved_register()) {
  CfiSection section(code + (size + 7) / 8 * 8);
  const Addr cie = section.cie(host_cie("zR", Bytes{0x1b}));
  const Addr begin_at = section.here() + 8;
  section.fde(cie, section.bytes().u32(code - begin_at).u32(size).u8(0).add(instructions));
  section.terminator();
  constexpr std::size_t k_header = 20;
  const Bytes frames = Bytes().add(section.data()).fill(k_header, 0);
  return dump_record(4, Bytes().u64(frames.size()).u64(k_header).u64(frames.size()).add(frames));
}

}  // namespace jitunwind::test
