// Walks by the C interface equal those of C++: from here, from a signal, of threads, of targets.
#include <gtest/gtest.h>
#include <jitunwind/c.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "tests/c_interface/live.h"

using namespace c_interface;

namespace {

void expect_through(const Seen& seen, const char* innermost) {
  ASSERT_GE(seen.names.size(), 4u);
  EXPECT_NE(seen.names[0].find(innermost), std::string::npos) << seen.names[0];
  EXPECT_EQ(seen.names[1], "jit_call");
  EXPECT_EQ(seen.frames[1].origin, JU_ORIGIN_DIRECTIVES);
  EXPECT_STREQ(ju_origin_name(seen.frames[1].origin), "dyn_directives");
  EXPECT_EQ(seen.frames[1].is_guess, 0);
  EXPECT_NE(seen.frames[1].is_return_address, 0);
  EXPECT_NE(seen.names[2].find("TestBody"), std::string::npos) << seen.names[2];
}

TEST(CWalks, ByCallbackAndByCursor) {
  int mark = 0;
  const Live live(&mark);
  Seen by_callback;
  live.code.call()(walk_by_callback, &by_callback);
  EXPECT_EQ(by_callback.status, JU_OK);
  expect_through(by_callback, "walk_by_callback");
  EXPECT_TRUE(is_complete(by_callback));
  EXPECT_EQ(by_callback.user, &mark);
  Seen by_cursor;
  live.code.call()(walk_by_cursor, &by_cursor);
  EXPECT_EQ(by_cursor.status, JU_END);
  EXPECT_EQ(by_cursor.why, "complete");
  expect_through(by_cursor, "walk_by_cursor");
  EXPECT_TRUE(is_complete(by_cursor));
  EXPECT_EQ(by_cursor.names.size(), by_callback.names.size());
}

/// Compares with C++'s walk from the same place.
[[gnu::noinline]] void compare_with_cpp(void* count) {
  ju_cursor cursor;
  alignas(16) std::byte context[jitunwind::k_context_size];
  jitunwind_capture_context(context);
  ASSERT_EQ(ju_cursor_here(&cursor, nullptr), JU_OK);
  jitunwind::Walk walk(context, jitunwind::Cursor::Top::returned_to, jitunwind::Guesses::confirmed);
  for (const jitunwind::Frame& frame : walk) {
    if (frame.depth() != 0) {
      EXPECT_EQ(ju_frame_pc(&cursor), frame.pc());
    }
    EXPECT_EQ(ju_frame_sp(&cursor), frame.sp());
    for (const ju_reg reg : k_preserved) {
      std::uint64_t value = 0;
      ASSERT_EQ(ju_frame_get_reg(&cursor, reg, &value, nullptr), JU_OK);
      if (frame.depth() != 0) {  // of the function itself they change between the two calls
        EXPECT_EQ(value, *frame.get(static_cast<jitunwind::RegNum>(reg & 0xffff))) << ju_register_name(reg);
      }
    }
    std::array<char, 200> row;
    jitunwind::FrameRow expected;
    if (frame.row(expected)) {
      ASSERT_EQ(ju_frame_row(&cursor, row.data(), row.size(), nullptr), JU_OK);
      if (frame.depth() != 0) {
        EXPECT_EQ(row.data(), jitunwind::to_text(expected, *jitunwind::host_arch()));
      }
    }
    ++*static_cast<int*>(count);
    (void)ju_cursor_step(&cursor, nullptr);
  }
}

TEST(CWalks, FindWhatCppFinds) {
  const Live live;
  int count = 0;
  live.code.call()(compare_with_cpp, &count);
  EXPECT_GT(count, 4);
}

[[gnu::noinline]] void check_procedure(void* argument) {
  const Live& of = *static_cast<const Live*>(argument);
  ju_cursor cursor;
  ASSERT_EQ(ju_cursor_here(&cursor, nullptr), JU_OK);
  ASSERT_EQ(ju_cursor_step(&cursor, nullptr), JU_OK);
  ju_procedure procedure;
  procedure.struct_size = sizeof procedure;
  ASSERT_EQ(ju_frame_procedure(&cursor, &procedure, nullptr), JU_OK);
  EXPECT_EQ(procedure.begin, reinterpret_cast<std::uintptr_t>(of.code.at()));
  EXPECT_EQ(procedure.end, procedure.begin + sizeof k_call);
  EXPECT_EQ(procedure.unwind_info, reinterpret_cast<std::uintptr_t>(of.registration)) << "the descriptor";
  std::array<char, 100> row;
  ASSERT_EQ(ju_frame_row(&cursor, row.data(), row.size(), nullptr), JU_OK);
  EXPECT_STREQ(row.data(), k_row_at_call);
  // The caller's value of the register is at this frame's SP.
  const std::uint64_t sp = ju_frame_sp(&cursor);
  ASSERT_EQ(ju_cursor_step(&cursor, nullptr), JU_OK);
  std::uint64_t at = 0;
  ASSERT_EQ(ju_frame_saved_at(&cursor, k_saved, &at, nullptr), JU_OK);
  EXPECT_EQ(at, sp);
  std::uint64_t value = 0;
  ASSERT_EQ(ju_frame_get_reg(&cursor, k_saved, &value, nullptr), JU_OK);
  EXPECT_EQ(ju_frame_set_reg(&cursor, k_saved, value, nullptr), JU_OK);
  EXPECT_EQ(ju_frame_get_reg(&cursor, k_scratch, &value, nullptr), JU_UNDEFINED_REGISTER);
}

TEST(CWalks, OfProceduresAndSavedRegisters) {
  const Live live;
  live.code.call()(check_procedure, const_cast<Live*>(&live));
}

TEST(CWalks, EndWhereTheCallbackSays) {
  int calls = 0;
  const auto first_only = [](const ju_cursor*, void* count) { return ++*static_cast<int*>(count); };
  EXPECT_EQ(ju_walk_here(first_only, &calls, nullptr), JU_STOP_UNWIND);
  EXPECT_EQ(calls, 1);
}

TEST(CWalks, FromACursorThatStays) {
  ju_cursor cursor;
  ASSERT_EQ(ju_cursor_here(&cursor, nullptr), JU_OK);
  const std::uint64_t pc = ju_frame_pc(&cursor);
  Seen seen;
  EXPECT_EQ(ju_walk(&cursor, on_frame, &seen, nullptr), JU_OK);
  EXPECT_GT(seen.names.size(), 3u);
  EXPECT_EQ(ju_frame_pc(&cursor), pc);
  EXPECT_EQ(ju_cursor_set_guesses(&cursor, JU_GUESSES_BOLD), JU_OK);
}

Seen* seen_by_handler = nullptr;

TEST(CWalks, OfWhatASignalInterrupted) {
  const Live live;
  Seen seen;
  seen_by_handler = &seen;
  struct sigaction action {
  }, before;
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = [](int, siginfo_t*, void* context) {
    Seen& into = *seen_by_handler;
    into.status = ju_walk_at(context, JU_INTERRUPTED, on_frame, &into, nullptr);
  };
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  live.code.call()([](void*) { raise(SIGUSR1); }, nullptr);
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(seen.status, JU_OK);
  EXPECT_NE(std::find(seen.names.begin(), seen.names.end(), "jit_call"), seen.names.end());
  ASSERT_FALSE(seen.frames.empty());
  EXPECT_EQ(seen.frames[0].is_return_address, 0) << "the pc that was interrupted";
}

TEST(CWalks, OfAddresses) {
  const Live live;
  static void* addresses[64];
  static int count;
  live.code.call()([](void*) { count = ju_backtrace(addresses, 64); }, nullptr);
  ASSERT_GT(count, 3);
  const auto in_jit = reinterpret_cast<std::uintptr_t>(live.code.at()) + k_after_call;
  EXPECT_EQ(std::count(addresses, addresses + count, reinterpret_cast<void*>(in_jit)), 1);
  char name[32];
  std::uint64_t offset = 0;
  EXPECT_EQ(ju_symbolise(in_jit, 1, name, sizeof name, &offset), JU_OK);
  EXPECT_STREQ(name, "jit_call");
  EXPECT_EQ(offset, k_after_call);
  EXPECT_EQ(ju_symbolise(16, 0, name, sizeof name, &offset), JU_NO_INFO);
  alignas(16) char context[1024];
  jitunwind_capture_context(context);
  EXPECT_GT(ju_backtrace_at(context, JU_RETURNED_TO, addresses, 64), 2u);
}

TEST(CWalks, OfAnotherThread) {
  const Live live;
  std::atomic<pid_t> id{0};
  std::atomic<bool> done{false};
  struct Shared {
    std::atomic<pid_t>& id;
    std::atomic<bool>& done;
  } shared{id, done};
  std::thread other([&] {
    live.code.call()(
        [](void* argument) {
          const Shared& with = *static_cast<Shared*>(argument);
          with.id = gettid();
          while (!with.done) {
          }
        },
        &shared);
  });
  while (id == 0) std::this_thread::yield();
  std::array<ju_frame, 40> frames;
  frames[0].struct_size = sizeof(ju_frame);
  std::size_t count = 0;
  Error error;
  EXPECT_EQ(ju_walk_thread(id, 2'000'000'000, frames.data(), frames.size(), &count, &error), JU_OK) << error.text;
  done = true;
  other.join();
  ASSERT_GT(count, 2u);
  ASSERT_LE(count, frames.size());
  const auto in_jit = [&](const ju_frame& frame) {
    return frame.pc - reinterpret_cast<std::uintptr_t>(live.code.at()) == k_after_call &&
           frame.origin == JU_ORIGIN_DIRECTIVES;
  };
  EXPECT_EQ(std::count_if(frames.begin(), frames.begin() + static_cast<long>(count), in_jit), 1);
  EXPECT_EQ(frames[count - 1].depth, count - 1);
  EXPECT_EQ(ju_walk_thread(0, 1000, nullptr, 0, nullptr, &error), JU_THREAD_GONE);
  EXPECT_STREQ(error.text, "this process has no thread of that number");
}

TEST(CTargets, AreWalkedByTheSameCursor) {
  const Live live;
  const pid_t child = fork();
  if (child == 0) {
    live.code.call()(
        [](void*) {
          for (;;) pause();
        },
        nullptr);
    _exit(1);
  }
  ASSERT_GT(child, 0);
  Error error;
  ju_target* target = nullptr;
  Seen seen;
  for (int tries = 0; tries < 100 && std::count(seen.names.begin(), seen.names.end(), "jit_call") == 0; ++tries) {
    ASSERT_EQ(ju_target_attach(child, JU_WHILE_ATTACHED, &target, &error), JU_OK) << error.text;
    EXPECT_EQ(ju_target_process(target), child);
    EXPECT_EQ(ju_target_cpu(target), ju_host_cpu());
    ASSERT_EQ(ju_target_threads(target), 1u);
    ju_thread thread;
    thread.struct_size = sizeof thread;
    EXPECT_EQ(ju_target_thread(target, 0, &thread, nullptr), JU_OK);
    EXPECT_EQ(thread.id, child);
    EXPECT_NE(thread.is_stopped, 0);
    EXPECT_EQ(ju_target_thread(target, 1, &thread, &error), JU_OUT_OF_RANGE);
    std::uint64_t list = 0;
    EXPECT_EQ(ju_target_list(target, 0, &list, nullptr), JU_OK);
    EXPECT_EQ(list, reinterpret_cast<std::uintptr_t>(ju_procedure_list()));
    seen = Seen{};
    ju_cursor cursor;
    ASSERT_EQ(ju_target_cursor(target, 0, &cursor, &error), JU_OK);
    do look_at(&cursor, seen);
    while (ju_cursor_step(&cursor, nullptr) == JU_OK);
    EXPECT_EQ(ju_target_free(target), JU_OK);
    usleep(1000);
  }
  EXPECT_EQ(std::count(seen.names.begin(), seen.names.end(), "jit_call"), 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(ju_target_attach(child, JU_TO_COPY, &target, &error), JU_NO_PROCESS);
  EXPECT_NE(error.text[0], '\0');
  EXPECT_EQ(ju_target_attach(getpid(), JU_TO_COPY, &target, &error), JU_THIS_PROCESS);
  EXPECT_STREQ(error.remedy, "Use ju_cursor_here() or ju_walk_thread().");
  EXPECT_EQ(ju_target_open_core("/nonexistent", nullptr, &target, &error), JU_NO_SUCH_FILE);
}

TEST(CTargets, OfASample) {
  const std::array<std::uint64_t, 4> stack{7, 0x1234, 0, 0};
  const ju_reg_value registers[] = {{k_pc, 0x1000}, {k_sp, 0x7000}};
  ju_sample sample{};
  sample.struct_size = sizeof sample;
  sample.registers = registers;
  sample.register_count = 2;
  sample.stack_address = 0x7000;
  sample.stack = stack.data();
  sample.stack_size = sizeof stack;
  sample.maps = "1000-2000 r-xp 00000000 00:00 0\n";
  sample.process = 77;
  sample.thread = 78;
  Error error;
  ju_target* target = nullptr;
  ASSERT_EQ(ju_target_of_sample(&sample, nullptr, &target, &error), JU_OK) << error.text;
  ju_cursor cursor;
  ASSERT_EQ(ju_target_cursor(target, 0, &cursor, &error), JU_OK);
  EXPECT_EQ(ju_frame_pc(&cursor), 0x1000u);
  EXPECT_EQ(ju_frame_sp(&cursor), 0x7000u);
  sample.cpu = k_other_cpu;
  EXPECT_EQ(ju_target_renew_sample(target, &sample, &error), JU_OTHER_CPU);
  EXPECT_EQ(ju_target_free(target), JU_OK);
}

}  // namespace
