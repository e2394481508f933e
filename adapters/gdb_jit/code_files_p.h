// The files that debuggers know, and which procedures are in which.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters/gdb_jit/jit_interface_p.h"
#include "adapters/gdb_jit/symbol_file_p.h"
#include "adapters/gdb_jit/tracer_p.h"

namespace jitunwind {

/// Files are merged as they come: at most one of each size (by powers of two) up to k_full procedures, so that n
/// procedures make n / k_full files, and each is written some log2(k_full) times. One that loses procedures is written
/// anew without them. One thread at a time. Functions that are not noexcept throw std::bad_alloc, and then all that may
/// be called is close().
class CodeFiles {
 public:
  CodeFiles(const Arch& arch, Tracer& tracer) : arch_(arch), tracer_(tracer), empty_file_(make_symbol_file(arch, {})) {}

  void open() noexcept { interface_.open(empty_file_); }
  void close() noexcept;

  bool contains(const unw_dyn_info_t* info) const { return where_.count(info) != 0; }
  /// Takes them over. Precondition: contains() none of them.
  void add(std::vector<std::unique_ptr<DebuggedProcedure>> procedures);
  /// Those of them that are here and are not registered any more.
  void remove(std::span<unw_dyn_info_t* const> procedures);
  void remove_all_gone();

  std::size_t procedures() const noexcept { return where_.size(); }
  std::size_t files() const noexcept;
  std::size_t bytes() const noexcept;

 private:
  /// Debuggers forget it when it dies.
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
    bool is_outdated = false;  // to be written anew, without those that are gone
  };
  static constexpr unsigned k_sizes = 10;
  static constexpr std::size_t k_full = std::size_t{1} << (k_sizes - 1);
  /// No page of something else fits in between.
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
  void rewrite_marked();

  const Arch& arch_;
  Tracer& tracer_;
  const std::vector<std::byte> empty_file_;
  JitInterface interface_;
  std::array<Files, k_sizes> files_;
  std::unordered_map<const unw_dyn_info_t*, File*> where_;
  std::map<Key, File*> by_address_;
};

}  // namespace jitunwind
