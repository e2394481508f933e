// Asks the engine for the names of this process's code.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/sources/sources.h"

namespace jitunwind::test {

struct LocalName {
  std::string text;
  Addr start = 0;
  std::size_t length = 0;
  bool truncated = false;
};

/// Returns nothing if there is no name, and "error: ..." for an error, which fails the expectation.
inline std::optional<LocalName> local_name(CodeAddress at, std::size_t buffer_size = 4096) {
  static const LocalMemory memory;
  static const std::array<const NameSource*, 1> sources{&elf_name_source()};
  const AddressSpace space{*host_arch(), memory, local_modules(), {}, sources};
  MemoryWindow window;
  Lookup lookup(space, at, window);
  std::array<char, 4096> buffer;
  buffer.fill('?');
  ProcedureName name;
  const Found found = space.find_name(lookup, std::span(buffer).first(buffer_size), name);
  if (!found) return LocalName{std::string("error: ") + found.error().what};
  if (!*found) return std::nullopt;
  return LocalName{buffer.data(), name.start, name.length, name.truncated};
}

inline std::optional<LocalName> local_name(Addr at) { return local_name(CodeAddress::interrupted(at)); }

/// Returns "" if there is no name.
inline std::string local_name_text(Addr at) {
  const auto name = local_name(at);
  return name ? name->text : "";
}

}  // namespace jitunwind::test
