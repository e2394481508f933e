// GDB's interface for code made at run time ("JIT Compilation Interface" in GDB's manual): the lists of files that a
// debugger reads, and the functions in which it has a breakpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/unwind_core/targets/tracer_internal.h"

/// The structures of the manual; version 1.
struct jit_code_entry {
  jit_code_entry* next_entry;
  jit_code_entry* prev_entry;
  const std::byte* symfile_addr;
  std::uint64_t symfile_size;
};
struct jit_descriptor {
  std::uint32_t version;
  std::uint32_t action_flag;
  jit_code_entry* relevant_entry;
  jit_code_entry* first_entry;
};
static_assert(sizeof(jit_descriptor) == 8 + 2 * sizeof(void*) && sizeof(jit_code_entry) == 3 * sizeof(void*) + 8);

namespace jitunwind {

struct JitSharedLists;

/// The entries of one copy of this library in the lists of the process's descriptors, which all copies share.
class JitInterface {
 public:
  explicit JitInterface(Tracer& tracer) noexcept : tracer_(tracer) {}

  /// Finds the descriptors. False: no memory, which is possible on the first call only. `empty_file` is copied.
  bool open(std::span<const std::byte> empty_file) noexcept;
  /// Precondition: the lists have no entry of this copy.
  void close() noexcept;
  bool is_open() const noexcept { return shared_ != nullptr; }
  /// Number of copies of this library that have the interface open, this one included.
  unsigned users() const noexcept;

  // A debugger, if there is one, has read or dropped the file when these return. They wait for the lock of the dynamic
  // linker's list of objects, which is never held while constructors run.

  void add(jit_code_entry& entry) noexcept;
  void remove(jit_code_entry& entry) noexcept;

  /// Total number of times a debugger was told.
  std::uint64_t stops() const noexcept { return stops_; }

 private:
  JitSharedLists* open_own(std::span<const std::byte> empty_file) noexcept;
  bool open_of(JitSharedLists& others) noexcept;
  void tell(std::uint32_t action, jit_code_entry& entry) noexcept;
  bool tell_lists(std::uint32_t action, jit_code_entry& entry, bool first_alone) noexcept;

  Tracer& tracer_;
  JitSharedLists* own_ = nullptr;  // made by this copy, shared by all
  JitSharedLists* shared_ = nullptr;
  std::uint64_t stops_ = 0;
};

}  // namespace jitunwind
