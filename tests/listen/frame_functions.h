// The unwinder's functions that JITs call. No header declares them.
#pragma once

extern "C" {
void __register_frame(const void* begin);
void __register_frame_info(const void* begin, void* object);
void __register_frame_info_bases(const void* begin, void* object, void* text, void* data);
void __register_frame_table(void* begin);
void __register_frame_info_table(void* begin, void* object);
void __register_frame_info_table_bases(void* begin, void* object, void* text, void* data);
void __deregister_frame(const void* begin);
void* __deregister_frame_info(const void* begin);
void* __deregister_frame_info_bases(const void* begin);
void* _Unwind_FindEnclosingFunction(void* pc);
}
