#include "jitunwind/adapters/system_unwinder/frames/frame_tables_p.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "jitunwind/adapters/system_unwinder/frames/registered_fde_p.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/registry/observers_internal.h"
#include "jitunwind/dyn_info/registry/registry_internal.h"
#include "jitunwind/sdk/exceptions/fde_encoder_internal.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/emit/eh_frame.h"

extern "C" [[gnu::weak]] void* _Unwind_FindEnclosingFunction(void* pc);

namespace jitunwind {
namespace {

// A section in a form for two readers: a CIE, FDEs, the end. libgcc reads on from the registered begin, and skips CIEs;
// LLVM reads one FDE, and needs its address. A section that is registered by its FDE, whose CIE precedes it, serves
// both.

std::uint32_t length_at(const std::byte* entry) noexcept {
  std::uint32_t length = 0;
  std::memcpy(&length, entry, sizeof length);
  return length + 4;
}

/// The FDE in a copy of encode_fde()'s output: it is the second entry.
const std::byte* fde_of(const std::byte* cie) noexcept { return cie + length_at(cie); }

constexpr std::size_t k_probe_size = 16;
constinit std::array<std::byte, 4 * k_probe_size> probe_code{};  // the first and the third quarter have an FDE

/// The unwinder looks up the function before the address that it is given.
bool is_known(Addr begin) noexcept { return _Unwind_FindEnclosingFunction(pointer_to(begin + 1)) != nullptr; }

using ProbeSection = std::array<std::byte, 256>;

/// Offset of the first of two FDEs, one for each place; none if they cannot be made.
std::optional<std::size_t> make_probe(ProbeSection& section, Addr first, Addr second) noexcept {
  const Arch& arch = local_space().arch;
  EhFrameWriter writer(arch, section);
  writer.begin_cie({});
  const std::size_t first_fde = writer.size();
  for (const Addr begin : {first, second}) {
    writer.begin_fde({begin, begin + k_probe_size}, 0);
    if (!writer.row(0, entry_row(arch))) return std::nullopt;
    writer.end_fde();
  }
  writer.terminate();
  if (!writer.fits()) return std::nullopt;
  return first_fde;
}

/// libgcc 13 and newer have a tree of sections by the first address of their code, and ignore a section whose address
/// exists. Removal also goes by that address, so that neither is known afterwards. The ignored section is not
/// deregistered, since libgcc 13 aborts if it finds nothing.
bool replaces_sections(ProbeSection& section, std::size_t first_fde, Addr first) noexcept {
  static ProbeSection copy;
  copy = section;
  __register_frame(&copy[first_fde]);
  __deregister_frame(&section[first_fde]);
  const bool replaces = is_known(first);
  if (replaces) __deregister_frame(&copy[first_fde]);
  return replaces;
}

}  // namespace

FrameContract find_frame_contract() noexcept {
  if (&__register_frame == nullptr || &__deregister_frame == nullptr || &_Unwind_FindEnclosingFunction == nullptr)
    return FrameContract::none;
  static ProbeSection section;  // the unwinder may keep a pointer to it
  const Addr first = address_of(&probe_code[0]);
  const Addr second = address_of(&probe_code[2 * k_probe_size]);
  const auto first_fde = make_probe(section, first, second);
  if (!first_fde) return FrameContract::none;
  __register_frame(&section[*first_fde]);
  const bool knows_first = is_known(first);
  if (knows_first && is_known(second)) {
    if (!replaces_sections(section, *first_fde, first)) return FrameContract::unique_section;
    return &__register_frame_info != nullptr && &__deregister_frame_info != nullptr ? FrameContract::section
                                                                                    : FrameContract::none;
  }
  __deregister_frame(&section[*first_fde]);
  return knows_first ? FrameContract::fde : FrameContract::none;
}

/// Collects the FDEs of a procedure in sequence; an end follows each if they are announced one by one. Code that the
/// unwinder knows already was announced by another owner: a second section would be ignored, and its removal would
/// remove the first one.
class FrameTables::Collector final : public FdeReceiver {
 public:
  explicit Collector(FrameContract contract) noexcept : contract_(contract) {}

  void fde(AddrRange code, std::span<const std::byte> bytes) override {
    if (contract_ == FrameContract::unique_section && is_known(code.begin)) return;
    fdes.insert(fdes.end(), bytes.begin(), bytes.end());
    if (contract_ != FrameContract::section) fdes.resize(fdes.size() + k_end_size);
  }
  void refused(const Error& error) noexcept override { note_refusal(error); }

  Bytes fdes;

