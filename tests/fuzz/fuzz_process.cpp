// Input: a whole process. Two bytes, the length of the text of its maps; the text; 33 words of 8 bytes, its registers
// by DWARF number; a byte, bit 0 the CPU; then the contents of its memory, mapping by mapping.
#include <vector>

#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/memory/bytes.h"
#include "tests/fuzz/walk_target.h"

using namespace jitunwind;

namespace {

RegisterFile take_registers(ByteReader& reader, const Arch& arch) {
  constexpr unsigned k_registers = 33;
  RegisterFile registers;
  for (unsigned number = 0; number < k_registers; ++number) {
    const std::uint64_t value = reader.u64();
    const RegisterInfo* const reg = arch.by_dwarf(number);
    if (reg && reg->column >= 0) registers.set_from_register(reg->column, value, reg->dwarf);
  }
  return registers;
}

std::vector<BytesMemory::Piece> lay_out(const Mappings& mappings, std::span<const std::byte> bytes) {
  std::vector<BytesMemory::Piece> pieces;
  for (const Mapping& mapping : mappings.all()) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), mapping.range.size()));
    pieces.push_back({mapping.range.begin, bytes.first(size)});
    bytes = bytes.subspan(size);
  }
  return pieces;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteReader reader(std::as_bytes(std::span(data, size)), false);
  const auto text = reader.bytes(reader.u16());
  if (!reader.ok()) return 0;
  const Mappings mappings = Mappings::parse({reinterpret_cast<const char*>(text.data()), text.size()});
  if (mappings.all().size() > 64) return 0;
  ByteReader options = reader;
  options.skip(33 * 8);
  const Arch& arch = *all_arches()[options.u8() % all_arches().size()];
  const RegisterFile registers = take_registers(reader, arch);
  reader.skip(1);
  if (!reader.ok()) return 0;
  const BytesMemory bytes(lay_out(mappings, reader.rest()));
  const fuzz::MeteredMemory memory(bytes);
  TargetSpace target(arch, memory, mappings, TargetFiles::none());
  for (const Guesses guesses : {Guesses::confirmed, Guesses::bold}) {
    const std::size_t frames = fuzz::walk_target(target, registers, guesses);
    target.renew(mappings);
    fuzz::check(frames == fuzz::walk_target(target, registers, guesses), "the same again gives the same");
  }
  fuzz::check(memory.reads < (std::size_t{1} << 24), "the work is bounded");
  return 0;
}
