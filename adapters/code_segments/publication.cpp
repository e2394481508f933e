// Functions that are committed: registered first, and then published.
#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "jitunwind/adapters/code_segments/segments_state_p.h"
#include "jitunwind/dyn_info/code_shape_internal.h"
#include "jitunwind/dyn_info/registry/observers_internal.h"
#include "jitunwind/sdk/exceptions/fde_encoder_internal.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/rows/dwarf_constants_internal.h"
#include "jitunwind/unwind_core/trace/log.h"

namespace jitunwind {
namespace {

/// The length of the number behind the opcode; 0: it is in the opcode.
std::size_t length_of_distance(std::uint64_t units) noexcept {
  return units < 0x40 ? 0 : units <= 0xff ? 1 : units <= 0xffff ? 2 : 4;
}

}  // namespace

KnownFrames::Key KnownFrames::key_of(const MarkRecorder& marks, const Code& code, Words& words) noexcept {
  const auto [personality, own_lsda, gp] = marks.facts();
  const Addr lsda = code.lsda != 0 ? code.lsda : own_lsda;
  Key key{{code.size, personality, personality != 0 ? lsda : 0}};
  if (marks.ops().size() > k_most_marks) return key;
  std::memcpy(words.data(), marks.ops().data(), marks.ops().size_bytes());
  std::uint64_t* const end = std::ranges::copy(marks.entry_regions(), &words[2 * marks.ops().size()]).out;
  *end = marks.entry_regions().size();
  key.marks = {words.data(), end + 1};
  return key;
}

void KnownFrames::Entry::assign(const Key& key, std::span<const std::byte> its_frames,
                                const unw_dyn_info_t& procedure) {
  marks.assign(key.marks.begin(), key.marks.end());
  frames.assign(its_frames.begin(), its_frames.end());
  if (key.shape != nullptr) shape = *key.shape;
  Facts::operator=(key);
  unit = local_space().arch.unit;
  const std::uint64_t units = size / unit;
  const std::uint64_t* word = marks.data();
  for (const unw_dyn_region_info_t* of = procedure.u.pi.regions; of != nullptr; of = of->next) {
    if (marks.empty() && !add_length(*of, front, tail)) unit = 0;
    for (const unw_dyn_op_t& op : std::span(of->op, of->op_count)) {
      if (op.tag == UNW_DYN_STOP) break;  // behind it are data, and no marks
      if (op.tag == UNW_DYN_ALIAS) return frames.clear();
      if (marks.empty()) continue;
      unw_dyn_op_t said;
      std::memcpy(&said, std::exchange(word, word + 2), sizeof said);
      if (said.when <= 0 && op.when != said.when)
        tail = std::max(tail, units - 1 - static_cast<std::uint64_t>(op.when));
      else
        front = std::max(front, static_cast<std::uint64_t>(op.when + 1));
    }
  }
  bool is_usual = unit != 0 && has_distance(size);
  ByteReader entries(frames, false);
  entries.skip(entry_size(frames.data()) + k_fde_instructions + (lsda != 0 ? sizeof(Addr) : 0));
  for (std::uint64_t location = 0; is_usual && !entries.at_end() && distance_at == 0;) {
    const std::size_t at = entries.position();
    const std::uint8_t op = entries.u8(), kind = op & 0xc0;
    const bool is_long = op >= dwarf::cfa_advance_loc1 && op <= dwarf::cfa_advance_loc4;
    if (is_long || kind == dwarf::cfa_advance_loc) {
      const std::uint64_t distance =
          is_long ? entries.unsigned_of(std::size_t{1} << (op - dwarf::cfa_advance_loc1)) : op & 0x3f;
      location += distance;
      if (location > front) distance_at = at, rest = units - distance;
    } else if (kind == dwarf::cfa_offset || op == dwarf::cfa_def_cfa_offset || op == dwarf::cfa_def_cfa_register) {
      (void)entries.uleb();
    } else if (op == dwarf::cfa_def_cfa) {
      (void)entries.uleb(), (void)entries.uleb();
    } else {
      is_usual = kind == dwarf::cfa_restore || op == dwarf::cfa_nop;
    }
  }
  if (!is_usual || !entries.ok()) unit = 0;
}

bool KnownFrames::Entry::resize(std::uint64_t new_size) noexcept {
  if (unit == 0 || !has_distance(new_size)) return false;
  if (distance_at != 0) {
    const std::uint64_t distance = new_size / unit - rest;
    const std::size_t length = length_of_distance(distance);
    if (length != length_of_distance(size / unit - rest) || distance > UINT32_MAX) return false;
    if (length == 0) frames[distance_at] = static_cast<std::byte>(dwarf::cfa_advance_loc | distance);
    std::memcpy(&frames[distance_at] + 1, &distance, length);
  }
  std::memcpy(&frames[entry_size(frames.data())] + k_fde_range, &new_size, sizeof new_size);
  size = new_size;
  return true;
}

void KnownFrames::Entry::point(Addr place, Addr to_lsda) noexcept {
  const FdePointers at = pointers_of(frames.data());
  const auto point = [&](std::size_t at, Addr to) {
    const Addr distance = to - (place + at);
    if (at != 0) std::memcpy(&frames[at], &distance, sizeof distance);
  };
  point(at.personality, personality), point(at.lsda, to_lsda);
}

void CodeSegments::State::enter(Place room, AddrRange code, std::span<const std::byte> frames,
                                std::string_view name) noexcept {
  const auto entry = room.segment->take_entry(room.index, code.begin);
  if (entry && room.segment->publish(*entry, code.size(), frames, name)) return;
  const char* const lack = entry ? room.segment->memory().lack() : nullptr;
  refuse(lack != nullptr ? Error{ErrorCode::io, code.begin, lack}
                         : Error{ErrorCode::too_deep, code.begin, "the segment's tables have no room for it"});
}

void CodeSegments::State::finish(Place room, unw_dyn_info_t* procedure) noexcept {
  room.function().registered = procedure;
  room.function().state = Segment::Function::State::committed;
  ++committed;
  end_writing(room);
}

void CodeSegments::State::end_writing(Place room) noexcept {
  if (std::exchange(room.function().is_open, false)) --room.segment->open;
  renew_if_it_is_time(*room.segment);
  if (is_full(*room.segment)) is_some_full = true, work_ahead();
}

namespace {

/// Passes on what the encoder makes of a procedure, for the place behind the segment's last entry; or the name alone.
template <class Enter>
class FramePublisher final : public FdeReceiver {
 public:
  FramePublisher(Segment& segment, Enter enter) noexcept : segment_(segment), enter_(enter) {}

