// Memory for code that tools see in the C interface; sdk/c/code_segments.h.
#include <cstdint>
#include <memory>
#include <utility>

#include "jitunwind/adapters/code_segments/code_segments.h"
#include "jitunwind/sdk/c/code_segments.h"
#include "jitunwind/sdk/c/describing/described_internal.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"

using jitunwind::c::answer;
using jitunwind::c::check;
using jitunwind::c::tell;

struct ju_code_segments {
  static constexpr jitunwind::c::Kind k_kind = jitunwind::c::Kind::code_segments;

  jitunwind::c::Kind kind = k_kind;
  std::unique_ptr<jitunwind::CodeSegments> own;
  jitunwind::CodeSegments& segments;
};

namespace {

/// `What`: a description, or marks.
template <class What, class Handle>
ju_status commit(ju_code_segments* segments, Handle* handle, const ju_code* code, ju_error* error) {
  return answer(error, [&] {
    What* what = nullptr;
    jitunwind::Code place;
    if (const ju_status bad = check(segments, "segments", error)) return bad;
    if (const ju_status bad = jitunwind::c::read_handle(handle, what, error)) return bad;
    if (const ju_status bad = jitunwind::c::read_code(code, place, error)) return bad;
    return tell(error, segments->segments.commit(*what, place), "code");
  });
}

ju_status hand_out(std::unique_ptr<jitunwind::CodeSegments> own, jitunwind::CodeSegments& segments,
                   ju_code_segments** out) {
  return jitunwind::c::hand_out(
      std::unique_ptr<ju_code_segments>(new ju_code_segments{.own = std::move(own), .segments = segments}), out);
}

}  // namespace

ju_status ju_code_new(const ju_code_options* options, ju_code_segments** segments, ju_error* error) {
  return answer(error, [&] {
    ju_code_options asked{};
    if (options)
      if (const ju_status bad = jitunwind::c::read_struct(options, asked, "options", error)) return bad;
    if (!segments) return tell(error, JU_NULL_POINTER, "segments");
    jitunwind::CodeSegmentsOptions sizes;
    if (asked.text_bytes != 0) sizes.text_bytes = asked.text_bytes;
    if (asked.functions != 0) sizes.functions = asked.functions;
    sizes.changes_code = asked.changes_code != 0;
    auto own = std::make_unique<jitunwind::CodeSegments>(sizes);
    jitunwind::CodeSegments& made = *own;
    return hand_out(std::move(own), made, segments);
  });
}

ju_status ju_code_of_environment(ju_code_segments** segments, ju_error* error) {
  return answer(error, [&] {
    if (!segments) return tell(error, JU_NULL_POINTER, "segments");
    *segments = nullptr;
    jitunwind::CodeSegments* const there = jitunwind::CodeSegments::of_environment();
    return there == nullptr ? JU_OK : hand_out(nullptr, *there, segments);
  });
}

ju_status ju_code_free(ju_code_segments* segments) { return jitunwind::c::check_and_free(segments, "segments"); }

ju_status ju_code_allocate(ju_code_segments* segments, size_t size, ju_code_room* room, ju_error* error) {
  return ju_code_allocate_functions(segments, size, 0, 0, room, error);
}

ju_status ju_code_allocate_functions(ju_code_segments* segments, size_t size, size_t more_functions, size_t alignment,
                                     ju_code_room* room, ju_error* error) {
  return answer(error, [&] {
    if (const ju_status bad = check(segments, "segments", error)) return bad;
    if (!room) return tell(error, JU_NULL_POINTER, "room");
    const auto made = segments->segments.allocate(size, more_functions, alignment == 0 ? 16 : alignment);
    if (made) *room = {jitunwind::pointer_to(made->start), made->writable.data(), made->writable.size()};
    return tell(error, made, "size");
  });
}

ju_status ju_code_commit(ju_code_segments* segments, const ju_description* description, const ju_code* code,
                         ju_error* error) {
  return commit<const jitunwind::Description>(segments, description, code, error);
}

ju_status ju_code_commit_marks(ju_code_segments* segments, ju_builder* marks, const ju_code* code, ju_error* error) {
  return commit<jitunwind::c::AnyMarks>(segments, marks, code, error);
}

ju_status ju_code_publish(ju_code_segments* segments, const void* start, size_t size, ju_error* error) {
  return answer(error, [&] {
    if (const ju_status bad = check(segments, "segments", error)) return bad;
    const jitunwind::Addr begin = reinterpret_cast<std::uintptr_t>(start);
    return tell(error, segments->segments.publish({begin, begin + size}), "start");
  });
}

ju_status ju_code_release(ju_code_segments* segments, const void* start, ju_error* error) {
  return answer(error, [&] {
    if (const ju_status bad = check(segments, "segments", error)) return bad;
    return tell(error, segments->segments.release(reinterpret_cast<std::uintptr_t>(start)), "start");
  });
}

ju_status ju_code_seal(ju_code_segments* segments, ju_error* error) {
  return answer(error, [&] {
    if (const ju_status bad = check(segments, "segments", error)) return bad;
    return tell(error, segments->segments.seal(), "segments");
  });
}

ju_status ju_code_status_get(const ju_code_segments* segments, ju_code_status* status, ju_error* error) {
  return answer(error, [&] {
    if (const ju_status bad = check(segments, "segments", error)) return bad;
    const jitunwind::CodeSegmentsStatus now = segments->segments.status();
    ju_code_status out{};
    out.segments = now.segments;
    out.files = now.files;
    out.functions = now.functions;
    out.published = now.published;
    out.refused = now.refused;
    out.latest_refusal = jitunwind::c::latest_refusal(now);
    out.why = now.latest_refusal.what;
    out.sealed = now.sealed;
    return jitunwind::c::write_struct(out, status, "status", error);
  });
}

ju_status ju_code_folder(const ju_code_segments* segments, char* into, size_t room, size_t* length) {
  return answer(nullptr, [&] {
    if (const ju_status bad = check(segments, "segments")) return bad;
    return jitunwind::c::write_text(segments->segments.status().folder, into, room, length);
  });
}
