// The stack that each function takes of a small signal stack is at most what docs/contracts.md says, at every frame of
// every kind of stack, whether its code is new or known.
#include <jitunwind/jitunwind.h>
#include <libunwind.h>

#include <gtest/gtest.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <new>
#include <string>
#include <utility>

#include "jitunwind/sdk/local_space.h"
#include "tests/signal_handlers/small_stack_scenes.h"
#include "tests/support/painted_stack.h"

namespace jitunwind::test {
namespace {

// The functions' arguments are not on the stack.
ucontext_t* interrupted = nullptr;
unw_context_t here;
unw_cursor_t cursor, scratch;
std::array<char, 256> text;
std::array<void*, 1 << 14> addresses;
unw_word_t word = 0;
unw_fpreg_t fpreg{};
unw_save_loc_t location{};
unw_proc_info_t procedure{};
alignas(FrameRow) std::array<std::byte, sizeof(FrameRow)> row_place;
alignas(Frame) std::array<std::byte, sizeof(Frame)> frame_place;
alignas(Walk) std::array<std::byte, sizeof(Walk)> walk_place;
volatile unsigned sink = 0;
unw_dyn_info_t descriptor{};

constexpr int k_addresses = static_cast<int>(addresses.size());
Frame& frame() { return *reinterpret_cast<Frame*>(frame_place.data()); }
FrameRow& row() { return *reinterpret_cast<FrameRow*>(row_place.data()); }
const Cursor& cursor_of(const unw_cursor_t& from) {
  return *static_cast<const Cursor*>(static_cast<const void*>(&from));
}
unw_word_t ip() {
  unw_get_reg(&cursor, UNW_REG_IP, &word);
  return word;
}

_Unwind_Reason_Code look_at(_Unwind_Context* context, void*) {
  sink = sink + static_cast<unsigned>(_Unwind_GetIP(context) + _Unwind_GetRegionStart(context));
  return _URC_NO_REASON;
}
int no_modules(unw_iterate_phdr_callback_t, void*) { return 0; }

std::array<std::byte, 2048> state;
bool has_state = false;
int take_state(void*, void* data, size_t size, unw_word_t begin, unw_word_t end) {
  if (size > state.size() || ip() - 1 < begin || ip() - 1 >= end) return 0;
  std::copy_n(static_cast<std::byte*>(data), size, state.data());
  has_state = true;
  return 0;
}
bool has_resumed = false;

const std::map<std::string, void (*)()> k_functions{
    {"unw_getcontext", [] { unw_getcontext(&here); }},
    {"unw_init_local", [] { unw_init_local(&scratch, &here); }},
    {"unw_init_local2", [] { unw_init_local2(&scratch, interrupted, UNW_INIT_SIGNAL_FRAME); }},
    {"unw_init_remote", [] { unw_init_remote(&scratch, unw_local_addr_space, interrupted); }},
    {"unw_step", [] { unw_step(&scratch); }},
    {"unw_get_reg", [] { unw_get_reg(&cursor, UNW_REG_SP, &word); }},
    {"unw_set_reg", [] { unw_set_reg(&scratch, UNW_REG_IP, ip() + 1); }},
    {"unw_get_fpreg", [] { unw_get_fpreg(&cursor, 17, &fpreg); }},
    {"unw_set_fpreg", [] { unw_set_fpreg(&scratch, 17, fpreg); }},
    {"unw_get_save_loc", [] { unw_get_save_loc(&cursor, UNW_X86_64_RBP, &location); }},
    {"unw_set_guesses", [] { unw_set_guesses(&scratch, UNW_GUESSES_CONFIRMED); }},
    {"unw_is_guess", [] { unw_is_guess(&scratch); }},
    {"unw_is_signal_frame", [] { unw_is_signal_frame(&scratch); }},
    {"unw_is_interrupted_frame", [] { unw_is_interrupted_frame(&scratch); }},
    {"unw_is_plt_entry", [] { unw_is_plt_entry(&scratch); }},
    {"unw_get_proc_info", [] { unw_get_proc_info(&scratch, &procedure); }},
    {"unw_get_proc_name", [] { unw_get_proc_name(&scratch, text.data(), text.size(), &word); }},
    {"unw_get_elf_filename", [] { unw_get_elf_filename(&scratch, text.data(), text.size(), &word); }},
    {"unw_get_proc_info_by_ip", [] { unw_get_proc_info_by_ip(unw_local_addr_space, ip(), &procedure, nullptr); }},
    {"unw_get_proc_name_by_ip",
     [] { unw_get_proc_name_by_ip(unw_local_addr_space, ip(), text.data(), text.size(), &word, nullptr); }},
    {"unw_get_elf_filename_by_ip",
     [] { unw_get_elf_filename_by_ip(unw_local_addr_space, ip(), text.data(), text.size(), &word, nullptr); }},
    {"unw_get_proc_info_in_range",
     [] {
       unw_get_proc_info_in_range(0, ~unw_word_t{0}, reinterpret_cast<unw_word_t>(text.data()), 0, 0, 0,
                                  unw_local_addr_space, ip(), &procedure, 1, nullptr);
     }},
    {"dwarf_search_unwind_table",
     [] {
       UNW_OBJ(dwarf_search_unwind_table)
       (unw_local_addr_space, ip(), &descriptor, &procedure, 1, nullptr);
     }},
    {"unw_reg_states_iterate", [] { unw_reg_states_iterate(&scratch, &take_state, nullptr); }},
    {"unw_apply_reg_state",
     [] {
       if (has_state) unw_apply_reg_state(&scratch, state.data());
     }},
    {"unw_flush_cache", [] { unw_flush_cache(unw_local_addr_space, ip(), ip() + 1); }},
    {"unw_set_iterate_phdr_function",
     [] {
       unw_set_iterate_phdr_function(unw_local_addr_space, &no_modules);
       unw_set_iterate_phdr_function(unw_local_addr_space, nullptr);
     }},
    {"unw_backtrace", [] { sink = sink + static_cast<unsigned>(unw_backtrace(addresses.data(), k_addresses)); }},
    {"unw_backtrace2", [] { (void)unw_backtrace2(addresses.data(), k_addresses, interrupted, UNW_INIT_SIGNAL_FRAME); }},
    {"unw_resume",
     [] {
       has_resumed = false;
       unw_getcontext(&here);
       if (std::exchange(has_resumed, true)) return;
       unw_init_local(&scratch, &here);
       sink = sink + static_cast<unsigned>(unw_resume(&scratch));  // no tail call, of which no frame would be left
     }},
    {"unw_regname", [] { sink = sink + static_cast<unsigned char>(unw_regname(3)[0]); }},
    {"unw_strerror", [] { sink = sink + static_cast<unsigned char>(unw_strerror(-3)[0]); }},
    {"unw_get_accessors", [] { sink = sink + (unw_get_accessors(unw_local_addr_space) != nullptr); }},
    {"walk_here()",
     [] {
       for (const Frame& f : walk_here()) sink = sink + static_cast<unsigned>(f.pc());
     }},
    {"walk_interrupted()",
     [] {
       for (const Frame& f : walk_interrupted(interrupted)) sink = sink + static_cast<unsigned>(f.pc());
     }},
    {"Walk::Iterator::operator++()",
     [] {
       Walk& walk = *reinterpret_cast<Walk*>(walk_place.data());
       Walk::Iterator at = walk.begin();
       ++at;
     }},
    {"cursor_at()", [] { new (walk_place.data()) Walk(interrupted, Cursor::Top::interrupted, Guesses::confirmed); }},
    {"Frame::raw_name()", [] { (void)frame().raw_name(text); }},
    {"Frame::offset()", [] { sink = sink + static_cast<unsigned>(frame().offset()); }},
    {"Frame::origin()", [] { sink = sink + static_cast<unsigned>(frame().origin()); }},
    {"Frame::is_signal_frame()", [] { sink = sink + frame().is_signal_frame(); }},
    {"Frame::row()", [] { (void)frame().row(row()); }},
    {"Frame::procedure()", [] { sink = sink + static_cast<unsigned>(bool(frame().procedure())); }},
    {"Frame::get()", [] { sink = sink + static_cast<unsigned>(bool(frame().get(7))); }},
    {"Frame::location()", [] { sink = sink + static_cast<unsigned>(frame().location(7).kind); }},
    {"backtrace()", [] { sink = sink + static_cast<unsigned>(backtrace(addresses)); }},
    {"backtrace(ucontext, ...)",
     [] { sink = sink + static_cast<unsigned>(backtrace(interrupted, Cursor::Top::interrupted, addresses)); }},
    {"find_local_name()",
     [] {
       ProcedureName name;
       sink = sink + find_local_name(CodeAddress::interrupted(ip()), text, name);
     }},
    {"_Unwind_Backtrace", [] { sink = sink + static_cast<unsigned>(_Unwind_Backtrace(&look_at, nullptr)); }},
    {"_Unwind_RaiseException",
     [] {
       try {
         throw 1;
       } catch (int n) {
         sink = sink + static_cast<unsigned>(n);
       }
     }},
};

PaintedStack painted;
std::size_t* used = nullptr;
void (*function)() = nullptr;

/// Measures from the call on. Everything below this function's own frame is painted.
[[gnu::noinline]] std::size_t stack_of(void (*call)()) {
  std::uintptr_t sp = 0;
  asm volatile("mov %%rsp, %0" : "=r"(sp));
  for (unsigned char* at = painted.begin; at != reinterpret_cast<unsigned char*>(sp); ++at)
    *const_cast<volatile unsigned char*>(at) = PaintedStack::k_paint;
  call();
  return sp - reinterpret_cast<std::uintptr_t>(painted.lowest_written());
}

/// Uses the function at each of the first frames. Cursors are copied, so that they keep no result of the frame before.
void use_at_each_frame() {
  constexpr int k_most_frames = 40;
  unw_init_local2(&cursor, interrupted, UNW_INIT_SIGNAL_FRAME);
  unw_getcontext(&here);
  for (int i = 0; i < k_most_frames; ++i) {
    scratch = cursor;
    new (frame_place.data()) Frame(cursor_of(cursor));
    new (walk_place.data()) Walk(frame().cursor());
    has_state = false;
    if (function == k_functions.at("unw_apply_reg_state")) unw_reg_states_iterate(&cursor, &take_state, nullptr);
    *used = std::max(*used, stack_of(function));
    if (unw_step(&cursor) <= 0) break;
  }
}

void on_signal(int, siginfo_t*, void* context) {
  interrupted = static_cast<ucontext_t*>(context);
  use_at_each_frame();  // new code
  use_at_each_frame();
  ::_exit(0);
}

/// Measures in a child.
std::size_t most_used(const Scene& scene, void (*call)()) {
  void* const shared = ::mmap(nullptr, sizeof *used, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  used = new (shared) std::size_t{0};
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    function = call;
    painted = PaintedStack::make(size_of_small_stack());
    painted.use();
    struct sigaction action {};
    action.sa_sigaction = &on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (const int number : {SIGUSR1, SIGSEGV, SIGBUS, SIGILL}) ::sigaction(number, &action, nullptr);
    scene.run();
    ::_exit(3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << scene.name;
  const std::size_t result = *used;
  ::munmap(shared, sizeof *used);
  return result;
}

/// Returns the functions in the table of the section "Stack", each with the bytes of its row.
std::map<std::string, std::size_t> documented() {
  std::map<std::string, std::size_t> bytes;
  std::ifstream page(JITUNWIND_SOURCE_DIR "/docs/contracts.md");
  bool is_in_section = false;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("## ", 0) == 0) is_in_section = line == "## Stack";
    const std::size_t middle = line.rfind(" | ");
    if (!is_in_section || line.rfind("| `", 0) != 0 || middle == line.npos) continue;
    for (std::size_t at = 0; (at = line.find('`', at)) < middle;) {
      const std::size_t end = line.find('`', at + 1);
      bytes[line.substr(at + 1, end - at - 1)] = std::stoul(line.substr(middle + 3));
      at = end + 1;
    }
  }
  return bytes;
}

// covers: SF09
TEST(StackUse, IsWhatIsSaidOfEachFunction) {
  const auto bytes = documented();
  for (const auto& [name, at_most] : bytes) EXPECT_TRUE(k_functions.contains(name)) << name << " is not measured";
  k_functions.at("_Unwind_RaiseException")();  // the C++ run-time library's functions are bound
  for (const auto& [name, call] : k_functions) {
    std::size_t most = 0;
    const char* where = "";
    for (const Scene& scene : small_stack_scenes()) {
      const std::size_t measured = most_used(scene, call);
      if (measured > most) where = scene.name;
      most = std::max(most, measured);
    }
    std::printf("%-32s %5zu bytes (%s)\n", name.c_str(), most, where);
    const auto said = bytes.find(name);
    if (said == bytes.end())
      ADD_FAILURE() << name << " is not in docs/contracts.md";
    else
      EXPECT_LE(most, said->second) << name;
  }
}

}  // namespace
}  // namespace jitunwind::test
