#include "jitunwind/sdk/exceptions/copied_procedure_internal.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/dialects/jitdump_format_internal.h"
#include "jitunwind/sdk/exceptions/fde_encoder_internal.h"
#include "jitunwind/sdk/exceptions/fde_writer_p.h"
#include "jitunwind/sdk/local_space.h"

namespace jitunwind {
namespace {

using Outcome = FdeWriter::Outcome;

/// The end of the code at `at`, if it is known by its name alone; 0: it is described, or unknown.
Addr end_of_named(Addr at) noexcept {
  const ProcedureHold hold(at);
  const unw_dyn_info_t* const info = hold.info();
  return info != nullptr && info->format == UNW_INFO_FORMAT_IP_OFFSET && info->u.rti.table_len == 0 ? info->end_ip : 0;
}

/// Encodes all rows of the procedure, in a buffer that grows.
Status encode_whole(const ProcedureInfo& procedure, Addr place, std::vector<std::byte>& buffer) {
  for (Slots slots = Slots::of_words;;) {
    FdeWriter writer(procedure, procedure.range, procedure.range.begin, slots, buffer, SIZE_MAX, place);
    switch (writer.write()) {
      case Outcome::written:
        if (writer.fits()) return Done{};
        buffer.resize(writer.size());
        break;
      case Outcome::other_slots:
        if (slots == Slots::of_bytes)
          return Error{ErrorCode::invalid_argument, 0, "call frame information cannot say this"};
        slots = Slots::of_bytes;
        break;
      case Outcome::too_long:
      case Outcome::failed:
        return writer.error();
    }
  }
}

class CfiCollector final : public FdeReceiver {
 public:
  CfiCollector(CopiedProcedure& into, Addr from) noexcept : into_(into), from_(from) {}
  Addr place() noexcept override { return from_ == 0 ? 0 : from_ + into_.cfi.size(); }
  /// The CIE's length, which is in its first four bytes, counts from behind them.
  void fde(AddrRange code, std::span<const std::byte> bytes) override {
    std::uint32_t cie_size = 0;
    std::memcpy(&cie_size, bytes.data(), sizeof cie_size);
    into_.entries.push_back({code.begin, into_.cfi.size() + sizeof cie_size + cie_size});
    into_.cfi.insert(into_.cfi.end(), bytes.begin(), bytes.end());
  }
  void refused(const Error& error) noexcept override { into_.not_encoded = error; }

 private:
  CopiedProcedure& into_;
  const Addr from_;
};

}  // namespace

/// Code alignment, data alignment and the length of the augmentation data are one byte each.
FdePointers pointers_of(const std::byte* cie) noexcept {
  constexpr std::size_t k_version = 8, k_augmentation = 9, k_words_of_fde = 24, k_length = 1, k_encoding = 1;
  const auto* const augmentation = reinterpret_cast<const char*>(cie) + k_augmentation;
  if (augmentation[1] != 'P') return {};
  const std::size_t column = cie[k_version] == std::byte{1} ? 1 : 2;
  return {k_augmentation + std::strlen(augmentation) + 1 + 2 + column + k_length + k_encoding,
          augmentation[2] == 'L' ? entry_size(cie) + k_words_of_fde + k_length : 0};
}

void encode_fdes(AddrRange code, FdeReceiver& receiver) {
  const Addr unit = local_space().arch.unit;
  std::vector<std::byte> buffer(1024);
  for (Addr at = code.begin; at < code.end;) {
    MemoryWindow window;
    Lookup lookup(local_space(), CodeAddress::interrupted(at), window);
    ProcedureInfo info;
    const Found found = dyn_row_source().find_procedure(lookup, info);
    if (!found) return receiver.refused({found.error().code, at, found.error().what});
    if (!*found || !info.range.contains(at)) {
      at = std::max(at + unit, end_of_named(at));
      continue;
    }
    if (info.range.begin < code.begin) info.handler = 0;  // its data count from the procedure's begin
    info.range = {std::max(info.range.begin, code.begin), std::min(info.range.end, code.end)};
    at = info.range.end;
    if (const Status encoded = encode_whole(info, receiver.place(), buffer); !encoded) {
      receiver.refused({encoded.error().code, info.range.begin, encoded.error().what});
      continue;
    }
    const std::byte* const cie = buffer.data();
    const std::size_t size = entry_size(cie) + entry_size(cie + entry_size(cie));
    receiver.fde(info.range, {cie, size});
  }
}

std::string registered_name(Addr at) {
  std::array<char, 4096> name;
  MemoryWindow window;
  Lookup lookup(local_space(), CodeAddress::interrupted(at), window);
  ProcedureName found;
  const Found known = dyn_name_source().find_name(lookup, name, found);
  if (!known || !*known) return {};
  return name.data();
}

std::optional<CopiedProcedure> copy_registered(const RegisteredProcedure& procedure, CfiPointers pointers) {
  CopiedProcedure read;
  {
    const ProcedureHold hold(procedure.key);
    if (hold.info() == nullptr) return std::nullopt;
    read.code = code_of(*hold.info());
  }
  // The hold is released, because sources of rows may wait for the dynamic linker.
  read.name = registered_name(read.code.begin);
  const bool are_behind = pointers == CfiPointers::from_behind_the_code;
  CfiCollector collector(read, are_behind ? jitdump::frames_behind(read.code.begin, read.code.end) : 0);
  encode_fdes(read.code, collector);
  if (!still_registered(procedure.key)) return std::nullopt;
  return read;
}

}  // namespace jitunwind
