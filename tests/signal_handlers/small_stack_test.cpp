// Walks and lookups from handlers on a signal stack of 8 KiB (SIGSTKSZ of the C library's headers), a part of which the
// kernel uses. The stack is painted, which shows how much of it was written to, and lies behind an inaccessible page.
// Each test runs in its own process, so that its first walk is the first of the process.
#include <jitunwind/jitunwind.h>
#include <libunwind.h>

#include <execinfo.h>
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
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
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "tests/signal_handlers/small_stack_scenes.h"
#include "tests/support/painted_stack.h"

namespace jitunwind::test {
namespace {

/// The handler's results, in memory that parent and child share.
struct Told {
  bool is_done;
  unsigned frames;
  unsigned names;
  bool is_whole;
  bool has_scene;           ///< a frame of the scene's name
  std::size_t used;         ///< of the signal stack
  std::size_t before_walk;  ///< of that, by the kernel and the handler
  std::size_t elsewhere;    ///< used of the library's stack
};
Told* told = nullptr;
PaintedStack painted;
void (*act)(ucontext_t*) = nullptr;
sigjmp_buf behind;
bool is_last = false;
const char* scene_name = "";

/// The value of a new stack is 0.
std::size_t used_elsewhere() {
  return with_room([] {
    const auto* const here = static_cast<const volatile unsigned char*>(__builtin_frame_address(0));
    std::size_t lowest = 0;
    for (std::size_t below = 256; below < (std::size_t{200} << 10); ++below)
      if (*(here - below) != 0) lowest = below;
    return lowest;
  });
}

void on_signal(int, siginfo_t*, void* context) {
  if (is_last) *told = {};
  told->before_walk =
      static_cast<std::size_t>(painted.stack + painted.size - static_cast<unsigned char*>(__builtin_frame_address(0)));
  act(static_cast<ucontext_t*>(context));
  if (!is_last) ::siglongjmp(behind, 1);
  told->used = static_cast<std::size_t>(painted.stack + painted.size - painted.lowest_written());
  told->elsewhere = used_elsewhere();
  told->is_done = true;
  ::_exit(0);
}

void handle(int flags) {
  struct sigaction action {};
  action.sa_sigaction = &on_signal;
  action.sa_flags = SA_SIGINFO | flags;
  for (const int number : {SIGUSR1, SIGSEGV, SIGBUS, SIGILL}) ::sigaction(number, &action, nullptr);
}

// The actions of handlers.

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

/// glibc's backtrace() uses libgcc_s, which asks this library for the FDEs of registered code.
void list_by_libgcc(ucontext_t*) { look_up(::backtrace(addresses.data(), k_addresses)); }

struct Action {
  const char* name;
  void (*act)(ucontext_t*);
};
const Action k_actions[] = {
    {"walk_interrupted()", &walk_frames},        {"walk_here()", &walk_own_frames},
    {"unw_step() and the rest", &walk_by_steps}, {"unw_step()", &step_only},
    {"unw_getcontext()", &step_own_frames},      {"unw_backtrace()", &list_own},
    {"unw_backtrace2()", &list_interrupted},     {"backtrace()", &list_in_cxx},
    {"_Unwind_Backtrace()", &list_by_level_one}, {"glibc's backtrace()", &list_by_libgcc},
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

/// Runs a case in a child and returns what the child reports.
Told run(const Case& c, std::size_t size, int& status) {
  void* const shared = ::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  told = new (shared) Told{};
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    scene_name = c.scene->function;
    (void)::backtrace(addresses.data(), 1);  // loads libgcc_s
    act = c.action->act;
    handle(SA_NODEFER);
    // The first walks do not run on the small stack; if the ordinary one overflows there is no other stack.
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

// covers: SF09
TEST(SmallStack, HoldsEveryWalk) {
  std::size_t most = 0, most_walk = 0, most_elsewhere = 0;
  for (const Scene& scene : small_stack_scenes())
    for (const Action& action : k_actions)
      for (const unsigned kind : {0u, 1u, 2u, 3u}) {
        int status = 0;
        const Case c{&scene, &action, (kind & 1) != 0, (kind & 2) != 0};
        const Told result = run(c, size_of_small_stack(), status);
        const std::string what = c.text();
        EXPECT_EQ(status, 0) << what;
        EXPECT_TRUE(result.is_done) << what;
        // A throw does not guess.
        const bool by_libgcc = action.act == &list_by_libgcc;
        const bool may_end = (scene.is_guessed && (by_libgcc || action.act == &list_by_level_one)) ||
                             (scene.is_beyond_libgcc && by_libgcc);
        EXPECT_TRUE(result.has_scene || may_end) << what << ": " << result.frames << " frames";
        EXPECT_TRUE(result.is_whole) << what << ": " << result.frames << " frames";
        EXPECT_LE(result.used, size_of_small_stack()) << what;
        std::printf("%-60s %6zu, %zu of it before the walk, %u frames\n", what.c_str(), result.used, result.before_walk,
                    result.frames);
        // The limit that is promised if there is no other stack.
        EXPECT_LE(result.elsewhere, std::size_t{17} << 10) << what;
        most_elsewhere = std::max(most_elsewhere, result.elsewhere);
        most = std::max(most, result.used);
        most_walk = std::max(most_walk, result.used - result.before_walk);
      }
  std::printf("most: %zu bytes of %zu, %zu from the walk on; elsewhere %zu\n", most, size_of_small_stack(), most_walk,
              most_elsewhere);
}

}  // namespace
}  // namespace jitunwind::test
