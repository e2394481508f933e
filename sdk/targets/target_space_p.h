// The common part of all targets that are known by their mappings: a memory, a finder of modules, and the sources that
// know the code. The target provides the memory, the mappings and the way to files.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "jitunwind/dyn_info/target_heads_internal.h"
#include "jitunwind/sdk/targets/jit_code_p.h"
#include "jitunwind/sdk/targets/jit_names_p.h"
#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"
#include "jitunwind/unwind_core/memory/kept_pages_internal.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"
#include "jitunwind/unwind_core/sources/sources.h"
#include "jitunwind/unwind_core/targets/mapped_modules.h"
#include "jitunwind/unwind_core/targets/target_files_internal.h"

namespace jitunwind {

// The kept rows of a target: docs/caches.md.

/// Tables for one target alone. They take half a megabyte of address space, of which only the pages of kept rows are
/// touched. They are allocated once, or reused, empty, from a target that has ended. A row is valid for one version of
/// its module and one count of changes of the target's lists. Both only grow, and so does their sum, from which
/// RowCache::version_of() makes small numbers.
class TargetRows {
 public:
  /// Both arguments must outlive this.
  TargetRows(const Arch& arch, const MappedModules& modules) noexcept;
  ~TargetRows();
  TargetRows(const TargetRows&) = delete;
  TargetRows& operator=(const TargetRows&) = delete;

  /// Returns null if nothing is kept: JITUNWIND_KEEP says so, or there is no memory.
  const RowCache* cache() const noexcept { return cache_ ? &*cache_ : nullptr; }
  /// Invalidates all kept rows.
  void forget() noexcept;
  /// Invalidates the kept rows of this code.
  void forget(const AddrRange& code) noexcept;

 private:
  class Versions final : public ModuleVersions {
   public:
    explicit Versions(const MappedModules& modules) noexcept : modules_(modules) {}
    bool find(Addr at, ModuleVersion& out) const noexcept override { return modules_.find_version(at, out); }

   private:
    const MappedModules& modules_;
  };
  struct Tables {
    CodeChanges changes;
    KeptRules rules;
  };

  bool keeps_any() const noexcept { return tables_ && tables_->rules.table.size() != 0; }

  Versions versions_;
  Block memory_;
  Tables* tables_ = nullptr;
  std::optional<RowCache> cache_;
};

/// Explains why nothing is known about code that cannot be read, such as code of a sample whose file is missing.
class UnreadCode final : public RowSource {
 public:
  explicit UnreadCode(const Mappings& mappings) noexcept : mappings_(mappings) {}
  Found find_row(Lookup& lookup, FrameRow&) const noexcept override {
    const Addr at = lookup.at.lookup();
    const Mapping* const mapping = mappings_.find(at);
    std::byte first{};
    if (!mapping || !mapping->executable || lookup.space.memory.read(at, std::span(&first, 1), lookup.window) == 1)
      return false;
    const char* what = "code of a file that cannot be read, or is another";
    if (!mapping->is_of_file()) what = "code that is in no file";
    if (mapping->path == k_kernels_object) what = "code of a [vdso] that is not this machine's, nor in perf's cache";
    return Error{ErrorCode::no_info, at, what};
  }

 private:
  const Mappings& mappings_;
};

/// Used by one thread at a time. Its members refer to each other, so it cannot be moved.
class TargetSpace {
 public:
  /// `memory` must outlive this.
  TargetSpace(const Arch& arch, const Memory& memory, Mappings mappings, TargetFiles files)
      : arch_(arch),
        raw_(memory),
        mappings_(std::move(mappings)),
        files_(std::move(files)),
        names_{&list_, &elf_name_source(), &jit_code_, &jit_names_} {}
  TargetSpace(const TargetSpace&) = delete;
  TargetSpace& operator=(const TargetSpace&) = delete;

  const AddressSpace& space() const noexcept { return space_; }
  const Arch& arch() const noexcept { return arch_; }
  const Mappings& mappings() const noexcept { return mappings_; }
  const MappedModules& modules() const noexcept { return modules_; }
  const TargetFiles& files() const noexcept { return files_; }
  const TargetHeads& heads() const noexcept { return heads_; }

