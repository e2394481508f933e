#include "jitunwind/adapters/gdb_jit/code_files_p.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

namespace jitunwind {

unsigned CodeFiles::size_of(const File& file) noexcept {
  return std::min(static_cast<unsigned>(std::bit_width(file.procedures.size())), k_sizes) - 1;
}

void CodeFiles::close() noexcept {
  // Assignment frees the memory, which clear() would keep and lose when the library is unloaded.
  for (Files& files : files_) files = Files();
  where_ = decltype(where_)();
  by_address_.clear();
  withdrawn_ = decltype(withdrawn_)();
  interface_.close();
}

/// Takes smaller files first, as long as the merged file is not larger than a full one.
CodeFiles::Files CodeFiles::take_mergeable(std::size_t count) {
  Files taken;
  for (unsigned size = 0; size + 1 < k_sizes && (std::size_t{1} << size) <= count; ++size) {
    Files& candidates = files_[size];
    while (!candidates.empty() && count + candidates.back()->procedures.size() <= k_full) {
      count += candidates.back()->procedures.size();
      taken.push_back(std::move(candidates.back()));
      candidates.pop_back();
    }
  }
  return taken;
}

/// Records that the procedures are in this file.
void CodeFiles::enter(File& file) {
  // Neighbours become adjacent, so that one section covers each run of them.
  std::sort(file.procedures.begin(), file.procedures.end(),
            [](const auto& a, const auto& b) { return key(*a) < key(*b); });
  for (const auto& procedure : file.procedures) {
    where_[procedure->info] = &file;
    by_address_[key(*procedure)] = &file;
  }
}

bool CodeFiles::are_joined(const DebuggedProcedure& procedure, const DebuggedProcedure& next) const {
  if (next.code.begin > procedure.code.end + k_widest_gap) return false;
  return by_address_.upper_bound(key(procedure))->first == key(next);
}

/// Marks the file whose section extends over a new procedure of another file, and over those after it.
void CodeFiles::mark_file_around(const DebuggedProcedure& procedure) {
  const auto here = by_address_.find(key(procedure));
  if (here == by_address_.begin() || std::prev(here)->second == here->second) return;
  const auto after =
      std::find_if(here, by_address_.end(), [&](const auto& other) { return other.second != here->second; });
  File* const before = std::prev(here)->second;
  if (after != by_address_.end() && after->second == before) before->is_outdated = true;
}

void CodeFiles::publish(std::unique_ptr<File> file) {
  if (file->procedures.empty()) return;
  std::vector<FileProcedure> procedures;
  for (const auto& procedure : file->procedures) {
    const bool joined = !procedures.empty() && are_joined(*procedures.back().procedure, *procedure);
    procedures.push_back({procedure.get(), joined});
  }
  file->bytes = make_symbol_file(arch_, procedures);
  File& published = *file;
  files_[size_of(*file)].push_back(std::move(file));
  published.entry.symfile_addr = published.bytes.data();
  published.entry.symfile_size = published.bytes.size();
  interface_.add(published.entry);
}

/// GDB learns the new file before it drops the others, so that the remaining procedures are always known: its
/// breakpoints by name stay in the code, which other threads run meanwhile. Other debuggers drop the old files first.
/// LLDB requires this: unloading a file removes files that were loaded at the same addresses later.
void CodeFiles::replace(Files old, std::unique_ptr<File> by) {
  if (tracer_.kind() != TracerKind::gdb) old.clear();
  publish(std::move(by));
}

void CodeFiles::add(std::vector<std::unique_ptr<DebuggedProcedure>> procedures) {
  for (auto& [info, procedure] : withdrawn_)
    if (still_registered(procedure->key)) procedures.push_back(std::move(procedure));
  withdrawn_.clear();
  std::sort(procedures.begin(), procedures.end(), [](const auto& a, const auto& b) { return key(*a) < key(*b); });
  for (std::size_t at = 0; at < procedures.size();) {
    const std::size_t count = std::min(procedures.size() - at, k_full);
    auto file = std::make_unique<File>(interface_);
    const auto first = procedures.begin() + static_cast<std::ptrdiff_t>(at);
    std::move(first, first + static_cast<std::ptrdiff_t>(count), std::back_inserter(file->procedures));
    at += count;
    add_file(std::move(file));
  }
}

void CodeFiles::add_file(std::unique_ptr<File> file) {
  Files merged = take_mergeable(file->procedures.size());
  enter(*file);
  for (const auto& procedure : file->procedures) mark_file_around(*procedure);
  for (const auto& other : merged)
    std::move(other->procedures.begin(), other->procedures.end(), std::back_inserter(file->procedures));
  enter(*file);
  rewrite_marked(false);
  replace(std::move(merged), std::move(file));
}

bool CodeFiles::mark_files_of(std::span<unw_dyn_info_t* const> procedures) {
  bool marked = false;
  for (const unw_dyn_info_t* info : procedures) {
    const auto found = where_.find(info);
    if (found == where_.end()) continue;
    found->second->is_outdated = marked = true;
  }
  return marked;
}

bool CodeFiles::mark_files_of_gone() {
  bool marked = false;
  for (Files& files : files_) {
    for (const auto& file : files) {
      file->is_outdated = std::any_of(file->procedures.begin(), file->procedures.end(),
                                      [](const auto& procedure) { return !still_registered(procedure->key); });
      marked = marked || file->is_outdated;
    }
  }
  return marked;
}

void CodeFiles::rewrite_marked(bool withdraw) {
  Files outdated;
  for (Files& files : files_) {
    const auto rest = std::stable_partition(files.begin(), files.end(), [](const auto& f) { return !f->is_outdated; });
    std::move(rest, files.end(), std::back_inserter(outdated));
    files.erase(rest, files.end());
  }
  for (auto& old : outdated) {
    auto file = std::make_unique<File>(interface_);
    for (auto& procedure : old->procedures) {
      const bool stays = still_registered(procedure->key);
      if (withdraw || !stays) {
        where_.erase(procedure->info);
        by_address_.erase(key(*procedure));
      }
      if (!stays) continue;
      if (withdraw) {
        withdrawn_[procedure->info] = std::move(procedure);
      } else {
        file->procedures.push_back(std::move(procedure));
      }
    }
    enter(*file);
    Files replaced;
    replaced.push_back(std::move(old));
    replace(std::move(replaced), std::move(file));
  }
}

std::size_t CodeFiles::files() const noexcept {
  std::size_t count = 0;
  for (const Files& files : files_) count += files.size();
  return count;
}

std::size_t CodeFiles::bytes() const noexcept {
  std::size_t count = 0;
  for (const Files& files : files_)
    for (const auto& file : files) count += file->bytes.size();
  return count;
}

}  // namespace jitunwind
