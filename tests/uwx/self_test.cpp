// A thread that walks its own stack with the callbacks of uwx_self.h, through signal frames and code made at run time.
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "tests/support/jit_frame.h"
#include "tests/uwx/self_walks.h"

extern "C" int jitunwind_test_uwx_from_c(std::uint64_t* frames);

namespace jitunwind::test {
namespace {

/// The environments are made where memory may be allocated: signal handlers walk with them.
struct Envs {
  const SelfEnv direct, through_callbacks{true};
};

struct Seen {
  Envs envs;
  ListedFrames cursor, direct, through_callbacks;
  int direct_status = 0, callbacks_status = 0;
};

/// Walks in all three ways from one function.
[[gnu::noinline]] void* see(void* into) {
  Seen& seen = *static_cast<Seen*>(into);
  list_by_cursor(seen.cursor);
  const auto& [direct, through_callbacks] = seen.envs;
  EXPECT_EQ(uwx_self_init_context(direct.env), UWX_OK);
  seen.direct_status = direct.list(seen.direct);
  EXPECT_EQ(uwx_self_init_context(through_callbacks.env), UWX_OK);
  seen.callbacks_status = through_callbacks.list(seen.through_callbacks);
  return nullptr;
}

void expect_all_the_same(const Seen& seen) {
  EXPECT_EQ(seen.direct_status, UWX_BOTTOM);
  EXPECT_EQ(seen.callbacks_status, UWX_BOTTOM);
  EXPECT_GT(seen.cursor.count, 5u);
  expect_same(seen.cursor, seen.direct, 1);
  expect_same(seen.cursor, seen.through_callbacks, 1);
  EXPECT_EQ(seen.cursor.sps[0], seen.direct.sps[0]) << "the function that made the context";
  EXPECT_EQ(seen.cursor.sps[0], seen.through_callbacks.sps[0]);
}

// covers: UX36 UX03
TEST(UwxSelf, WalksItsOwnStack) {
  Seen seen;
  (void)see(&seen);
  expect_all_the_same(seen);
}

// covers: UX36 UX38
TEST(UwxSelf, WalksThroughCodeMadeAtRunTime) {
  const JitFrame outer, inner;
  Seen seen;
  struct Both {
    const JitFrame& inner;
    Seen& seen;
  } both{inner, seen};
  (void)outer([](void* of) { return static_cast<Both*>(of)->inner(&see, &static_cast<Both*>(of)->seen); }, &both);
  expect_all_the_same(seen);
  EXPECT_EQ(seen.direct.ips[1], inner.return_address());
  const auto is_outer = [&](std::uint64_t ip) { return ip == outer.return_address(); };
  EXPECT_EQ(std::ranges::count_if(seen.direct.ips, is_outer), 1);
}

Seen* seen_in_handler = nullptr;

void handle(int, siginfo_t*, void*) { (void)see(seen_in_handler); }

struct Handled {
  explicit Handled(void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction action {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    EXPECT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  }
  ~Handled() { ::sigaction(SIGUSR1, &before, nullptr); }
  Handled(const Handled&) = delete;
  Handled& operator=(const Handled&) = delete;
  struct sigaction before {};
};

// covers: UX36 UX32 UX38
TEST(UwxSelf, WalksThroughSignals) {
  const Handled handled(&handle);
  const JitFrame frame;
  Seen seen;
  seen_in_handler = &seen;
  (void)frame([](void*) -> void* { return (void)::raise(SIGUSR1), nullptr; }, nullptr);
  expect_all_the_same(seen);
}

/// rcx distinguishes the cases in the code that a fault interrupts; the handler takes the address from it.
asm(R"(
    .text
    .type jitunwind_test_fault_with_rcx, @function
jitunwind_test_fault_with_rcx:
    .cfi_startproc
    mov $0x7e57, %ecx
    ud2
    ret
    .cfi_endproc
    .size jitunwind_test_fault_with_rcx, . - jitunwind_test_fault_with_rcx
)");
extern "C" void jitunwind_test_fault_with_rcx();

struct AtFault {
  const Envs* envs = nullptr;
  std::uint64_t direct = 0, through_callbacks = 0, by_copyin = 0, before = 1;
  int status_before = 0;
} at_fault;

void read_rcx(int, siginfo_t*, void* context) {
  constexpr int k_rcx = UWX_REG_GR(2);
  const auto to_interrupted = [](const SelfEnv& self) {
    EXPECT_EQ(uwx_self_init_context(self.env), UWX_OK);
    while (uwx_step(self.env) == UWX_OK) {
    }
    return uwx_self_do_context_frame(self.env, self.info);
  };
  const auto& [direct, wrapped] = *at_fault.envs;
  EXPECT_EQ(uwx_self_init_context(direct.env), UWX_OK);
  at_fault.status_before = uwx_get_reg(direct.env, k_rcx, &at_fault.before);
  EXPECT_EQ(to_interrupted(direct), UWX_OK);
  at_fault.direct = direct.reg(k_rcx);
  EXPECT_EQ(to_interrupted(wrapped), UWX_OK);
  at_fault.through_callbacks = wrapped.reg(k_rcx);
  EXPECT_EQ(uwx_self_copyin(UWX_COPYIN_REG, reinterpret_cast<char*>(&at_fault.by_copyin), k_rcx, 8,
                            reinterpret_cast<std::intptr_t>(wrapped.info)),
            8);
  auto* const ucontext = static_cast<ucontext_t*>(context);
  ucontext->uc_mcontext.gregs[REG_RIP] += 2;
}

// covers: UX27
TEST(UwxSelf, RegistersBehindASignalAreThoseOfTheInterruptedCode) {
  struct sigaction action {
  }, before{};
  action.sa_sigaction = &read_rcx;
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(::sigaction(SIGILL, &action, &before), 0);
  const Envs envs;
  at_fault.envs = &envs;
  jitunwind_test_fault_with_rcx();
  ASSERT_EQ(::sigaction(SIGILL, &before, nullptr), 0);
  EXPECT_EQ(at_fault.status_before, UWX_ERR_BADREGID) << "the handler's own is lost in its call";
  EXPECT_EQ(at_fault.direct, 0x7e57u);
  EXPECT_EQ(at_fault.through_callbacks, 0x7e57u);
  EXPECT_EQ(at_fault.by_copyin, 0x7e57u);
}

struct Misuse {
  const Envs* envs = nullptr;
  int early = 0, twice = 0, foreign = 0, unreadable = 0, null = 0;
} misuse;

void misuse_contexts(int, siginfo_t*, void*) {
  const auto& [self, other] = *misuse.envs;
  EXPECT_EQ(uwx_self_init_context(self.env), UWX_OK);
  misuse.early = uwx_self_do_context_frame(self.env, self.info);
  while (uwx_step(self.env) == UWX_OK) {
  }
  EXPECT_EQ(uwx_get_abi_context_code(self.env), UWX_ABI_CONTEXT_SIGNAL);
  const std::uint64_t ip = self.reg(UWX_REG_IP), sp = self.reg(UWX_REG_SP);
  misuse.foreign = uwx_self_do_context_frame(self.env, other.info);
  misuse.null = uwx_self_do_context_frame(self.env, nullptr);
  EXPECT_EQ(uwx_set_reg(self.env, UWX_REG_SP, 0x10), UWX_OK);
  misuse.unreadable = uwx_self_do_context_frame(self.env, self.info);
  EXPECT_EQ(self.reg(UWX_REG_IP), ip);
  EXPECT_EQ(uwx_set_reg(self.env, UWX_REG_SP, sp), UWX_OK);
  EXPECT_EQ(uwx_self_do_context_frame(self.env, self.info), UWX_OK);
  misuse.twice = uwx_self_do_context_frame(self.env, self.info);
}

// covers: UX36 UX29
TEST(UwxSelf, ContextFramesAreTakenWhereTheyAreMet) {
  const Handled handled(&misuse_contexts);
  const Envs envs;
  misuse.envs = &envs;
  (void)::raise(SIGUSR1);
  EXPECT_EQ(misuse.early, UWX_ERR_NOCONTEXT);
  EXPECT_EQ(misuse.foreign, UWX_ERR_NOCONTEXT);
  EXPECT_EQ(misuse.null, UWX_ERR_NOCONTEXT);
  EXPECT_EQ(misuse.unreadable, UWX_ERR_UCACCESS);
  EXPECT_EQ(misuse.twice, UWX_ERR_NOCONTEXT);
}

// covers: UX36
TEST(UwxSelf, NeedsItsInfoAndCallbacks) {
  EXPECT_EQ(uwx_self_init_info(nullptr), nullptr);
  EXPECT_EQ(uwx_self_init_context(nullptr), UWX_ERR_NOENV);
  EXPECT_EQ(uwx_self_do_context_frame(nullptr, nullptr), UWX_ERR_NOENV);
  EXPECT_EQ(uwx_self_free_info(nullptr), UWX_OK);
  uwx_env* const env = uwx_init();
  EXPECT_EQ(uwx_self_init_context(env), UWX_ERR_NOCALLBACKS);
  EXPECT_EQ(uwx_register_callbacks(env, 0, &uwx_self_copyin, &uwx_self_lookupip), UWX_OK);
  EXPECT_EQ(uwx_self_init_context(env), UWX_ERR_CANTUNWIND) << "without info";
  uwx_self_info* const info = uwx_self_init_info(env);
  EXPECT_EQ(uwx_set_remote(env, 0), UWX_OK);
  EXPECT_EQ(uwx_self_init_context(env), UWX_ERR_CANTUNWIND) << "of another process";
  EXPECT_EQ(uwx_self_free_info(info), UWX_OK);
  EXPECT_EQ(uwx_free(env), UWX_OK);
}

// covers: UX36
TEST(UwxSelf, CallbacksAnswerAloneToo) {
  const SelfEnv self;
  const std::intptr_t token = reinterpret_cast<std::intptr_t>(self.info);
  std::uint64_t word = 0x1234, copy = 0;
  char* const into = reinterpret_cast<char*>(&copy);
  const auto at = reinterpret_cast<std::uintptr_t>(&word);
  EXPECT_EQ(uwx_self_copyin(UWX_COPYIN_MSTACK, into, at, 8, token), 8);
  EXPECT_EQ(copy, 0x1234u);
  EXPECT_EQ(uwx_self_copyin(UWX_COPYIN_UINFO, into, at, 4, token), 4);
  EXPECT_EQ(uwx_self_copyin(UWX_COPYIN_RSTACK, into, at, 8, token), 0);
  EXPECT_EQ(uwx_self_copyin(UWX_COPYIN_MSTACK, into, 0x10, 8, token), 0);
  EXPECT_EQ(uwx_self_copyin(UWX_COPYIN_MSTACK, into, at, -8, token), 0);
  EXPECT_EQ(uwx_self_copyin(UWX_COPYIN_REG, into, UWX_REG_PREDS, 8, token), 0);
  ASSERT_EQ(uwx_self_init_context(self.env), UWX_OK);
  EXPECT_EQ(uwx_self_copyin(UWX_COPYIN_REG, into, UWX_REG_GR(3), 4, token), 0);
  EXPECT_EQ(uwx_self_copyin(UWX_COPYIN_REG, into, UWX_REG_GR(3), 8, token), 8);
  EXPECT_EQ(copy, self.reg(UWX_REG_GR(3)));
  EXPECT_EQ(uwx_self_copyin(UWX_COPYIN_REG, into, UWX_REG_SP, 8, token), 8);
  EXPECT_EQ(copy, self.reg(UWX_REG_SP));
  std::uint64_t end[2] = {UWX_KEY_END, 0};
  std::uint64_t* vector = end;
  EXPECT_EQ(uwx_self_lookupip(99, 0, token, &vector), UWX_LKUP_ERR);
  EXPECT_EQ(uwx_self_lookupip(UWX_LKUP_LOOKUP, 0x10, token, &vector), UWX_LKUP_NOTFOUND);
  EXPECT_EQ(vector, end);
  const JitFrame frame;
  EXPECT_EQ(uwx_self_lookupip(UWX_LKUP_LOOKUP, frame.return_address(), token, &vector), UWX_LKUP_FDESC);
  vector = end;
  EXPECT_EQ(uwx_self_lookupip(UWX_LKUP_LOOKUP, reinterpret_cast<std::uintptr_t>(&std::malloc), token, &vector),
            UWX_LKUP_UTABLE);
}

/// Two regions of 16 bytes; the first one has one directive, which is wrong.
struct WrongFrame {
  WrongFrame(void* code, int tag) {
    first.op[0] = jitunwind_make_dyn_op(tag, _U_QP_TRUE, 0, 0, 5);
    first.next = reinterpret_cast<unw_dyn_region_info_t*>(&second);
    info.start_ip = reinterpret_cast<std::uintptr_t>(code);
    info.end_ip = info.start_ip + 32;
    info.u.pi.regions = reinterpret_cast<unw_dyn_region_info_t*>(&first);
    EXPECT_TRUE(register_procedure(&info));
  }
  ~WrongFrame() { EXPECT_TRUE(cancel_procedure(&info)); }
  WrongFrame(const WrongFrame&) = delete;
  WrongFrame& operator=(const WrongFrame&) = delete;

