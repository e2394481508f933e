// The files that debuggers know, and the file of each procedure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jitunwind/adapters/gdb_jit/jit_interface_p.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/exceptions/copied_procedure_internal.h"
#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/targets/tracer_internal.h"

namespace jitunwind {

/// The data that a debugger gets for one procedure.
struct DebuggedProcedure : CopiedProcedure {
  DebuggedProcedure() = default;
  DebuggedProcedure(CopiedProcedure&& code, RegistrationKey its_key, const unw_dyn_info_t* its_info) noexcept
      : CopiedProcedure(std::move(code)), key(its_key), info(its_info) {}

  RegistrationKey key{};
  const unw_dyn_info_t* info = nullptr;  ///< not to be read
};

struct FileProcedure {
  const DebuggedProcedure* procedure = nullptr;
  /// The procedure is in the section of the preceding one, which then extends over the gap between them. Debuggers look
  /// for a procedure in the file with a section at its address, so that no foreign code may be in the gap. They also
  /// sort the sections of all files whenever a file is added or removed, so that few sections are better.
  bool joined = false;
};

/// The file of these procedures, in ascending order. Linux/ELF with 64 or 32 bits, as the CPU requires (System V ABI,
/// "Object Files"). docs/debuggers.md "What is in the files" lists the parts that debuggers need. Throws
/// std::bad_alloc.
std::vector<std::byte> make_symbol_file(const Arch& arch, std::span<const FileProcedure> procedures);

/// Files are merged as they are added: there is at most one of each size (by powers of two) up to k_full procedures. n
/// procedures therefore make n / k_full files, and each procedure is written some log2(k_full) times. A file that loses
/// procedures is removed, and its remaining procedures come back in a new file. One thread at a time. Functions that
/// are not noexcept throw std::bad_alloc; after that only close() may be called.
class CodeFiles {
 public:
  CodeFiles(const Arch& arch, Tracer& tracer) : arch_(arch), tracer_(tracer), empty_file_(make_symbol_file(arch, {})) {}

  /// False: no memory, which is possible on the first call only.
  bool open() noexcept { return interface_.open(empty_file_); }
  void close() noexcept;

  bool contains(const unw_dyn_info_t* info) const { return where_.count(info) != 0 || withdrawn_.count(info) != 0; }
  /// Takes the procedures over, together with the withdrawn ones. Precondition: contains() is false for each.
  void add(std::vector<std::unique_ptr<DebuggedProcedure>> procedures);

  // These remove the procedures that are no longer registered. The file of each is written anew, or removed if
  // `may_wait()` is true. Its other procedures are withdrawn in that case: debuggers do not know them until the next
  // add(). `may_wait` is called only if there is something to remove.

  template <class MayWait>
  void remove(std::span<unw_dyn_info_t* const> procedures, MayWait may_wait) {
    for (const unw_dyn_info_t* info : procedures) withdrawn_.erase(info);
    if (mark_files_of(procedures)) rewrite_marked(may_wait());
  }
  template <class MayWait>
  void remove_all_gone(MayWait may_wait) {
    std::erase_if(withdrawn_, [](const auto& entry) { return !still_registered(entry.second->key); });
    if (mark_files_of_gone()) rewrite_marked(may_wait());
  }

  std::size_t procedures() const noexcept { return where_.size(); }
  std::size_t withdrawn() const noexcept { return withdrawn_.size(); }
  unsigned users() const noexcept { return interface_.users(); }
  std::uint64_t stops() const noexcept { return interface_.stops(); }
  std::size_t files() const noexcept;
  std::size_t bytes() const noexcept;

 private:
  /// The destructor makes debuggers drop the file.
  struct File {
    explicit File(JitInterface& i) noexcept : interface(i) {}
    ~File() {
      if (entry.symfile_addr != nullptr) interface.remove(entry);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    JitInterface& interface;
    jit_code_entry entry{};
    std::vector<std::byte> bytes;
    std::vector<std::unique_ptr<DebuggedProcedure>> procedures;
    bool is_outdated = false;  // to be written anew, without the procedures that are gone
  };
  static constexpr unsigned k_sizes = 10;
  static constexpr std::size_t k_full = std::size_t{1} << (k_sizes - 1);
  /// The gap between two procedures is less than a page, so that no foreign page lies between them.
  static constexpr Addr k_widest_gap = 4095;
  using Files = std::vector<std::unique_ptr<File>>;
  using Key = std::pair<Addr, const unw_dyn_info_t*>;  // begin of the code

  static Key key(const DebuggedProcedure& procedure) noexcept { return {procedure.code.begin, procedure.info}; }
  static unsigned size_of(const File& file) noexcept;
  Files take_mergeable(std::size_t count);
  void add_file(std::unique_ptr<File> file);
  void enter(File& file);
  bool are_joined(const DebuggedProcedure& procedure, const DebuggedProcedure& next) const;
  void mark_file_around(const DebuggedProcedure& procedure);
  void replace(Files old, std::unique_ptr<File> by);
  void publish(std::unique_ptr<File> file);
  bool mark_files_of(std::span<unw_dyn_info_t* const> procedures);
  bool mark_files_of_gone();
  void rewrite_marked(bool withdraw);

  const Arch& arch_;
  Tracer& tracer_;
  const std::vector<std::byte> empty_file_;
  JitInterface interface_{tracer_};
  std::array<Files, k_sizes> files_;
  std::unordered_map<const unw_dyn_info_t*, File*> where_;
  std::map<Key, File*> by_address_;
  std::unordered_map<const unw_dyn_info_t*, std::unique_ptr<DebuggedProcedure>> withdrawn_;
};

}  // namespace jitunwind
