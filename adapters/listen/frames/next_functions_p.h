// The __register_frame family of whoever would be called if this library were not there: libgcc_s, or LLVM's libunwind.
#pragma once

namespace jitunwind {

struct NextFrameFunctions {
  void (*register_frame)(const void* begin) = nullptr;
  void (*register_info)(const void* begin, void* object) = nullptr;
  void (*register_info_bases)(const void* begin, void* object, void* text, void* data) = nullptr;
  void (*register_table)(void* begin) = nullptr;
  void (*register_info_table)(void* begin, void* object) = nullptr;
  void (*register_info_table_bases)(void* begin, void* object, void* text, void* data) = nullptr;
  void (*deregister_frame)(const void* begin) = nullptr;
  void* (*deregister_info)(const void* begin) = nullptr;
  void* (*deregister_info_bases)(const void* begin) = nullptr;
};

/// By search order behind this library, else in libgcc_s where that is loaded. Members are null where there is none.
/// Looked up where it is needed: not signal-safe, takes locks of the dynamic linker.
NextFrameFunctions next_frame_functions() noexcept;

/// Where a call of __register_frame by a library that was loaded with the program goes; null: nowhere, or the program
/// is static. Not signal-safe.
void* first_register_frame() noexcept;

}  // namespace jitunwind
