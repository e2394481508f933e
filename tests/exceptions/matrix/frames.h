// Frames of code made at run time, registered with this library, for programs of any C++ run-time library: functions of
// C, and types of no library.
#pragma once

#include <cstdint>

#include "tests/exceptions/at_pad.h"

extern "C" {
struct MatrixFrame;
struct MatrixPlace;

/// `kind`: name_of() a FrameKind. `role`, what an exception finds that leaves the frame's call: "passes", nothing;
/// "cleans", a cleanup; "catches", a handler for `type` (a std::type_info, null: for everything), and one that ends
/// that handler when it is left by an exception. Ends the program where any of it cannot be. `place`: where its code
/// is, one frame at a time; null: anywhere.
MatrixFrame* matrix_frame(const char* kind, const char* role, const void* type, const MatrixPlace* place);
void matrix_cancel(MatrixFrame* frame);
MatrixPlace* matrix_place();
void matrix_give_back(MatrixPlace* place);
/// Calls `callee` below the frame. Returns 0, or, behind a handler, 100 + the number of the type.
long matrix_call(const MatrixFrame* frame, void (*callee)());
bool matrix_contains(const MatrixFrame* frame, std::uintptr_t pc);

/// Sets the functions that handlers and cleanups of all frames call. Both may throw.
void matrix_at_pads(void (*caught)(void* object, int selector, const jitunwind::test::AtPad*),
                    void (*cleaned)(const jitunwind::test::AtPad*));

/// system_unwinder_status(): path_name() of the path, and why.
const char* matrix_path();
const char* matrix_why();
}
