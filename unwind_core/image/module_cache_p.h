// The files of the modules of this process, opened once and kept as long as the modules are loaded.
#pragma once

#include <cstdint>

#include "jitunwind/unwind_core/image/module_files_internal.h"

namespace jitunwind {

/// The identity of an object is its whole build ID. An object without a build ID is identified by its program headers,
/// by the first page of each read-only segment, and by the file that its path names now.
struct ObjectIdentity {
  std::uint64_t hash = 0;
  std::size_t id_size = 0;  ///< size of the build ID, which may be longer than `id`; the hash covers all of it
  std::array<std::byte, 32> id{};
  FileIdentity file{};  ///< only for objects without a build ID
  friend bool operator==(const ObjectIdentity&, const ObjectIdentity&) = default;
};

/// The object whose files are wanted. A lookup asks only for the properties that it needs.
class WantedObject {
 public:
  /// The build ID is empty when the object has none or it cannot be read.
  virtual std::span<const std::byte> build_id() noexcept = 0;
  /// The object's image in memory. It is null when it cannot be read; the file at the path is then trusted.
  virtual const ElfImage* image() noexcept = 0;
  /// The path is null when it is not known.
  virtual const char* path() noexcept = 0;
  /// The object's load address, by which its files can be forgotten after it is unloaded; 0 if it is never unloaded.
  virtual Addr place() noexcept = 0;
  /// Whether an object of that identity is still loaded at the place of an object that was wanted before.
  virtual bool is_still_at(Addr place, const ObjectIdentity& identity) noexcept = 0;

 protected:
  ~WantedObject() = default;
};

/// There is no identity when the object has no build ID and its path leads to no file.
std::optional<ObjectIdentity> identity_of(WantedObject& object) noexcept;

/// The files of one module, which stay as long as this lease lives.
class ModuleFilesLease {
 public:
  ModuleFilesLease() noexcept = default;
  ~ModuleFilesLease() { give_back(kept_); }
  ModuleFilesLease(ModuleFilesLease&& other) noexcept
      : kept_(std::exchange(other.kept_, nullptr)), own_(std::move(other.own_)) {}
  ModuleFilesLease& operator=(ModuleFilesLease&& other) noexcept {
    std::swap(kept_, other.kept_);
    std::swap(own_, other.own_);
    return *this;
  }

  /// Returns null when there is no such file, or when the file is not the one that is loaded.
  const ModuleFiles* files() const noexcept;
  bool is_kept() const noexcept { return kept_ != nullptr; }

  /// Returns the lease of files that are kept (is_kept()) as a word; give_back() ends it.
  void* take() noexcept { return std::exchange(kept_, nullptr); }
  static void give_back(void* kept) noexcept;

 private:
  friend ModuleFilesLease find_module_files(WantedObject& object) noexcept;
  void* kept_ = nullptr;
  Mapped<ModuleFiles> own_;
};

/// Finds the files of an object by the contents of its memory, not by its address. Files are kept under the identity of
/// the loaded object, and every lookup compares the identities. When dlclose and dlopen put another object at the same
/// address, no old answers are given, and the same library at another address gives the same files. Failures are not
/// kept.
///
/// Each lookup also checks for some of the modules with kept files whether they are still loaded. The files of an
/// unloaded module are dropped after at most k_lookups_to_forget lookups, or k_openings_to_forget lookups that open
/// files. Leased files stay. There is room for 4096 files; while it is full, further files are opened anew by every
/// lookup.
///
/// Thread-safe and signal-safe, without locks: nobody waits.
ModuleFilesLease find_module_files(WantedObject& object) noexcept;

inline constexpr std::size_t k_lookups_to_forget = 1024;
inline constexpr std::size_t k_openings_to_forget = 16;

}  // namespace jitunwind
