// A tracer runs procedures of another process one instruction at a time: at every instruction of prologues, bodies and
// epilogues, and of their callees, the remote engine finds the true callers with their registers.
//
//   remote_steps --instructions N
//
// The truth is recorded when a procedure is entered. The process registers the procedure itself, and another one
// follows at the same addresses, so that kept rows of one must not be used for the next.
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

#include "jitunwind/sdk/target.h"
#include "jitunwind/unwind_core/walk/cursor.h"
#include "tests/prove/storm_code.h"

namespace jitunwind::storm {

namespace {

// The target.

struct Chain {
  std::array<Slot, 3>& slots;
  std::size_t next;
  Shadow shadow;
};

[[gnu::noinline]] void* call_next(void* chain_) {
  Chain& chain = *static_cast<Chain*>(chain_);
  if (chain.next == chain.slots.size()) return chain_;
  void* const result = chain.slots[chain.next++].code()(call_next, chain_, &chain.shadow);
  asm volatile("");  // no tail call
  return result;
}

/// Three procedures call each other; the tracer steps from the breakpoint on until the outermost has returned.
[[noreturn]] void be_the_target(std::byte* code) {
  ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  std::mt19937 random(3);
  std::array<Slot, 3> slots{Slot(code), Slot(code + k_slot_size), Slot(code + 2 * k_slot_size)};
  for (;;) {
    for (Slot& slot : slots) slot.fill(random);
    Chain chain{slots, 0, {}};
    chain.shadow.top = chain.shadow.calls.data();
    asm volatile("int3");
    (void)call_next(&chain);
    for (Slot& slot : slots) slot.empty(random);
  }
}

// The tracer.

/// The registers and the return address when a procedure was entered.
struct Activation {
  Addr cfa, return_address;
  RegisterFile registers;
};

class Stepper {
 public:
  Stepper(pid_t child, Addr code) : child_(child), code_{code, code + 3 * k_slot_size} {}

  bool run(std::size_t instructions) {
    while (compared_ < instructions && wrong_ == 0) {
      // Steps from a breakpoint until the outermost procedure was entered and has returned.
      bool has_entered = false;
      do {
        if (!go_on(PTRACE_SINGLESTEP) || !look()) return false;
        has_entered = has_entered || !activations_.empty();
      } while (!has_entered || !activations_.empty());
      ++chains_;
      if (!go_on(PTRACE_CONT)) return false;
    }
    return wrong_ == 0;
  }
  void print(double seconds) const {
    std::printf(
        "%zu instructions in %.1f s, of %zu chains of three procedures: %zu in procedures, at %zu places of "
        "these, the others below; %zu callers compared; %zu wrong\n",
        compared_, seconds, chains_, in_procedures_, places_.size(), callers_, wrong_);
  }

 private:
  bool go_on(__ptrace_request how) {
    int status = 0;
    if (::ptrace(how, child_, nullptr, nullptr) != 0 || ::waitpid(child_, &status, 0) != child_) return false;
    if (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP) return true;
    std::printf("the target: status %#x\n", static_cast<unsigned>(status));
    return false;
  }

  bool look() {
    if (!target_) {
      auto target = Target::of_traced(child_);
      if (!target) return fail(target.error().text());
      target_.emplace(std::move(*target));
    } else if (const auto renewed = target_->renew(); !renewed) {
      return fail(renewed.error().text());
    }
    const auto registers = target_->registers(target_->threads().at(0));
    if (!registers) return fail("no registers");
    follow(*registers);
    if (!activations_.empty()) compare(*registers);
    pc_before_ = value(*registers, target_->arch().pc);
    return true;
  }
  bool fail(const std::string& why) {
    std::printf("%s\n", why.c_str());
    return false;
  }
  Addr value(const RegisterFile& registers, RegNum reg) const { return registers.value(target_->arch().column(reg)); }

