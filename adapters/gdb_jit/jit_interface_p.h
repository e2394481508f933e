// GDB's interface for code made at run time ("JIT Compilation Interface" in GDB's manual): the list of files that a
// debugger reads, and the function in which it has a breakpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dyn_info/writer_lock_p.h"
#include "unwind_core/error.h"

/// As the manual has them; version 1.
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
static_assert(sizeof(jit_descriptor) == 24 && sizeof(jit_code_entry) == 32);

namespace jitunwind {

/// The copies of this library that use one descriptor.
struct JitDebugUsers {
  WriterLock lock;  // of the list
  std::uint32_t count = 0;
};

/// One process may have several definitions: this library's, a second copy's, LLVM's. Debuggers differ in which they
/// read (LLDB and GDB before 12: one), so all of us use the one that comes first in the dynamic linker's search order.
///
/// Other libraries know nothing of our lock. So our entries live between two empty ones that never move: after those
/// are in the list, others change nothing that we change, nor we anything of theirs, but for what tells the debugger.
class JitInterface {
 public:
  constexpr JitInterface() noexcept = default;

  /// Finds the descriptor, puts the two in. `empty_file` must stay.
  void open(std::span<const std::byte> empty_file) noexcept;
  /// Takes them out. Precondition: nothing else of ours is in the list.
  void close() noexcept;
  bool is_open() const noexcept { return descriptor_ != nullptr; }
  /// Copies of this library that have it open, this one included.
  unsigned users() const noexcept;

  // The debugger, if there is one, has read or forgotten the file when these return.

  void add(jit_code_entry& entry) noexcept;
  void remove(jit_code_entry& entry) noexcept;

  /// How often a debugger has been told, in all.
  std::uint64_t stops() const noexcept { return stops_; }

 private:
  void find() noexcept;
  void tell(std::uint32_t action, jit_code_entry& entry) noexcept;

  jit_descriptor* descriptor_ = nullptr;
  void (*breakpoint_)() = nullptr;
  JitDebugUsers* users_ = nullptr;
  jit_code_entry first_{};
  jit_code_entry last_{};
  std::uint64_t stops_ = 0;
};

}  // namespace jitunwind
