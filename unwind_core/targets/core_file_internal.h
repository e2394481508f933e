// A core file: core(5), elf(5), and the contents that the kernel (fs/binfmt_elf.c) and GDB's gcore write. It may come
// from another machine. The file is not trusted, and may be cut anywhere: missing data are absent.
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
#include "jitunwind/unwind_core/targets/mappings.h"
#include "jitunwind/unwind_core/walk/context_p.h"

namespace jitunwind {

class CoreMemory;

/// The program according to the auxiliary vector: getauxval(3). 0: there is no such value.
struct ProgramStart {
  Addr headers = 0;                ///< AT_PHDR
  std::uint64_t header_count = 0;  ///< AT_PHNUM
  Addr path = 0;                   ///< AT_EXECFN
  /// The program's file, if it is known: it serves for parts that the memory lacks. Null: it is not known.
  const ElfImage* file = nullptr;
  std::string file_path{};  ///< name of the file if the memory has none
};

/// The segments of all objects whose first page is in `memory`, with their files' paths, by link maps (<link.h>) from
/// the program's DT_DEBUG on. A static program has its own segments alone. They are readable; the caller sets other
/// permissions. Bounded for any content of the memory. `core` tells word size and byte order of the target.
std::vector<Mapping> mappings_by_link_map(const CoreMemory& memory, const ElfImage& core, const ProgramStart& program);

struct CoreThread {
  pid_t id = 0;
  int signal = 0;                         ///< pr_cursig
  std::vector<std::byte> registers{};     ///< elf_gregset_t, as far as it is there
  std::vector<std::byte> fp_registers{};  ///< elf_fpregset_t, on ARM struct user_vfp; empty: none
  std::vector<std::byte> siginfo{};       ///< siginfo_t of the signal; empty: none
  VectorWords vector_words{};
};

/// The address whose access ended a thread by a fault, or the instruction that could not be executed: si_addr. Empty:
/// another signal ended the thread, or one that was sent; or the CPU does not tell the address, such as a non-canonical
/// one on x86-64 (SI_KERNEL); or `siginfo` is cut off.
std::optional<Addr> fault_address(std::span<const std::byte> siginfo, const Arch& arch) noexcept;

/// The memory of a process as far as it is in its core file.
class CoreMemory final : public Memory {
 public:
  explicit CoreMemory(FileParts& file) noexcept : file_(file) {}
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override;

  struct Part {
    AddrRange range{};
    std::uint64_t offset = 0;
  };
  std::span<const Part> parts() const noexcept { return parts_; }

 private:
  friend class CoreFile;
  FileParts& file_;
  std::vector<Part> parts_;  // ascending, and no two overlap
};

/// Used by one thread at a time.
class CoreFile {
 public:
  /// Errors: io, with errno as it was left; bad_elf: no ELF file; bad_structure: an ELF file that is no core;
  /// truncated: the file ends before the first data of a thread.
  static Result<std::unique_ptr<CoreFile>> open(const char* path);
  CoreFile(const CoreFile&) = delete;
  CoreFile& operator=(const CoreFile&) = delete;

  unsigned machine() const noexcept { return image_->machine(); }
  bool is_64() const noexcept { return image_->is_64(); }
  bool big_endian() const noexcept { return image_->big_endian(); }

  pid_t process() const noexcept { return process_; }
  /// The first 15 bytes of the name of the program's file, and 79 bytes of its arguments.
  const std::string& program() const noexcept { return program_; }
  const std::string& arguments() const noexcept { return arguments_; }
  /// The first one is the thread for which the core was made.
  const std::vector<CoreThread>& threads() const noexcept { return threads_; }
  const Mappings& mappings() const noexcept { return mappings_; }
  const Memory& memory() const noexcept { return memory_; }
  /// Adds mappings of the program that the core does not tell, from the program's file: qemu-user's cores leave out the
  /// first page of code and name no files. False: it is not the core's program. `path`: the name of the program if the
  /// core does not have it either.
  bool add_program(const ElfImage& program, const std::string& path);
  /// Gives the mapping at an address this file, if the core does not tell its file. The mapping begins at the file's
  /// first byte.
  void name_mapping(Addr at, const std::string& path);
  /// The bits by which addresses of code are signed, if the kernel has noted them (AArch64).
  std::optional<std::uint64_t> signing_bits() const noexcept { return signing_bits_; }
  /// A value of the auxiliary vector, by AT_*; 0: it has none.
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
  std::vector<Mapping> files_;  // those of NT_FILE, or else of link maps
  Mappings mappings_;
};

}  // namespace jitunwind
