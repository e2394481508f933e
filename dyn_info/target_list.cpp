#include "jitunwind/dyn_info/target_list.h"

#include <array>
#include <optional>

#include "jitunwind/dyn_info/list_walk_p.h"
#include "jitunwind/dyn_info/procedure_rows_internal.h"
#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {
namespace {

constexpr unsigned k_attempts = 8;

Result<ListState> read_state(Addr head, const Memory& memory, const Lookup& lookup) noexcept {
  return read_list_state(head, memory, lookup.space.arch, lookup.window);
}

/// The target's unw_dyn_info_t in the layout of its compiler. Words are widened, and pointers stay addresses of the
/// target.
unw_dyn_info_t read_descriptor(ByteReader& reader, std::size_t word) noexcept {
  const auto address = [&] { return reader.unsigned_of(word); };
  unw_dyn_info_t info{};
  info.next = pointer_to<unw_dyn_info_t>(address());
  (void)address();  // prev
  info.start_ip = address();
  info.end_ip = address();
  info.gp = address();
  info.format = static_cast<std::int32_t>(reader.u32());
  (void)reader.u32();  // pad
  if (info.format == UNW_INFO_FORMAT_DYNAMIC) {
    info.u.pi.name_ptr = address();
    info.u.pi.handler = address();
    info.u.pi.flags = reader.u32();
    (void)reader.u32();  // pad0
    info.u.pi.regions = pointer_to<unw_dyn_region_info_t>(address());
    return info;
  }
  info.u.rti.name_ptr = address();
  info.u.rti.segbase = address();
  info.u.rti.table_len = address();
  info.u.rti.table_data = address();
  // A table that is local to the target is remote here.
  if (info.format == UNW_INFO_FORMAT_TABLE) info.format = UNW_INFO_FORMAT_REMOTE_TABLE;
  return info;
}

constexpr std::size_t descriptor_size(std::size_t word) noexcept { return 8 * word + 16; }
static_assert(sizeof(void*) != 8 || descriptor_size(8) == sizeof(unw_dyn_info_t));

Result<unw_dyn_info_t> descriptor_at(Addr at, const Lookup& lookup, const Memory& memory) noexcept {
  const Arch& arch = lookup.space.arch;
  std::array<std::byte, descriptor_size(8)> bytes;
  const auto used = std::span(bytes).first(descriptor_size(arch.word_size));
  if (memory.read(at, used, lookup.window) != used.size())
    return unreadable(lookup.window, at, "descriptor of a procedure");
  ByteReader reader(used, arch.big_endian, at);
  return read_descriptor(reader, arch.word_size);
}

/// Reads the descriptor that was found for `at`; `where` is 0 if none was found.
Result<std::optional<unw_dyn_info_t>> read_found(Addr where, Addr at, const Lookup& lookup,
                                                 const Memory& memory) noexcept {
  if (where == 0) return std::optional<unw_dyn_info_t>();
  const Result<unw_dyn_info_t> info = descriptor_at(where, lookup, memory);
  if (!info) return info.error();
  // A descriptor with another range belongs to another generation, which the caller notices afterwards.
  if (at < info->start_ip || at >= info->end_ip) return std::optional<unw_dyn_info_t>();
  return std::optional(*info);
}

/// Finds the newest procedure that covers `at`; it is the first one in the list. Returns nothing when none covers it.
Result<std::optional<unw_dyn_info_t>> find_in_list(Addr first, Addr at, const Lookup& lookup,
                                                   const CountedMemory& memory, Addr& where) noexcept {
  where = 0;
  const Status walked = for_each_procedure(first, lookup, memory, [&](Addr descriptor, const AddrRange& code) {
    if (code.contains(at)) where = descriptor;
    return where == 0;
  });
  if (!walked) return walked.error();
  return read_found(where, at, lookup, memory);
}

/// Does the same as find_in_list() by an index, which is made if it is of another generation.
Result<std::optional<unw_dyn_info_t>> find_by_index(WalkedListIndex& index, Addr list, const ListHead::Changes& changes,
                                                    const ListState& state, Addr at, const Lookup& lookup,
                                                    const CountedMemory& memory, Addr& where) noexcept {
  if (!index.is_of(list, state.generation))
    if (const Status made = index.walk({list, changes, state, lookup, memory}); !made) return made.error();
  where = index.find_procedure(at);
  return read_found(where, at, lookup, memory);
}

/// Returns `read` of the descriptor at an address, or `none`, under one generation of the list. A target that was
/// stopped within a change has an odd generation forever. Its chain is still whole, as each link is stored at once. A
/// list whose generation changes all the time costs no more than a list without an end, because reads are counted over
/// all attempts.
///
/// A running target gets one attempt, since its former state cannot be read again. If the index knows that no procedure
/// is there, no memory is read that may have changed. The index keeps the state in which the target was stopped,
/// whatever the list is now; later changes are learned when the target is stopped again.
template <class T, class Read>
Result<T> read_one_list(const ListHead& head, std::size_t number, Addr list, Lookup& lookup, Addr at, T none,
                        Read read) noexcept {
  const CountedMemory memory(lookup.space.memory);
  const Memory* const now = head.memory_now();
  for (unsigned attempt = 1;; ++attempt) {
    const Result<ListState> before = read_state(list, lookup.space.memory, lookup);
    if (!before) return before.error();
    const bool is_changing = before->is_changing();
    if (is_changing && !now && attempt < k_attempts) continue;
    WalkedListIndex* const index = head.index_of(number, is_changing);
    const bool was_known = index && !(now && is_changing) && index->is_of(list, before->generation);
    if (was_known && index->find_procedure(at) == 0) return none;
    const Result<T> answer = [&]() -> Result<T> {
      Addr where = 0;
      const auto info = index ? find_by_index(*index, list, head.changes_of(number), *before, at, lookup, memory, where)
                              : find_in_list(before->first, at, lookup, memory, where);
      if (!info) return info.error();
      return *info ? read(**info, where, memory) : Result<T>(none);
    }();
    const Result<ListState> after = read_state(list, now ? *now : lookup.space.memory, lookup);
    if (!after) return after.error();
    if (after->generation == before->generation && !(now && is_changing)) return answer;
    if (index && !was_known) index->forget();
    if (now) return Error{ErrorCode::unspecified, list, "list of procedures has changed since the target was let go"};
    if (attempt == k_attempts || memory.too_many())
      return Error{ErrorCode::unspecified, list, "list of procedures keeps changing"};
  }
}

/// The first list that has the address answers. A broken list does not hide the answer of another.
template <class T, class Read>
Result<T> read_consistently(const ListHead& head, Lookup& lookup, Addr at, T none, Read read) noexcept {
  std::optional<Error> failed;
  for (std::size_t number = 0; number < ListHead::k_most; ++number) {
    const Result<Addr> list = head.list_head(number, lookup.window);
    if (!list) return failed.value_or(list.error());
    if (*list == 0) break;
    const Result<T> answer = read_one_list<T>(head, number, *list, lookup, at, none, read);
    if (answer && *answer != none) return answer;
    if (!answer && !failed) failed = answer.error();
  }
  if (failed) return *failed;
  return none;
}

/// The memory of a descriptor's parts in the target.
class TargetParts {
 public:
  TargetParts(const Lookup& lookup, const Memory& memory) noexcept
      : regions_(memory, lookup.window, lookup.space.arch), memory_(memory) {}
  DescriptionParts parts() noexcept { return {regions_, memory_, memory_, buffer_}; }

