// The frame sections of a module as sources. .eh_frame is searched through .eh_frame_hdr. It is read as a whole where
// there is no table, as .debug_frame of the module's file always is.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/kept/compact_row_internal.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"
#include "jitunwind/unwind_core/sources/cfi/compact_cfi_internal.h"
#include "jitunwind/unwind_core/sources/cfi/fde_table.h"
#include "jitunwind/unwind_core/sources/cfi/known_cies_p.h"
#include "jitunwind/unwind_core/sources/sources.h"

namespace jitunwind {
namespace {

/// The common part of .eh_frame and .debug_frame as sources: once the FDE is found, rows and procedures are alike.
class FdeSource : public AnyRowSource {
 public:
  constexpr explicit FdeSource(RowOrigin origin) noexcept : origin_(origin) {}

  RowAnswer find_any_row(Lookup& lookup, AnyRow& out) const noexcept override;
  Found find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept final;

 protected:
  /// Reads the procedure of an FDE.
  Status describe(Fde& fde, Lookup& lookup, ProcedureInfo& out) const noexcept;

 private:
  /// The FDE whose range holds lookup.at.lookup(), and how to read its instructions.
  virtual Found find_fde(Lookup& lookup, CfiContext& context, Fde& out) const noexcept = 0;

  RowOrigin origin_;
};

/// Such a row is wrong whatever wrote it: what is below SP and its red zone is nobody's, as psABIs say, and a signal
/// handler has written over it. glibc's memcpy for i386 (sysdeps/i386/i686/multiarch/memcpy-ssse3.S) has some behind
/// its returns; what a call has left there is an address of code, too.
bool returns_by_nobodys_memory(const FrameRow& row, const Arch& arch) noexcept {
  if (!arch.calls_push() || row.cfa.kind != CfaRule::Kind::offset || row.cfa.reg != arch.sp) return false;
  const RegRule ra = row.rule(row.ra == k_no_reg ? arch.ra : row.ra);
  return ra.kind == RegRule::Kind::at_cfa && row.cfa.offset + ra.offset < -std::int64_t{arch.red_zone};
}

RowAnswer FdeSource::find_any_row(Lookup& lookup, AnyRow& out) const noexcept {
  CfiContext context{lookup.space.arch};
  Fde fde;
  const Found found = find_fde(lookup, context, fde);
  if (!found || !*found) return out.answer(found);
  const Status row = row_at(fde, context, lookup.at.lookup(), out.full);
  if (!row) return out.fail(row.error());
  if (returns_by_nobodys_memory(out.full, context.arch))
    return out.fail({ErrorCode::bad_frame, lookup.at.lookup(), "return address below the stack"});
  out.full.origin = origin_;
  out.full.keeps_by = KeepsBy::module;
  // An error is that of the question for the procedure itself.
  if (out.procedure) (void)describe(fde, lookup, *out.procedure);
  return RowAnswer::full;
}

Status FdeSource::describe(Fde& fde, Lookup& lookup, ProcedureInfo& out) const noexcept {
  // Throws begin a walk at the end of each cleanup, and would prove the word with the personality routine's address
  // readable anew.
  EncodedPointer& word = fde.cie.personality;
  const Module* const module = lookup.module();
  if (module && module->is_lasting && word.indirect && module->data.contains(word.value) &&
      module->data.contains(word.value + sizeof(std::uintptr_t) - 1))
    word = {raw_word(word.value), false};
  const Status described = read_procedure(fde, lookup.space.arch, lookup.space.memory, lookup.window, out);
  if (!described) return described;
  out.gp = 0;
  out.origin = origin_;
  return Done{};
}

Found FdeSource::find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept {
  CfiContext context{lookup.space.arch};
  Fde fde;
  const Found found = find_fde(lookup, context, fde);
  if (!found || !*found) return found;
  const Status described = describe(fde, lookup, out);
  if (!described) return described.error();
  return true;
}

/// The first FDE of the scan that covers `pc`. When none does, the first entry that could not be read is the error: it
/// might have been the one.
Found scan_for_fde(FdeScan scan, Addr pc, Fde& out) noexcept {
  std::optional<Error> first_error;
  while (!scan.at_end()) {
    const Result<bool> next = scan.next(out);
    if (!next) {
      if (!first_error) first_error = next.error();
      continue;
    }
    if (!*next) break;
    if (out.range.contains(pc)) return true;
  }
  if (first_error) return *first_error;
  return false;
}

/// .eh_frame is usually in the segment of .eh_frame_hdr. Elsewhere it is seen through the module's own view of it, or
/// through memory. A broken entry leads anywhere, such as to files that this library maps and unmaps between the steps
/// of a walk. So memory there is proven anew for each question, whatever was proven of it in the walk.
class ModuleBytes final : public CfiBytes {
 public:
  ModuleBytes(const Module& module, const Memory& memory, const MemoryWindow& window) noexcept
      : CfiBytes(module.eh_segment), module_(module), memory_(memory) {
    window_.argument = window.argument;
  }

