// The format of jitdumps (Linux, tools/perf/Documentation/jitdump-specification.txt), for those who read and write
// them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jitunwind::jitdump {

inline constexpr std::uint32_t k_magic = 0x4a695444;  // "JiTD"
inline constexpr std::uint32_t k_version = 1;

/// The file's header: magic, version, size of the header, machine (EM_*), padding, process (4 bytes each), time, flags
/// (8 bytes each).
inline constexpr std::size_t k_header = 40;
/// The begin of a record: kind, size of the record (4 bytes each), time (8 bytes).
inline constexpr std::size_t k_prefix = 16;
/// The fields behind the prefix. Those without a size have 8 bytes.
enum RecordKind : std::uint32_t {
  k_load = 0,        ///< process, thread (4 bytes each), vma, address, size, index, name and NUL, bytes
  k_move = 1,        ///< process, thread (4 bytes each), vma, old address, new address, size, index
  k_debug_info = 2,  ///< address of the code, number of entries; each: address, line, discriminator (4 each), file
  k_close = 3,       ///< nothing
  k_unwinding_info =
      4,  ///< size, size of .eh_frame_hdr at its end, mapped size, bytes: of the code that is loaded next
};

/// Bytes of a code's call frame information are as if they stood behind the code: perf puts them there.
constexpr std::uint64_t frames_behind(std::uint64_t code_begin, std::uint64_t code_end) noexcept {
  return code_begin + (code_end - code_begin + 7) / 8 * 8;
}

/// The padding of headers that this library writes, by which it passes its own files by.
inline constexpr std::uint32_t k_own_padding = 0x4a75;

}  // namespace jitunwind::jitdump