  void publish(AddrRange code) {
    bool is_passed_on = false;
    for (std::optional<Addr> from = code.begin; from;) {
      is_passed_on_ = false;
      outrun_.reset();
      encode_fdes({*from, code.end}, *this);
      is_passed_on |= is_passed_on_;
      from = outrun_;
    }
    if (!is_passed_on) pass_on(code, {}, nullptr);
  }

  Addr place() noexcept override {
    const SegmentsLock lock;
    return place_ = segment_.next_frame();
  }
  void fde(AddrRange code, std::span<const std::byte> bytes) override {
    if (!outrun_) pass_on(code, bytes, nullptr);
  }
  void refused(const Error& error) noexcept override {
    if (!outrun_) pass_on({error.at, error.at + 1}, {}, &error);
  }

 private:
  void pass_on(AddrRange code, std::span<const std::byte> frames, const Error* error) {
    Line name;
    if (const ProcedureHold hold(code.begin); const unw_dyn_info_t* const info = hold.info()) {
      if (info->u.rti.name_ptr != 0) name.text(reinterpret_cast<const char*>(info->u.rti.name_ptr));
      if (info->start_ip == code.begin) code.end = info->end_ip;
    }
    const SegmentsLock lock;
    is_passed_on_ = frames.empty() || place_ == segment_.next_frame();
    if (is_passed_on_)
      enter_(code, frames, name.view(), error);
    else
      outrun_ = code.begin;
  }