 private:
  const FrameContract contract_;
};

namespace {

/// Visits the FDEs that a Collector made to be announced one by one.
template <class Visit>
void for_each_fde(std::span<const std::byte> fdes, Visit visit) noexcept {
  for (const std::byte* cie = fdes.data(); cie != fdes.data() + fdes.size();) {
    const std::byte* const fde = fde_of(cie);
    visit(fde);
    cie = fde + length_at(fde) + k_end_size;
  }
}

}  // namespace

void FrameTables::tell(Piece& piece, Entry& entry, const Bytes& fdes) {
  if (fdes.empty()) return;
  if (contract_ == FrameContract::section) {
    entry.place = piece.section.add(fdes);
  } else {
    entry.fdes = pool_.take(fdes.size());
    std::memcpy(entry.fdes, fdes.data(), fdes.size());
    for_each_fde({entry.fdes, fdes.size()}, [](const std::byte* fde) { __register_frame(fde); });
  }
  entry.size = static_cast<std::uint32_t>(fdes.size());
}

void FrameTables::take_back(Piece& piece, Entry& entry) noexcept {
  if (entry.size == 0) return;
  if (contract_ == FrameContract::section) {
    piece.section.remove(entry.place);
  } else {
    for_each_fde({entry.fdes, entry.size}, [](const std::byte* fde) { __deregister_frame(fde); });
    pool_.give_back(entry.fdes, entry.size);
  }
  entry.size = 0;
}

void FrameTables::add(std::span<unw_dyn_info_t* const> procedures) {
  std::set<Addr> changed;
  for (unw_dyn_info_t* procedure : procedures) {
    const Addr number = procedure->start_ip >> k_piece_bits;
    Piece& piece = pieces_[number];
    Entry& entry = piece.entries[procedure->start_ip];
    take_back(piece, entry);
    Collector collector(contract_);
    encode_fdes(code_of(*procedure), collector);
    entry.key = registration_of(procedure);
    tell(piece, entry, collector.fdes);
    changed.insert(number);
  }
  for (const Addr number : changed) publish(pieces_.find(number));
}

void FrameTables::publish(Pieces::iterator piece) {
  if (contract_ == FrameContract::section) piece->second.section.publish(memory_);
  if (piece->second.entries.empty()) pieces_.erase(piece);
}

/// A procedure that is registered again is kept.
bool FrameTables::remove_if_gone(Piece& piece, Entries::iterator entry) noexcept {
  if (still_registered(entry->second.key)) return false;
  take_back(piece, entry->second);
  piece.entries.erase(entry);
  return true;
}

void FrameTables::remove(std::span<unw_dyn_info_t* const> procedures) {
  std::set<Addr> changed;
  for (const unw_dyn_info_t* procedure : procedures) {
    const auto piece = pieces_.find(procedure->start_ip >> k_piece_bits);
    if (piece == pieces_.end()) continue;
    const auto entry = piece->second.entries.find(procedure->start_ip);
    if (entry == piece->second.entries.end()) continue;
    if (remove_if_gone(piece->second, entry)) changed.insert(piece->first);
  }
  for (const Addr number : changed) publish(pieces_.find(number));
}

void FrameTables::remove_all_gone() {
  for (auto piece = pieces_.begin(); piece != pieces_.end();) {
    const auto next = std::next(piece);
    Entries& entries = piece->second.entries;
    for (auto entry = entries.begin(); entry != entries.end();) remove_if_gone(piece->second, entry++);
    publish(piece);
    piece = next;
  }
}

namespace {

/// Announces procedures to an unwinder that does not call _Unwind_Find_FDE. Never destroyed, because foreign static
/// objects cancel at exit.
class Teller final : public RegistryObserver {
 public:
  explicit Teller(FrameContract contract) noexcept : tables_(contract) {}

  void registered(std::span<const RegisteredProcedure> procedures) noexcept override {
    change([&] {
      std::vector<unw_dyn_info_t*> infos;
      for (const RegisteredProcedure& procedure : procedures) infos.push_back(procedure.info);
      tables_.add(infos);
    });
  }
  void cancelled(std::span<unw_dyn_info_t* const> procedures) noexcept override {
    change([&] { tables_.remove(procedures); });
  }
  void retired() noexcept override {
    change([&] { tables_.remove_all_gone(); });
  }

 private:
  template <class Change>
  static void change(Change change) noexcept {
    try {
      change();
    } catch (const std::bad_alloc&) {
      note_refusal({ErrorCode::out_of_memory, 0, "no memory for the unwinder's tables"});
    }
  }

  FrameTables tables_;
};

alignas(Teller) std::byte teller_memory[sizeof(Teller)];

}  // namespace

/// The first path that is found stays: once the tables exist, they are kept up to date.
void start_telling() noexcept {
  const ObserversScope scope;
  if (told_contract.load(std::memory_order_relaxed) != FrameContract::none) return;
  const FrameContract found = find_frame_contract();
  if (found == FrameContract::none) return;
  auto* const teller = new (teller_memory) Teller(found);
  told_contract.store(found, std::memory_order_release);
  (void)attach_in_scope(*teller);
}

}  // namespace jitunwind