  /// Finds the source line of code outside modules.
  std::optional<SourceLine> find_line(Addr at) const {
    auto line = jit_code_.find_line(at);
    return line ? line : jit_names_.find_line(at);
  }
  /// The code outside modules whose JITs describe it, in no order.
  std::vector<AddrRange> jit_code() const {
    std::vector<AddrRange> code;
    MemoryWindow window;
    Lookup lookup(space_, CodeAddress::interrupted(0), window);
    append_listed_code(heads_, lookup, code);
    jit_code_.append_described_code(code);
    jit_names_.append_described_code(code);
    return code;
  }
  /// Forwards to JitNames::set_process().
  void set_process(std::string perf_map, uid_t owner) { jit_names_.set_process(std::move(perf_map), owner); }

  /// Finds the lists of procedures and of JITs' files while the target runs, and reads the latter. renew() follows when
  /// the target is stopped, and looks again for everything that has changed.
  void look_ahead() noexcept {
    MemoryWindow window;
    (void)heads_.list_head(0, window);
    jit_code_.look_ahead();
    pages_.forget();
  }
  /// The target has run and is stopped again. Rows stay known where their module, and what is registered for their
  /// code, is unchanged. If the changes of the lists are not known, no row stays.
  void renew(Mappings mappings) {
    if (mappings == mappings_) return renew();
    pages_.forget();
    if (!is_same_program(mappings)) {
      heads_.forget();
      jit_code_.forget();
      jit_names_.forget();
    }
    mappings_ = std::move(mappings);
    modules_.renew();
    heads_.look_again();
    learn_changes(false);
  }
  /// Renews after a run that changed no mapping.
  void renew() {
    pages_.forget();
    learn_changes(true);
  }
  /// The bytes in this range have changed; the mappings and the lists have not.
  void forget_memory(AddrRange range) noexcept { pages_.forget(range); }
  /// Reads these pages now, as far as they can be read.
  void keep(AddrRange pages) noexcept {
    MemoryWindow window;
    pages_.keep(pages.begin, static_cast<std::size_t>(pages.size() / k_page_size), window);
  }
  /// The target runs from now on. Data that was read before stays as it was.
  void let_run() noexcept {
    jit_code_.let_run();
    heads_.set_memory_now(&raw_);
  }

 private:
  void learn_changes(bool is_mapped_as_before) {
    heads_.set_memory_now(nullptr);
    jit_names_.look_again();
    std::vector<AddrRange> changed;
    const bool knows_jit_code = jit_code_.renew(is_mapped_as_before, changed);
    const bool knows_lists = heads_.learn_changes(changed);
    if (!knows_jit_code || !knows_lists) rows_kept_.forget();
    for (const AddrRange& code : changed) rows_kept_.forget(code);
  }
  /// Returns true if no other program was executed meanwhile and the lists have not moved. execve() gives the kernel's
  /// object another address.
  bool is_same_program(const Mappings& now) const noexcept {
    const auto is_there = [&](Addr at) {
      const Mapping *const before = mappings_.find(at), *const after = now.find(at);
      return before && after && *before == *after;
    };
    const Mapping* const kernels = mappings_.kernels_object();
    return kernels && is_there(kernels->range.begin) &&
           std::ranges::all_of(heads_.known(), is_there, &TargetHeads::List::head);
  }

  Arch arch_;
  const Memory& raw_;
  Mappings mappings_;
  TargetFiles files_;
  KeptPages pages_{raw_};
  MappedMemory memory_{pages_, mappings_};
  MappedModules modules_{memory_, arch_, mappings_, files_};
  TargetHeads heads_{memory_, arch_, modules_, files_};
  TargetRows rows_kept_{arch_, modules_};
  TargetList list_{heads_};
  JitCode jit_code_{raw_, arch_, modules_, mappings_, files_};
  JitNames jit_names_{arch_, mappings_, files_};
  UnreadCode unread_code_{mappings_};
  SourceOrder sources_{{.registered = &list_,
                        .exidx = &arm_exidx_source(),
                        .jit_code = &jit_code_,
                        .jit_names = &jit_names_,
                        .unread_code = &unread_code_}};
  std::array<const NameSource*, 4> names_;
  AddressSpace space_{arch_, memory_, modules_, sources_.rows(), names_, rows_kept_.cache(), sources_.guesses()};
};

}  // namespace jitunwind
