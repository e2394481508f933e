// Walks behind accessors equal local ones: one stack of C++ code, code made at run time, a signal and its trampoline is
// asked about in every way, in this process by its own accessors, and in a child by ptrace.
#include <libunwind.h>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>

#include "tests/support/jit_frame.h"

namespace jitunwind::test {
namespace {

struct Register {
  int known, has_place;
  unw_word_t value;
  unw_save_loc_type_t type;
  unw_word_t place;
};

struct FloatingRegister {
  int known;
  std::array<char, sizeof(unw_fpreg_t)> value;
};

/// All answers for a frame. It is plain data, so that a child can write it where its parent reads it.
struct Seen {
  std::array<Register, UNW_REG_LAST + 1> registers;
  std::array<FloatingRegister, UNW_REG_LAST + 1> floating;
  int named, in_file, described, is_signal_frame, is_interrupted, is_plt_entry, state_applied, moved;
  std::array<char, 256> name, file;
  unw_word_t name_offset, file_offset;
  unw_word_t start, end, lsda, handler, gp, flags;
  unw_word_t states, states_cover;  ///< how many, and the bytes of all
  unw_word_t ip_by_state;
};
constexpr std::size_t k_most_frames = 64;
struct Stack {
  std::array<Seen, k_most_frames> frames;
  std::size_t count;
  unw_context_t context;  ///< of the innermost frame
};

struct States {
  unw_word_t ip;
  Seen* seen;
  std::array<char, 2048> here;
  bool found;
};
int add_state(void* into, void* data, size_t size, unw_word_t start, unw_word_t end) {
  States& states = *static_cast<States*>(into);
  ++states.seen->states;
  states.seen->states_cover += end - start;
  if (states.ip >= start && states.ip < end && size <= states.here.size()) {
    std::memcpy(states.here.data(), data, size);
    states.found = true;
  }
  return 0;
}

void look_at(unw_cursor_t& cursor, Seen& seen) {
  for (int i = 0; i <= UNW_REG_LAST; ++i) {
    Register& reg = seen.registers[static_cast<std::size_t>(i)];
    unw_save_loc_t location{};
    reg.known = unw_get_reg(&cursor, i, &reg.value);
    reg.has_place = unw_get_save_loc(&cursor, i, &location);
    reg.type = location.type;
    if (location.type == UNW_SLT_MEMORY) reg.place = location.u.addr;
    if (location.type == UNW_SLT_REG) reg.place = static_cast<unw_word_t>(location.u.regnum);
    FloatingRegister& floating = seen.floating[static_cast<std::size_t>(i)];
    unw_fpreg_t value;
    std::memset(&value, 0, sizeof value);
    floating.known = unw_get_fpreg(&cursor, i, &value);
    std::memcpy(floating.value.data(), &value, sizeof value);
  }
  seen.named = unw_get_proc_name(&cursor, seen.name.data(), seen.name.size(), &seen.name_offset);
  seen.in_file = unw_get_elf_filename(&cursor, seen.file.data(), seen.file.size(), &seen.file_offset);
  unw_proc_info_t info;
  seen.described = unw_get_proc_info(&cursor, &info);
  seen.start = info.start_ip, seen.end = info.end_ip, seen.lsda = info.lsda;
  seen.handler = info.handler, seen.gp = info.gp, seen.flags = info.flags;
  seen.is_signal_frame = unw_is_signal_frame(&cursor);
  seen.is_interrupted = unw_is_interrupted_frame(&cursor);
  seen.is_plt_entry = unw_is_plt_entry(&cursor);

  States states{seen.registers[UNW_REG_IP].value - (seen.is_interrupted == 0), &seen, {}, false};
  unw_cursor_t applied = cursor;
  seen.state_applied = unw_reg_states_iterate(&cursor, add_state, &states);
  if (states.found) {
    seen.state_applied = unw_apply_reg_state(&applied, states.here.data());
    unw_get_reg(&applied, UNW_REG_IP, &seen.ip_by_state);
  }
}

void look_at_all(unw_cursor_t cursor, Stack& stack) {
  int moved = 1;
  for (stack.count = 0; moved > 0 && stack.count < k_most_frames; ++stack.count) {
    Seen& seen = stack.frames[stack.count];
    std::memset(&seen, 0, sizeof seen);
    look_at(cursor, seen);
    moved = seen.moved = unw_step(&cursor);
  }
}

void expect_same(const Stack& local, const Stack& remote) {
  ASSERT_EQ(remote.count, local.count);
  for (std::size_t i = 0; i < local.count; ++i) {
    const Seen &expected = local.frames[i], &seen = remote.frames[i];
    for (std::size_t r = 0; r < expected.registers.size(); ++r) {
      const Register &a = expected.registers[r], &b = seen.registers[r];
      EXPECT_TRUE(a.known == b.known && a.value == b.value) << i << " " << unw_regname(static_cast<int>(r));
      EXPECT_TRUE(a.has_place == b.has_place && a.type == b.type && a.place == b.place)
          << i << " " << unw_regname(static_cast<int>(r)) << a.type << b.type;
      const FloatingRegister &c = expected.floating[r], &d = seen.floating[r];
      EXPECT_TRUE(c.known == d.known && c.value == d.value) << i << " " << unw_regname(static_cast<int>(r));
    }
    EXPECT_EQ(seen.named, expected.named) << i;
    EXPECT_STREQ(seen.name.data(), expected.name.data()) << i;
    EXPECT_EQ(seen.name_offset, expected.name_offset) << i;
    EXPECT_EQ(seen.in_file, expected.in_file) << i;
    EXPECT_STREQ(seen.file.data(), expected.file.data()) << i;
    EXPECT_EQ(seen.file_offset, expected.file_offset) << i;
    EXPECT_EQ(seen.described, expected.described) << i;
    EXPECT_EQ(seen.start, expected.start) << i;
    EXPECT_EQ(seen.end, expected.end) << i;
    EXPECT_EQ(seen.lsda, expected.lsda) << i;
    EXPECT_EQ(seen.handler, expected.handler) << i;
    EXPECT_EQ(seen.gp, expected.gp) << i;
    EXPECT_EQ(seen.flags, expected.flags) << i;
    EXPECT_EQ(seen.is_signal_frame, expected.is_signal_frame) << i;
    EXPECT_EQ(seen.is_interrupted, expected.is_interrupted) << i;
    EXPECT_EQ(seen.is_plt_entry, expected.is_plt_entry) << i;
    EXPECT_EQ(seen.states, expected.states) << i;
    EXPECT_EQ(seen.states_cover, expected.states_cover) << i;
    EXPECT_EQ(seen.state_applied, expected.state_applied) << i;
    EXPECT_EQ(seen.ip_by_state, expected.ip_by_state) << i;
    EXPECT_EQ(seen.moved, expected.moved) << i;
  }
}

/// Checks that the stack has enough to compare.
void expect_much(const Stack& stack) {
  const auto all = [&](auto is) {
    return std::count_if(stack.frames.begin(), stack.frames.begin() + static_cast<std::ptrdiff_t>(stack.count), is);
  };
  EXPECT_GT(stack.count, 8u);
  EXPECT_EQ(all([](const Seen& s) { return s.is_signal_frame > 0; }), 1);
  EXPECT_EQ(all([](const Seen& s) { return s.is_interrupted > 0; }), 2) << "the first, and the one below the signal";
  EXPECT_EQ(all([](const Seen& s) { return std::strcmp(s.name.data(), "jit_frame") == 0; }), 1);
  EXPECT_GT(all([](const Seen& s) { return s.lsda != 0; }), 0);
  EXPECT_GT(all([](const Seen& s) { return s.in_file == 0; }), 5);
  EXPECT_GT(all([](const Seen& s) { return s.states > 1; }), 5);
  EXPECT_EQ(stack.frames[stack.count - 1].moved, 0);
  for (const RegisterInfo& reg : host_arch()->registers) {
    if (reg.reg_class != RegClass::vector || !reg.preserved) continue;
    const auto number = static_cast<std::size_t>(reg.libunwind);
    EXPECT_EQ(all([&](const Seen& s) { return s.floating[number].known == 0; }), std::ptrdiff_t(stack.count))
        << reg.name;
  }
}

std::function<void(unw_context_t&)> in_handler;

/// Calls it in a signal handler, below code made at run time.
[[gnu::noinline]] void on_the_stack(const JitFrame& frame, std::function<void(unw_context_t&)> look) {
  in_handler = std::move(look);
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {
    unw_context_t context;
    unw_getcontext(&context);
    in_handler(context);
  };
  ::sigaction(SIGUSR1, &action, &before);
  frame([](void*) -> void* { return ::raise(SIGUSR1), nullptr; }, nullptr);
  ::sigaction(SIGUSR1, &before, nullptr);
}

/// Starts as at a target's innermost frame, whose IP is that of the next instruction.
void look_locally(unw_context_t& context, Stack& stack) {
  unw_cursor_t cursor;
  ASSERT_EQ(unw_init_local2(&cursor, &context, UNW_INIT_SIGNAL_FRAME), 0);
  look_at_all(cursor, stack);
}

// covers: AS13
TEST(RemoteAsLocal, ThisProcessByItsAccessors) {
  const JitFrame frame;
  static Stack local, remote;
  on_the_stack(frame, [](unw_context_t& context) {
    look_locally(context, local);
    const unw_addr_space_t space = unw_create_addr_space(unw_get_accessors(unw_local_addr_space), 0);
    unw_cursor_t cursor;
    ASSERT_EQ(unw_init_remote(&cursor, space, &context), 0);
    look_at_all(cursor, remote);
    unw_destroy_addr_space(space);
  });
  expect_much(local);
  expect_same(local, remote);
}

/// A child that has stopped. ptrace reads its memory; the registers of its innermost frame are those that it left. Its
/// code is mapped at the same addresses here, so this process knows it.
struct Child {
  pid_t process;
  Stack* stack;

