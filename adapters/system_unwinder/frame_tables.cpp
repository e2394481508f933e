#include "adapters/system_unwinder/frame_tables_p.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "adapters/system_unwinder/level_one_p.h"
#include "adapters/system_unwinder/refusals_p.h"
#include "adapters/system_unwinder/register_frame_p.h"
#include "dyn_info/directives.h"
#include "dyn_info/system_unwinder_seam_p.h"
#include "sdk/fde_encoder_p.h"
#include "sdk/local_space.h"
#include "unwind_core/emit/eh_frame.h"

extern "C" [[gnu::weak]] void* _Unwind_FindEnclosingFunction(void* pc);

namespace jitunwind {
namespace {

// A section as two readers want it: a CIE, FDEs, the end. libgcc reads on from where it is told to begin, and skips
// CIEs; LLVM reads one FDE, and wants its place. A section that begins with an FDE, whose CIE stands before it, is
// both.

std::uint32_t length_at(const std::byte* entry) noexcept {
  std::uint32_t length = 0;
  std::memcpy(&length, entry, sizeof length);
  return length + 4;
}

constexpr std::ptrdiff_t k_end_size = 4;

/// The FDE in a copy of what encode_fde() wrote: it is the second entry.
const std::byte* fde_of(const std::vector<std::byte>& bytes) noexcept { return bytes.data() + length_at(bytes.data()); }

constexpr std::size_t k_probe_size = 16;
constinit std::array<std::byte, 4 * k_probe_size> probe_code{};  // the first and the third quarter have an FDE

bool is_known(const std::byte* begin) noexcept {
  return _Unwind_FindEnclosingFunction(pointer_to(address_of(begin + k_probe_size / 2))) == begin;
}

}  // namespace

FrameContract find_frame_contract() noexcept {
  if (&__register_frame == nullptr || &__deregister_frame == nullptr || &_Unwind_FindEnclosingFunction == nullptr)
    return FrameContract::none;
  const Arch& arch = local_space().arch;
  static std::array<std::byte, 256> section;  // the unwinder may keep it in mind
  EhFrameWriter writer(arch, section);
  writer.begin_cie({});
  const std::size_t first_fde = writer.size();
  for (const std::size_t quarter : {std::size_t{0}, std::size_t{2}}) {
    const Addr begin = address_of(&probe_code[quarter * k_probe_size]);
    writer.begin_fde({begin, begin + k_probe_size}, 0);
    if (!writer.row(0, entry_row(arch))) return FrameContract::none;
    writer.end_fde();
  }
  writer.terminate();
  if (!writer.fits()) return FrameContract::none;
  __register_frame(&section[first_fde]);
  const bool first = is_known(&probe_code[0]);
  const bool second = is_known(&probe_code[2 * k_probe_size]);
  __deregister_frame(&section[first_fde]);
  if (!first) return FrameContract::none;
  if (!second) return FrameContract::fde;
  return &__register_frame_info != nullptr && &__deregister_frame_info != nullptr ? FrameContract::section
                                                                                  : FrameContract::none;
}

/// One section a FDE: each behind its CIE, in front of an end mark.
class FrameTables::Collector final : public FdeReceiver {
 public:
  void fde(AddrRange, std::span<const std::byte> bytes) override {
    Bytes& section = fdes.emplace_back(bytes.begin(), bytes.end());
    section.resize(section.size() + k_end_size);
  }
  void refused(const Error& error) noexcept override { note_refusal(error); }

  std::vector<Bytes> fdes;
};

std::vector<FrameTables::Bytes> FrameTables::encode(const unw_dyn_info_t& procedure) {
  Collector collector;
  encode_fdes({procedure.start_ip, procedure.end_ip}, collector);
  return std::move(collector.fdes);
}

void FrameTables::tell(Piece& piece, Entry& entry, std::vector<Bytes> fdes) const {
  if (contract_ == FrameContract::fde) {
    entry.fdes = std::move(fdes);
    for (const Bytes& fde : entry.fdes) __register_frame(fde_of(fde));
    return;
  }
  Bytes all;
  for (const Bytes& fde : fdes) all.insert(all.end(), fde.begin(), fde.end() - k_end_size);
  if (!all.empty()) entry.place = piece.section.add(std::move(all));
}

void FrameTables::take_back(Piece& piece, const Entry& entry) {
  for (const Bytes& fde : entry.fdes) __deregister_frame(fde_of(fde));
  if (entry.place) piece.section.remove(*entry.place);
}

void FrameTables::add(std::span<unw_dyn_info_t* const> procedures) {
  std::set<Addr> changed;
  for (unw_dyn_info_t* procedure : procedures) {
    std::vector<Bytes> fdes = encode(*procedure);
    const Addr number = procedure->start_ip >> k_piece_bits;
    Piece& piece = pieces_[number];
    Entry& entry = piece.entries[procedure->start_ip];
    take_back(piece, entry);
    entry = {registration_of(procedure), {}, {}};
    tell(piece, entry, std::move(fdes));
    changed.insert(number);
  }
  if (contract_ == FrameContract::section)
    for (const Addr number : changed) pieces_[number].section.publish(objects_);
}

/// True: some were.
bool FrameTables::remove_gone(Piece& piece) {
  const std::size_t gone = std::erase_if(piece.entries, [&](const auto& entry) {
    if (still_registered(entry.second.key)) return false;
    take_back(piece, entry.second);
    return true;
  });
  if (gone != 0 && contract_ == FrameContract::section) piece.section.publish(objects_);
  return gone != 0;
}

void FrameTables::remove(std::span<unw_dyn_info_t* const> procedures) {
  std::set<Addr> touched;
  for (const unw_dyn_info_t* procedure : procedures) touched.insert(procedure->start_ip >> k_piece_bits);
  for (const Addr number : touched) {
    const auto piece = pieces_.find(number);
    if (piece != pieces_.end() && remove_gone(piece->second) && piece->second.entries.empty()) pieces_.erase(piece);
  }
}

void FrameTables::remove_all_gone() {
  for (auto piece = pieces_.begin(); piece != pieces_.end();) {
    remove_gone(piece->second);
    piece = piece->second.entries.empty() ? pieces_.erase(piece) : std::next(piece);
  }
}

}  // namespace jitunwind
