#include "jitunwind/unwind_core/arch/x86_encoding_p.h"

#include <algorithm>

namespace jitunwind::arch::x86_code {
namespace {

/// Reads parts from left to right.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool ok() const { return !failed_; }
  std::size_t position() const { return next_; }
  std::uint8_t peek() const { return next_ < bytes_.size() ? std::to_integer<std::uint8_t>(bytes_[next_]) : 0; }
  std::uint8_t u8() {
    const std::uint8_t byte = peek();
    if (next_ == bytes_.size())
      failed_ = true;
    else
      ++next_;
    return byte;
  }
  std::int64_t number(std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value |= std::uint64_t{u8()} << 8 * i;
    if (size == 0 || size == 8) return static_cast<std::int64_t>(value);
    const auto unused = static_cast<unsigned>(64 - 8 * size);
    return static_cast<std::int64_t>(value << unused) >> unused;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t next_ = 0;
  bool failed_ = false;
};

constexpr Map k_vex_maps[32] = {Map::vector_other, Map::two_byte, Map::m38,    Map::m3a,
                                Map::vector_other, Map::fp16_5,   Map::fp16_6, Map::vector_other};

/// The prefixes 66, f3, f2 as VEX and EVEX encode them.
void put_vector_prefix(unsigned pp, Parts& parts) {
  parts.operand_size = pp == 1;
  constexpr std::uint8_t k_repeats[] = {0, 0, 0xf3, 0xf2};
  parts.repeat = k_repeats[pp];
  parts.is_vector = true;
}

/// False: the prefix is not known.
bool read_vector_prefix(std::uint8_t first, Reader& in, Parts& parts) {
  const unsigned p0 = in.u8();
  const auto inverted = [](unsigned byte, unsigned bit) { return (byte >> bit & 1) != 0 ? 0u : 8u; };
  parts.r = inverted(p0, 7);
  unsigned p1 = p0;
  unsigned map = 1;
  if (first != 0xc5) {
    parts.x = inverted(p0, 6);
    parts.b = parts.is_64 ? inverted(p0, 5) : 0;
    map = first == 0xc4 ? p0 & 0x1f : p0 & 7;
    if (first == 0x62 && (p0 & 8) != 0) return false;  // APX
    p1 = in.u8();
    parts.w = (p1 & 0x80) != 0;
    if (first == 0x62) {
      if ((p1 & 4) == 0) return false;  // APX
      in.u8();
    }
  }
  parts.vvvv = static_cast<std::uint8_t>(~p1 >> 3 & (parts.is_64 ? 15 : 7));
  put_vector_prefix(p1 & 3, parts);
  parts.map = map < 8 ? k_vex_maps[map] : Map::vector_other;
  parts.opcode = in.u8();
  return parts.map != Map::vector_other;
}

/// Legacy prefixes. Opcodes may depend on some of them, which `parts` records.
constexpr Opcodes k_prefixes{{0x26, 0x26}, {0x2e, 0x2e}, {0x36, 0x36}, {0x3e, 0x3e},
                             {0x64, 0x67}, {0xf0, 0xf0}, {0xf2, 0xf3}};
constexpr Opcodes k_vector_prefixes{{0x62, 0x62}, {0xc4, 0xc5}};

bool read_opcode(Reader& in, Parts& parts) {
  std::uint8_t byte = in.u8();
  for (; k_prefixes.has(byte); byte = in.u8()) {
    if (byte == 0x66) parts.operand_size = true;
    if (byte == 0x67) parts.address_size = true;
    if (byte >= 0xf2) parts.repeat = byte;
  }
  // These are les, lds and bound in 32-bit mode, whose operand is never a register.
  if (k_vector_prefixes.has(byte) && (parts.is_64 || in.peek() >= 0xc0)) return read_vector_prefix(byte, in, parts);
  if (parts.is_64 && (byte & 0xf0) == 0x40) {
    parts.has_rex = true;
    parts.w = (byte & 8) != 0;
    parts.r = (byte & 4u) << 1;
    parts.x = (byte & 2u) << 2;
    parts.b = (byte & 1u) << 3;
    byte = in.u8();
    // This prefix must be the last one.
    if ((byte & 0xf0) == 0x40 || k_prefixes.has(byte) || k_vector_prefixes.has(byte)) return false;
    if (parts.w) parts.operand_size = false;
  }
  parts.opcode = byte;
  if (byte != 0x0f) return true;
  parts.map = Map::two_byte;
  parts.opcode = in.u8();
  if (parts.opcode != 0x38 && parts.opcode != 0x3a) return true;
  parts.map = parts.opcode == 0x38 ? Map::m38 : Map::m3a;
  parts.opcode = in.u8();
  return true;
}

constexpr Opcodes k_invalid_one_byte{{0x06, 0x07}, {0x0e, 0x0e}, {0x16, 0x17}, {0x1e, 0x1f}, {0x27, 0x27},
                                     {0x2f, 0x2f}, {0x37, 0x37}, {0x3f, 0x3f}, {0x60, 0x61}, {0x82, 0x82},
                                     {0x9a, 0x9a}, {0xce, 0xce}, {0xd4, 0xd6}, {0xea, 0xea}};
constexpr Opcodes k_far_one_byte{{0x9a, 0x9a}, {0xea, 0xea}};
/// Additional opcodes of 32-bit mode.
constexpr Opcodes k_modrm_32{{0x62, 0x62}, {0xc4, 0xc5}};
constexpr Opcodes k_imm8_32{{0x82, 0x82}, {0xd4, 0xd5}};
constexpr Opcodes k_modrm_one_byte{{0x00, 0x03}, {0x08, 0x0b}, {0x10, 0x13}, {0x18, 0x1b}, {0x20, 0x23}, {0x28, 0x2b},
                                   {0x30, 0x33}, {0x38, 0x3b}, {0x63, 0x63}, {0x69, 0x69}, {0x6b, 0x6b}, {0x80, 0x8f},
                                   {0xc0, 0xc1}, {0xc6, 0xc7}, {0xd0, 0xd3}, {0xd8, 0xdf}, {0xf6, 0xf7}, {0xfe, 0xff}};
constexpr Opcodes k_imm8_one_byte{{0x04, 0x04}, {0x0c, 0x0c}, {0x14, 0x14}, {0x1c, 0x1c}, {0x24, 0x24}, {0x2c, 0x2c},
                                  {0x34, 0x34}, {0x3c, 0x3c}, {0x6a, 0x6b}, {0x70, 0x80}, {0x83, 0x83}, {0xa8, 0xa8},
                                  {0xb0, 0xb7}, {0xc0, 0xc1}, {0xc6, 0xc6}, {0xcd, 0xcd}, {0xe0, 0xe7}, {0xeb, 0xeb}};
/// The immediate has 4 bytes, 2 with an operand-size prefix.
constexpr Opcodes k_imm32_one_byte{{0x05, 0x05}, {0x0d, 0x0d}, {0x15, 0x15}, {0x1d, 0x1d}, {0x25, 0x25},
                                   {0x2d, 0x2d}, {0x35, 0x35}, {0x3d, 0x3d}, {0x68, 0x69}, {0x81, 0x81},
                                   {0xa9, 0xa9}, {0xb8, 0xbf}, {0xc7, 0xc7}, {0xe8, 0xe9}};
/// Some of these belong to the operating system.
constexpr Opcodes k_invalid_two_byte{{0x04, 0x04}, {0x0a, 0x0a}, {0x0c, 0x0c}, {0x20, 0x27}, {0x36, 0x36},
                                     {0x39, 0x39}, {0x3b, 0x3f}, {0x78, 0x7b}, {0xa6, 0xa7}};
/// Opcodes of a processor that does not exist any more.
constexpr Opcodes k_invalid_vector{{0x84, 0x85}, {0x95, 0x95}, {0x97, 0x97}, {0xb8, 0xb8}, {0xbc, 0xbd}};
constexpr Opcodes k_no_modrm_two_byte{{0x05, 0x09}, {0x0b, 0x0b}, {0x0e, 0x0e}, {0x30, 0x37}, {0x77, 0x77},
                                      {0x80, 0x8f}, {0xa0, 0xa2}, {0xa8, 0xaa}, {0xc8, 0xcf}};
constexpr Opcodes k_imm8_vector{{0x70, 0x73}, {0xc2, 0xc2}, {0xc4, 0xc6}};
constexpr Opcodes k_imm8_two_byte{{0x0f, 0x0f}, {0x70, 0x73}, {0xa4, 0xa4}, {0xac, 0xac},
                                  {0xba, 0xba}, {0xc2, 0xc2}, {0xc4, 0xc6}};

bool is_known(const Parts& p) {
  if (p.map == Map::one_byte) return !(p.is_64 ? k_invalid_one_byte : k_far_one_byte).has(p.opcode);
  return p.map != Map::two_byte || !(p.is_vector ? k_invalid_vector : k_invalid_two_byte).has(p.opcode);
}

bool has_modrm(const Parts& p) {
  if (p.map == Map::one_byte) return k_modrm_one_byte.has(p.opcode) || (!p.is_64 && k_modrm_32.has(p.opcode));
  if (p.map != Map::two_byte) return true;
  return p.is_vector ? p.opcode != 0x77 : !k_no_modrm_two_byte.has(p.opcode);
}

std::size_t immediate_size_one_byte(const Parts& p) {
  const std::size_t full = p.operand_size && !p.w ? 2 : 4;
  switch (p.opcode) {
    case 0xa0:
    case 0xa1:
    case 0xa2:
    case 0xa3:  // an address
      return (p.is_64 ? 8 : 4) / (p.address_size ? 2 : 1);
    case 0xb8:
    case 0xb9:
    case 0xba:
    case 0xbb:
    case 0xbc:
    case 0xbd:
    case 0xbe:
    case 0xbf:
      return p.w ? 8 : full;
    case 0xc2:
    case 0xca:
      return 2;
    case 0xc8:
      return 3;
    case 0xe8:
    case 0xe9:
      return p.is_64 ? 4 : full;
    case 0xf6:
      return p.group() <= 1 ? 1 : 0;
    case 0xf7:
      return p.group() <= 1 ? full : 0;
    default:
      if (!p.is_64 && k_imm8_32.has(p.opcode)) return 1;
      return k_imm8_one_byte.has(p.opcode) ? 1 : k_imm32_one_byte.has(p.opcode) ? full : 0;
  }
}

std::size_t immediate_size(const Parts& p) {
  if (p.map == Map::one_byte) return immediate_size_one_byte(p);
  if (p.map == Map::m3a) return 1;
  if (p.map != Map::two_byte) return 0;
  if (p.is_vector) return k_imm8_vector.has(p.opcode) ? 1 : 0;
  if (p.is_long_branch()) return p.operand_size && !p.is_64 ? 2 : 4;
  return k_imm8_two_byte.has(p.opcode) ? 1 : 0;
}

void read_modrm(Reader& in, Parts& p) {
  const unsigned byte = in.u8();
  p.mod = byte >> 6;
  p.reg = (byte >> 3 & 7) | p.r;
  p.rm = (byte & 7) | p.b;
  if (p.mod == 3) return;
  if (p.address_size && !p.is_64) {
    const bool has_no_register = p.mod == 0 && p.rm == 6;
    p.displacement = in.number(p.mod == 1 ? 1 : p.mod == 2 || has_no_register ? 2 : 0);
    return;
  }
  std::size_t size = p.mod == 1 ? 1 : p.mod == 2 ? 4 : 0;
  if ((byte & 7) == 4) {
    const unsigned sib = in.u8();
    p.scale = 1u << (sib >> 6);
    p.index = (sib >> 3 & 7) | p.x;
    p.has_index = p.index != 4;
    p.base = (sib & 7) | p.b;
    p.has_base = (sib & 7) != 5 || p.mod != 0;
    if (!p.has_base) size = 4;
  } else if ((byte & 7) == 5 && p.mod == 0) {
    p.is_rip = p.is_64;
    size = 4;
  } else {
    p.base = p.rm;
    p.has_base = true;
  }
  p.displacement = in.number(size);
}

}  // namespace

bool read_parts(std::span<const std::byte> bytes, Parts& p) noexcept {
  constexpr std::size_t k_longest = 15;
  Reader in(bytes.first(std::min(bytes.size(), k_longest)));
  if (!read_opcode(in, p) || !is_known(p)) return false;
  p.has_modrm = has_modrm(p);
  if (p.has_modrm) {
    if (p.map == Map::one_byte && p.opcode == 0x8f && (in.peek() >> 3 & 7) != 0) return false;  // XOP
    read_modrm(in, p);
  }
  p.immediate = in.number(immediate_size(p));
  p.length = static_cast<std::uint8_t>(in.position());
  return in.ok();
}

}  // namespace jitunwind::arch::x86_code
