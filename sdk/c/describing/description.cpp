// The result of a builder, and its properties.
#include <algorithm>
#include <exception>
#include <new>
#include <stdexcept>

#include "jitunwind/builders/shapes/frame_shape.h"
#include "jitunwind/sdk/c/describing/builder_p.h"

using jitunwind::c::answer;
using jitunwind::c::check;
using jitunwind::c::tell;
using jitunwind::c::write_text;

namespace jitunwind::c {
namespace {

template <class Made>
ju_status write_made(const ju_description* description, char* into, size_t room, size_t* length, Made text_of) {
  if (const ju_status bad = check(description, "description")) return bad;
  return answer(nullptr, [&] { return write_text(text_of(description->description), into, room, length); });
}

}  // namespace

ju_status tell_thrown(ju_error* into) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return tell(into, JU_OUT_OF_MEMORY, "");
  } catch (const std::length_error&) {  // an array is larger than any memory
    return tell(into, JU_OUT_OF_MEMORY, "");
  } catch (const std::exception& thrown) {
    return tell(into, JU_UNSPECIFIED, 0, "", thrown.what());
  }
}

}  // namespace jitunwind::c

ju_status ju_build(const ju_builder* builder, ju_description** description, ju_error* error) {
  return answer(error, [&] {
    if (const ju_status bad = check(builder, "builder", error)) return bad;
    if (!description) return tell(error, JU_NULL_POINTER, "description");
    const auto* const recorded = std::get_if<jitunwind::c::AnyBuilder>(&builder->recorder);
    if (!recorded) return tell(error, JU_BAD_VALUE, 0, "builder", "marks are not built: use ju_register_marks()");
    const auto built = recorded->build();
    builder->findings = builder->misuse + (built ? "" : built.error().text());
    if (builder->first_misuse != JU_OK) return tell(error, builder->first_misuse, 0, "builder", builder->findings);
    if (!built) {
      const auto& finding = built.error().decisive();  // for people and for programs that read only one
      const auto offset = static_cast<std::uint64_t>(std::max<std::int64_t>(finding.offset, 0));
      return tell(error, jitunwind::c::status_of(finding.code), offset, "builder", builder->findings);
    }
    return jitunwind::c::hand_out(std::unique_ptr<ju_description>(new ju_description{ju_description::k_kind, *built}),
                                  description);
  });
}

const char* ju_builder_findings(const ju_builder* builder) {
  return check(builder, "builder") == JU_OK ? builder->findings.c_str() : nullptr;
}

ju_status ju_description_copy(const ju_description* description, ju_description** copy, ju_error* error) {
  return answer(error, [&] {
    if (const ju_status bad = check(description, "description", error)) return bad;
    if (!copy) return tell(error, JU_NULL_POINTER, "copy");
    return jitunwind::c::hand_out(std::make_unique<ju_description>(*description), copy);
  });
}

ju_status ju_description_free(ju_description* description) {
  return jitunwind::c::check_and_free(description, "description");
}

ju_status ju_description_get(const ju_description* description, ju_description_facts* facts, ju_error* error) {
  return answer(error, [&] {
    if (const ju_status bad = check(description, "description", error)) return bad;
    const jitunwind::Description& of = description->description;
    ju_description_facts out{};
    out.size = of.size().value_or(0);
    out.min_size = of.min_size();
    out.personality = of.personality();
    out.lsda = of.lsda();
    out.gp = of.gp();
    out.warnings = of.warnings().size();
    out.format = of.format();
    out.cpu = jitunwind::c::cpu_of(of.arch());
    out.shape_users = of.shape().users();
    out.shape_bytes = of.shape().bytes();
    return jitunwind::c::write_struct(out, facts, "facts", error);
  });
}

ju_status ju_description_check_size(const ju_description* description, uint64_t bytes, ju_error* error) {
  return answer(error, [&] {
    if (const ju_status bad = check(description, "description", error)) return bad;
    return tell(error, description->description.check_size(bytes), "bytes");
  });
}

ju_status ju_description_name(const ju_description* description, char* into, size_t room, size_t* length) {
  return jitunwind::c::write_made(description, into, room, length,
                                  [](const auto& of) -> std::string_view { return of.name(); });
}

ju_status ju_description_rows(const ju_description* description, uint64_t bytes, char* into, size_t room,
                              size_t* length) {
  return jitunwind::c::write_made(description, into, room, length,
                                  [&](const auto& of) { return bytes == 0 ? of.to_text() : of.to_text(bytes); });
}

ju_status ju_description_row(const ju_description* description, uint64_t offset, uint64_t bytes, char* into,
                             size_t room, size_t* length) {
  if (const ju_status bad = check(description, "description")) return bad;
  return answer(nullptr, [&] {
    const auto row = description->description.row(offset, bytes);
    if (!row) return jitunwind::c::status_of(row.error().code);
    return write_text(jitunwind::to_text(*row, description->description.arch()), into, room, length);
  });
}

ju_status ju_description_directives(const ju_description* description, char* into, size_t room, size_t* length) {
  return jitunwind::c::write_made(description, into, room, length,
                                  [](const auto& of) { return of.shape().directives_text(); });
}

ju_status ju_description_warnings(const ju_description* description, char* into, size_t room, size_t* length) {
  return jitunwind::c::write_made(description, into, room, length, [](const auto& of) {
    std::string text;
    for (const jitunwind::Finding& finding : of.warnings()) text += finding.text() + "\n";
    return text;
  });
}

void ju_frame_shapes(size_t* shapes, size_t* bytes) {
  const auto now = jitunwind::frame_shape_statistics();
  if (shapes) *shapes = now.shapes;
  if (bytes) *bytes = now.bytes;
}
