// Input: a byte, bit 0 the CPU, bit 1 words of 4 bytes, bit 2 the byte order; two bytes, the address asked about behind
// k_code; then the target's memory, the list's head first.
#include <array>

#include "jitunwind/dyn_info/target_list.h"
#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/rows/apply_row.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/support/fake_space.h"

using namespace jitunwind;

namespace {

constexpr Addr k_code = 0x40000;
constexpr Addr k_memory = 0x1000;
// Reading a list of n procedures takes n steps, and each of its regions one.
constexpr std::size_t k_most_reads = 1u << 22;

class CountedMemory final : public Memory {
 public:
  explicit CountedMemory(const Memory& target) : target_(target) {}
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override {
    ++reads;
    return target_.read(at, into, window);
  }
  mutable std::size_t reads = 0;

 private:
  const Memory& target_;
};

struct Head final : ListHead {
  Result<Addr> list_head(std::size_t number, MemoryWindow&) const noexcept override {
    return number == 0 ? k_memory : Addr{0};
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  Arch arch = *all_arches()[data[0] % all_arches().size()];
  if ((data[0] & 2) != 0) arch.word_size = 4;
  if ((data[0] & 4) != 0) arch.big_endian = true;
  const Addr at = k_code + data[1] + 256u * data[2];
  const fuzz::InputMemory input(std::as_bytes(std::span(data, size)).subspan(3), k_memory);
  const CountedMemory memory(input);
  const Head head;
  const TargetList list(head);
  const NoModules modules;
  const std::array<const RowSource*, 1> rows{&list};
  const std::array<const NameSource*, 1> names{&list};
  const AddressSpace space{arch, memory, modules, rows, names};

  MemoryWindow window;
  Lookup lookup(space, CodeAddress::interrupted(at), window);
  FrameRow row;
  const Found found = list.find_row(lookup, row);
  fuzz::check(found || *found.error().what != 0, "an error says what");
  if (found && *found) {
    // An FDE of a table may lack a CFA, and ALIAS may lead to it: such a row gives no caller.
    Caller caller;
    const bool has_cfa = row.cfa.kind != CfaRule::Kind::none;
    fuzz::check(has_cfa || !apply_row(row, RegisterFile(), arch, memory, window, caller), "a caller has a CFA");
    FrameRow copy = row;
    fuzz::check(copy.own_expressions() && copy == row, "a row keeps nothing of the target");
  }
  ProcedureInfo procedure;
  Lookup about(space, CodeAddress::interrupted(at), window);
  if (const Found known = list.find_procedure(about, procedure); known && *known)
    fuzz::check(procedure.range.contains(at), "a procedure covers what was asked about");
  std::array<char, 16> name;
  ProcedureName out;
  Lookup named(space, CodeAddress::interrupted(at), window);
  if (const Found known = list.find_name(named, name, out); known && *known)
    fuzz::check(std::memchr(name.data(), 0, name.size()) != nullptr, "a name ends");
  fuzz::check(memory.reads < k_most_reads, "the work is bounded");
  return 0;
}
