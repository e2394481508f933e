// Rows and names of registered code in this process, and of nothing else.
#pragma once

#include <array>
#include <string>

#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/rows/row_text.h"

namespace jitunwind::test {

class RegisteredCode {
 public:
  /// Returns "dyn_directives: cfa=rsp+8 ra=[cfa-8]", "no row", or "error: " and the reason.
  std::string row_at(CodeAddress at) const {
    MemoryWindow window;
    Lookup lookup(space_, at, window);
    FrameRow row;
    const Found found = space_.find_row(lookup, row);
    if (!found) return std::string("error: ") + found.error().what;
    return *found ? std::string(origin_name(row.origin)) + ": " + to_text(row, space_.arch) : "no row";
  }
  std::string row_at(Addr pc) const { return row_at(CodeAddress::interrupted(pc)); }

  /// Returns "" if there is no name.
  std::string name_at(Addr pc) const {
    MemoryWindow window;
    Lookup lookup(space_, CodeAddress::interrupted(pc), window);
    std::array<char, 64> text{};
    ProcedureName name;
    const Found found = space_.find_name(lookup, text, name);
    return found && *found ? text.data() : "";
  }

  Result<ProcedureInfo> procedure_at(Addr pc) const {
    MemoryWindow window;
    Lookup lookup(space_, CodeAddress::interrupted(pc), window);
    ProcedureInfo info;
    const Found found = space_.find_procedure(lookup, info);
    if (!found) return found.error();
    if (!*found) return Error{ErrorCode::no_info, pc, "no procedure"};
    return info;
  }

  const AddressSpace& space() const { return space_; }

 private:
  LocalMemory memory_;
  std::array<const RowSource*, 1> rows_{&dyn_row_source()};
  std::array<const NameSource*, 1> names_{&dyn_name_source()};
  AddressSpace space_{*host_arch(), memory_, local_modules(), rows_, names_};
};

}  // namespace jitunwind::test
