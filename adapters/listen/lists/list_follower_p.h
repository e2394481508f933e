// GDB's lists of this process (sdk/dialects/gdb_list.h), followed while engines change them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "jitunwind/sdk/dialects/gdb_list.h"
#include "jitunwind/sdk/dialects/jit_object.h"
#include "jitunwind/unwind_core/memory/process.h"
#include "jitunwind/unwind_core/modules/object_list_internal.h"

namespace jitunwind {

/// Where the objects of this process have GDB's descriptors, as far as they export them. More than there is room for
/// are left out.
class GdbDescriptors final : private ObjectVisitor {
 public:
  /// True: objects have come or gone since the last time, or this is the first. A fork waits for it.
  bool look() noexcept;
  std::span<const Addr> all() const noexcept { return {all_.data(), count_}; }
  /// Somebody but this library has one: an engine, or a library that has one in it.
  bool is_one_of_others() const noexcept { return is_one_of_others_; }

 private:
  void visit(const ListedObject& object) noexcept override;

  std::array<Addr, 32> all_{};
  std::size_t count_ = 0;
  bool is_one_of_others_ = false;
  ListVersion seen_{};
};

/// Nobody tells this library when a list changes: engines call their own function. So it looks. Memory is copied by the
/// kernel, since an engine may free it at any moment. One thread.
class ListFollower {
 public:
  ListFollower();

  /// What is new is told, and what is gone is forgotten: entries that are in no list any more, or say something else.
  /// Lists are followed where a descriptor says something else than the last time, and now and then where none does.
  /// Of an entry that is where it was the bytes are compared now and then, some 8 KiB for each call. Throws
  /// std::bad_alloc.
  void look();

 private:
  static constexpr std::uint64_t k_unread = 0;
  struct Descriptor {
    Addr at = 0;
    std::array<std::byte, 24> seen{};  // what it was when the lists were followed last
  };
  struct Told {
    GdbListEntry where;
    std::uint64_t hash = k_unread;  // of the file
    JitObject::Procedures procedures{};
    bool is_listed = true;  // in the lists that were read last
  };

  void find_descriptors();
  bool have_changed();
  void walk_lists();
  void read_list(Addr descriptor, std::vector<GdbListEntry>& newest_first);
  bool is_own(const GdbListEntry& entry) const noexcept;
  bool copy(const GdbListEntry& entry, std::vector<std::byte>& out) const;
  void tell(const GdbListEntry& entry);
  void compare_some();
  static void forget(const Told& told);
  std::map<Addr, Told>::iterator erase(std::map<Addr, Told>::iterator told);

  ProcessMemory memory_;
  GdbDescriptors objects_;
  std::vector<Descriptor> descriptors_;
  unsigned looks_ = 0;
  std::map<Addr, Told> told_;  // by the address of the entry
  Addr compared_ = 0;          // the entry that was compared last
  std::int64_t room_ = 0;      // bytes that may be compared
};

}  // namespace jitunwind
