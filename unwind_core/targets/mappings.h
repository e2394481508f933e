// The mappings of a target in the terms of proc_pid_maps(5): by the kernel for a live process, by NT_FILE and the
// segments of a core file, or by the author of a sample.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/memory/memory.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The kernel's name of the object that it maps into every process: vdso(7).
inline constexpr std::string_view k_kernels_object = "[vdso]";

/// A line of /proc/PID/maps, or its equivalent in a core file.
struct Mapping {
  AddrRange range{};
  std::uint64_t offset = 0;  ///< in the file, bytes
  std::string path{};  ///< the target's name for it; "" for anonymous memory, "[stack]" and others for the kernel's
  std::uint64_t device = 0;  ///< 0, like the inode, if they are not known
  std::uint64_t inode = 0;
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool shared = false;     ///< what is written is seen by others that have it
  bool deleted = false;    ///< the file does not have this name any more
  std::string build_id{};  ///< build id of the file, as bytes; "": not known by the mapping
  friend bool operator==(const Mapping&, const Mapping&) = default;

  /// The path as the kernel shows it: " (deleted)" after it means that, unless it is the end of the name.
  void set_shown_path(std::string_view shown);
  std::string shown_path() const;
  bool is_of_file() const noexcept { return !path.empty() && path.front() != '['; }
  /// All that it says of its file.
  auto file() const noexcept { return std::tie(path, deleted, device, inode, build_id); }
  /// Whether both may be of one file. Some mappings of a file may say more of it than others do: perf gives the build
  /// id of one in place of its device and inode.
  bool same_file(const Mapping& other) const noexcept {
    const bool know_inodes = inode != 0 && other.inode != 0, know_ids = !build_id.empty() && !other.build_id.empty();
    return path == other.path && deleted == other.deleted &&
           (!know_inodes || (device == other.device && inode == other.inode)) &&
           (!know_ids || build_id == other.build_id);
  }
};

/// Mappings in ascending order without overlaps. Immutable once made.
class Mappings {
 public:
  /// Further ones are left out: no kernel lets a process have more without a setting (vm.max_map_count).
  static constexpr std::size_t k_most = std::size_t{1} << 20;
  static constexpr std::size_t k_none = ~std::size_t{0};

  Mappings() = default;
  /// The order is free. The first of overlapping mappings is kept. Empty ones are left out.
  explicit Mappings(std::vector<Mapping> mappings);
  /// Parses the text of /proc/PID/maps. Invalid lines are left out.
  static Mappings parse(std::string_view maps);

  /// k_none: nothing is mapped there.
  std::size_t index_of(Addr at) const noexcept;
  const Mapping* find(Addr at) const noexcept {
    const std::size_t index = index_of(at);
    return index == k_none ? nullptr : &all_[index];
  }
  /// The mapping of the kernel's object; null: none.
  const Mapping* kernels_object() const noexcept;
  const std::vector<Mapping>& all() const noexcept { return all_; }
  friend bool operator==(const Mappings&, const Mappings&) = default;

 private:
  std::vector<Mapping> all_;
};

/// Another memory, with executable ranges by the mappings. Both must outlive it.
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
