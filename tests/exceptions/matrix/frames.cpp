#include "tests/exceptions/matrix/frames.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <typeinfo>

#include "jitunwind/adapters/system_unwinder/system_unwinder.h"
#include "tests/exceptions/handlers/landing_code.h"

using jitunwind::Addr;
using jitunwind::test::AtPad;
using jitunwind::test::LandingFrame;

struct MatrixFrame {
  LandingFrame code;
};
struct MatrixPlace : jitunwind::test::Place {};

namespace {

using jitunwind::test::FrameKind;
using jitunwind::test::LandingOffsets;
using jitunwind::x86_64::Builder;

FrameKind kind_named(std::string_view name) {
  const auto* const kind =
      std::ranges::find_if(jitunwind::test::k_frame_kinds, [&](FrameKind k) { return name_of(k) == name; });
  if (kind != std::end(jitunwind::test::k_frame_kinds)) return *kind;
  std::fprintf(stderr, "no kind of frame has that name\n");
  std::abort();
}

void declare(Builder& builder, const LandingOffsets& at, std::string_view role, const std::type_info* type) {
  if (role == "passes") return;
  if (role == "cleans") {
    builder.call_site(at.call, at.cleaning);
    return;
  }
  builder.call_site(at.call_caught, at.leaving).call_site(at.call, at.catching);
  if (type != nullptr)
    builder.catches(*type);
  else
    builder.catches_all();
}

}  // namespace

MatrixFrame* matrix_frame(const char* kind, const char* role, const void* type, const MatrixPlace* place) {
  const auto tell = [&](Builder& b, const LandingOffsets& at) {
    declare(b, at, role, static_cast<const std::type_info*>(type));
  };
  return new MatrixFrame{LandingFrame(tell, kind, kind_named(kind), place)};
}
void matrix_cancel(MatrixFrame* frame) { delete frame; }
MatrixPlace* matrix_place() { return new MatrixPlace; }
void matrix_give_back(MatrixPlace* place) { delete place; }

long matrix_call(const MatrixFrame* frame, void (*callee)()) { return frame->code(callee); }

bool matrix_contains(const MatrixFrame* frame, std::uintptr_t pc) {
  return pc > frame->code.begin() && pc - frame->code.begin() < frame->code.size();
}

void matrix_at_pads(void (*caught)(void*, int, const AtPad*), void (*cleaned)(const AtPad*)) {
  LandingFrame::caught = [caught](void* object, int selector, const AtPad& at) { caught(object, selector, &at); };
  LandingFrame::cleaned = [cleaned](const AtPad& at) { cleaned(&at); };
}

const char* matrix_path() { return path_name(jitunwind::system_unwinder_status().path); }
const char* matrix_why() { return jitunwind::system_unwinder_status().why; }
