// Frames of code made at run time, registered with this library, for programs of any C++ run-time library: functions of
// C, and types of no library.
#pragma once

#include <cstdint>

#include "tests/exceptions/at_pad.h"

extern "C" {
struct MatrixFrame;

/// `kind`: name_of() a FrameKind. `role`, what an exception finds that leaves the frame's call: "passes", nothing;
/// "cleans", a cleanup; "catches", a handler for `type` (a std::type_info, null: for everything), and one that ends
/// that handler when it is left by an exception. Ends the program where any of it cannot be.
MatrixFrame* matrix_frame(const char* kind, const char* role, const void* type);
/// Calls `callee` below the frame. 0, or behind a handler 100 + the number of the type.
long matrix_call(const MatrixFrame* frame, void (*callee)());
bool matrix_contains(const MatrixFrame* frame, std::uintptr_t pc);

/// What handlers and cleanups of all frames do. Both may throw.
void matrix_at_pads(void (*caught)(void* object, int selector, const jitunwind::test::AtPad*),
                    void (*cleaned)(const jitunwind::test::AtPad*));

/// system_unwinder_status(): path_name() of the path, and why.
const char* matrix_path();
const char* matrix_why();
}