 private:
  [[gnu::cold]] Result<std::span<const std::byte>> view_elsewhere(Addr at, std::uint64_t size) noexcept override {
    if (auto seen = SectionView(module_.eh_frame_hdr, module_.eh_frame).view(at, size)) return seen;
    return MemoryView(memory_, window_, {}).view(at, size);
  }

  const Module& module_;
  const Memory& memory_;
  MemoryWindow window_;
};

/// Reads memory block by block, where each read costs a system call: near ones cost one together. It serves one
/// question.
class BlockwiseMemory final : public Memory {
 public:
  explicit BlockwiseMemory(const Memory& memory) noexcept : memory_(memory) {}

  [[gnu::cold]] std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override {
    const Addr place = at % block_.size();
    if (place + into.size() > block_.size()) return memory_.read(at, into, window);
    if (begin_ != at - place || size_ == 0) {
      begin_ = at - place;
      size_ = memory_.read(begin_, block_, window);
    }
    const std::size_t readable = size_ <= place ? 0 : std::min(into.size(), size_ - static_cast<std::size_t>(place));
    std::copy_n(block_.begin() + static_cast<std::ptrdiff_t>(place), readable, into.begin());
    return readable;
  }

 private:
  const Memory& memory_;
  mutable Addr begin_ = 0;
  mutable std::size_t size_ = 0;
  mutable std::array<std::byte, 1024> block_;  // a part of a page; stays as it is
};

/// The range from `at` to the end of the bytes around it; empty when no bytes are around it.
AddrRange rest_of_bytes(const Module& module, Addr at) noexcept {
  for (const SectionBytes* section : {&module.eh_frame, &module.eh_segment, &module.eh_frame_hdr}) {
    const AddrRange range{section->address, section->address + section->bytes.size()};
    if (range.contains(at)) return {at, range.end};
  }
  return {};
}

constinit KnownCies known_cies;
[[gnu::constructor]] void touch_known_cies() { known_cies.touch(); }

class EhFrameSource final : public FdeSource {
 public:
  constexpr EhFrameSource() noexcept : FdeSource(RowOrigin::eh_frame) {}

  [[gnu::hot]] RowAnswer find_any_row(Lookup& lookup, AnyRow& out) const noexcept override {
    const Module* const module = lookup.module();
    if (!module) return RowAnswer::none;
    if (module->memory)
      return out.fail({ErrorCode::invalid_argument, lookup.at.value(), "row of code that is on no stack"});
    const RowAnswer usual = out.layout ? find_usual(lookup, *module, out) : RowAnswer::none;
    return usual != RowAnswer::none ? usual : FdeSource::find_any_row(lookup, out);
  }

 private:
  /// None: the row has to be looked for in the general way.
  [[gnu::always_inline]] RowAnswer find_usual(Lookup& lookup, const Module& module, AnyRow& out) const noexcept {
    const Addr pc = lookup.at.lookup();
    UsualFde fde;
    const bool is_compact = find_usual_row(module, pc, *out.layout, out.compact, fde);
    if (fde.at == 0) return RowAnswer::none;
    out.full.range = fde.row_range;
    if (!is_compact) {
      if (!is_outermost(fde.code)) return RowAnswer::none;
      out.full = outermost_row(fde.code, *out.layout);
    }
    out.full.origin = RowOrigin::eh_frame;
    out.full.keeps_by = KeepsBy::module;
    if (out.procedure) describe_known(module.eh_segment, fde.at, fde.code, lookup, *out.procedure);
    return is_compact ? RowAnswer::compact : RowAnswer::full;
  }
  [[gnu::noinline]] void describe_known(const SectionBytes& segment, Addr at, const CompactCode& code, Lookup& lookup,
                                        ProcedureInfo& out) const noexcept {
    Fde fde;
    read_known_procedure(segment, at, code, fde);
    (void)describe(fde, lookup, out);
  }