  static unw_accessors_t accessors() {
    unw_accessors_t a = *unw_get_accessors(unw_local_addr_space);
    a.access_mem = [](unw_addr_space_t, unw_word_t at, unw_word_t* value, int write, void* argument) {
      if (write != 0) return -UNW_EINVAL;
      errno = 0;
      const long word = ::ptrace(PTRACE_PEEKDATA, static_cast<Child*>(argument)->process, at, nullptr);
      if (errno != 0) return -UNW_EINVAL;
      *value = static_cast<unw_word_t>(word);
      return 0;
    };
    a.access_reg = [](unw_addr_space_t, unw_regnum_t reg, unw_word_t* value, int write, void* argument) {
      return unw_get_accessors(unw_local_addr_space)
          ->access_reg(unw_local_addr_space, reg, value, write, &static_cast<Child*>(argument)->stack->context);
    };
    a.access_fpreg = [](unw_addr_space_t, unw_regnum_t reg, unw_fpreg_t* value, int write, void* argument) {
      return unw_get_accessors(unw_local_addr_space)
          ->access_fpreg(unw_local_addr_space, reg, value, write, &static_cast<Child*>(argument)->stack->context);
    };
    return a;
  }
};

// covers: AS13
TEST(RemoteAsLocal, AChildByPtrace) {
  auto* const shared =
      static_cast<Stack*>(::mmap(nullptr, sizeof(Stack), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const JitFrame frame;
  const pid_t process = ::fork();
  if (process == 0) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    on_the_stack(frame, [shared](unw_context_t& context) {
      shared->context = context;
      look_locally(context, *shared);
      ::kill(::getpid(), SIGSTOP);
    });
    ::_exit(1);
  }
  int status = 0;
  do ASSERT_EQ(::waitpid(process, &status, 0), process);
  while (WIFSTOPPED(status) && WSTOPSIG(status) != SIGSTOP &&
         ::ptrace(PTRACE_CONT, process, nullptr, WSTOPSIG(status)) == 0);
  ASSERT_TRUE(WIFSTOPPED(status));

  Child child{process, shared};
  unw_accessors_t accessors = Child::accessors();
  const unw_addr_space_t space = unw_create_addr_space(&accessors, 0);
  unw_cursor_t cursor;
  ASSERT_EQ(unw_init_remote(&cursor, space, &child), 0);
  static Stack remote;
  look_at_all(cursor, remote);
  unw_destroy_addr_space(space);
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
  expect_much(*shared);
  expect_same(*shared, remote);
  ::munmap(shared, sizeof(Stack));
}

}  // namespace
}  // namespace jitunwind::test
