// What is mapped where in a target, in the words of proc_pid_maps(5): by the kernel for a live process, by NT_FILE and
// the segments of a core file, or by whoever took a sample.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/memory/memory.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// What the kernel calls the object that it maps into every process: vdso(7).
inline constexpr std::string_view k_kernels_object = "[vdso]";

/// A line of /proc/PID/maps, or what a core file has in its place.
struct Mapping {
  AddrRange range{};
  std::uint64_t offset = 0;  ///< in the file, bytes
  std::string path{};        ///< as the target names it; "" of anonymous memory, "[stack]" and the like of the kernel's
  std::uint64_t device = 0;  ///< together with the inode 0 where they are not known
  std::uint64_t inode = 0;
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool deleted = false;    ///< the file has this name no more
  std::string build_id{};  ///< of the file, as bytes; "": not known by the mapping
  friend bool operator==(const Mapping&, const Mapping&) = default;

  /// As the kernel shows it: " (deleted)" behind the path says that, unless it is the end of the name.
  void set_shown_path(std::string_view shown);
  std::string shown_path() const;
  bool is_of_file() const noexcept { return !path.empty() && path.front() != '['; }
  bool same_file(const Mapping& other) const noexcept {
    return path == other.path && device == other.device && inode == other.inode;
  }
};

/// Ascending, and no two overlap. Immutable once made.
class Mappings {
 public:
  /// More are left out: no kernel lets a process have them without being told to (vm.max_map_count).
  static constexpr std::size_t k_most = std::size_t{1} << 20;
  static constexpr std::size_t k_none = ~std::size_t{0};

  Mappings() = default;
  /// Any order; of those that overlap the first is kept. Empty ones are left out.
  explicit Mappings(std::vector<Mapping> mappings);
  /// The text of /proc/PID/maps. A line that is none is left out.
  static Mappings parse(std::string_view maps);

  /// k_none: nothing is mapped there.
  std::size_t index_of(Addr at) const noexcept;
  const Mapping* find(Addr at) const noexcept {
    const std::size_t index = index_of(at);
    return index == k_none ? nullptr : &all_[index];
  }
  const std::vector<Mapping>& all() const noexcept { return all_; }
  friend bool operator==(const Mappings&, const Mappings&) = default;

 private:
  std::vector<Mapping> all_;
};

/// Another memory, of which the mappings tell what may be executed. Both must outlive it.
class MappedMemory final : public Memory {
 public:
  MappedMemory(const Memory& memory, const Mappings& mappings) noexcept : memory_(memory), mappings_(mappings) {}
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override {
    return memory_.read(at, into, window);
  }
  bool tells_executable() const noexcept override { return true; }
  std::optional<bool> is_executable(Addr at, MemoryWindow&) const noexcept override {
    const Mapping* const mapping = mappings_.find(at);
    return mapping != nullptr && mapping->executable;
  }
  bool write(Addr at, std::span<const std::byte> from, MemoryWindow& window) const noexcept override {
    return memory_.write(at, from, window);
  }

 private:
  const Memory& memory_;
  const Mappings& mappings_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
