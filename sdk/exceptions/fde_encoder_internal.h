// The rows of one procedure as CIE and FDE in a record that lives as long as the procedure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "jitunwind/dyn_info/registry/derived_records_internal.h"
#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/row_source.h"

namespace jitunwind {

/// Makes a record that is not published yet. `procedure` is the description of the code at `pc` by the source of
/// registered procedures. The FDE is the procedure's. The record covers the addresses around `pc` whose rows it has:
/// all, if they are few. Code without a row has an FDE that says that the frame has no caller. Errors: that of the row
/// at `pc`; invalid_argument (call frame information cannot express it); row_too_wide; out_of_memory (the pool of
/// records is empty). Signal-safe.
Result<DerivedRecord*> encode_fde(const ProcedureInfo& procedure, Addr pc) noexcept;

/// Makes the records of all its code before an ALIAS, in one run through the rows: in ascending order, by `next`. Some
/// records may be missing, also at the ends: those after the last one if memory was exhausted. Signal-safe.
DerivedRecord* encode_stretches(const ProcedureInfo& procedure) noexcept;

/// The FDE of all procedures of the shape of this one. Its code begins at 0. The record covers the code up to a last
/// region that is counted from the procedure's end, and is never freed. Null: the procedure has no shape, a personality
/// routine or a gp; or there is no room. Signal-safe.
const DerivedRecord* find_shape_fde(const ProcedureHold& hold) noexcept;

/// The bytes of a CIE or FDE, with those of its length.
inline std::size_t entry_size(const std::byte* entry) noexcept {
  std::uint32_t length = 0;
  std::memcpy(&length, entry, sizeof length);
  return sizeof length + length;
}

/// The offsets of pointers in a CIE and its FDE, besides that to the code. 0: there is none.
struct FdePointers {
  std::size_t personality = 0, lsda = 0;
};
FdePointers pointers_of(const std::byte* cie) noexcept;

class FdeReceiver {
 public:
  /// The address at which the next bytes will lie, if their pointers are to be relative to their places; 0: absolute.
  virtual Addr place() noexcept { return 0; }
  /// A CIE followed by an FDE, which covers `code`; no end mark.
  virtual void fde(AddrRange code, std::span<const std::byte> bytes) = 0;
  virtual void refused(const Error& error) noexcept = 0;

 protected:
  ~FdeReceiver() = default;
};

/// Encodes all that registered procedures describe of `code`, in ascending order: one in table format may have many
/// FDEs, with gaps between them. Code without a description is left out. A procedure that reaches beyond `code` is cut
/// there, and its rest has no personality routine. Refused, with e_alias_depth: procedures of which ALIAS describes
/// more than 4096 instruction units. Throws the receiver's exceptions, and std::bad_alloc.
void encode_fdes(AddrRange code, FdeReceiver& receiver);

}  // namespace jitunwind
