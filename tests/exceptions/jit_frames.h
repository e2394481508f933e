// Frames of code made at run time, to throw through. Each saves all preserved registers, overwrites them, and calls.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "jitunwind/builders/description.h"
#include "jitunwind/builders/instruction.h"
#include "jitunwind/builders/registration.h"
#include "tests/exceptions/at_pad.h"
#include "tests/support/executable_copy.h"

namespace jitunwind::test {

enum class FrameKind : std::uint8_t {
  plain,  ///< pushes; no frame pointer
  frame_pointer,
  realigned,  ///< sp rounded down, found through the frame pointer
  sp_slot,    ///< sp rounded down, found through a slot that holds it; no frame pointer
  variable,   ///< sp moved by an unknown amount
  rows,       ///< given as rows, registered in table format; the CFA is a dereference
};
inline constexpr FrameKind k_frame_kinds[]{FrameKind::plain,   FrameKind::frame_pointer, FrameKind::realigned,
                                           FrameKind::sp_slot, FrameKind::variable,      FrameKind::rows};
std::string name_of(FrameKind kind);

class DescribingAssembler;

/// Writes a frame of a kind around code that leaves SP alone; FrameKind::rows is not possible. All preserved registers
/// are saved. `room` bytes from SP up belong to the code; it is 8 more than a multiple of 16. FrameKind::variable
/// expects the number of bytes in rsi.
void write_prologue(DescribingAssembler& a, FrameKind kind, int room);
/// Sets every preserved register but the frame pointer to its preserved_value().
void set_preserved(DescribingAssembler& a, FrameKind kind);
/// Returns the instruction behind which there is no frame.
Instruction write_epilogue(DescribingAssembler& a, FrameKind kind, int room);

/// FrameKind::variable moves sp by so many bytes.
inline constexpr long k_variable_bytes = 64;

struct JitCode {
  std::vector<std::uint8_t> bytes;
  Description description;
};
/// Makes void code(void (*callee)(), long bytes), which returns when callee does.
JitCode make_code(FrameKind kind);

/// One registered procedure.
class FrameOfKind {
 public:
  explicit FrameOfKind(FrameKind kind, const Place* place = nullptr);

  void operator()(void (*callee)()) const {
    reinterpret_cast<void (*)(void (*)(), long)>(code_->begin())(callee, k_variable_bytes);
  }
  Addr begin() const { return reinterpret_cast<std::uintptr_t>(code_->begin()); }
  std::size_t size() const { return code_->size(); }
  Registration& registration() { return registration_; }

 private:
  std::unique_ptr<ExecutableCopy> code_;
  Registration registration_;
};

/// So many other procedures at any addresses.
class Crowd {
 public:
  explicit Crowd(std::size_t count);
  ~Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

 private:
  std::vector<unw_dyn_info_t> procedures_;
};

}  // namespace jitunwind::test
