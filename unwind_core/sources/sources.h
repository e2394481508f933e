// The row and name sources of the engine. Each is stateless, constant-initialised, never destroyed, and lives in the
// file of its name in this folder.
#pragma once

#include "jitunwind/unwind_core/row_source.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// `.eh_frame` through `.eh_frame_hdr`, or by scanning where there is no table (LSB 5.0, 10.6).
const RowSource& eh_frame_source() noexcept;
/// `.debug_frame` of the module's file or its separate debug file (DWARF 5, 6.4).
const RowSource& debug_frame_source() noexcept;
/// `.ARM.exidx` of a module (EHABI32, 6). What it says holds where a procedure calls.
const RowSource& arm_exidx_source() noexcept;
/// Signal trampolines recognised by their code bytes: all registers from the kernel's ucontext.
const RowSource& signal_frame_source() noexcept;
/// Procedure linkage stubs recognised by their code bytes.
const RowSource& plt_stub_source() noexcept;
/// Guess, for frames on a stack: the code was followed from the entry of the procedure that was called, and to its
/// return, and both say the same. For an interrupted pc that is no code: that the call in front leads there. Nothing on
/// CPUs whose instructions are not read.
const RowSource& followed_code_source() noexcept;
/// Bold guess, for an interrupted pc that is not in executable memory: the call through a bad pointer has just been
/// made.
const RowSource& bad_call_source() noexcept;
/// Bold guess, for an interrupted pc in code that nothing knows: a procedure that has not touched the stack.
const RowSource& leaf_source() noexcept;
/// Bold guess, for frames on a stack: a frame record where the frame pointer points.
const RowSource& frame_pointer_source() noexcept;

/// Symbols of a module's file: .symtab, .gnu_debugdata, .dynsym.
const NameSource& elf_name_source() noexcept;
/// The same, where nothing has the address also the last one before it: as a rule the name of other code.
const NameSource& preceding_elf_name_source() noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
