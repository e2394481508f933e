// The personality routine of procedures with a FrameHandler. Declared here, since descriptions name it; defined in the
// layer that knows how to go on in a frame. Every library that is assembled has both.
#pragma once

#include <unwind.h>

/// _Unwind_Personality_Fn. The language-specific data of its procedures is a FrameHandler.
extern "C" _Unwind_Reason_Code jitunwind_frame_personality(int version, _Unwind_Action actions,
                                                           _Unwind_Exception_Class exception_class,
                                                           _Unwind_Exception* exception, _Unwind_Context* context);
