// Every function that is documented as signal-safe is called in the handler of a profiling signal, inside the C
// library's own code and registration.
#include <libunwind.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "tests/support/eh_frame_hdr.h"
#include "tests/support/handlers.h"
#include "tests/support/malloc_calls.h"
#include "tests/support/texts.h"

extern "C" const void* _Unwind_Find_FDE(void* pc, void* bases);  // libgcc, unwind-dw2-fde.h

namespace jitunwind::test {
namespace {

constexpr std::string_view k_names[] = {"_U_dyn_info_list_addr",
                                        "_U_dyn_region_size",
                                        "dwarf_search_unwind_table",
                                        "unw_apply_reg_state",
                                        "unw_backtrace",
                                        "unw_backtrace2",
                                        "unw_flush_cache",
                                        "unw_get_accessors",
                                        "unw_get_elf_filename",
                                        "unw_get_elf_filename_by_ip",
                                        "unw_get_fpreg",
                                        "unw_get_proc_info",
                                        "unw_get_proc_info_by_ip",
                                        "unw_get_proc_info_in_range",
                                        "unw_get_proc_name",
                                        "unw_get_proc_name_by_ip",
                                        "unw_get_reg",
                                        "unw_get_save_loc",
                                        "unw_getcontext",
                                        "unw_init_local",
                                        "unw_init_local2",
                                        "unw_init_remote",
                                        "unw_is_fpreg",
                                        "unw_is_guess",
                                        "unw_is_interrupted_frame",
                                        "unw_is_plt_entry",
                                        "unw_is_signal_frame",
                                        "unw_reg_states_iterate",
                                        "unw_regname",
                                        "unw_resume",
                                        "unw_set_fpreg",
                                        "unw_set_guesses",
                                        "unw_set_iterate_phdr_function",
                                        "unw_set_reg",
                                        "unw_step",
                                        "unw_strerror"};
std::array<std::atomic<bool>, std::size(k_names)> g_called{};

consteval std::size_t index_of(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(k_names, name) - k_names);  // behind the end: no constant
}
template <std::size_t Index>
void note() {
  static_assert(Index < std::size(k_names));
  g_called[Index].store(true, std::memory_order_relaxed);
}
/// Records the call under the function's name in the manual.
#define CALL(name, ...) (note<index_of(#name)>(), name(__VA_ARGS__))

/// Mistakes that a handler has found.
struct Mistakes {
  std::atomic<unsigned> derailed{0}, without_witness{0}, other_lists{0}, answers{0}, mallocs{0};
};
Mistakes g_mistakes;
std::atomic<unsigned> g_walks{0}, g_complete{0}, g_resumed{0};
void expect(bool right) { g_mistakes.answers += !right; }

constexpr int k_most_frames = 256;
struct Ips {
  std::array<unw_word_t, k_most_frames> at{};
  int count = 0;
};
/// The callers of the function under test: each walk ends with them.
Ips g_callers;

bool ends_with_the_callers(const Ips& ips) {
  return ips.count > g_callers.count && std::equal(g_callers.at.begin(), g_callers.at.begin() + g_callers.count,
                                                   ips.at.begin() + (ips.count - g_callers.count));
}

/// Returns whether the address is in executable memory of a file, by /proc/self/maps, line by line.
bool is_code_of_a_file(unw_word_t at) {
  const int file = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  std::array<char, 512> line;
  bool found = false;
  std::size_t length = 0;
  for (char byte; !found && ::read(file, &byte, 1) == 1;) {
    if (byte != '\n') {
      if (length + 1 < line.size()) line[length++] = byte;
      continue;
    }
    line[length] = '\0';
    length = 0;
    char* end = nullptr;
    const unw_word_t begin = std::strtoul(line.data(), &end, 16);
    const unw_word_t behind = std::strtoul(end + 1, &end, 16);
    found = at >= begin && at < behind && end[3] == 'x' && std::strchr(end, '/');
  }
  ::close(file);
  return found;
}

/// A walk may end where nothing describes the code, as in _init and frame_dummy of every library. It has reached a
/// file's code, and the system's unwinder is the witness that nothing is known there.
bool is_undescribed_code(int error, const Ips& ips) {
  const unw_word_t at = ips.at[static_cast<std::size_t>(ips.count) - 1] - (ips.count > 1);
  std::array<void*, 3> bases{};
  return error == -UNW_ENOINFO && is_code_of_a_file(at) && !_Unwind_Find_FDE(reinterpret_cast<void*>(at), &bases);
}

void ask_about_frame(unw_cursor_t& cursor) {
  std::array<char, 128> text;
  unw_word_t value = 0;
  unw_proc_info_t info;
  unw_save_loc_t location;
  unw_fpreg_t fp;
  (void)CALL(unw_get_proc_name, &cursor, text.data(), text.size(), &value);
  (void)CALL(unw_get_elf_filename, &cursor, text.data(), text.size(), &value);
  (void)CALL(unw_get_proc_info, &cursor, &info);
  for (int reg = 0; reg <= UNW_REG_LAST; ++reg) {
    const bool known = CALL(unw_get_reg, &cursor, reg, &value) == 0;
    expect(CALL(unw_get_save_loc, &cursor, reg, &location) == 0);
    expect(!known || reg == UNW_REG_SP || location.type != UNW_SLT_MEMORY ||
           *reinterpret_cast<unw_word_t*>(location.u.addr) == value);
    expect(CALL(unw_regname, reg)[0] == 'R');
    expect(CALL(unw_is_fpreg, reg) == 0);
  }
  expect(CALL(unw_get_fpreg, &cursor, 17, &fp) == -UNW_EBADREG);
  expect(CALL(unw_set_fpreg, &cursor, 17, 1.0L) == -UNW_EBADREG);
  if (CALL(unw_get_reg, &cursor, UNW_X86_64_RBX, &value) == 0)
    expect(CALL(unw_set_reg, &cursor, UNW_X86_64_RBX, value) == 0);
  (void)CALL(unw_is_signal_frame, &cursor);
  (void)CALL(unw_is_interrupted_frame, &cursor);
  expect(CALL(unw_is_guess, &cursor) >= 0);
  expect(CALL(unw_set_guesses, &cursor, UNW_GUESSES_CONFIRMED) == 0);
  expect(CALL(unw_is_plt_entry, &cursor) >= 0);
}

void walk(unw_context_t* context, int kind) {
  unw_cursor_t cursor;
  Ips ips;
  int moved = CALL(unw_init_local2, &cursor, context, kind) == 0;
  while (moved > 0 && ips.count < k_most_frames) {
    ask_about_frame(cursor);
    unw_get_reg(&cursor, UNW_REG_IP, &ips.at[static_cast<std::size_t>(ips.count++)]);
    moved = CALL(unw_step, &cursor);
  }
  expect(CALL(unw_strerror, moved) != nullptr);
  g_complete += moved == 0;
  g_mistakes.derailed += moved == 0 && !ends_with_the_callers(ips);
  g_mistakes.without_witness += moved != 0 && !is_undescribed_code(moved, ips);

  std::array<void*, k_most_frames> listed;
  const int count = CALL(unw_backtrace2, listed.data(), k_most_frames, context, kind);
  bool same = count == ips.count;
  for (std::size_t i = 0; same && i < static_cast<std::size_t>(count); ++i)
    same = reinterpret_cast<unw_word_t>(listed[i]) == ips.at[i];
  g_mistakes.other_lists += !same;
}

/// The state for the range that contains the cursor's frame.
struct Kept {
  unw_word_t at;
  std::array<char, 2048> data;
  bool found = false;
};
int keep_state(void* into, void* data, size_t size, unw_word_t start, unw_word_t end) {
  Kept& kept = *static_cast<Kept*>(into);
  if (kept.at < start || kept.at >= end || size > kept.data.size()) return 0;
  std::copy_n(static_cast<const char*>(data), size, kept.data.begin());
  kept.found = true;
  return 1;
}

/// Steps once by the kept states of the procedure of this function's caller, with the result of a step.
void step_by_state(unw_cursor_t cursor) {
  unw_word_t ip = 0, by_step = 0, by_state = 0;
  expect(unw_get_reg(&cursor, UNW_REG_IP, &ip) == 0);
  Kept kept{ip - 1, {}};
  unw_cursor_t applied = cursor;
  expect(CALL(unw_reg_states_iterate, &cursor, keep_state, &kept) == 1 && kept.found);
  expect(unw_step(&cursor) > 0 && CALL(unw_apply_reg_state, &applied, kept.data.data()) == 0);
  unw_get_reg(&cursor, UNW_REG_IP, &by_step);
  unw_get_reg(&applied, UNW_REG_IP, &by_state);
  expect(by_step == by_state);
}

Hdr g_hdr;
unw_dyn_info_t g_table;
unw_word_t g_in_libc = 0;

void ask_about_code() {
  std::array<char, 128> text;
  unw_word_t offset = 0;
  unw_proc_info_t by_ip, other;
  const unw_addr_space_t local = unw_local_addr_space;
  expect(CALL(unw_get_accessors, local) != nullptr);
  expect(CALL(unw_get_proc_info_by_ip, local, g_in_libc, &by_ip, nullptr) == 0);
  expect(CALL(unw_get_proc_info_in_range, g_hdr.begin, g_hdr.end, g_hdr.at, g_hdr.size, 0, 0, local, g_in_libc, &other,
              1, nullptr) == 0 &&
         other.start_ip == by_ip.start_ip);
  note<index_of("dwarf_search_unwind_table")>();
  expect(UNW_OBJ(dwarf_search_unwind_table)(local, g_in_libc, &g_table, &other, 1, nullptr) == 0 &&
         other.start_ip == by_ip.start_ip);
  expect(CALL(unw_get_proc_name_by_ip, local, g_in_libc, text.data(), text.size(), &offset, nullptr) == 0);
  (void)CALL(unw_get_elf_filename_by_ip, local, g_in_libc, text.data(), text.size(), &offset, nullptr);
  expect(std::strchr(text.data(), '/') != nullptr);
  expect(CALL(_U_dyn_info_list_addr) != 0);
  expect(CALL(_U_dyn_region_size, 2) == 16 + 2 * sizeof(unw_dyn_op_t) && _U_dyn_region_size(-1) == 0);
}

int lists_nothing(unw_iterate_phdr_callback_t, void*) { return 0; }

/// Calls the functions that a handler need not call at every signal.
[[gnu::noinline]] void ask_the_rest(unw_context_t* context) {
  unw_context_t here;
  unw_cursor_t cursor;
  expect(CALL(unw_getcontext, &here) == 0);
  expect(CALL(unw_init_local, &cursor, &here) == 0);
  step_by_state(cursor);
  ask_about_code();
  expect(CALL(unw_init_remote, &cursor, unw_local_addr_space, context) == 0);
  CALL(unw_set_iterate_phdr_function, unw_local_addr_space, lists_nothing);
  expect(unw_init_local(&cursor, &here) == 0);
  unw_proc_info_t info;
  expect(unw_get_proc_info(&cursor, &info) == -UNW_ENOINFO);
  unw_set_iterate_phdr_function(unw_local_addr_space, nullptr);
  expect(unw_init_local(&cursor, &here) == 0 && unw_get_proc_info(&cursor, &info) == 0);
  CALL(unw_flush_cache, unw_local_addr_space, 0, 0);
  std::array<void*, 8> listed;
  expect(CALL(unw_backtrace, listed.data(), 8) > 2);
}

timer_t g_timer{};

/// The timer is set for one signal, so that a machine slower than the interval makes progress.
void arm() {
  const itimerspec once{{0, 0}, {0, 100'000}};
  timer_settime(g_timer, 0, &once, nullptr);
}

void on_profile(int, siginfo_t*, void* context) {
  const int saved = errno;
  JITUNWIND_HANDLER_CONTEXT(from, context);
  const unsigned number = ++g_walks;
  {
#ifndef JITUNWIND_TEST_SANITIZED
    const MallocCalls mallocs;
#endif
    walk(from.context, from.k_kind);
    if (number % 16 == 0) ask_the_rest(from.context);
#ifndef JITUNWIND_TEST_SANITIZED
    g_mistakes.mallocs += mallocs.count();
#endif
  }
  arm();
  errno = saved;
#ifndef __SANITIZE_THREAD__  // whose handlers are not the kernel's to return from
  if (number % 8 != 0) return;
  unw_cursor_t interrupted;
  unw_init_local2(&interrupted, from.context, UNW_INIT_SIGNAL_FRAME);
  ++g_resumed;
  expect(CALL(unw_resume, &interrupted) == 0);  // does not return
#endif
}

/// Returns the functions whose page says that they are signal-safe, for this process at least.
std::set<std::string> documented_as_safe() {
  std::set<std::string> names;
  for (const auto& page : std::filesystem::directory_iterator(JITUNWIND_SOURCE_DIR "/docs/reference")) {
    const std::string text = text_of_file(page.path());
    const std::size_t safety = text.find("## Safety");
    if (safety == std::string::npos) continue;
    const std::string said = text.substr(safety, text.find("\n## ", safety + 1) - safety);
    const bool is_safe = has_match(said, Pattern("[Ss]ignal-safe"));
    if (is_safe && said.find("not signal-safe") == std::string::npos) names.insert(page.path().stem().string());
  }
  names.erase("_U_dyn_op");             // macros
  names.erase("unw_local_addr_space");  // a variable
  return names;
}

/// Finds the signal-safe functions in the same way, but in the headers' comments.
std::set<std::string> declared_as_safe() {
  std::set<std::string> names;
  const Pattern declaration(R"(^extern [^(]*?[ *](UNW_OBJ\()?(\w+)\)?\(.*)");
  for (const char* header : {"sdk/compat/include/libunwind-common.h", "sdk/compat/include/libunwind-x86_64.h",
                             "dyn_info/libunwind-dynamic.h"}) {
    std::ifstream in(std::string(JITUNWIND_SOURCE_DIR "/") + header);
    std::string comment;
    for (std::string line; std::getline(in, line);) {
      if (line.rfind("/*", 0) == 0) comment.clear();
      Groups found;
      if (!matches(line, found, declaration)) {
        comment += line + " ";
        continue;
      }
      const bool is_safe =
          has_match(comment, Pattern("[Ss]ignal-safe")) && !has_match(comment, Pattern("not\\s+signal-safe"));
      std::string name = found[2];
      if (name.rfind("unw_tdep_", 0) == 0) name = "unw_" + name.substr(9);
      if (is_safe) names.insert(name);
    }
  }
  return names;
}

void register_and_cancel() {
  static char code[64];
  unw_dyn_info_t info{};
  info.start_ip = reinterpret_cast<unw_word_t>(code);
  info.end_ip = info.start_ip + sizeof code;
  _U_dyn_register(&info);
  _U_dyn_cancel(&info);
}

/// A walk every 100 microseconds inside malloc, free, dlopen, dlclose, registration and the C library's own code, while
/// another thread loads and unloads a library.
// covers: SF01 SF02 SF03 SF06 SF11
TEST(SignalSafety, ProfilingMallocDlopenAndRegistration) {
  g_hdr = hdr_of_libc();
  g_in_libc = reinterpret_cast<unw_word_t>(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
  g_table.start_ip = g_hdr.begin;
  g_table.end_ip = g_hdr.end;
  g_table.format = UNW_INFO_FORMAT_REMOTE_TABLE;
  g_table.u.rti = {0, g_hdr.at, *reinterpret_cast<const std::uint32_t*>(g_hdr.at + 8), g_hdr.at + 12};
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  while (unw_step(&cursor) > 0)
    unw_get_reg(&cursor, UNW_REG_IP, &g_callers.at[static_cast<std::size_t>(g_callers.count++)]);
  ASSERT_GT(g_callers.count, 4);

  struct sigaction action {
  }, old{};
  action.sa_sigaction = on_profile;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGPROF, &action, &old);
  std::atomic<bool> stop{false};
  std::thread loader([&] {
    sigset_t profile;
    sigemptyset(&profile);
    sigaddset(&profile, SIGPROF);
    pthread_sigmask(SIG_BLOCK, &profile, nullptr);
    while (!stop) {
      if (void* library = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL)) dlclose(library);
      // Otherwise the thread takes the lock again before a waiting thread, which signals wake and send to sleep, has
      // run.
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGPROF;
  event._sigev_un._tid = gettid();
  ASSERT_EQ(timer_create(CLOCK_MONOTONIC, &event, &g_timer), 0);
  arm();
  for (unsigned rounds = 0; rounds < 100 || g_walks < 1000; ++rounds) {
    void* blocks[64];
    for (std::size_t i = 0; i < 64; ++i) blocks[i] = std::malloc(16 + 97 * i);
    for (void* block : blocks) std::free(block);
    if (void* library = dlopen("libutil.so.1", RTLD_NOW | RTLD_LOCAL)) dlclose(library);
    for (int i = 0; i < 64; ++i) register_and_cancel();
  }
  timer_delete(g_timer);
  stop = true;
  loader.join();
  sigaction(SIGPROF, &old, nullptr);
  RecordProperty("walks", static_cast<int>(g_walks));
  RecordProperty("complete", static_cast<int>(g_complete));
  EXPECT_EQ(g_mistakes.derailed, 0u) << "of " << g_walks;
  EXPECT_EQ(g_mistakes.without_witness, 0u) << "of " << g_walks;
  EXPECT_EQ(g_mistakes.other_lists, 0u) << "of " << g_walks;
  EXPECT_EQ(g_mistakes.answers, 0u) << "of " << g_walks;
  EXPECT_EQ(g_mistakes.mallocs, 0u) << "of " << g_walks;
  EXPECT_GT(g_complete * 2, g_walks);

  std::set<std::string> called;
  for (std::size_t i = 0; i < std::size(k_names); ++i)
    if (g_called[i]) called.emplace(k_names[i]);
#ifdef __SANITIZE_THREAD__
  called.insert("unw_resume");
#else
  EXPECT_GT(g_resumed, 10u);
#endif
  EXPECT_EQ(called, documented_as_safe());
  EXPECT_EQ(called, declared_as_safe());
}

}  // namespace
}  // namespace jitunwind::test
