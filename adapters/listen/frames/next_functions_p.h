// The __register_frame family that would be called without this library: that of libgcc_s, or of LLVM's libunwind.
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

/// Functions that follow this library in search order, else those of libgcc_s if it is loaded. Missing members are
/// null. Each call looks them up: not signal-safe, takes locks of the dynamic linker.
NextFrameFunctions next_frame_functions() noexcept;

/// The target of a call of __register_frame by a library that was loaded with the program; null: there is none, or the
/// program is static. Not signal-safe.
void* first_register_frame() noexcept;

}  // namespace jitunwind
