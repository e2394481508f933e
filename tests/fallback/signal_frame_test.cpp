// Signal trampolines: the rows by their code bytes agree with glibc's own call frame information, and with the kernel's
// ucontext_t.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/rows/apply_row.h"
#include "jitunwind/unwind_core/sources/sources.h"
#include "tests/support/fake_space.h"

namespace jitunwind::test {
namespace {

Addr addr_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

/// The facts that a handler observes.
struct Delivery {
  Addr trampoline;  ///< where the handler returns to
  Addr sp;          ///< SP there: the return address is popped, the kernel's ucontext_t comes next
  const ucontext_t* context;
};

std::function<void(const Delivery&)> in_handler;

void handler(int, siginfo_t*, void* context) {
  const auto* const uc = static_cast<const ucontext_t*>(context);
  in_handler({addr_of(__builtin_return_address(0)), addr_of(uc), uc});
}

void deliver(std::function<void(const Delivery&)> check) {
  in_handler = std::move(check);
  struct sigaction action {};
  action.sa_sigaction = &handler;
  action.sa_flags = SA_SIGINFO;
  struct sigaction before;
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  ASSERT_EQ(::raise(SIGUSR1), 0);
  ASSERT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
}

const LocalMemory k_memory;

struct Step {
  FrameRow row;
  Caller caller;
};

std::optional<Step> step_by(const RowSource& source, CodeAddress at, Addr sp) {
  const Arch& arch = *host_arch();
  const AddressSpace space{arch, k_memory, local_modules(), {}, {}};
  MemoryWindow window;
  RegisterFile registers;
  registers.set(arch.column(arch.sp), sp);
  registers.set(arch.column(arch.pc), at.value());
  Lookup lookup(space, at, window, &registers);
  Step step;
  const Found found = source.find_row(lookup, step.row);
  if (!found || !*found || !apply_row(step.row, registers, arch, k_memory, window, step.caller)) return std::nullopt;
  return step;
}

// covers: LU21 RG04
TEST(SignalFrame, EqualsTheCallFrameInformationOfGlibc) {
  bool ran = false;
  deliver([&ran](const Delivery& d) {
    const auto ours = step_by(signal_frame_source(), CodeAddress::returned_to(d.trampoline), d.sp);
    const auto glibcs = step_by(eh_frame_source(), CodeAddress::returned_to(d.trampoline), d.sp);
    ASSERT_TRUE(ours);
    ASSERT_TRUE(glibcs);
    EXPECT_TRUE(ours->row.signal_frame);
    EXPECT_TRUE(glibcs->row.signal_frame);
    EXPECT_EQ(ours->row.ra, glibcs->row.ra);
    EXPECT_EQ(ours->caller.cfa, glibcs->caller.cfa);
    EXPECT_EQ(ours->caller.pc, glibcs->caller.pc);
    for (const RegisterInfo& r : host_arch()->registers) {
      if (r.column < 0) continue;
      EXPECT_EQ(ours->caller.registers.get(r.column), glibcs->caller.registers.get(r.column)) << r.name;
      EXPECT_EQ(ours->caller.registers.location(r.column), glibcs->caller.registers.location(r.column)) << r.name;
    }
    ran = true;
  });
  EXPECT_TRUE(ran);
}

// covers: RG04
TEST(SignalFrame, GivesEveryRegisterOfTheUcontext) {
  bool ran = false;
  deliver([&ran](const Delivery& d) {
    for (const Addr offset : {Addr{0}, Addr{7}}) {
      // The trampoline's first byte is the handler's return address; behind its first instruction the pc is an
      // interrupted one.
      const Addr pc = d.trampoline + offset;
      const auto step = step_by(signal_frame_source(),
                                offset == 0 ? CodeAddress::returned_to(pc) : CodeAddress::interrupted(pc), d.sp);
      ASSERT_TRUE(step);
      std::size_t registers = 0;
      for (const RegisterInfo& r : host_arch()->registers) {
        if (r.ucontext < 0) continue;
        const char* const saved = reinterpret_cast<const char*>(d.context) + r.ucontext;
        std::uint64_t value = 0;
        std::memcpy(&value, saved, sizeof value);
        EXPECT_EQ(step->caller.registers.get(r.column), value) << r.name;
        EXPECT_EQ(step->caller.registers.location(r.column),
                  (SaveLocation{SaveLocation::Kind::memory, k_no_reg, addr_of(saved)}))
            << r.name;
        ++registers;
      }
      EXPECT_EQ(registers, 17u);
      EXPECT_EQ(step->caller.pc, step->caller.registers.get(host_arch()->column(host_arch()->pc)));
      EXPECT_EQ(step->row.range, (AddrRange{d.trampoline, d.trampoline + 9}));
      EXPECT_EQ(step->row.origin, RowOrigin::signal_frame);
    }
    ran = true;
  });
  EXPECT_TRUE(ran);
}

TEST(SignalFrame, KnowsTheTrampolineAsAProcedure) {
  deliver([](const Delivery& d) {
    const AddressSpace space{*host_arch(), k_memory, local_modules(), {}, {}};
    MemoryWindow window;
    Lookup lookup(space, CodeAddress::returned_to(d.trampoline), window);
    ProcedureInfo info;
    const Found found = signal_frame_source().find_procedure(lookup, info);
    ASSERT_TRUE(found && *found);
    EXPECT_EQ(info.range, (AddrRange{d.trampoline, d.trampoline + 9}));
    EXPECT_EQ(info.origin, RowOrigin::signal_frame);
  });
}

TEST(SignalFrame, IsNothingElse) {
  deliver([](const Delivery& d) {
    for (const Addr pc : {d.trampoline - 1, d.trampoline + 1, d.trampoline + 6, d.trampoline + 8, d.trampoline + 9,
                          addr_of(reinterpret_cast<void*>(&handler)), Addr{0}, ~Addr{0}}) {
      EXPECT_FALSE(step_by(signal_frame_source(), CodeAddress::interrupted(pc), d.sp)) << pc - d.trampoline;
      EXPECT_FALSE(step_by(signal_frame_source(), CodeAddress::returned_to(pc), d.sp)) << pc - d.trampoline;
    }
  });
}

// A trampoline that is cut off by the end of readable memory is not one, and reading it does no harm.
TEST(SignalFrame, NeedsAllOfItsBytes) {
  constexpr std::size_t k_page = 4096;
  auto* const pages = static_cast<std::uint8_t*>(
      ::mmap(nullptr, 2 * k_page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  const auto code = host_arch()->trampolines[0].bytes;
  std::copy(code.begin(), code.end(), pages + k_page - code.size());
  ASSERT_EQ(::mprotect(pages + k_page, k_page, PROT_NONE), 0);
  const Addr whole = addr_of(pages) + k_page - code.size();
  EXPECT_TRUE(step_by(signal_frame_source(), CodeAddress::interrupted(whole), addr_of(pages)));
  std::copy(code.begin(), code.end() - 1, pages + k_page - code.size() + 1);
  EXPECT_FALSE(step_by(signal_frame_source(), CodeAddress::interrupted(whole + 1), addr_of(pages)));
  ::munmap(pages, 2 * k_page);
}

// AArch64's kernel writes a siginfo_t of 128 bytes, then the ucontext_t (arch/arm64/kernel/signal.c).
TEST(SignalFrame, OfAArch64ByData) {
  const Arch& arch = arch::aarch64;
  FakeMemory memory;
  const Addr pc = 0x7000, sp = 0x100000;
  memory.put(pc, 0xd2801168, 4);      // mov x8, #139
  memory.put(pc + 4, 0xd4000001, 4);  // svc #0
  // ucontext_t: uc_mcontext at 176: fault_address, regs[31], sp, pc.
  const Addr regs = sp + 128 + 176 + 8;
  for (unsigned i = 0; i < 31; ++i) memory.put(regs + 8 * i, 0xa000 + i);
  memory.put(regs + 8 * 31, 0x200000);
  memory.put(regs + 8 * 32, 0x8888);
  const NoModules modules;
  const AddressSpace space{arch, memory, modules, {}, {}};
  for (const CodeAddress at : {CodeAddress::returned_to(pc), CodeAddress::interrupted(pc + 4)}) {
    MemoryWindow window;
    RegisterFile registers;
    registers.set(arch.column(arch.sp), sp);
    Lookup lookup(space, at, window, &registers);
    FrameRow row;
    const Found found = signal_frame_source().find_row(lookup, row);
    ASSERT_TRUE(found && *found);
    Caller caller;
    ASSERT_TRUE(apply_row(row, registers, arch, memory, window, caller));
    EXPECT_EQ(caller.pc, 0x8888u);
    EXPECT_EQ(caller.cfa, 0x200000u);
    EXPECT_EQ(caller.registers.get(arch.column(arch.sp)), 0x200000u);
    for (unsigned i = 0; i < 31; ++i)
      EXPECT_EQ(caller.registers.get(arch.column(static_cast<RegNum>(i))), 0xa000 + i) << i;
  }
}

}  // namespace
}  // namespace jitunwind::test
