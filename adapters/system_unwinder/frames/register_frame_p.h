// The unwinder's functions for announcements. They are weak, because a strong reference would pull in a static libgcc's
// own _Unwind_Find_FDE.
#pragma once

extern "C" {
[[gnu::weak]] void __register_frame(const void* begin);
[[gnu::weak]] void __deregister_frame(const void* begin);
// libgcc's functions with memory of the caller's, which the second one returns.
[[gnu::weak]] void __register_frame_info(const void* begin, void* object);
[[gnu::weak]] void* __deregister_frame_info(const void* begin);
}
