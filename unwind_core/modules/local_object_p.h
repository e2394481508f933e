// A loaded object that may be unloaded while it is looked at: what its memory says, copied.
#pragma once

#include <optional>
#include <span>

#include "jitunwind/unwind_core/image/module_cache_p.h"
#include "jitunwind/unwind_core/module.h"

namespace jitunwind {

/// The module at `begin`, its first mapped address. Its first page is copied in one piece, so that all of it is of the
/// same object. The module is as read_module() fills it, without path, and with Module::memory. False: no ELF and
/// program headers can be read there, or no segment of theirs covers `at`. Signal-safe.
bool copy_module(Addr begin, Addr at, Module& out) noexcept;

/// The object that a module was, for find_module_files(). Signal-safe.
class LocalObject final : public WantedObject {
 public:
  /// `modules` finds what may be unloaded without looking at it in place.
  LocalObject(const Module& module, const ModuleFinder& modules) noexcept : module_(module), modules_(modules) {}

  std::span<const std::byte> build_id() noexcept override;
  const ElfImage* image() noexcept override;
  const char* path() noexcept override;
  Addr place() noexcept override { return module_.is_lasting ? 0 : module_.range.begin; }
  bool is_still_at(Addr place, const ObjectIdentity& identity) noexcept override;

 private:
  bool is_of_it(const ElfImage& image) const noexcept;

  const Module& module_;
  const ModuleFinder& modules_;
  PathBuffer path_;
  Mapped<MemoryParts> memory_;
  std::optional<ElfImage> image_;
  bool is_looked_at_ = false;
};

}  // namespace jitunwind
