// The unwinder's functions that are told of frames. Weak: whoever needs a strong reference would pull a static libgcc's
// own _Unwind_Find_FDE in.
#pragma once

extern "C" {
[[gnu::weak]] void __register_frame(const void* begin);
[[gnu::weak]] void __deregister_frame(const void* begin);
// libgcc's: with memory of the caller's, which the second function returns.
[[gnu::weak]] void __register_frame_info(const void* begin, void* object);
[[gnu::weak]] void* __deregister_frame_info(const void* begin);
}
