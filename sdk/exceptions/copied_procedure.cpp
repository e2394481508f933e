#include "jitunwind/sdk/exceptions/copied_procedure_internal.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/dialects/jitdump_format_internal.h"
#include "jitunwind/sdk/exceptions/fde_encoder_internal.h"
#include "jitunwind/sdk/local_space.h"

namespace jitunwind {
namespace {

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
