// Code of which some frames cannot be derived: the message to its author, and a description of that procedure by hand.
#include <asmjit/x86.h>
#include <jitunwind/asmjit.h>
#include <jitunwind/jitunwind.h>

#include <array>
#include <cstdio>

static void show_stack() {
  jitunwind::Walk walk = jitunwind::walk_here();
  for (const jitunwind::Frame& frame : walk)
    std::printf("%-14s %s\n", jitunwind::origin_name(frame.origin()), frame.name().c_str());
  std::printf("%s\n", walk.why().c_str());
}

/// void run_on(void* stack, void (*function)())
static void write_run_on(jitunwind::AsmjitAssembler& a) {
  using namespace asmjit::x86;
  a.procedure("run_on");
  a.push(rbx);
  a.mov(rbx, rsp);
  a.mov(rsp, rdi);  // only the program knows whose memory this is
  a.call(rsi);
  a.mov(rsp, rbx);
  a.pop(rbx);
  a.ret();
}

int main() {
  jitunwind::AsmjitRuntime runtime({
      .undescribed = jitunwind::Undescribed::add,  // without this add() returns kErrorInvalidState
      .on_refusal = [](const jitunwind::AsmjitRefusal& refusal) { std::puts(refusal.text().c_str()); },
  });
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  jitunwind::AsmjitAssembler a(&code);
  write_run_on(a);
  void (*run_on)(void*, void (*)()) = nullptr;
  // Prints "run_on: mov at +0x4: sets SP from a register that holds no known stack address".
  if (runtime.add(&run_on, &code) != asmjit::kErrorOk) return 1;

  const auto description = jitunwind::x86_64::describe("run_on")
                               .row_at(0, "cfa=rsp+8 ra=[cfa-8]")
                               .row_at(1, "cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]")
                               .row_at(4, "cfa=rbx+16 rbx=[cfa-16] ra=[cfa-8]")
                               .row_at(13, "cfa=rsp+8 ra=[cfa-8]")
                               .size(14)
                               .build();
  if (!description) return std::puts(description.error().text().c_str()), 1;
  auto registration = jitunwind::register_code(*description, reinterpret_cast<void*>(run_on), 14);
  if (!registration) return std::puts(registration.error().what), 1;

  alignas(16) static std::array<std::byte, 65536> stack;
  run_on(stack.data() + stack.size(), &show_stack);
  (void)registration->cancel();  // before its code is freed
  runtime.release(run_on);
}
