// Calling frames, the trampoline and interrupted frames: they are distinguished, looked up and named at the right
// address.
#include <jitunwind/jitunwind.h>
#include <libunwind.h>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

namespace jitunwind::test {
namespace {

// Code with another row ends directly in front of the interrupted code: at the byte before the fault CFA = rsp+16,
// where the caller is at another address of code. An unrelated function ends directly in front of the trampoline.
asm(R"(
        .text
        .type jitunwind_test_pushed, @function
jitunwind_test_pushed:
        .cfi_startproc
        push %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbx, 0
        nop
        .cfi_endproc
        .size jitunwind_test_pushed, . - jitunwind_test_pushed
        .globl jitunwind_test_faults
        .type jitunwind_test_faults, @function
jitunwind_test_faults:
        .cfi_startproc
        ud2
        ret
        .cfi_endproc
        .size jitunwind_test_faults, . - jitunwind_test_faults

        .globl jitunwind_test_calls
        .type jitunwind_test_calls, @function
jitunwind_test_calls:
        .cfi_startproc
        lea .Lbehind_pop(%rip), %rax
        push %rax
        .cfi_adjust_cfa_offset 8
        call jitunwind_test_faults
        pop %rax
        .cfi_adjust_cfa_offset -8
.Lbehind_pop:
        ret
        .cfi_endproc
        .size jitunwind_test_calls, . - jitunwind_test_calls

        .type jitunwind_test_in_front, @function
jitunwind_test_in_front:
        ret
        nop
        .size jitunwind_test_in_front, . - jitunwind_test_in_front
        .globl jitunwind_test_restorer
        .type jitunwind_test_restorer, @function
jitunwind_test_restorer:
        mov $15, %rax
        syscall
        .size jitunwind_test_restorer, . - jitunwind_test_restorer
)");
extern "C" void jitunwind_test_calls();
extern "C" void jitunwind_test_faults();
extern "C" void jitunwind_test_restorer();

struct Seen {
  unw_word_t ip;
  int is_signal_frame;
  int is_interrupted;
  std::string name;
  unw_word_t offset;
};

std::vector<Seen> walk(unw_cursor_t cursor) {
  std::vector<Seen> frames;
  do {
    Seen frame{};
    std::array<char, 128> name;
    EXPECT_EQ(unw_get_reg(&cursor, UNW_REG_IP, &frame.ip), 0);
    frame.is_signal_frame = unw_is_signal_frame(&cursor);
    frame.is_interrupted = unw_is_interrupted_frame(&cursor);
    if (unw_get_proc_name(&cursor, name.data(), name.size(), &frame.offset) == 0) frame.name = name.data();
    frames.push_back(frame);
  } while (unw_step(&cursor) > 0);
  return frames;
}

struct Handled {
  std::vector<Seen> from_handler, from_context, looked_up_before;
  std::vector<unw_word_t> listed[2];  ///< by unw_backtrace2 from the context, with and without its flag
  std::vector<std::string> cxx_names;
  std::vector<std::uint64_t> cxx_offsets;
};
Handled* g_handled;

void handler(int, siginfo_t*, void* given) {
  auto* const context = static_cast<ucontext_t*>(given);
  unw_context_t here;
  unw_cursor_t cursor;
  unw_getcontext(&here);
  unw_init_local(&cursor, &here);
  g_handled->from_handler = walk(cursor);
  EXPECT_EQ(unw_init_local2(&cursor, context, UNW_INIT_SIGNAL_FRAME), 0);
  g_handled->from_context = walk(cursor);
  EXPECT_EQ(unw_init_local2(&cursor, context, 0), 0);
  g_handled->looked_up_before = walk(cursor);
  for (const int flag : {0, static_cast<int>(UNW_INIT_SIGNAL_FRAME)}) {
    std::array<void*, 64> addresses{};
    const int count = unw_backtrace2(addresses.data(), static_cast<int>(addresses.size()), context, flag);
    for (int i = 0; i < count; ++i)
      g_handled->listed[flag].push_back(reinterpret_cast<unw_word_t>(addresses[static_cast<std::size_t>(i)]));
  }
  for (const Frame& frame : walk_here()) {
    g_handled->cxx_names.push_back(frame.name());
    g_handled->cxx_offsets.push_back(frame.offset());
  }
  context->uc_mcontext.gregs[REG_RIP] += 2;  // behind ud2
}

// The kernel's own structure (rt_sigaction(2)): the C library would replace the trampoline by its own.
struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  unsigned long mask;
};

Handled fault_under(const KernelAction& action) {
  Handled handled;
  g_handled = &handled;
  KernelAction before{};
  EXPECT_EQ(::syscall(SYS_rt_sigaction, SIGILL, &action, &before, sizeof action.mask), 0);
  jitunwind_test_calls();
  EXPECT_EQ(::syscall(SYS_rt_sigaction, SIGILL, &before, nullptr, sizeof action.mask), 0);
  return handled;
}

constexpr unsigned long k_restorer = 0x04000000;  // SA_RESTORER of the kernel

class FrameKinds : public testing::Test {
 protected:
  const Handled handled = fault_under({handler, SA_SIGINFO | SA_NODEFER | k_restorer, jitunwind_test_restorer, 0});
  static unw_word_t address_of(void (*function)()) { return reinterpret_cast<unw_word_t>(function); }
};

// covers: LU21
TEST_F(FrameKinds, AreToldApart) {
  const auto& frames = handled.from_handler;
  ASSERT_GT(frames.size(), 4u);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(frames[i].is_signal_frame > 0, i == 1) << i;
    EXPECT_EQ(frames[i].is_interrupted > 0, i == 2) << i;
    EXPECT_GE(frames[i].is_signal_frame, 0) << i;
  }
  EXPECT_EQ(frames[1].ip, address_of(jitunwind_test_restorer));
  EXPECT_EQ(frames[2].ip, address_of(jitunwind_test_faults));
  EXPECT_GT(handled.from_context[0].is_interrupted, 0);
  EXPECT_EQ(handled.from_context[0].is_signal_frame, 0);
  EXPECT_EQ(handled.looked_up_before[0].is_interrupted, 0);
}

