#include "tests/exceptions/handlers/landing_code.h"

#include <cxxabi.h>
#include <unwind.h>

#include <cstddef>
#include <stdexcept>

#include "tests/builders/describing_assembler.h"

namespace jitunwind::test {
namespace {

using namespace x86_64;

void call_caught(void* object, int selector, const AtPad* at) { LandingFrame::caught(object, selector, *at); }
void call_cleaned(const AtPad* at) { LandingFrame::cleaned(*at); }

class Writer {
 public:
  explicit Writer(FrameKind kind) : kind_(kind) {}

  DescribingAssembler a;
  LandingOffsets offsets;

  void write() {
    write_prologue(a, kind_, k_room);
    set_preserved(a, kind_);
    a.emit({0x48, 0x89, 0x64, 0x24, offsetof(AtPad, sp_of_call)});   // mov [rsp+sp_of_call],rsp
    a.emit({0x48, 0x89, 0x6c, 0x24, offsetof(AtPad, rbp_of_call)});  // mov [rsp+rbp_of_call],rbp
    offsets.call = a.emit({0xff, 0xd7});                             // call rdi
    a.return_value(0);
    a.builder().remember();
    epilogue_ = a.here();
    a.builder().restore(write_epilogue(a, kind_, k_room));
    write_catching();
    write_cleaning();
    write_leaving();
  }

 private:
  template <class Function>
  Instruction call(Function* function) {
    a.emit({0x48, 0xb8}, static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(function)),
           8);                    // mov rax, function
    return a.emit({0xff, 0xd0});  // call rax
  }

  /// AtPad, at SP.
  void write_down() {
    a.emit({0x48, 0x89, 0x5c, 0x24, offsetof(AtPad, rbx)});    // mov [rsp+..],rbx
    a.emit({0x48, 0x89, 0x6c, 0x24, offsetof(AtPad, rbp)});    // mov [rsp+..],rbp
    a.emit({0x4c, 0x89, 0x64, 0x24, offsetof(AtPad, r12)});    // mov [rsp+..],r12
    a.emit({0x4c, 0x89, 0x6c, 0x24, offsetof(AtPad, r13)});    // mov [rsp+..],r13
    a.emit({0x4c, 0x89, 0x74, 0x24, offsetof(AtPad, r14)});    // mov [rsp+..],r14
    a.emit({0x4c, 0x89, 0x7c, 0x24, offsetof(AtPad, r15)});    // mov [rsp+..],r15
    a.emit({0x0f, 0xae, 0x5c, 0x24, offsetof(AtPad, mxcsr)});  // stmxcsr [rsp+..]
    a.emit({0xd9, 0x7c, 0x24, offsetof(AtPad, x87_control)});  // fnstcw [rsp+..]
  }

  void write_catching() {
    offsets.catching = a.here();
    write_down();
    a.emit({0x41, 0x89, 0xd4});  // mov r12d,edx
    a.emit({0x48, 0x89, 0xc7});  // mov rdi,rax
    call(&abi::__cxa_begin_catch);
    a.emit({0x48, 0x89, 0xc7});  // mov rdi,rax
    a.emit({0x44, 0x89, 0xe6});  // mov esi,r12d
    a.emit({0x48, 0x89, 0xe2});  // mov rdx,rsp
    offsets.call_caught = call(&call_caught);
    call(&abi::__cxa_end_catch);
    a.emit({0x49, 0x63, 0xc4});                     // movsxd rax,r12d
    a.emit({0x48, 0x83, 0xc0, 0x64});               // add rax,100
    a.emit({0xe9}, epilogue_ - (a.here() + 5), 4);  // jmp epilogue
  }

  void write_cleaning() {
    offsets.cleaning = a.here();
    write_down();
    a.emit({0x49, 0x89, 0xc4});  // mov r12,rax
    a.emit({0x48, 0x89, 0xe7});  // mov rdi,rsp
    call(&call_cleaned);
    write_resume();
  }

  void write_leaving() {
    offsets.leaving = a.here();
    a.emit({0x49, 0x89, 0xc4});  // mov r12,rax
    call(&abi::__cxa_end_catch);
    write_resume();
  }

  void write_resume() {
    a.emit({0x4c, 0x89, 0xe7});  // mov rdi,r12
    call(&_Unwind_Resume);
    a.emit({0x0f, 0x0b});  // ud2
  }

  const FrameKind kind_;
  std::int64_t epilogue_ = 0;
};

}  // namespace

LandingFrame::LandingFrame(const std::function<void(x86_64::Builder&, const LandingOffsets&)>& declare,
                           std::string_view name, FrameKind kind, const Place* place) {
  Writer writer(kind);
  writer.write();
  offsets_ = writer.offsets;
  writer.a.builder().ends_without_return();
  declare(writer.a.builder(), offsets_);
  const auto description = writer.a.description();
  if (!description) throw std::runtime_error(description.error().text());
  code_ = std::make_unique<ExecutableCopy>(writer.a.code(), place);
  registration_ = register_code(*description, Code{.start = begin(), .size = size(), .name = name}).value();
}

}  // namespace jitunwind::test
