// The jitdumps and the perf map of this process, followed while its engines append to them.
#pragma once

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jitunwind/sdk/dialects/frames/dumped_frames.h"
#include "jitunwind/sdk/dialects/gdb_list.h"
#include "jitunwind/sdk/dialects/growing_file_internal.h"
#include "jitunwind/sdk/dialects/jit_object.h"
#include "jitunwind/sdk/dialects/jitdump.h"
#include "jitunwind/sdk/dialects/perf_map.h"
#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/memory/process.h"
#include "jitunwind/unwind_core/modules/object_list_internal.h"

namespace jitunwind {

/// Finds dumps in the same way as perf, by a page of them that is mapped as code. Used by one thread.
class DumpFollower {
 public:
  /// Reads the records since the last time, from files of the owner; new dumps are searched for once a second. Throws
  /// std::bad_alloc.
  void look(uid_t owner = ::geteuid());

 private:
  static constexpr unsigned k_looks_in_a_second = 100;
  struct Dump {
    GrowingFile file;
    JitDumpReader reader{};
  };

  /// Code with its dump's call frame information, which stays until the code is forgotten.
  struct Described {
    AddrRange code{};
    std::string name{};
    DumpedFrames frames{};
    SourceLines lines{};
    std::vector<std::byte> written{};
    std::vector<DumpedFrames::Entry> entries{};

    Addr address_of(const DumpedFrames::Entry& entry) const noexcept {
      return reinterpret_cast<std::uintptr_t>(written.data()) + entry.fde;
    }
  };

  void find_dumps();
  void hear(const JitDumpRecord& record);
  void tell(const AddrRange& code, std::string_view name, DumpedFrames&& frames, SourceLines&& lines);
  std::map<Addr, Described>::iterator forget(std::map<Addr, Described>::iterator described);
  void forget_overlapped(const AddrRange& code);
  void forget_unmapped();

  std::list<Dump> dumps_;
  std::map<Addr, Described> described_;  // by the start of the code
  WaitingLines lines_;
  Addr looked_at_ = 0;  // the start of the piece that was checked last
  unsigned looks_ = 0;
};

/// Follows /tmp/perf-PID.map. Used by one thread.
class MapFollower {
 public:
  MapFollower();

  /// Reads the lines since the last time. A file that was made anew, or truncated, is read from its start. A file of
  /// another owner is not read. Throws std::bad_alloc.
  void look(uid_t owner = ::geteuid());

 private:
  GrowingFile file_;
  PerfMapReader reader_;
};

// GDB's lists of this process (sdk/dialects/gdb_list.h), followed while engines change them.

/// Addresses of the GDB descriptors that the objects of this process export. Descriptors beyond the available room are
/// left out.
class GdbDescriptors final : private ObjectVisitor {
 public:
  /// True: objects were loaded or unloaded since the last time, or this is the first time. A fork waits for it.
  bool look() noexcept;
  std::span<const Addr> all() const noexcept { return {all_.data(), count_}; }
  /// An object other than this library has a descriptor: an engine, or a library that contains one.
  bool is_one_of_others() const noexcept { return is_one_of_others_; }

 private:
  void visit(const ListedObject& object) noexcept override;

  std::array<Addr, 32> all_{};
  std::size_t count_ = 0;
  bool is_one_of_others_ = false;
  ListVersion seen_{};
};

/// Changes of a list are not announced to this library: engines call their own function. The lists are therefore
/// polled. The kernel copies the memory, since an engine may free it at any moment. Used by one thread.
class ListFollower {
 public:
  ListFollower();

  /// Registers new entries, and forgets those that are in no list any more, or have changed. Lists are followed if a
  /// descriptor has changed since the last time, and otherwise periodically. The bytes of unchanged entries are
  /// compared in turn, some 8 KiB for each call. Throws std::bad_alloc.
  void look();

 private:
  static constexpr std::uint64_t k_unread = 0;
  struct Descriptor {
    Addr at = 0;
    std::array<std::byte, 24> seen{};  // its bytes when the lists were followed last
  };
  struct Told {
    GdbListEntry where;
    std::uint64_t hash = k_unread;  // of the file
    JitObject::Procedures procedures{};
    bool is_listed = true;  // in the lists of the last reading
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
