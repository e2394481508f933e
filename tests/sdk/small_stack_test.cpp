// Walks and look-ups from handlers on a signal stack of 8 KiB, the SIGSTKSZ of the C library's headers, of which the
// kernel takes its part. In front of it is a page that cannot be accessed, and it is painted, which tells how much of
// it was written to. Each is done in a process of its own, where the first one is the first.
#include <jitunwind/jitunwind.h>
#include <libunwind.h>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/jit_frame.h"

namespace jitunwind::test {
namespace {

constexpr std::size_t k_page = 4096;
constexpr unsigned char k_paint = 0xa5;

/// As large as 8 KiB on a processor with AVX-512 are for who walks, whatever this processor has the kernel save.
std::size_t size_of_stack() {
  constexpr std::size_t k_promised = 8192;
  constexpr std::size_t k_least_with_avx512 = 3632;  // AT_MINSIGSTKSZ there
  const std::size_t least = ::getauxval(AT_MINSIGSTKSZ);
  return k_promised + (least != 0 ? least : 2048) - k_least_with_avx512;
}

/// Painted from the page that cannot be accessed on, which may be more than the stack.
struct PaintedStack {
  unsigned char* begin = nullptr;  ///< of the paint
  unsigned char* stack = nullptr;
  std::size_t size = 0;