  Found find_fde(Lookup& lookup, CfiContext& context, Fde& out) const noexcept override {
    const Module* module = lookup.module();
    if (!module) return false;
    const Addr pc = lookup.at.lookup();
    Addr eh_frame = 0;
    if (module->memory) return find_copied(lookup, *module, context, out);
    if (!module->eh_frame_hdr.empty()) {
      const auto hdr = parse_eh_frame_hdr(module->eh_frame_hdr, lookup.space.arch);
      if (!hdr) return hdr.error();
      if (hdr->table.count != 0) return find_by_table(lookup, *module, hdr->table, context, out);
      eh_frame = hdr->eh_frame;
    }
    if (rest_of_bytes(*module, eh_frame).empty()) {
      module = lookup.module_with_file_sections();
      if (rest_of_bytes(*module, eh_frame).empty()) eh_frame = module->eh_frame.address;
    }
    ModuleBytes bytes(*module, lookup.space.memory, lookup.window);
    return scan_for_fde(FdeScan(bytes, context, rest_of_bytes(*module, eh_frame)), pc, out);
  }

  /// Finds the FDE in a module that may be gone any moment: that is no error.
  [[gnu::cold]] static Found find_copied(Lookup& lookup, const Module& module, CfiContext& context, Fde& out) noexcept {
    std::optional<Found> found;
    if (!module.eh_frame_hdr.empty()) found = find_copied_by_table(lookup, module, context, out);
    if (!found) {
      const Module& with_sections = *lookup.module_with_file_sections();
      SectionView bytes(with_sections.eh_frame);
      const AddrRange entries = rest_of_bytes(with_sections, with_sections.eh_frame.address);
      found = scan_for_fde(FdeScan(bytes, context, entries), lookup.at.lookup(), out);
    }
    Module now;
    return *found || lookup.space.modules.find(lookup.at.lookup(), now) ? *found : Found{false};
  }

  /// Finds the FDE without its instructions, whose bytes are gone when this has returned. Nothing: there is no table.
  [[gnu::cold, gnu::noinline]] static std::optional<Found> find_copied_by_table(Lookup& lookup, const Module& module,
                                                                                CfiContext& context,
                                                                                Fde& out) noexcept {
    const BlockwiseMemory memory(*module.memory);
    const Arch& arch = context.arch;
    const SectionBytes& hdr = module.eh_frame_hdr;
    std::array<std::byte, k_max_eh_frame_hdr> head;
    const auto there = std::span(head).first(std::min(head.size(), hdr.bytes.size()));
    const std::size_t size = memory.read(hdr.address, there, lookup.window);
    const auto parsed = parse_eh_frame_hdr({there.first(size), hdr.address}, hdr.bytes.size(), arch);
    if (!parsed) return parsed.error();
    if (parsed->table.count == 0) return std::nullopt;
    const Addr pc = lookup.at.lookup();
    std::array<std::byte, 4096> room;  // for any entry that compilers make
    MemoryView bytes(memory, lookup.window, room);
    const auto covers = [&](Addr fde) { return read_fde_for(pc, bytes, context, fde, out); };
    const Found read = find_covering(parsed->table, pc, covers, arch.big_endian, memory, lookup.window);
    out.instructions = out.cie.instructions = {};
    return read;
  }

  static Found find_by_table(Lookup& lookup, const Module& module, const FdeTable& table, CfiContext& context,
                             Fde& out) noexcept {
    const Addr pc = lookup.at.lookup();
    const SectionBytes& hdr = module.eh_frame_hdr;
    const auto pairs = hdr.bytes.subspan(static_cast<std::size_t>(table.address - hdr.address));
    ModuleBytes bytes(module, lookup.space.memory, lookup.window);
    const auto covers = [&](Addr fde) { return read_fde_for(pc, bytes, context, fde, out); };
    // The search for tables as every linker makes them is tried first.
    const Addr usual = search_eh_frame_hdr(hdr, pc, context.arch);
    if (const Found found = usual == 0 ? Found(false) : covers(usual); found && *found) return true;
    return find_covering(table, pc, covers, context.arch.big_endian, pairs);
  }
};

constinit const EhFrameSource k_eh_frame;

/// .debug_frame of a module's file is read from the beginning: there is no table.
class DebugFrameSource final : public FdeSource {
 public:
  constexpr DebugFrameSource() noexcept : FdeSource(RowOrigin::debug_frame) {}

