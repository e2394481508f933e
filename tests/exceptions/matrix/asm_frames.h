// asm_frames.S: frames that give every preserved register a magic number, call, and write down what they find.
#pragma once

#include <setjmp.h>

#include "tests/resume/magic_frame.h"

extern "C" {
/// Catches everything that f(argument) throws. The landing pad writes *out first.
void catching_frame(void (*f)(void*), void* argument, Arrival* out);
/// The program handles the exception that catching_frame() caught, between __cxa_begin_catch() and __cxa_end_catch().
void catching_frame_caught(void* object);
/// Calls f(argument) behind setjmp(buffer); a longjmp() there arrives at_landing.
void jumping_frame(void (*f)(void*), void* argument, Arrival* out, jmp_buf buffer);
/// Sets *there and does nothing for ever. It has no table of call sites, since none of its instructions could be in
/// one.
void stand_still(void* there);
}
