// Writes structures of libunwind-dynamic.h into a target's memory, in the layout of a compiler for its word size and
// byte order.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "tests/support/fake_memory.h"

namespace jitunwind::test {

/// A target is a memory, and an Arch that gives its layout.
class FakeTarget {
 public:
  explicit FakeTarget(const Arch& arch) : arch(arch), memory(arch.big_endian) {}

  Addr allocate(Addr size) {
    const Addr at = next_;
    next_ += (size + 15) & ~Addr{15};
    return at;
  }

  Addr put_string(const std::string& text) {
    const Addr at = allocate(text.size() + 1);
    memory.put_bytes(at, std::as_bytes(std::span(text.c_str(), text.size() + 1)));
    return at;
  }

  /// Copies a list of regions of this process and everything that it refers to.
  Addr put_regions(const unw_dyn_region_info_t* region) {
    if (!region) return 0;
    const Addr word = arch.word_size;
    const Addr at = allocate(word + 8 + region->op_count * (8 + word));
    memory.put(at + word, static_cast<std::uint32_t>(region->insn_count), 4);
    memory.put(at + word + 4, region->op_count, 4);
    for (std::uint32_t i = 0; i < region->op_count; ++i) {
      const unw_dyn_op_t& op = region->op[i];
      const Addr place = at + word + 8 + i * (8 + word);
      memory.put(place, static_cast<std::uint8_t>(op.tag), 1);
      memory.put(place + 1, static_cast<std::uint8_t>(op.qp), 1);
      memory.put(place + 2, static_cast<std::uint16_t>(op.reg), 2);
      memory.put(place + 4, static_cast<std::uint32_t>(op.when), 4);
      const bool unknown = op.tag == UNW_DYN_ADD && op.val == UNW_DYN_ADD_UNKNOWN;
      memory.put(place + 8, unknown ? Addr{1} << (8 * arch.word_size - 1) : op.val, arch.word_size);
    }
    memory.put(at, put_regions(region->next), arch.word_size);
    return at;
  }

  /// Writes a descriptor and returns its address. `last_member` is an address of the target: regions or table_data.
  Addr put_descriptor(const unw_dyn_info_t& info, Addr last_member, Addr next = 0) {
    const unsigned word = arch.word_size;
    const Addr at = allocate(8 * word + 16);
    for (unsigned i = 0; i < 8 * word + 16; ++i) memory.put(at + i, 0, 1);
    const Addr head[] = {next, 0, info.start_ip, info.end_ip, info.gp};
    for (unsigned i = 0; i < 5; ++i) memory.put(at + i * word, head[i], word);
    memory.put(at + 5 * word, static_cast<std::uint32_t>(info.format), 4);
    memory.put(at + 5 * word + 4, 0, 4);
    const Addr members = at + 5 * word + 8;
    memory.put(members, info.u.pi.name_ptr, word);
    if (info.format == UNW_INFO_FORMAT_DYNAMIC) {
      memory.put(members + word, info.u.pi.handler, word);
      memory.put(members + 2 * word, info.u.pi.flags, 4);
      memory.put(members + 2 * word + 4, 0, 4);
      memory.put(members + 2 * word + 8, last_member, word);
    } else {
      memory.put(members + word, info.u.rti.segbase, word);
      memory.put(members + 2 * word, info.u.rti.table_len, word);
      memory.put(members + 3 * word, last_member, word);
    }
    return at;
  }

  Addr put_list(Addr first, std::uint32_t version = 1, std::uint32_t generation = 2) {
    const Addr at = allocate(8 + arch.word_size);
    write_list(at, first, version, generation);
    return at;
  }
  void write_list(Addr at, Addr first, std::uint32_t version, std::uint32_t generation) {
    memory.put(at, version, 4);
    memory.put(at + 4, generation, 4);
    memory.put(at + 8, first, arch.word_size);
  }

  const Arch arch;
  FakeMemory memory;

 private:
  Addr next_ = 0x10000;
};

}  // namespace jitunwind::test
