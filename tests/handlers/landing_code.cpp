#include "tests/handlers/landing_code.h"

#include <cxxabi.h>
#include <unwind.h>

#include <stdexcept>

#include "tests/builders/describing_assembler.h"

namespace jitunwind::test {
namespace {

using namespace x86_64;
constexpr Reg k_preserved[]{rbx, r12, r13, r14, r15};

void call_caught(void* object, int selector, long sum, Addr sp) {
  LandingFrame::sp_at_catch = sp;
  LandingFrame::caught(object, selector, sum);
}
void call_cleaned(long sum) { LandingFrame::cleaned(sum); }

class Writer {
 public:
  DescribingAssembler a;
  LandingOffsets offsets;

  void write() {
    a.push(rbp);
    a.set_frame_pointer();
    for (const Reg reg : k_preserved) a.push(reg);
    a.allocate(k_room);
    for (const Reg reg : k_preserved) a.clobber(reg);
    offsets.call = a.emit({0xff, 0xd7});  // call rdi
    a.return_value(0);
    write_epilogue();
    write_catching();
    write_cleaning();
    write_leaving();
  }

 private:
  void write_epilogue() {
    a.builder().remember();
    epilogue_ = a.here();
    a.restore_sp(-40);
    for (std::size_t i = std::size(k_preserved); i-- > 0;) a.pop(k_preserved[i]);
    a.pop(rbp);
    a.builder().restore(a.ret());
  }

  template <class Function>
  Instruction call(Function* function) {
    a.emit({0x48, 0xb8}, static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(function)),
           8);                    // mov rax, function
    return a.emit({0xff, 0xd0});  // call rax
  }

  void write_catching() {
    offsets.catching = a.here();
    // Into rdi, the sum of the preserved registers.
    a.emit({0x4e, 0x8d, 0x1c, 0x23});  // lea r11,[rbx+r12]
    a.emit({0x4d, 0x01, 0xeb});        // add r11,r13
    a.emit({0x4d, 0x01, 0xf3});        // add r11,r14
    a.emit({0x4d, 0x01, 0xfb});        // add r11,r15
    a.emit({0x4d, 0x89, 0xdd});        // mov r13,r11
    a.emit({0x41, 0x89, 0xd4});        // mov r12d,edx
    a.emit({0x48, 0x89, 0xc7});        // mov rdi,rax
    call(&abi::__cxa_begin_catch);
    a.emit({0x48, 0x89, 0xc7});  // mov rdi,rax
    a.emit({0x44, 0x89, 0xe6});  // mov esi,r12d
    a.emit({0x4c, 0x89, 0xea});  // mov rdx,r13
    a.emit({0x48, 0x89, 0xe1});  // mov rcx,rsp
    offsets.call_caught = call(&call_caught);
    call(&abi::__cxa_end_catch);
    a.emit({0x49, 0x63, 0xc4});                     // movsxd rax,r12d
    a.emit({0x48, 0x83, 0xc0, 0x64});               // add rax,100
    a.emit({0xe9}, epilogue_ - (a.here() + 5), 4);  // jmp epilogue
  }

  void write_cleaning() {
    offsets.cleaning = a.here();
    a.emit({0x4a, 0x8d, 0x3c, 0x23});  // lea rdi,[rbx+r12]
    a.emit({0x4c, 0x01, 0xef});        // add rdi,r13
    a.emit({0x4c, 0x01, 0xf7});        // add rdi,r14
    a.emit({0x4c, 0x01, 0xff});        // add rdi,r15
    a.emit({0x49, 0x89, 0xc4});        // mov r12,rax
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

  std::int64_t epilogue_ = 0;
};

}  // namespace

LandingFrame::LandingFrame(const std::function<void(x86_64::Builder&, const LandingOffsets&)>& declare,
                           std::string_view name) {
  Writer writer;
  writer.write();
  offsets_ = writer.offsets;
  writer.a.builder().ends_without_return();
  declare(writer.a.builder(), offsets_);
  const auto description = writer.a.description();
  if (!description) throw std::runtime_error(description.error().text());
  code_ = std::make_unique<ExecutableCopy>(writer.a.code());
  registration_ = register_code(*description, Code{.start = begin(), .size = size(), .name = name}).value();
}

}  // namespace jitunwind::test
