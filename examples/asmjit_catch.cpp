// Exceptions that end in asmjit's code: one function catches by type as C++ does, another one asks a handler.
#include <asmjit/x86.h>
#include <jitunwind/asmjit.h>
#include <jitunwind/jitunwind.h>

#include <cxxabi.h>

#include <cstdio>
#include <stdexcept>

#include "examples/asmjit_names.h"

static void native() { throw std::runtime_error("no such file"); }

static void report(void* exception) {
  const auto* const error = static_cast<const std::exception*>(abi::__cxa_begin_catch(exception));
  std::printf("caught: %s\n", error->what());
  abi::__cxa_end_catch();
}

/// The virtual machine's knowledge of its code: the exceptions that it handles itself.
static jitunwind::FrameDecision decide(const jitunwind::PassedFrame& frame, std::uint64_t landing_pad) {
  const std::type_info* const type = frame.thrown_type();
  std::printf("%s passes +0x%llx\n", type ? type->name() : "an exception of another language",
              static_cast<unsigned long long>(frame.call_offset()));
  if (!type || *type != typeid(std::runtime_error)) return jitunwind::FrameDecision::pass();
  return jitunwind::FrameDecision::catch_at(frame.start() + landing_pad);
}

int main() {
  jitunwind::AsmjitRuntime runtime;
  for (const bool as_cxx : {true, false}) {
    asmjit::CodeHolder code;
    code.init(runtime.environment());
    jitunwind::AsmjitAssembler a(&code);

    using namespace asmjit::x86;
    using examples::new_label;
    const asmjit::Label begin = new_label(a), end = new_label(a), landing_pad = new_label(a), leave = new_label(a);
    auto site = a.call_site(begin, end, landing_pad);
    if (as_cxx)
      site.catches(typeid(std::exception));
    else
      a.handled_by([&](const auto& frame) { return decide(frame, examples::label_offset(code, landing_pad)); });
    a.push(rbx);
    a.bind(begin);
    a.call(asmjit::imm(&native));
    a.bind(end);
    a.bind(leave);
    a.pop(rbx);
    a.ret();
    a.bind(landing_pad);  // the frame is as it was during the call, the exception is in rax
    a.mov(rdi, rax);
    a.call(asmjit::imm(&report));
    a.jmp(leave);

    void (*function)() = nullptr;
    if (runtime.add(&function, &code, "try_it") != asmjit::kErrorOk) return 1;
    function();
    runtime.release(function);
  }
}
