// Input: a byte, bits 0 and 2 the CPU, bit 1 the byte order; then a file as JITs give it to GDB.
#include <algorithm>
#include <array>

#include "jitunwind/sdk/dialects/jit_files/erlang_entry.h"
#include "jitunwind/sdk/dialects/jit_object.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"
#include "tests/fuzz/fuzz_memory.h"

using namespace jitunwind;

namespace {

constexpr std::size_t k_most_asked = 64;

void ask(const JitObject& object, Addr at) {
  FrameRow row;
  const Found found = object.find_row(at, row);
  fuzz::check(found || *found.error().what != 0, "an error says what");
  if (found && *found) fuzz::check(row.range.contains(at), "a row is of the address");
  ProcedureInfo procedure;
  const Found known = object.find_procedure(at, procedure);
  if (known && *known) fuzz::check(procedure.range.contains(at), "a procedure covers what was asked about");
  fuzz::check(!found || !*found || (known && *known), "a row is of a procedure");
  std::array<char, 16> name;
  ProcedureName out;
  if (const Found named = object.find_name(at, name, out); named && *named) {
    fuzz::check(std::memchr(name.data(), 0, name.size()) != nullptr, "a name ends");
    fuzz::check(out.start <= at, "a name begins at or below what it names");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const fuzz::MemoryLimit limit(size);
  // The CPUs are x86-64 and AArch64, and x86 and ARM with 32 bits.
  Arch arch = *all_arches()[(data[0] & 1) + ((data[0] & 4) >> 1)];
  if ((data[0] & 2) != 0) arch.big_endian = true;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  const auto object = JitObject::read({bytes.begin(), bytes.end()}, arch);
  if (!object) {
    fuzz::check(*object.error().what != 0, "an error says what");
    return 0;
  }
  fuzz::check(object->bytes().size() >= bytes.size(), "it has all bytes");
  fuzz::check(!object->code().empty() || is_erlang_entry(bytes, arch), "it has code, but of Erlang's emulator");
  const auto is_of_code = [&](const AddrRange& range) {
    return std::ranges::any_of(object->code(), [&](const AddrRange& section) {
      return section.contains(range.begin) && range.end <= section.end;
    });
  };
  for (std::size_t i = 0; i < std::min(object->code().size(), k_most_asked); ++i)
    for (const Addr at : {object->code()[i].begin, object->code()[i].end - 1, object->code()[i].end}) ask(*object, at);
  const JitObject::Procedures procedures = object->procedures();
  SectionView frames({procedures.frames, 0x1000});
  const CfiContext context{.arch = arch};
  for (std::size_t i = 0; i < std::min(procedures.all.size(), k_most_asked); ++i) {
    const JitObject::Procedure& procedure = procedures.all[i];
    fuzz::check(is_of_code(procedure.code) && !procedure.code.empty(), "a procedure is the file's own");
    fuzz::check(procedure.fde || !procedure.name.empty(), "something is known of a procedure");
    ask(*object, procedure.code.begin);
    if (!procedure.fde) continue;
    const auto fde = read_fde(frames, context, 0x1000 + *procedure.fde);
    fuzz::check(fde && fde->range == procedure.code, "what was written anew is read");
    FrameRow written, original;
    const Addr at = procedure.code.begin;
    fuzz::check(bool(row_at(*fde, context, at, written)), "what was written anew has rows");
    const Found found = object->find_row(at, original);
    fuzz::check(found && *found && original.cfa == written.cfa, "what was written anew says the same");
  }
  return 0;
}