  void follow(const RegisterFile& registers) {
    const Arch& arch = target_->arch();
    const Addr pc = value(registers, arch.pc), sp = value(registers, arch.sp);
    if (!activations_.empty() && pc == activations_.back().return_address && sp == activations_.back().cfa)
      return activations_.pop_back();
    if (!code_.contains(pc) || pc % k_slot_size != 0 || pc_before_ == pc) return;
    MemoryWindow window;
    const auto return_address = read_word(target_->space().memory, window, sp, arch, "return address");
    activations_.push_back({sp + 8, return_address ? *return_address : 0, registers});
  }

  /// Compares all callers of procedures, one after the other, with their registers; the next frame has a procedure's
  /// own.
  void compare(const RegisterFile& registers) {
    const Arch& arch = target_->arch();
    const Addr pc = value(registers, arch.pc);
    ++compared_;
    if (code_.contains(pc)) {
      ++in_procedures_;
      places_.insert(pc);
    }
    Cursor cursor(target_->space(), registers, Cursor::Top::interrupted);
    auto activation = activations_.rbegin();
    while (is_true(cursor.step())) {
      if (activation == activations_.rend()) continue;
      if (cursor.pc() == activation->return_address && cursor.sp() == activation->cfa)
        compare_registers(cursor, *activation++);
      else if (cursor.depth() == 1 && code_.contains(pc))
        return wrong("the caller of the procedure");
    }
    if (activation != activations_.rend()) wrong("a caller is missing");
    if (cursor.stop_reason() != StopReason::outermost) wrong("the walk is not complete");
  }
  static bool is_true(const Result<bool>& result) { return result && *result; }

  void compare_registers(const Cursor& cursor, const Activation& activation) {
    ++callers_;
    for (const RegisterInfo& reg : target_->arch().registers) {
      if (!reg.preserved || reg.reg_class != RegClass::general || reg.column < 0) continue;
      if (reg.dwarf == target_->arch().sp || reg.dwarf == target_->arch().pc) continue;
      if (cursor.registers().get(reg.column) != activation.registers.get(reg.column)) return wrong(reg.name);
    }
  }

  void wrong(const char* what) {
    if (++wrong_ > 1) return;
    std::printf("wrong: %s, at:\n", what);
    Walk walk = target_->walk(target_->threads().at(0));
    for (const Frame& frame : walk) std::printf("  %#lx sp %#lx %s\n", frame.pc(), frame.sp(), frame.name().c_str());
    std::printf("  %s\nthere are:\n", walk.why().c_str());
    for (auto a = activations_.rbegin(); a != activations_.rend(); ++a)
      std::printf("  %#lx sp %#lx\n", a->return_address, a->cfa);
  }

  pid_t child_;
  AddrRange code_;
  std::optional<Target> target_;
  std::vector<Activation> activations_;
  Addr pc_before_ = 0;
  std::size_t compared_ = 0, chains_ = 0, in_procedures_ = 0, callers_ = 0, wrong_ = 0;
  std::set<Addr> places_;
};

int prove(std::size_t instructions) {
  void* const code = map_code(nullptr, 3 * k_slot_size);
  if (!code) return 1;
  (void)kinds();
  const pid_t tracer = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != tracer) ::_exit(1);
    be_the_target(static_cast<std::byte*>(code));
  }
  // The child begins to be traced before its first breakpoint.
  int status = 0;
  const bool stands = ::waitpid(child, &status, 0) == child && WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP;
  const auto begin = std::chrono::steady_clock::now();
  Stepper stepper(child, reinterpret_cast<std::uintptr_t>(code));
  const bool is_right = stands && stepper.run(instructions);
  stepper.print(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return is_right ? 0 : 1;
}

}  // namespace
}  // namespace jitunwind::storm

int main(int argc, char** argv) {
  if (argc != 3 || std::strcmp(argv[1], "--instructions") != 0) {
    std::fprintf(stderr, "usage: remote_steps --instructions N\n");
    return 2;
  }
  return jitunwind::storm::prove(std::strtoul(argv[2], nullptr, 10));
}
