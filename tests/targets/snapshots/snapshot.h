// A moment of a program of another CPU, as text: its registers, the bytes that a walk reads, and the stack that the
// program's own unwinder has seen.
//   cpu s390x big
//   map 1000000-1012000 r-xp 0 01:01 1 /program
//   ucontext 0000...            the kernel's ucontext_t of the signal
//   memory 40007ff8a8 0000...
//   zeros 40007ff8c8 1000      bytes whose values a walk does not depend on, though it reads them
//   frame 101b662 40007ff7f8    ip and CFA of libgcc's _Unwind_Backtrace, innermost first; on ARM it tells no CFA
//   frame 40008011e 0 framed    the same of code that was made at run time, and its name
//   sp 40007ff7f8               or, where that tells none, SP by the chain that the CPU's ABI demands
//   kept b 3333                 what a register that calls preserve held in that frame, by libgcc
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "jitunwind/unwind_core/rows/registers.h"
#include "jitunwind/unwind_core/targets/mappings.h"

namespace jitunwind::test {

struct SnapshotFrame {
  Addr ip = 0;         ///< 0: only SP is known
  Addr sp = 0;         ///< 0: only IP is known
  std::string name{};  ///< "": nobody has told
  std::vector<std::pair<RegNum, Addr>> kept{};
};

struct Snapshot {
  struct Part {
    Addr at;
    std::vector<std::byte> bytes;
  };

  /// Throws std::runtime_error if the text is no snapshot.
  static Snapshot parse(std::istream& text);

  /// Reads the registers from the ucontext_t by the table's offsets.
  RegisterFile registers() const;

  Arch arch = *host_arch();
  std::string maps;
  std::vector<std::byte> ucontext;
  std::vector<Part> memory;
  std::vector<SnapshotFrame> frames;
};

/// Returns the snapshots of this folder, sorted.
std::vector<std::string> snapshot_names();
Snapshot load_snapshot(const std::string& name);

/// The parts of a snapshot, and nothing else.
class SnapshotMemory final : public Memory {
 public:
  explicit SnapshotMemory(const std::vector<Snapshot::Part>& parts) : parts_(parts) {}
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override;

 private:
  const std::vector<Snapshot::Part>& parts_;
};

/// Walks the snapshot to its end. Returns the differences from the expected walk as text; "" if there are none.
std::string walk_of(const Snapshot& snapshot, const Memory& memory);

}  // namespace jitunwind::test
