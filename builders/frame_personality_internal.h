// The personality routine of procedures with a FrameHandler. The declaration is here because descriptions name the
// routine; its definition is in the layer that can resume a frame. Every assembled library has both.
#pragma once

#include <unwind.h>

/// Has the type _Unwind_Personality_Fn. The language-specific data of its procedures is a FrameHandler.
extern "C" _Unwind_Reason_Code jitunwind_frame_personality(int version, _Unwind_Action actions,
                                                           _Unwind_Exception_Class exception_class,
                                                           _Unwind_Exception* exception, _Unwind_Context* context);