/// If the flag says that the context was interrupted, the row is that of the address itself; otherwise it is that of
/// the address before, which belongs to other code here.
// covers: LU08
TEST_F(FrameKinds, AreLookedUpWhereTheyStand) {
  const auto& frames = handled.from_context;
  ASSERT_EQ(frames.size() + 2, handled.from_handler.size());
  for (std::size_t i = 0; i < frames.size(); ++i) EXPECT_EQ(frames[i].ip, handled.from_handler[i + 2].ip) << i;
  EXPECT_EQ(frames[0].name, "jitunwind_test_faults");
  EXPECT_EQ(frames[0].offset, 0u);
  ASSERT_GT(handled.looked_up_before.size(), 1u);
  EXPECT_EQ(handled.looked_up_before[0].name, "jitunwind_test_pushed");
  EXPECT_EQ(handled.looked_up_before[1].name, "jitunwind_test_calls") << "by the row of the code before";
  EXPECT_EQ(handled.looked_up_before[1].ip, frames[1].ip + 1) << "by the row of the code before";
}

// covers: LU24
TEST_F(FrameKinds, AreListedFromTheContextAlone) {
  const auto ips_of = [](const std::vector<Seen>& frames) {
    std::vector<unw_word_t> ips;
    for (const Seen& frame : frames) ips.push_back(frame.ip);
    return ips;
  };
  EXPECT_EQ(handled.listed[UNW_INIT_SIGNAL_FRAME], ips_of(handled.from_context));
  EXPECT_EQ(handled.listed[0], ips_of(handled.looked_up_before));
  EXPECT_NE(handled.listed[0], handled.listed[UNW_INIT_SIGNAL_FRAME]);
  EXPECT_EQ(handled.listed[UNW_INIT_SIGNAL_FRAME][0], address_of(jitunwind_test_faults));
}

/// No call precedes a trampoline, so the byte before it is other code.
// covers: PI11
TEST_F(FrameKinds, TrampolinesHaveTheirOwnNames) {
  EXPECT_EQ(handled.from_handler[1].name, "jitunwind_test_restorer");
  EXPECT_EQ(handled.from_handler[1].offset, 0u);
  ASSERT_GT(handled.cxx_names.size(), 2u);
  EXPECT_EQ(handled.cxx_names[1], "jitunwind_test_restorer");
  EXPECT_EQ(handled.cxx_offsets[1], 0u);
  EXPECT_EQ(handled.cxx_names[2], "jitunwind_test_faults");
  std::array<char, 64> name;
  unw_word_t offset = 1;
  EXPECT_EQ(unw_get_proc_name_by_ip(unw_local_addr_space, address_of(jitunwind_test_restorer), name.data(), name.size(),
                                    &offset, nullptr),
            0);
  EXPECT_STREQ(name.data(), "jitunwind_test_restorer");
  EXPECT_EQ(offset, 0u);
}

/// The target is read through callbacks: its first frame is where it was stopped.
TEST(FrameKindsOfTargets, BeginWithAnInterruptedOne) {
  unw_context_t context;
  unw_getcontext(&context);
  const unw_addr_space_t space = unw_create_addr_space(unw_get_accessors(unw_local_addr_space), 0);
  unw_cursor_t cursor;
  ASSERT_EQ(unw_init_remote(&cursor, space, &context), 0);
  EXPECT_GT(unw_is_interrupted_frame(&cursor), 0);
  ASSERT_GT(unw_step(&cursor), 0);
  EXPECT_EQ(unw_is_interrupted_frame(&cursor), 0);
  unw_destroy_addr_space(space);
}

}  // namespace
}  // namespace jitunwind::test