  /// `low`: at lower addresses than what is mapped later. Else at higher ones.
  static PaintedStack make(std::size_t size, bool low = false) {
    const std::size_t pages = (size + k_page - 1) / k_page * k_page;
    const int kind = MAP_PRIVATE | MAP_ANONYMOUS | (low ? MAP_32BIT : 0);
    auto* const memory =
        static_cast<unsigned char*>(::mmap(nullptr, k_page + pages, PROT_READ | PROT_WRITE, kind, -1, 0));
    ::mprotect(memory, k_page, PROT_NONE);
    PaintedStack made{memory + k_page, memory + k_page + pages - size, size};
    std::memset(made.begin, k_paint, pages);
    return made;
  }
  void use() const {
    const stack_t stack{this->stack, 0, size};
    ::sigaltstack(&stack, nullptr);
  }
  [[gnu::noinline]] unsigned char* lowest_written() const {
    unsigned char* at = begin;
    while (at != stack + size && *at == k_paint) ++at;
    return at;
  }
};

/// What the handler tells, in memory that parent and child share.
struct Told {
  bool is_done;
  unsigned frames;
  unsigned names;
  bool is_whole;
  bool has_scene;           ///< a frame of the scene's name
  std::size_t used;         ///< of the signal stack
  std::size_t before_walk;  ///< of that, by the kernel and the handler
};
Told* told = nullptr;
PaintedStack painted;
void (*act)(ucontext_t*) = nullptr;
sigjmp_buf behind;
bool is_last = false;
const char* scene_name = "";

void on_signal(int, siginfo_t*, void* context) {
  if (is_last) *told = {};
  told->before_walk =
      static_cast<std::size_t>(painted.stack + painted.size - static_cast<unsigned char*>(__builtin_frame_address(0)));
  act(static_cast<ucontext_t*>(context));
  if (!is_last) ::siglongjmp(behind, 1);
  told->used = static_cast<std::size_t>(painted.stack + painted.size - painted.lowest_written());
  told->is_done = true;
  ::_exit(0);
}

void handle(int flags) {
  struct sigaction action {};
  action.sa_sigaction = &on_signal;
  action.sa_flags = SA_SIGINFO | flags;
  for (const int number : {SIGUSR1, SIGSEGV, SIGBUS, SIGILL}) ::sigaction(number, &action, nullptr);
}

// What the interrupted stack is like. extern "C" for their names.

extern "C" {
using Last = void (*)();
void (*volatile small_stack_no_code)() = nullptr;
[[gnu::noinline]] void small_stack_raise() {
  ::raise(SIGUSR1);
  asm volatile("");
}
[[gnu::noinline]] void small_stack_static(int depth, Last last) {
  if (depth == 0)
    last();
  else
    small_stack_static(depth - 1, last);
  asm volatile("");
}
[[gnu::noinline]] void small_stack_null() {
  small_stack_no_code();
  asm volatile("");
}
// Nothing but its bytes tells what this is; the slot cannot be read.
asm(R"(
        .text
        .type small_stack_plt, @function
small_stack_plt:
        endbr64
        jmp *small_stack_slot(%rip)
        .size small_stack_plt, . - small_stack_plt
)");
void small_stack_plt();
// More rows are remembered than a reader of few has room for.
asm(R"(
        .text
        .type small_stack_states, @function
small_stack_states:
        .cfi_startproc
        push %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbp, 0
        .rept 12
        nop
        .cfi_remember_state
        .endr
        call small_stack_raise
        pop %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbp
        ret
        .rept 12
        .cfi_restore_state
        nop
        .endr
        .cfi_endproc
        .size small_stack_states, . - small_stack_states
)");
void small_stack_states();
alignas(4096) char small_stack_slot[4096];
[[gnu::noinline]] void small_stack_call_plt() {
  ::mprotect(small_stack_slot, sizeof small_stack_slot, PROT_NONE);
  small_stack_plt();
  asm volatile("");
}
void small_stack_on_other_signal(int) {
  ::raise(SIGUSR1);
  asm volatile("");
}
volatile int small_stack_endless = 1 << 30;
[[gnu::noinline]] int small_stack_overflow(int depth) {
  volatile char room[512];
  room[0] = static_cast<char>(depth);
  return (depth < small_stack_endless ? small_stack_overflow(depth + 1) : 0) + room[0];
}
}

void call_through(const JitFrame& frame) {
  frame([](void*) -> void* { return small_stack_static(2, &small_stack_raise), nullptr; }, nullptr);
}

/// Nothing describes it. The call of it says where it begins, the call in it what was called.
void call_through_unknown_code() {
  // push rbx; call [rip+2]; pop rbx; ret; the address of what is called.
  constexpr unsigned char k_code[] = {0x53, 0xff, 0x15, 0x02, 0, 0, 0, 0x5b, 0xc3};
  static void* code = nullptr;
  if (!code) {
    code = ::mmap(nullptr, k_page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(code, k_code, sizeof k_code);
    const Last last = &small_stack_raise;
    std::memcpy(static_cast<char*>(code) + sizeof k_code, &last, sizeof last);
  }
  asm volatile("call *%0" ::"m"(code) : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
}

void call_through_library(const char* path) {
  void* const library = ::dlopen(path, RTLD_NOW);
  const auto call = reinterpret_cast<int (*)(int (*)(int), int)>(::dlsym(library, "debug_frame_calls"));
  call([](int i) { return small_stack_raise(), i; }, 1);
}

struct Scene {
  const char* name;
  const char* function;  ///< that is to be found on the stack
  void (*run)();
  bool is_guessed = false;  ///< which throws must not be
};

const Scene k_scenes[] = {
    {"static code", "small_stack_static", [] { small_stack_static(8, &small_stack_raise); }},
    {"directives", "jit_frame", [] { call_through(JitFrame()); }},
    {"directives with many states", "jit_frame", [] { call_through(JitFrame(JitFrame::ManyStates{})); }},
    {"rows that are remembered", "small_stack_states", [] { small_stack_static(2, &small_stack_states); }},
    {"a row", "jit_frame", [] { call_through(JitFrame("cfa=rsp+32 rbp=[cfa-24] rbx=[cfa-16] ra=[cfa-8]")); }},
    {"ALIAS", "jit_frame",
     [] {
       const JitFrame other;
       call_through(JitFrame(JitFrame::AliasOf{other.return_address()}));
     }},
    {"unknown code", "small_stack_raise", &call_through_unknown_code, true},
    {"a call of null", "small_stack_null", [] { small_stack_static(3, &small_stack_null); }, true},
    {"a linkage stub", "small_stack_call_plt", [] { small_stack_static(3, &small_stack_call_plt); }},
    {"another handler", "small_stack_on_other_signal",
     [] {
       ::signal(SIGUSR2, &small_stack_on_other_signal);
       ::raise(SIGUSR2);
     }},
    {"a stack that has overflowed", "small_stack_overflow",
     [] {
       rlimit small{256 << 10, 256 << 10};
       ::setrlimit(RLIMIT_STACK, &small);
       small_stack_overflow(0);
     }},
    {".debug_frame", "debug_frame_calls", [] { call_through_library(DEBUG_FRAME_PLAIN); }},
    {".debug_frame, compressed", "debug_frame_calls", [] { call_through_library(DEBUG_FRAME_COMPRESSED); }},
};

// What handlers do.

void note_name(const char* name) {
  told->names += name[0] != '\0';
  if (std::string_view(name).find(scene_name) != std::string_view::npos) told->has_scene = true;
}
std::array<char, 256> text;  // none of it is on the stack

void by_frames(Walk&& walk) {
  for (const Frame& frame : walk) {
    ++told->frames;
    if (frame.raw_name(text)) note_name(text.data());
    (void)frame.is_signal_frame();
    (void)frame.is_guess();
    (void)frame.offset();
    (void)frame.procedure();
    (void)frame.get(7);
  }
  told->is_whole = walk.stop_reason() == StopReason::outermost;
}
void walk_frames(ucontext_t* context) { by_frames(walk_interrupted(context)); }
void walk_own_frames(ucontext_t*) { by_frames(walk_here()); }

void look_at(unw_cursor_t& cursor) {
  unw_word_t value = 0;
  unw_proc_info_t procedure;
  ++told->frames;
  (void)unw_get_reg(&cursor, UNW_REG_IP, &value);
  if (unw_get_proc_name(&cursor, text.data(), text.size(), &value) == 0) note_name(text.data());
  (void)unw_get_elf_filename(&cursor, text.data(), text.size(), &value);
  (void)unw_get_proc_info(&cursor, &procedure);
  (void)unw_is_signal_frame(&cursor);
  (void)unw_is_plt_entry(&cursor);
}
void walk_by_steps(ucontext_t* context) {
  unw_cursor_t cursor;
  unw_init_local2(&cursor, context, UNW_INIT_SIGNAL_FRAME);
  int moved = 0;
  do look_at(cursor);
  while ((moved = unw_step(&cursor)) > 0);
  told->is_whole = moved == 0;
}
void step_only(ucontext_t* context) {
  unw_cursor_t cursor;
  unw_init_local2(&cursor, context, UNW_INIT_SIGNAL_FRAME);
  int moved = 0;
  do ++told->frames;
  while ((moved = unw_step(&cursor)) > 0);
  told->is_whole = moved == 0;
  told->has_scene = true;
}
void step_own_frames(ucontext_t*) {
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t cursor;
  unw_init_local(&cursor, &context);
  int moved = 0;
  do ++told->frames;
  while ((moved = unw_step(&cursor)) > 0);
  told->is_whole = moved == 0;
  told->has_scene = true;
}

std::array<void*, 1 << 14> addresses;
constexpr int k_addresses = static_cast<int>(addresses.size());
void look_up(int count) {
  told->frames = static_cast<unsigned>(count);
  for (int i = 0; i < std::min(count, 30); ++i) {
    const auto at = reinterpret_cast<unw_word_t>(addresses[static_cast<std::size_t>(i)]);
    unw_proc_info_t procedure;
    unw_word_t offset = 0;
    (void)unw_get_proc_info_by_ip(unw_local_addr_space, at, &procedure, nullptr);
    (void)unw_get_elf_filename_by_ip(unw_local_addr_space, at, text.data(), text.size(), &offset, nullptr);
    if (unw_get_proc_name_by_ip(unw_local_addr_space, at, text.data(), text.size(), &offset, nullptr) == 0)
      note_name(text.data());
  }
  told->is_whole = true;
}
void list_own(ucontext_t*) { look_up(unw_backtrace(addresses.data(), k_addresses)); }
void list_interrupted(ucontext_t* context) {
  look_up(unw_backtrace2(addresses.data(), k_addresses, context, UNW_INIT_SIGNAL_FRAME));
}
void list_in_cxx(ucontext_t* context) {
  (void)backtrace(addresses);
  look_up(static_cast<int>(backtrace(context, Cursor::Top::interrupted, addresses)));
}

_Unwind_Reason_Code count_frame(_Unwind_Context* context, void*) {
  int before = 0;
  addresses[told->frames++] = reinterpret_cast<void*>(_Unwind_GetIPInfo(context, &before));
  (void)_Unwind_GetRegionStart(context);
  (void)_Unwind_GetCFA(context);
  return told->frames < addresses.size() ? _URC_NO_REASON : _URC_NORMAL_STOP;
}
void list_by_level_one(ucontext_t*) {
  (void)_Unwind_Backtrace(&count_frame, nullptr);
  look_up(static_cast<int>(told->frames));
}

struct Action {
  const char* name;
  void (*act)(ucontext_t*);
};
const Action k_actions[] = {
    {"walk_interrupted()", &walk_frames},        {"walk_here()", &walk_own_frames},
    {"unw_step() and the rest", &walk_by_steps}, {"unw_step()", &step_only},
    {"unw_getcontext()", &step_own_frames},      {"unw_backtrace()", &list_own},
    {"unw_backtrace2()", &list_interrupted},     {"backtrace()", &list_in_cxx},
    {"_Unwind_Backtrace()", &list_by_level_one},
};

struct Case {
  const Scene* scene;
  const Action* action;
  bool is_warm;
  bool is_low;
  std::string text() const {
    return std::string(scene->name) + ", " + action->name + (is_warm ? ", warm" : ", cold") + (is_low ? ", low" : "");
  }
};

/// What a child tells of it.
Told run(const Case& c, std::size_t size, int& status) {
  void* const shared = ::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  told = new (shared) Told{};
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    scene_name = c.scene->function;
    act = c.action->act;
    handle(SA_NODEFER);
    // Not on the small stack; where the ordinary one overflows there is no other.
    for (int i = 0; i < 2 && c.is_warm; ++i) {
      PaintedStack::make(std::size_t{256} << 10).use();
      handle(SA_NODEFER | SA_ONSTACK);
      if (sigsetjmp(behind, 1) == 0) c.scene->run();
    }
    painted = PaintedStack::make(size, c.is_low);
    painted.use();
    handle(SA_ONSTACK);
    is_last = true;
    c.scene->run();
    ::_exit(3);
  }
  ::waitpid(child, &status, 0);
  const Told result = *told;
  ::munmap(shared, sizeof(Told));
  return result;
}

TEST(SmallStack, HoldsEveryWalk) {
  std::size_t most = 0, most_walk = 0;
  for (const Scene& scene : k_scenes)
    for (const Action& action : k_actions)
      for (const unsigned kind : {0u, 1u, 2u, 3u}) {
        int status = 0;
        const Case c{&scene, &action, (kind & 1) != 0, (kind & 2) != 0};
        const Told result = run(c, size_of_stack(), status);
        const std::string what = c.text();
        EXPECT_EQ(status, 0) << what;
        EXPECT_TRUE(result.is_done) << what;
        const bool may_end = scene.is_guessed && action.act == &list_by_level_one;
        EXPECT_TRUE(result.has_scene || may_end) << what << ": " << result.frames << " frames";
        EXPECT_TRUE(result.is_whole) << what << ": " << result.frames << " frames";
        EXPECT_LE(result.used, size_of_stack()) << what;
        std::printf("%-60s %6zu, %zu of it before the walk, %u frames\n", what.c_str(), result.used, result.before_walk,
                    result.frames);
        most = std::max(most, result.used);
        most_walk = std::max(most_walk, result.used - result.before_walk);
      }
  std::printf("most: %zu bytes of %zu, %zu from the walk on\n", most, size_of_stack(), most_walk);
}

}  // namespace
}  // namespace jitunwind::test
