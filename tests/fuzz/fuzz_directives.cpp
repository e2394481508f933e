// Input: a byte, bit 0 the CPU; two bytes, the length in instruction units; then regions and directives:
//   0x80 count16              the next region
//   tag reg when16 0 value16  a directive; reg 8 bits, values signed and little-endian
//   tag reg when16 1 value64
//   tag reg when16 2          with UNW_DYN_ADD_UNKNOWN
#include <algorithm>
#include <string>

#include "jitunwind/dyn_info/directives/directive_run_internal.h"
#include "jitunwind/unwind_core/byte_reader.h"
#include "tests/directives/naive_directives.h"
#include "tests/fuzz/fuzz_check.h"

using namespace jitunwind;

namespace {

constexpr Addr k_code = 0x40000;
// The plain reading keeps all states; within these limits it ends in time.
constexpr std::size_t k_max_list = 100;
constexpr std::uint64_t k_max_offsets = 12;

struct Input {
  const Arch* arch = nullptr;
  std::uint64_t size = 0;
  std::vector<rows::CaseRegion> regions;
  bool has_alias = false;
};

Input decode(std::span<const std::byte> bytes) {
  ByteReader reader(bytes, false);
  Input input;
  input.arch = all_arches()[reader.u8() % all_arches().size()];
  input.size = std::uint64_t{reader.u16()} * input.arch->unit;
  for (std::size_t n = 0; !reader.at_end() && n < k_max_list; ++n) {
    const auto tag = static_cast<std::int8_t>(reader.u8());
    if (tag == -0x80) {
      input.regions.push_back({static_cast<std::int16_t>(reader.u16()), {}, 0, -1});
      continue;
    }
    const int reg = reader.u8();
    const int when = static_cast<std::int16_t>(reader.u16());
    const unsigned kind = reader.u8();
    const auto value = kind == 0   ? static_cast<unw_word_t>(static_cast<std::int16_t>(reader.u16()))
                       : kind == 1 ? static_cast<unw_word_t>(reader.u64())
                                   : UNW_DYN_ADD_UNKNOWN;
    if (!reader.ok()) break;
    if (input.regions.empty()) input.regions.push_back({0, {}, 0, -1});
    input.regions.back().ops.push_back(_U_dyn_op(tag, 0, when, reg, value));
    input.has_alias |= tag == UNW_DYN_ALIAS;
  }
  return input;
}

/// Delivers three directives at a time.
class Pieces final : public RegionReader {
 public:
  Status read_header(Addr at, RegionHeader& out) const noexcept override { return local_.read_header(at, out); }
  Result<std::span<const unw_dyn_op_t>> read_ops(const RegionHeader& region, std::uint32_t first,
                                                 std::span<unw_dyn_op_t> buffer) const noexcept override {
    const auto all = local_.read_ops(region, first, {});
    const std::size_t n = std::min<std::size_t>(all->size(), 3);
    std::copy_n(all->begin(), n, buffer.begin());
    return std::span<const unw_dyn_op_t>(buffer.first(n));
  }

 private:
  LocalRegionReader local_;
};

void check_row(const Input& input, const rows::CaseProcedure& procedure, std::uint64_t offset,
               const std::vector<Finding>& findings) {
  const unw_dyn_info_t& info = procedure.info();
  FrameRow row;
  const Status status = directive_row(info, *input.arch, CodeAddress::interrupted(k_code + offset), nullptr, row);
  if (status) {
    fuzz::check(row.range.contains(k_code + offset), "a row holds where it was asked for");
  } else if (status.error().code != ErrorCode::no_info) {
    const auto is_it = [&](const Finding& f) { return f.code == status.error().code; };
    fuzz::check(std::any_of(findings.begin(), findings.end(), is_it), "what ends a look-up is found beforehand");
  }
  if (input.has_alias) return;
  const auto naive = test::naive_row(*input.arch, input.size, input.regions, offset, false);
  fuzz::check(status ? naive.error == ErrorCode::unspecified && row == naive.row : status.error().code == naive.error,
              "the plain reading says the same");
  DirectiveOutcome pieces(*input.arch);
  const Addr first = reinterpret_cast<std::uintptr_t>(info.u.pi.regions);
  const Status read =
      run_directives(Pieces(), first, {info.start_ip, info.end_ip}, *input.arch, k_code + offset, pieces);
  FrameRow same;
  fuzz::check((read && make_row(pieces, same)) == status.has_value() && (!status || same == row),
              "it does not matter where regions are read from");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const Input input = decode(std::as_bytes(std::span(data, size)));
  const rows::CaseProcedure procedure(input.regions, {k_code, k_code + input.size});
  const std::vector<Finding> findings = validate(procedure.info(), *input.arch);
  for (const Finding& f : findings) fuzz::check(!f.text().empty(), "a finding says something");
  const std::uint64_t units = input.size / input.arch->unit;
  for (std::uint64_t unit = 0; unit < units; unit += 1 + units / k_max_offsets)
    check_row(input, procedure, unit * input.arch->unit, findings);
  return 0;
}