  struct Region {
    unw_dyn_region_info_t* next = nullptr;
    std::int32_t insn_count = 16;
    std::uint32_t op_count = 2;
    unw_dyn_op_t op[2]{};
  } first, second;
  unw_dyn_info_t info{};
};

// covers: UX29
TEST(UwxSelf, WrongDescriptionsAreSaidToBe) {
  static char code[0x40];
  const SelfEnv self;
  const auto step = [&](int tag) {
    const WrongFrame frame(code, tag);
    EXPECT_EQ(uwx_init_context(self.env, frame.info.start_ip + 20, reinterpret_cast<std::uintptr_t>(&self), 0, 0),
              UWX_OK);
    return uwx_step(self.env);
  };
  EXPECT_EQ(step(UNW_DYN_POP_FRAMES), UWX_ERR_PROLOG_UF);
  EXPECT_EQ(step(UNW_DYN_COPY_STATE), UWX_ERR_UNDEFLABEL);
  EXPECT_EQ(step(99), UWX_ERR_BADUDESC);
}

/// The leaf without unwind information was interrupted by a signal, or the walk begins there.
// covers: UX15
TEST(UwxSelf, UnknownCodeIsALeafHereToo) {
  void* const code = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(code, MAP_FAILED);
  const SelfEnv self;
  const auto caller = reinterpret_cast<std::uintptr_t>(&uwx_self_free_info);
  const std::uint64_t stack[2] = {caller, 0};
  ASSERT_EQ(uwx_init_context(self.env, reinterpret_cast<std::uintptr_t>(code) + 16,
                             reinterpret_cast<std::uintptr_t>(stack), 0, 0),
            UWX_OK);
  ASSERT_EQ(uwx_step(self.env), UWX_OK);
  EXPECT_EQ(self.reg(UWX_REG_IP), caller);
  EXPECT_EQ(self.reg(UWX_REG_SP), reinterpret_cast<std::uintptr_t>(stack) + 8);
  ::munmap(code, 4096);
}

unsigned allocated = 0;
void* count_and_allocate(std::size_t size) { return ++allocated, std::malloc(size); }

// covers: UX30 UX36
TEST(UwxSelf, WalksAllocateNothing) {
  ASSERT_EQ(uwx_register_alloc_cb(&count_and_allocate, &std::free), UWX_OK);
  const SelfEnv self;
  ASSERT_EQ(uwx_register_alloc_cb(nullptr, nullptr), UWX_OK);
  EXPECT_EQ(allocated, 2u) << "the environment and its info";
  for (int again = 0; again < 3; ++again) {
    ListedFrames frames;
    ASSERT_EQ(uwx_self_init_context(self.env), UWX_OK);
    EXPECT_EQ(self.list(frames), UWX_BOTTOM);
  }
  EXPECT_EQ(allocated, 2u);
}

// covers: UX05
TEST(UwxSelf, C99ProgramsUseIt) {
  std::uint64_t frames = 0;
  EXPECT_EQ(jitunwind_test_uwx_from_c(&frames), UWX_BOTTOM);
  EXPECT_GT(frames, 5u);
}

}  // namespace
}  // namespace jitunwind::test