 private:
  MemoryRegionReader regions_;
  const Memory& memory_;
  std::array<std::byte, 4096> buffer_;  // holds any entry that compilers make
};

class ListedProcedures final : public Procedures {
 public:
  explicit ListedProcedures(const ListHead& head) noexcept : head_(head) {}
  Result<ProcedureAnswer> ask(Addr at, Lookup& lookup, AnyRow& row, OutcomeRoom& room) const noexcept override {
    return read_consistently(head_, lookup, at, ProcedureAnswer::none,
                             [&](const unw_dyn_info_t& info, Addr, const Memory& memory) -> Result<ProcedureAnswer> {
                               TargetParts target(lookup, memory);
                               return ask_procedure(info, target.parts(), at, lookup, row, room);
                             });
  }

 private:
  const ListHead& head_;
};

}  // namespace

/// Reads version, generation, first: docs/registry.md "Finding the list".
Result<ListState> read_list_state(Addr head, const Memory& memory, const Arch& arch, MemoryWindow& window) noexcept {
  constexpr std::uint32_t k_newest_version = 1;  // nongnu's libunwind leaves 0
  std::array<std::byte, 16> bytes;
  const auto used = std::span(bytes).first(8u + arch.word_size);
  if (memory.read(head, used, window) != used.size()) return unreadable(window, head, "list of procedures");
  ByteReader reader(used, arch.big_endian, head);
  if (reader.u32() > k_newest_version) return Error{ErrorCode::unsupported_version, head, "list of procedures"};
  ListState state;
  state.generation = reader.u32();
  state.first = reader.unsigned_of(arch.word_size);
  return state;
}

Found TargetList::find_row(Lookup& lookup, FrameRow& out) const noexcept {
  return jitunwind::find_row(ListedProcedures(head_), lookup, out);
}

RowAnswer TargetList::find_any_row(Lookup& lookup, AnyRow& out) const noexcept {
  return jitunwind::find_row(ListedProcedures(head_), lookup, out);
}

Found TargetList::find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept {
  const Addr at = lookup.at.lookup();
  return read_consistently(head_, lookup, at, false,
                           [&](const unw_dyn_info_t& info, Addr where, const Memory& memory) -> Found {
                             TargetParts target(lookup, memory);
                             const Found found = ask_procedure_info(info, target.parts(), at, lookup, out);
                             if (found && *found && info.format == UNW_INFO_FORMAT_DYNAMIC) out.unwind_info = where;
                             return found;
                           });
}

Found TargetList::find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept {
  return read_consistently(head_, lookup, lookup.at.lookup(), false,
                           [&](const unw_dyn_info_t& info, Addr, const Memory& memory) -> Found {
                             const Addr name = info.u.pi.name_ptr;  // the first member whatever the format
                             if (name == 0) return false;
                             out.start = info.start_ip;
                             return read_name(memory, name, into, lookup.window, out);
                           });
}

}  // namespace jitunwind
