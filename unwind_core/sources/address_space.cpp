#include <algorithm>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/kept/compact_row_internal.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"
#include "jitunwind/unwind_core/kept/row_notes_p.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/sources/guesses/code_pattern_p.h"
#include "jitunwind/unwind_core/sources/guesses/unknown_code_internal.h"
#include "jitunwind/unwind_core/sources/sources.h"

namespace jitunwind {
namespace {

template <class Source, class Ask>
Found first_answer(std::span<const Source* const> sources, Ask ask) noexcept {
  for (const Source* source : sources) {
    const Found found = ask(*source);
    if (!found || *found) return found;
  }
  return false;
}

}  // namespace

RowAnswer RowSource::find_any_row(Lookup& lookup, AnyRow& out) const noexcept {
  return out.answer(find_row(lookup, out.full));
}

Found AnyRowSource::find_row(Lookup& lookup, FrameRow& out) const noexcept {
  AnyRow row(out);
  return row.found(find_any_row(lookup, row));
}

void write_name(std::string_view name, std::span<char> into, ProcedureName& out) noexcept {
  const std::string_view kept = name.substr(0, into.empty() ? 0 : into.size() - 1);
  if (!into.empty()) *std::ranges::copy(kept, into.begin()).out = '\0';
  out.length = name.size();
  out.truncated = kept.size() < name.size();
}

[[gnu::hot]] SourceOrder::SourceOrder(const OwnSources& own) noexcept {
  const auto add = [this](const RowSource* source) {
    if (source != nullptr) all_[size_++] = source;
  };
  const bool reads_tables = own.answers == nullptr;
  const auto add_if_read = [&](const RowSource& source) { add(reads_tables ? &source : nullptr); };
  // Registered code counts before the tables of a module around it.
  add(own.registered);
  add(own.answers);
  add_if_read(eh_frame_source());
  add_if_read(debug_frame_source());
  add(own.exidx);
  add(own.jit_code);
  add(own.jit_names);
  add(&signal_frame_source());
  add_if_read(plt_stub_source());
  rows_ = size_;
  add(own.followed != nullptr ? own.followed : &followed_code_source());
  add_if_read(bad_call_source());
  add_if_read(leaf_source());
  add(&frame_pointer_source());
  add(own.unread_code);
}

[[gnu::hot]] const Module* Lookup::module() noexcept {
  if (state_ != State::unknown) return found_;
  state_ = State::known;
  const Addr pc = at.lookup();
  found_ = space.modules.find_lasting(pc);
  if (!found_ && space.modules.find(pc, module_.emplace())) found_ = &*module_;
  return found_;
}

const Module* Lookup::module_with_file_sections() noexcept {
  if (!module()) return nullptr;
  if (state_ != State::complete) {
    if (!module_) module_ = *found_;
    found_ = &*module_;
    space.modules.add_file_sections(*module_);
    state_ = State::complete;
  }
  return found_;
}

void Lookup::release_file_sections() noexcept { space.modules.release_file_sections(*module_); }

std::size_t ModuleFinder::copy_path(const Module& module, std::span<char> into) const noexcept {
  ProcedureName name;
  write_name(module.path, into, name);
  return name.length;
}

bool AddressSpace::was_told_of(Addr at) const noexcept {
  return std::ranges::any_of(row_sources, [at](const RowSource* source) { return source->was_told_of(at); });
}

Status AddressSpace::expect_code(CodeAddress caller, MemoryWindow& window, AddrRange& known) const noexcept {
  if (!memory.tells_executable()) {
    known = {0, ~Addr{0}};
    return Done{};
  }
  // The module takes more instructions to find.
  if (was_told_of(caller.lookup())) return Done{};
  Lookup lookup(*this, caller, window);
  if (const Module* const module = lookup.module(); module && module->text.contains(caller.lookup())) {
    known = module->text;
    return Done{};
  }
  // The pc itself may be the first byte of a mapping if it is in a trampoline, which no call precedes.
  std::optional<bool> executable = memory.is_executable(caller.lookup(), window);
  if (executable != true && page_of(caller.lookup()) != page_of(caller.value()))
    executable = memory.is_executable(caller.value(), window);
  if (!executable) return Error{ErrorCode::no_info, caller.value(), "whether the caller is executable memory"};
  if (!*executable) return Error{ErrorCode::invalid_ip, caller.value(), "caller is not executable memory"};
  return Done{};
}

Found AddressSpace::find_row(Lookup& lookup, FrameRow& out) const noexcept {
  AnyRow row(out);
  return row.found(find_any_row(lookup, row));
}

[[gnu::hot]] RowAnswer AddressSpace::find_any_row(Lookup& lookup, AnyRow& out) const noexcept {
  const UnknownCode* const unknown = row_cache ? row_cache->unknown : nullptr;
  if (unknown && unknown->covers(lookup, *row_cache)) return RowAnswer::none;
  for (const RowSource* source : row_sources)
    if (const RowAnswer answer = source->find_any_row(lookup, out); answer != RowAnswer::none) return answer;
  return unknown ? unknown->ask_again(lookup, out) : RowAnswer::none;
}

Found AddressSpace::find_guess(Lookup& lookup, FrameRow& out) const noexcept {
  const Found found = first_answer(guess_sources, [&](const RowSource& s) { return s.find_row(lookup, out); });
  if (found && *found) note_guess(lookup, out);
  return found;
}

Found AddressSpace::find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept {
  return first_answer(row_sources, [&](const RowSource& s) { return s.find_procedure(lookup, out); });
}

Found AddressSpace::find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept {
  return first_answer(name_sources, [&](const NameSource& s) { return s.find_name(lookup, into, out); });
}

CodeAddress AddressSpace::named_at(CodeAddress at, MemoryWindow& window) const noexcept {
  const bool is_trampoline = at.is_return_address() && find_pattern(arch.trampolines, at.value(), memory, window);
  return is_trampoline ? CodeAddress::interrupted(at.value()) : at;
}

namespace {

class ElfNameSource final : public NameSource {
 public:
  explicit constexpr ElfNameSource(NameReach reach) noexcept : reach_(reach) {}
  Found find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept override {
    const Module* const module = lookup.module();
    return module ? lookup.space.modules.find_symbol(*module, lookup.at.lookup(), reach_, into, out) : false;
  }

 private:
  NameReach reach_;
};

constinit const ElfNameSource k_elf_names{NameReach::own};
constinit const ElfNameSource k_preceding_elf_names{NameReach::next};

}  // namespace

[[gnu::hot]] const NameSource& elf_name_source() noexcept { return k_elf_names; }
const NameSource& preceding_elf_name_source() noexcept { return k_preceding_elf_names; }

}  // namespace jitunwind
