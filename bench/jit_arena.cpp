#include "bench/jit_arena.h"

#include <sys/mman.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <new>

namespace bench {

namespace {

constexpr std::size_t k_table_slot = 80;
constexpr std::size_t k_cie_size = 24;
constexpr std::size_t k_fde_size = 48;

// push rbx; sub rsp,N; mov rax,[rdi]; add qword [rdi],8; call [rax]; add rsp,N; pop rbx; ret
constexpr std::array<std::uint8_t, 26> k_code{0x53, 0x48, 0x81, 0xec, 0,    0,    0,    0,    0x48,
                                              0x8b, 0x07, 0x48, 0x83, 0x07, 0x08, 0xff, 0x10, 0x48,
                                              0x81, 0xc4, 0,    0,    0,    0,    0x5b, 0xc3};
constexpr std::size_t k_allocated_operand = 4;
constexpr std::size_t k_released_operand = 20;

// LSB 5.0, 10.6: version 1, "zR", code alignment 1, data alignment -8, return address 16, absolute pointers;
// cfa=rsp+8 ra=[cfa-8].
constexpr std::array<std::uint8_t, k_cie_size> k_cie{k_cie_size - 4, 0,  0, 0,    0,    0, 0, 0,    1, 'z', 'R', 0, 1,
                                                     0x78,           16, 1, 0x00, 0x0c, 7, 8, 0x90, 1, 0,   0};

template <class T>
std::byte* put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
  return at + sizeof value;
}

void write_code(std::byte* at, std::uint32_t locals) {
  std::memcpy(at, k_code.data(), k_code.size());
  put(at + k_allocated_operand, locals);
  put(at + k_released_operand, locals);
}

/// +1 cfa=rsp+16 rbx=[cfa-16]   +8 cfa=rsp+16+N   +24 cfa=rsp+16   +25 cfa=rsp+8
void write_tables(std::byte* at, const std::byte* code, std::uint32_t locals) {
  std::memcpy(at, k_cie.data(), k_cie_size);
  std::byte* fde = put(at + k_cie_size, static_cast<std::uint32_t>(k_fde_size - 4));
  fde = put(fde, static_cast<std::uint32_t>(k_cie_size + 4));
  fde = put(fde, reinterpret_cast<std::uintptr_t>(code));
  fde = put(fde, std::uint64_t{k_code.size()});
  // The offset is a ULEB128 of four bytes, which may have leading zeros (DWARF 5, 7.6).
  const std::uint32_t offset = 16 + locals;
  const auto group = [&](unsigned number) { return static_cast<std::uint8_t>(offset >> 7 * number & 0x7f); };
  const auto more = [&](unsigned number) { return static_cast<std::uint8_t>(group(number) | 0x80); };
  // augmentation size 0; advance_loc 1; def_cfa_offset 16; offset rbx 2; ...
  const std::array<std::uint8_t, 18> rules{0,       0x41,    0x0e,     16,   0x83, 2,  0x47, 0x0e, more(0),
                                           more(1), more(2), group(3), 0x50, 0x0e, 16, 0x41, 0x0e, 8};
  std::memcpy(fde, rules.data(), rules.size());
  // The rest of the FDE and the terminator behind it are already zero: nops, and a length of 0.
}

}  // namespace

JitArena::JitArena(std::size_t count, std::size_t distance, std::size_t shapes)
    : size_(count * (distance + k_table_slot)) {
  void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<std::byte*>(memory);
  functions_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* code = memory_ + i * distance;
    std::byte* tables = memory_ + count * distance + i * k_table_slot;
    const auto locals = static_cast<std::uint32_t>(16 * (1 + i % shapes));
    write_code(code, locals);
    write_tables(tables, code, locals);
    functions_.push_back({code, k_code.size(), locals, tables, tables + k_cie_size});
  }
}

JitArena::~JitArena() { munmap(memory_, size_); }

StackFunction JitArena::entry(std::size_t index) const { return std::bit_cast<StackFunction>(functions_[index].code); }

bool JitArena::contains(const void* pc) const { return pc >= memory_ && pc < memory_ + size_; }

}  // namespace bench
