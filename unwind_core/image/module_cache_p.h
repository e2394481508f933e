// The files of the modules of this process, opened once and kept for as long as those are loaded.
#pragma once

#include <cstdint>

#include "jitunwind/unwind_core/image/module_files_internal.h"

namespace jitunwind {

/// What tells an object from others: all of its build id; of one without its program headers, the first page of each
/// read-only segment, and the file that its path names now.
struct ObjectIdentity {
  std::uint64_t hash = 0;
  std::size_t id_size = 0;  ///< of its build id, which may be longer than what is kept of it besides the hash
  std::array<std::byte, 32> id{};
  FileIdentity file{};  ///< of objects without build id
  friend bool operator==(const ObjectIdentity&, const ObjectIdentity&) = default;
};

/// The object whose files are wanted: of what it says no more is looked at than is needed.
class WantedObject {
 public:
  /// Empty: it has none, or it cannot be read.
  virtual std::span<const std::byte> build_id() noexcept = 0;
  /// As it is in memory; null: it cannot be read, and the path is believed.
  virtual const ElfImage* image() noexcept = 0;
  /// Null: not known.
  virtual const char* path() noexcept = 0;
  /// Where it is loaded, so that its files can be forgotten when it is not there any more; 0: it stays.
  virtual Addr place() noexcept = 0;
  /// Whether there is an object of that identity at the place of one that was wanted before.
  virtual bool is_still_at(Addr place, const ObjectIdentity& identity) noexcept = 0;

 protected:
  ~WantedObject() = default;
};

/// None: it has no build id, and its path leads to no file.
std::optional<ObjectIdentity> identity_of(WantedObject& object) noexcept;

/// Files of one module, which stay for as long as this lives.
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

  /// Null: there is no such file, or it is not the one loaded.
  const ModuleFiles* files() const noexcept;
  bool is_kept() const noexcept { return kept_ != nullptr; }

  /// The lease of what is_kept() as a word, for give_back() to end it.
  void* take() noexcept { return std::exchange(kept_, nullptr); }
  static void give_back(void* kept) noexcept;

 private:
  friend ModuleFilesLease find_module_files(WantedObject& object) noexcept;
  void* kept_ = nullptr;
  Mapped<ModuleFiles> own_;
};

/// What is in memory decides, not where it is: files are kept under the identity of the loaded object and are compared
/// with it at every look-up, so that dlclose and dlopen of something else at the same address cannot give old answers,
/// and the same library anywhere else gives the same files. Failures are not kept.
///
/// Each look-up also looks whether some of the modules that files are kept of are still there: those of unloaded ones
/// are gone after k_lookups_to_forget more look-ups, or k_openings_to_forget that open files. What is leased stays.
/// There is room for 4096 files; what comes while it is full is opened anew for every look-up.
///
/// Thread-safe, signal-safe, without locks: nobody waits.
ModuleFilesLease find_module_files(WantedObject& object) noexcept;

inline constexpr std::size_t k_lookups_to_forget = 1024;
inline constexpr std::size_t k_openings_to_forget = 16;

}  // namespace jitunwind