  Segment& segment_;
  Enter enter_;
  Addr place_ = 0;
  bool is_passed_on_ = false;
  std::optional<Addr> outrun_;  // the code from which on another thread took the place meanwhile
};

/// The end of the registered procedure there; `at` if there is none.
Addr end_of_procedure(Addr at) noexcept {
  const ProcedureHold hold(at);
  return hold.info() == nullptr ? at : hold.info()->end_ip;
}

}  // namespace

template <class Keep>
void CodeSegments::State::publish_encoded(Place room, AddrRange code, Keep keep) noexcept try {
  bool is_known = false;
  const Addr start = code.begin;
  FramePublisher publisher(*room.segment, [&](AddrRange function, std::span<const std::byte> frames,
                                              std::string_view name, const Error* error) {
    is_known = true;
    if (error != nullptr) refuse(*error);
    if (function.begin == start) keep(frames);
    enter(room, function, frames, name);
  });
  for (Addr at = code.begin; at < code.end;) {
    const Addr end = std::min(end_of_procedure(at), code.end);
    if (at != end) publisher.publish({at, end});
    at = at == end ? at + local_space().arch.unit : end;
  }
  if (is_known) return;
  const SegmentsLock lock;
  refuse({ErrorCode::no_info, start, "no code is registered there any more"});
} catch (const std::bad_alloc&) {
  const SegmentsLock lock;
  refuse({ErrorCode::out_of_memory, code.begin, "no memory for call frame information"});
}

void CodeSegments::State::publish(Place room, std::string_view name, const KnownFrames::Key& key,
                                  unw_dyn_info_t* procedure) noexcept {
  {
    const SegmentsLock lock;
    if (!room.segment->is_published()) return finish(room, procedure);
    if (const auto frames = known_frames.find(key, room.segment->next_frame()); !frames.empty())
      return enter(room, code_of(*procedure), frames, name), finish(room, procedure);
  }
  KnownFrames::Entry encoded;  // destroyed without the lock
  publish_encoded(room, code_of(*procedure), [&](std::span<const std::byte> frames) {
    if (key && !frames.empty() && frames.size() <= KnownFrames::k_most_frames) encoded.assign(key, frames, *procedure);
  });
  const SegmentsLock lock;
  if (!encoded.frames.empty()) known_frames.exchange(key, encoded);
  finish(room, procedure);
}

Status CodeSegments::State::publish(AddrRange code) noexcept {
  const auto begin = pointer_to<char>(code.begin);
  Place room;
  {
    const SegmentsLock lock;
    room = find_around(code);
    if (!room) return k_unknown;
    room.function().state = Segment::Function::State::busy;
  }
  __builtin___clear_cache(begin, begin + code.size());
  if (room.segment->is_published()) publish_encoded(room, code, [](auto) {});
  const SegmentsLock lock;
  room.function().state = Segment::Function::State::allocated;
  end_writing(room);
  return Done{};
}

template <class Register>
Status CodeSegments::State::commit(const Code& code, std::string_view name, const KnownFrames::Key& key,
                                   Register register_it) noexcept {
  Place place;
  {
    const SegmentsLock lock;
    place = find(code.start, Segment::Function::State::allocated);
    if (!place) return k_unknown;
    if (code.size > place.function().size) return Error{ErrorCode::e_overlap, code.start, "larger than its room"};
    place.function().state = Segment::Function::State::busy;
  }
  auto* const begin = pointer_to<char>(code.start);
  __builtin___clear_cache(begin, begin + code.size);
  Result<Registration> registered = [&] {
    const ToldLater told(code.start);
    return register_it();
  }();
  if (!registered) {
    const SegmentsLock lock;
    place.function().state = Segment::Function::State::allocated;
    return registered.error();
  }
  unw_dyn_info_t* const procedure = registered->release();
  publish(place, name, key, procedure);
  if (observers.any()) tell_registered({&procedure, 1});
  return Done{};
}

Status CodeSegments::State::commit(const Description& description, const Code& code) noexcept {
  const std::string_view name = code.name.empty() ? std::string_view(description.name()) : code.name;
  return commit(code, name, KnownFrames::key_of(description, code), [&] { return register_code(description, code); });
}

Status CodeSegments::State::commit(MarkRecorder& marks, const Code& code) noexcept {
  KnownFrames::Words said;
  return commit(code, code.name, KnownFrames::key_of(marks, code, said), [&] { return register_marks(marks, code); });
}

}  // namespace jitunwind
