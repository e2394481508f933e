#include "unwind_core/address_space.h"

#include <algorithm>

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

void write_name(std::string_view name, std::span<char> into, ProcedureName& out) noexcept {
  const std::string_view kept = name.substr(0, into.size() - 1);
  *std::ranges::copy(kept, into.begin()).out = '\0';
  out.length = name.size();
  out.truncated = kept.size() < name.size();
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

[[gnu::hot]] Found AddressSpace::find_row(Lookup& lookup, FrameRow& out) const noexcept {
  return first_answer(row_sources, [&](const RowSource& s) { return s.find_row(lookup, out); });
}

Found AddressSpace::find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept {
  return first_answer(row_sources, [&](const RowSource& s) { return s.find_procedure(lookup, out); });
}

Found AddressSpace::find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept {
  return first_answer(name_sources, [&](const NameSource& s) { return s.find_name(lookup, into, out); });
}

}  // namespace jitunwind
