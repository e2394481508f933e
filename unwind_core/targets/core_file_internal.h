// A core file: core(5), elf(5), and what the kernel (fs/binfmt_elf.c) and GDB's gcore write into one. Of the machine
// that it was made on, whichever that is. Untrusted, and cut anywhere: what is not there is absent.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/image/copied_parts_p.h"
#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/targets/link_map_p.h"
#include "jitunwind/unwind_core/targets/mappings.h"

namespace jitunwind {

struct CoreThread {
  pid_t id = 0;
  int signal = 0;                         ///< pr_cursig
  std::vector<std::byte> registers{};     ///< elf_gregset_t, as far as it is there
  std::vector<std::byte> fp_registers{};  ///< elf_fpregset_t, of ARM struct user_vfp; empty: none
  std::vector<std::byte> siginfo{};       ///< siginfo_t of the signal; empty: none
};

/// Where a thread that a fault has ended was not let in, or the instruction that could not be executed: si_addr.
/// Nothing: it was ended by another signal, or by one that was sent; or the CPU does not say it, as of an address that
/// is none at all on x86-64 (SI_KERNEL); or `siginfo` is cut off.
std::optional<Addr> fault_address(std::span<const std::byte> siginfo, const Arch& arch) noexcept;

/// What of the memory of a process is in its core file.
class CoreMemory final : public Memory {
 public:
  explicit CoreMemory(FileParts& file) noexcept : file_(file) {}
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override;

 private:
  friend class CoreFile;
  struct Part {
    AddrRange range{};
    std::uint64_t offset = 0;
  };
  FileParts& file_;
  std::vector<Part> parts_;  // ascending, and no two overlap
};

/// Used by one thread at a time.
class CoreFile {
 public:
  /// Errors: io, with errno as it was left; bad_elf: no ELF file; bad_structure: one that is no core; truncated: the
  /// file ends before it says anything of a thread.
  static Result<std::unique_ptr<CoreFile>> open(const char* path);
  CoreFile(const CoreFile&) = delete;
  CoreFile& operator=(const CoreFile&) = delete;

  unsigned machine() const noexcept { return image_->machine(); }
  bool is_64() const noexcept { return image_->is_64(); }
  bool big_endian() const noexcept { return image_->big_endian(); }

  pid_t process() const noexcept { return process_; }
  /// The first 15 bytes of the name of the program's file, and 79 of its arguments.
  const std::string& program() const noexcept { return program_; }
  const std::string& arguments() const noexcept { return arguments_; }
  /// The one that the core was made for first.
  const std::vector<CoreThread>& threads() const noexcept { return threads_; }
  const Mappings& mappings() const noexcept { return mappings_; }
  const Memory& memory() const noexcept { return memory_; }
  /// Where the core does not say what is mapped of its program, this file says it: of qemu-user's cores, which leave
  /// out the first page of code and name no files. False: it is not the core's program. `path`: what the program is
  /// called if the core does not say that either.
  bool add_program(const ElfImage& program, const std::string& path);
  /// What is mapped at an address, of which the core does not say the file, is that one from its first byte on.
  void name_mapping(Addr at, const std::string& path);
  /// Bits by which addresses of code are signed, where the kernel has said so (AArch64).
  std::optional<std::uint64_t> signing_bits() const noexcept { return signing_bits_; }
  /// Of the auxiliary vector, by AT_*; 0: it does not say.
  Addr auxiliary(std::uint64_t tag) const noexcept;

 private:
  struct Loaded {
    AddrRange range{};
    std::uint32_t flags = 0;
  };

  explicit CoreFile(Mapped<FileParts> file) noexcept : file_(std::move(file)), memory_(*file_) {}
  void read_notes();
  void take_notes(std::span<const std::byte> notes, std::uint64_t alignment);
  void take(const ElfNote& note);
  void take_thread(std::span<const std::byte> status);
  void take_fp_registers(std::span<const std::byte> block);
  void take_signing_bits(std::span<const std::byte> masks);
  void take_process(std::span<const std::byte> info);
  void take_files(std::span<const std::byte> files);
  ProgramStart start_of_program() const;
  void take_segments();
  void make_mappings();
  std::uint64_t word(ByteReader& from) const noexcept { return from.unsigned_of(image_->is_64() ? 8 : 4); }

  Mapped<FileParts> file_;
  std::optional<ElfImage> image_;
  CoreMemory memory_;
  pid_t process_ = 0;
  std::string program_;
  std::string arguments_;
  std::vector<CoreThread> threads_;
  std::vector<std::pair<std::uint64_t, Addr>> auxiliary_;
  std::optional<std::uint64_t> signing_bits_;
  std::vector<Loaded> loaded_;
  std::vector<Mapping> files_;  // of NT_FILE, or else of link maps
  Mappings mappings_;
};

}  // namespace jitunwind