 private:
  Found find_fde(Lookup& lookup, CfiContext& context, Fde& out) const noexcept override {
    const Module* module = lookup.module_with_file_sections();
    if (!module || module->debug_frame.empty()) return false;
    const SectionBytes& section = module->debug_frame;
    context.format = CfiContext::Format::debug_frame;
    context.section = section.address;
    context.load_bias = module->load_bias;
    SectionView bytes(section);
    const AddrRange entries{section.address, section.address + section.bytes.size()};
    return scan_for_fde(FdeScan(bytes, context, entries), lookup.at.lookup(), out);
  }
};

constinit const DebugFrameSource k_debug_frame;

/// Reads an FDE and the CIE before it. `view(at, size)` are bytes of memory, or null.
template <class View>
[[gnu::always_inline]] inline bool read_known_fde_in(View view, Addr at, const Arch& arch, CompactCode& out) noexcept {
  struct {
    std::uint32_t length, cie;
  } head;
  const std::byte* const fde = view(at, sizeof head);
  if (!fde) return false;
  std::memcpy(&head, fde, sizeof head);
  const Addr cie_at = cie_before(at + sizeof head.length, head.cie), distance = at - cie_at;
  // The bytes behind a short CIE are read, too. They are in a page of the CIE, or of the FDE behind it.
  const bool is_near = distance < k_page_size || cie_at % k_page_size <= k_page_size - KnownCies::k_looks_at;
  if (cie_at >= at || !is_near || head.length > k_max_cfi_entry) return false;
  const std::size_t size = sizeof head.length + head.length;
  const std::byte* const cie = view(cie_at, KnownCies::k_looks_at);
  if (!cie || static_cast<Addr>(fde - cie) != distance || view(at, size) != fde) return false;
  const std::span all(cie, static_cast<std::size_t>(distance) + size);
  return read_fde_of(known_cies.find_or_learn(all, arch), fde, size, at, out);
}

}  // namespace

[[gnu::hot]] bool read_promised_fde(Addr at, const Arch& arch, CompactCode& out) noexcept {
  const auto view = [](Addr place, std::size_t) { return pointer_to<const std::byte>(place); };
  return read_known_fde_in(view, at, arch, out);
}

bool read_known_fde(Addr at, const Memory& memory, MemoryWindow& window, const Arch& arch, CompactCode& out) noexcept {
  const auto view = [&](Addr place, std::size_t size) { return memory.view(place, size, window); };
  return read_known_fde_in(view, at, arch, out);
}

bool read_lone_fde(const SectionBytes& bytes, const Arch& arch, Fde& out) noexcept {
  std::uint32_t cie_length = 0, behind = 0;
  if (bytes.bytes.size() < sizeof cie_length) return false;
  std::memcpy(&cie_length, bytes.bytes.data(), sizeof cie_length);
  const Addr fde = bytes.address + sizeof cie_length + cie_length;
  CompactCode code;
  if (!read_known_fde(bytes, fde, known_cies, arch, code) || code.cie_place != 0 || code.range.begin == 0) return false;
  read_known_procedure(bytes, fde, code, out);
  const Addr end = fde + out.size - bytes.address;
  if (bytes.bytes.size() - end < sizeof behind) return false;
  std::memcpy(&behind, bytes.bytes.data() + end, sizeof behind);
  return behind == 0;
}

[[gnu::hot]] bool find_usual_row(const Module& module, Addr pc, const CompactLayout& layout, CompactRow& out,
                                 UsualFde& fde) noexcept {
  const Addr at = search_eh_frame_hdr(module.eh_frame_hdr, pc, layout.arch());
  if (at == 0 || !read_known_fde(module.eh_segment, at, known_cies, layout.arch(), fde.code, fde.cie) ||
      !fde.code.range.contains(pc))
    return false;
  fde.at = at;
  return find_compact_row(fde.code, layout, pc, out, fde.row_range);
}

[[gnu::hot]] const RowSource& eh_frame_source() noexcept { return k_eh_frame; }
[[gnu::hot]] const RowSource& debug_frame_source() noexcept { return k_debug_frame; }

}  // namespace jitunwind
