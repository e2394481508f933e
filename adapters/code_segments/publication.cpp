// Functions that are committed: registered first, and then published.
#include <new>

#include "jitunwind/adapters/code_segments/segments_state_p.h"
#include "jitunwind/dyn_info/code_shape_internal.h"
#include "jitunwind/dyn_info/registry/observers_internal.h"
#include "jitunwind/sdk/exceptions/fde_encoder_internal.h"
#include "jitunwind/unwind_core/trace/log.h"

namespace jitunwind {

void CodeSegments::State::enter(Place place, std::span<const std::byte> frames, std::string_view name,
                                Registration& registration) noexcept {
  const AddrRange code = registration.range();
  if (place.segment->is_published() && !place.segment->publish(place.index, code.size(), frames, name))
    refuse({ErrorCode::too_deep, code.begin, "the segment's tables have no room for it"});
  place.function().registered = registration.release();
  place.function().state = Segment::Function::State::committed;
  ++committed;
  --place.segment->open;
  renew_if_it_is_time(*place.segment);
  is_some_full = is_some_full || is_full(*place.segment);
  work_ahead();
}

namespace {

/// False: its rows are those of other code (ALIAS), or it has too many directives to know.
bool has_frames_of_its_shape(Addr start) noexcept {
  const ProcedureHold hold(start);
  return hold.info() != nullptr && hold.info()->start_ip == start && find_shape(hold) != nullptr;
}

/// Passes on what the encoder makes of a procedure, for the place behind the segment's last entry.
template <class Enter>
class FramePublisher final : public FdeReceiver {
 public:
  FramePublisher(Segment& segment, Addr start, Enter enter) noexcept
      : segment_(segment), start_(start), enter_(enter) {}

  Addr place() noexcept override {
    const SegmentsLock lock;
    return place_ = segment_.next_frame();
  }
  void fde(AddrRange code, std::span<const std::byte> bytes) override {
    const SegmentsLock lock;
    is_outrun_ = place_ != segment_.next_frame();
    if (!is_outrun_ && !is_entered_ && code.begin == start_) enter_(bytes, nullptr), is_entered_ = true;
  }
  void refused(const Error& error) noexcept override {
    const SegmentsLock lock;
    if (!std::exchange(is_entered_, true)) enter_({}, &error);
  }
  /// True: another thread took the place meanwhile.
  bool is_outrun() const noexcept { return is_outrun_ && !is_entered_; }
  void finish() noexcept {
    if (!is_entered_) refused({ErrorCode::no_info, start_, "other code was registered there meanwhile"});
  }

 private:
  Segment& segment_;
  const Addr start_;
  Enter enter_;
  Addr place_ = 0;
  bool is_entered_ = false;
  bool is_outrun_ = false;
};

}  // namespace

bool CodeSegments::State::publish_known(Place place, std::string_view name, const KnownFrames::Key& key,
                                        Registration& registration) {
  const SegmentsLock lock;
  const std::span<const std::byte> frames = known_frames.find(key);
  if (!frames.empty()) enter(place, frames, name, registration);
  return !frames.empty();
}

void CodeSegments::State::publish_encoded(Place place, std::string_view name, KnownFrames::Entry& encoded,
                                          Registration& registration) {
  const auto enter = [&](std::span<const std::byte> frames, const Error* error) {
    if (error != nullptr) refuse(*error);
    if (error == nullptr && encoded.key.shape) encoded.frames.assign(frames.begin(), frames.end());
    this->enter(place, frames, name, registration);
  };
  const AddrRange code = registration.range();
  FramePublisher publisher(*place.segment, code.begin, enter);
  do {
    encode_fdes(code, publisher);
  } while (publisher.is_outrun());
  publisher.finish();
}

void CodeSegments::State::publish(Place place, std::string_view name, KnownFrames::Key key,
                                  Registration& registration) {
  Line known_name;
  known_name.foreign(name);
  if (publish_known(place, known_name.view(), key, registration)) return;
  KnownFrames::Entry encoded{std::move(key), {}};
  if (!has_frames_of_its_shape(registration.range().begin)) encoded.key = {};
  publish_encoded(place, known_name.view(), encoded, registration);
  if (encoded.frames.empty()) return;
  const SegmentsLock lock;
  known_frames.swap(encoded);
}

template <class Register>
Status CodeSegments::State::commit(const Code& code, std::string_view name, KnownFrames::Key key,
                                   Register register_it) noexcept {
  Place place;
  {
    const SegmentsLock lock;
    place = find(code.start, Segment::Function::State::allocated);
    if (!place) return k_unknown;
    if (code.size > place.function().size) return Error{ErrorCode::e_overlap, code.start, "larger than its room"};
    place.function().state = Segment::Function::State::busy;
  }
  auto* const begin = reinterpret_cast<char*>(static_cast<std::uintptr_t>(code.start));
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
  *registered = Registration::adopt(procedure);
  try {
    if (place.segment->is_published()) publish(place, name, std::move(key), *registered);
  } catch (const std::bad_alloc&) {
    const SegmentsLock lock;
    refuse({ErrorCode::out_of_memory, code.start, "no memory for call frame information"});
  }
  if (*registered) {
    const SegmentsLock lock;
    enter(place, {}, {}, *registered);
  }
  if (observers.any()) tell_registered({&procedure, 1});
  return Done{};
}

Status CodeSegments::State::commit(const Description& description, const Code& code) noexcept {
  const std::string_view name = code.name.empty() ? std::string_view(description.name()) : code.name;
  return commit(code, name, KnownFrames::key_of(description, code), [&] { return register_code(description, code); });
}

Status CodeSegments::State::commit(MarkRecorder& marks, const Code& code) noexcept {
  return commit(code, code.name, {}, [&] { return register_marks(marks, code); });
}

}  // namespace jitunwind
