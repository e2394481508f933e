#include "jitunwind/dyn_info/target_list.h"

#include <array>
#include <new>
#include <optional>
#include <vector>

#include "jitunwind/dyn_info/list_index_internal.h"
#include "jitunwind/dyn_info/procedure_rows_p.h"
#include "jitunwind/dyn_info/target_heads_internal.h"
#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {
namespace {

constexpr unsigned k_attempts = 8;
constexpr std::uint32_t k_max_reads = 1u << 20;  // in all attempts; one for each procedure

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

/// The target's memory with a count of its reads for one question.
class CountedMemory final : public Memory {
 public:
  explicit CountedMemory(const Memory& memory) noexcept : memory_(memory) {}
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override {
    ++reads_;
    return memory_.read(at, into, window);
  }
  const std::byte* view(Addr at, std::size_t size, MemoryWindow& window) const noexcept override {
    return memory_.view(at, size, window);
  }
  bool too_many() const noexcept { return reads_ >= k_max_reads; }

 private:
  const Memory& memory_;
  mutable std::uint64_t reads_ = 0;
};

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

/// The members of a descriptor by which a list is walked.
struct ListMember {
  Addr next = 0;
  AddrRange code{};
};

/// Reads the first four words of a descriptor.
Result<ListMember> member_at(Addr at, const Lookup& lookup, const Memory& memory) noexcept {
  const Arch& arch = lookup.space.arch;
  std::array<std::byte, 4 * 8> bytes;
  const auto used = std::span(bytes).first(4 * arch.word_size);
  if (memory.read(at, used, lookup.window) != used.size())
    return unreadable(lookup.window, at, "descriptor of a procedure");
  ByteReader reader(used, arch.big_endian, at);
  ListMember member;
  member.next = reader.unsigned_of(arch.word_size);
  reader.skip(arch.word_size);  // prev
  member.code.begin = reader.unsigned_of(arch.word_size);
  member.code.end = reader.unsigned_of(arch.word_size);
  return member;
}

/// Calls `visit(where, code)` for the procedures of a list, the newest first, until it returns false. Throws the
/// exceptions of `visit`.
template <class Visit>
Status for_each_procedure(Addr first, const Lookup& lookup, const CountedMemory& memory, Visit visit) {
  const Arch& arch = lookup.space.arch;
  Addr marked = 0;  // Brent's cycle detection
  std::uint32_t next_mark = 1;
  for (std::uint32_t i = 0; first != 0; ++i) {
    if (first == marked || memory.too_many()) return Error{ErrorCode::e_cycle, first, "list of procedures"};
    if (i == next_mark) {
      marked = first;
      next_mark *= 2;
    }
    const Result<ListMember> member = member_at(first, lookup, memory);
    if (!member) return member.error();
    if (!matches_nothing(member->code, arch) && !visit(first, member->code)) break;
    first = member->next;
  }
  return Done{};
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

/// Makes an index of the whole list by address; `changes` are the list's. An index is valid only if the generation was
/// the same before and after.
Status make_index(Addr list, const ListHead::Changes& changes, const ListState& state, const Lookup& lookup,
                  const CountedMemory& memory, ListIndex& out) noexcept try {
  std::vector<ListIndex::Procedure> procedures;
  const Status walked = for_each_procedure(state.first, lookup, memory, [&](Addr descriptor, const AddrRange& code) {
    procedures.push_back({code, descriptor});
    return true;
  });
  if (!walked) return walked.error();
  const auto count =
      state.is_changing() ? std::nullopt : count_changes(changes, memory, lookup.space.arch, lookup.window);
  const Result<ListState> after = read_state(list, memory, lookup);
  if (!after) return after.error();
  if (after->generation == state.generation && out.make(list, state.generation, procedures, count)) return Done{};
  return Error{ErrorCode::unspecified, list, "list of procedures keeps changing"};
} catch (const std::bad_alloc&) {
  return Error{ErrorCode::out_of_memory, list, "list of procedures"};
}

/// Does the same as find_in_list() by an index, which is made if it is of another generation.
Result<std::optional<unw_dyn_info_t>> find_by_index(ListIndex& index, Addr list, const ListHead::Changes& changes,
                                                    const ListState& state, Addr at, const Lookup& lookup,
                                                    const CountedMemory& memory, Addr& where) noexcept {
  if (!index.is_of(list, state.generation))
    if (const Status made = make_index(list, changes, state, lookup, memory, index); !made) return made.error();
  where = index.find(at);
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
    ListIndex* const index = head.index_of(number, is_changing);
    const bool was_known = index && !(now && is_changing) && index->is_of(list, before->generation);
    if (was_known && index->find(at) == 0) return none;
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

void append_listed_code(const ListHead& head, Lookup& lookup, std::vector<AddrRange>& out) {
  const CountedMemory memory(lookup.space.memory);
  for (std::size_t number = 0; number < ListHead::k_most; ++number) {
    const Result<Addr> list = head.list_head(number, lookup.window);
    if (!list || *list == 0) return;
    const Result<ListState> state = read_state(*list, memory, lookup);
    if (!state) continue;
    (void)for_each_procedure(state->first, lookup, memory, [&](Addr, const AddrRange& code) {
      out.push_back(code);
      return true;
    });
  }
}

}  // namespace jitunwind
