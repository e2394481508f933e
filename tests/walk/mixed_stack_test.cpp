// A stack with every kind of frame: static code, code made at run time, static code, a signal, code made at run time.
// Each frame's pc, SP and preserved registers are compared with the values that the frames themselves have recorded.
#include <asmjit/x86.h>
#include <jitunwind/asmjit.h>
#include <jitunwind/jitunwind.h>

#include <gtest/gtest.h>
#include <libunwind.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

namespace jitunwind {
namespace {

using namespace asmjit;

/// A procedure made at run time records its SP at its call here.
struct Recorded {
  Addr sp_at_call = 0;
};

/// void name(Recorded* out, void (*callee)()): fills the preserved registers with magic + DWARF number, then calls.
using Made = void (*)(Recorded*, void (*)());
constexpr x86::Gp k_preserved[] = {x86::rbx, x86::rbp, x86::r12, x86::r13, x86::r14, x86::r15};
constexpr RegNum k_numbers[] = {3, 6, 12, 13, 14, 15};

Made make(AsmjitRuntime& runtime, const char* name, std::uint64_t magic) {
  CodeHolder code;
  code.init(runtime.environment());
  AsmjitAssembler a(&code);
  for (const x86::Gp& reg : k_preserved) a.push(reg);
  a.sub(x86::rsp, 8);
  a.mov(x86::ptr(x86::rdi), x86::rsp);
  for (std::size_t i = 0; i < std::size(k_preserved); ++i) a.mov(k_preserved[i], magic + k_numbers[i]);
  a.call(x86::rsi);
  a.add(x86::rsp, 8);
  for (std::size_t i = std::size(k_preserved); i-- > 0;) a.pop(k_preserved[i]);
  a.ret();
  Made made = nullptr;
  EXPECT_EQ(runtime.add(&made, &code, name), kErrorOk);
  return made;
}

struct Seen {
  std::string name;
  Addr pc;
  Addr sp;
  RowOrigin origin;
  bool signal_frame;
  std::vector<std::uint64_t> preserved;
};

std::vector<Seen> g_seen;
Recorded g_outer, g_inner;
Made g_make_inner = nullptr;

void walker() {
  g_seen.clear();
  Walk walk = walk_here();
  for (const Frame& frame : walk) {
    Seen seen{frame.name(), frame.pc(), frame.sp(), frame.origin(), frame.is_signal_frame(), {}};
    for (RegNum reg : k_numbers) {
      const auto value = frame.get(reg);
      seen.preserved.push_back(value ? *value : 0);
    }
    g_seen.push_back(seen);
  }
  EXPECT_EQ(walk.stop_reason(), StopReason::outermost) << walk.why();
}

void handler(int) {
  g_make_inner(&g_inner, walker);
  asm volatile("");  // no tail call
}

void raiser() {
  raise(SIGUSR1);
  asm volatile("");
}

std::size_t index_of(const std::string& name) {
  const auto it = std::ranges::find(g_seen, name, &Seen::name);
  return static_cast<std::size_t>(it - g_seen.begin());
}

void expect_made_frame(const std::string& name, Made made, const Recorded& recorded, std::uint64_t magic) {
  const std::size_t i = index_of(name);
  ASSERT_LT(i, g_seen.size()) << name;
  EXPECT_EQ(g_seen[i].origin, RowOrigin::dyn_directives);
  EXPECT_GT(g_seen[i].pc, reinterpret_cast<Addr>(made));
  EXPECT_LT(g_seen[i].pc, reinterpret_cast<Addr>(made) + 120);
  EXPECT_EQ(g_seen[i].sp, recorded.sp_at_call);
  for (std::size_t r = 0; r < std::size(k_numbers); ++r)
    EXPECT_EQ(g_seen[i].preserved[r], magic + k_numbers[r]) << name;
}

// covers: LU19 DY47
TEST(MixedStack, EveryKindOfFrame) {
  AsmjitRuntime runtime;
  const Made outer = make(runtime, "made_outer", 0x1111'0000'0000);
  g_make_inner = make(runtime, "made_inner", 0x2222'0000'0000);
  struct sigaction action {
  }, old{};
  action.sa_handler = handler;
  sigaction(SIGUSR1, &action, &old);
  outer(&g_outer, raiser);
  sigaction(SIGUSR1, &old, nullptr);

  expect_made_frame("made_outer", outer, g_outer, 0x1111'0000'0000);
  expect_made_frame("made_inner", g_make_inner, g_inner, 0x2222'0000'0000);
  const std::size_t inner = index_of("made_inner"), outer_index = index_of("made_outer");
  EXPECT_EQ(inner, 1u);
  EXPECT_NE(g_seen[0].name.find("walker"), std::string::npos);
  EXPECT_NE(g_seen[2].name.find("handler"), std::string::npos);
#ifndef __SANITIZE_THREAD__  // which has frames of its own between
  EXPECT_TRUE(g_seen[3].signal_frame);
#endif
  EXPECT_EQ(std::ranges::count(g_seen, true, &Seen::signal_frame), 1);
  ASSERT_GT(outer_index, 4u);
  EXPECT_NE(g_seen[outer_index - 1].name.find("raiser"), std::string::npos);
  // The callers of the made code have their own values again.
  for (std::size_t i = outer_index + 1; i < g_seen.size(); ++i)
    for (std::size_t r = 0; r < std::size(k_numbers); ++r)
      EXPECT_NE(g_seen[i].preserved[r], 0x1111'0000'0000 + k_numbers[r]);
  for (std::size_t i = 1; i < g_seen.size(); ++i) EXPECT_GT(g_seen[i].sp, g_seen[i - 1].sp);
  runtime.release(outer);
  runtime.release(g_make_inner);
}

/// Both names of the C interface see registrations, whichever name made them.
std::vector<std::string> g_c_names;
void c_walker() {
  g_c_names.clear();
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t cursor;
  unw_init_local(&cursor, &context);
  int moved = 1;
  while (moved > 0) {
    char name[64] = "";
    (void)unw_get_proc_name(&cursor, name, sizeof name, nullptr);
    g_c_names.push_back(name);
    moved = unw_step(&cursor);
  }
  EXPECT_EQ(moved, 0) << unw_strerror(moved);
}

// covers: LU18 DY16
TEST(MixedStack, TheCInterfaceSeesTheSame) {
  AsmjitRuntime runtime;
  const Made made = make(runtime, "made_for_c", 0x3333'0000'0000);
  Recorded recorded;
  made(&recorded, c_walker);
  ASSERT_GT(g_c_names.size(), 3u);
  EXPECT_EQ(g_c_names[1], "made_for_c");
  EXPECT_EQ(g_c_names.back(), "_start");
  runtime.release(made);
}

/// An unregistered function is called from a registered one. It has no frame: the return address is on top of the
/// stack, and the interrupted code continues to a return, which confirms that.
// covers: DY08
TEST(MixedStack, AnUnregisteredLeaf) {
  JitRuntime plain;
  CodeHolder code;
  code.init(plain.environment());
  x86::Assembler a(&code);
  a.xor_(x86::eax, x86::eax);
  a.mov(x86::cl, x86::byte_ptr(x86::rax));  // two bytes, which fault
  a.ret();
  void (*leaf)() = nullptr;
  ASSERT_EQ(plain.add(&leaf, &code), kErrorOk);
  AsmjitRuntime runtime;
  const Made caller = make(runtime, "calls_a_leaf", 0x4444'0000'0000);
  static std::vector<std::pair<std::string, bool>> seen;
  struct sigaction action {
  }, old{};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = [](int, siginfo_t*, void* context) {
    seen.clear();
    for (const Frame& frame : walk_interrupted(context)) seen.emplace_back(frame.name(), frame.is_guess());
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] += 2;
  };
  sigaction(SIGSEGV, &action, &old);
  Recorded recorded;
  caller(&recorded, leaf);
  sigaction(SIGSEGV, &old, nullptr);
  ASSERT_GT(seen.size(), 3u);
  EXPECT_EQ(seen[0], (std::pair<std::string, bool>("", true)));
  EXPECT_EQ(seen[1], (std::pair<std::string, bool>("calls_a_leaf", false)));
  EXPECT_EQ(seen.back().first, "_start");
  runtime.release(caller);
  plain.release(leaf);
}

}  // namespace
}  // namespace jitunwind
