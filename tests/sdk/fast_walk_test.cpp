// Walks by what was kept and walks that make each row: where they could differ. tests/mixed_walks has random stacks.
#include <alloca.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "sdk/local_space.h"
#include "sdk/walk.h"
#include "tests/support/jit_frame.h"

namespace jitunwind::test {
namespace {

std::vector<Addr> addresses_by(const void* context, Cursor::Top top) {
  std::array<void*, 512> listed;
  std::vector<Addr> pcs;
  for (std::size_t i = 0, count = backtrace(context, top, listed); i < count; ++i)
    pcs.push_back(reinterpret_cast<std::uintptr_t>(listed[i]));
  return pcs;
}

int wrong_lists() {
  alignas(16) std::byte context[k_context_size];
  jitunwind_capture_context(context);
  std::vector<Addr> slow;
  Cursor cursor(local_space_without_kept_rows(), registers_from_ucontext(context, local_space().arch),
                Cursor::Top::returned_to);
  do slow.push_back(cursor.pc());
  while (cursor.step() && cursor.stop_reason() == StopReason::none);
  return addresses_by(context, Cursor::Top::returned_to) != slow;
}

[[gnu::noinline]] int wrong_lists_below(int depth) {
  volatile char room[64];
  room[0] = 0;
  const int wrong = depth == 0 ? wrong_lists() : wrong_lists_below(depth - 1);
  (void)room[0];
  return wrong;
}

struct Described {
  JitFrame* frame;
  int wrong = 0;
  std::size_t before = 0;
  std::size_t after = 0;
};

std::size_t frames_here() {
  std::array<void*, 512> addresses;
  return backtrace(addresses);
}

/// A description that goes while its code is on the stack, below many frames that stay as they are.
TEST(FastWalks, SeeThatAFrameIsDescribedNoMore) {
  JitFrame frame;
  Described described{&frame};
  (void)frame(
      [](void* of) -> void* {
        auto& d = *static_cast<Described*>(of);
        for (int i = 0; i < 5; ++i) d.wrong += wrong_lists_below(40);
        d.before = frames_here();
        EXPECT_TRUE(d.frame->registration().cancel());
        for (int i = 0; i < 5; ++i) d.wrong += wrong_lists_below(40);
        d.after = frames_here();
        return nullptr;
      },
      &described);
  EXPECT_EQ(described.wrong, 0);
  EXPECT_NE(described.before, described.after) << "not the case that this test is about";
}

/// Calls with `room` bytes on the stack, which it leaves as they were, from one of two places.
struct Shift {
  const JitFrame* frame;
  std::size_t room_of_caller;
  std::size_t room;
  int wrong = 0;
};

[[gnu::noinline]] void walk_where_it_was(Shift& shift) {
  void* volatile room = ::alloca(shift.room);
  // Below this frame the frame pointer is 0, wherever that one is.
  (void)(*shift.frame)(
      [](void* of) -> void* {
        for (int i = 0; i < 3; ++i) static_cast<Shift*>(of)->wrong += wrong_lists_below(24);
        return nullptr;
      },
      &shift);
  (void)room;
}
[[gnu::noinline]] void from_one_place(Shift& shift) {
  void* volatile room = ::alloca(shift.room_of_caller);
  walk_where_it_was(shift);
  (void)room;
}
[[gnu::noinline]] void from_another_place(Shift& shift) {
  void* volatile room = ::alloca(shift.room_of_caller);
  walk_where_it_was(shift);
  asm volatile("" ::"r"(&shift) : "memory");
  (void)room;
}

/// The inner frames are where they were, and the return address that was behind them is there still, but is none now:
/// only the saved frame pointer tells.
TEST(FastWalks, SeeThatTheFrameBehindHasMoved) {
  const JitFrame frame;
  // One of these distances makes up for what the two callers themselves have on the stack.
  for (std::size_t moved = 960; moved <= 1088; moved += 16) {
    Shift first{&frame, 16, 2048}, second{&frame, 16 + moved, 1024};
    from_one_place(first);
    from_another_place(second);
    EXPECT_EQ(first.wrong, 0);
    EXPECT_EQ(second.wrong, 0) << moved;
  }
}

/// More threads at once than can remember their walks, and more one after the other.
TEST(FastWalks, ManyThreads) {
  std::atomic<int> wrong{0};
  std::atomic<int> waiting{0};
  constexpr int k_threads = 100;
  for (int round = 0; round < 3; ++round) {
    waiting = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < k_threads; ++i) {
      threads.emplace_back([&, i] {
        ++waiting;
        while (waiting < k_threads) std::this_thread::yield();
        for (int again = 0; again < 5; ++again) wrong += wrong_lists_below(20 + i) + wrong_lists_below(21 + i + again);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(wrong, 0);
}

/// Frames of all kinds of rows at addresses where no code is: rows in which SP, frame pointer or another register is
/// the base, rows that read outside of their frames, and one that has no caller.
constexpr const char* k_rows[]{
    "cfa=rsp+8 ra=[cfa-8]",
    "cfa=rsp+24 rbp=[cfa-16] ra=[cfa-8]",
    "cfa=rsp+48 rbx=[cfa-24] ra=[cfa-8]",
    "cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]",
    "cfa=rbp+32 rbp=[cfa-16] ra=[cfa-8]",
    "cfa=rbx+16 rbp=[cfa-16] ra=[cfa-8]",
    "cfa=rsp+16 ra=[cfa-16]",
    "cfa=rsp+16 rbp=[cfa-96] ra=[cfa-8]",
    "cfa=[rbp-8] rbp=[cfa-16] ra=[cfa-8]",
    "cfa=rsp+0 ra=[cfa+8]",
    "cfa=rsp+8 ra=undefined",
};
constexpr std::size_t k_words = 96;

/// A stack whose end is the end of memory, filled at random with what stacks have on them.
class RandomStack {
 public:
  RandomStack() {
    constexpr std::size_t k_page = 4096;
    memory_ = static_cast<std::byte*>(
        ::mmap(nullptr, 3 * k_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(::mprotect(memory_ + 2 * k_page, k_page, PROT_NONE), 0);
    words_ = reinterpret_cast<Addr*>(memory_ + 2 * k_page) - k_words;
    for (const char* row : k_rows) frames_.push_back(std::make_unique<JitFrame>(row));
  }
  ~RandomStack() { ::munmap(memory_, 3 * 4096); }
  RandomStack(const RandomStack&) = delete;
  RandomStack& operator=(const RandomStack&) = delete;

  void fill(std::mt19937& random) {
    for (std::size_t i = 0; i < k_words; ++i) words_[i] = word(random);
  }
  RegisterFile registers(std::mt19937& random) const {
    const Arch& arch = local_space().arch;
    RegisterFile all;
    for (const RegisterInfo& reg : arch.registers)
      if (reg.column >= 0) all.set(reg.column, word(random));
    all.set(arch.column(arch.sp), at(random));
    all.set(arch.column(arch.pc), code(random));
    return all;
  }

 private:
  Addr at(std::mt19937& random) const { return reinterpret_cast<std::uintptr_t>(words_ + random() % (k_words + 2)); }
  Addr code(std::mt19937& random) const { return frames_[random() % frames_.size()]->start() + 4; }
  Addr word(std::mt19937& random) const {
    switch (random() % 16) {
      case 0:
        return 0;
      case 1:
        return random() % 8192;
      case 2:
        return ~Addr{0} - random() % 64;
      case 3:
      case 4:
      case 5:
        return at(random);
      default:
        return code(random);
    }
  }

  std::byte* memory_ = nullptr;
  Addr* words_ = nullptr;
  std::vector<std::unique_ptr<JitFrame>> frames_;
};

/// Wherever the other walk stops, for whatever reason, this one stops.
TEST(FastWalks, StopWhereSlowOnesDo) {
  RandomStack stack;
  std::mt19937 random(41);
  std::size_t frames = 0;
  for (int i = 0; i < 40'000; ++i) {
    stack.fill(random);
    const RegisterFile registers = stack.registers(random);
    alignas(16) std::byte context[k_context_size]{};
    registers_to_ucontext(registers, local_space().arch, context);
    const auto top = i % 2 == 0 ? Cursor::Top::returned_to : Cursor::Top::interrupted;
    Cursor cursor(local_space_without_kept_rows(), registers_from_ucontext(context, local_space().arch), top);
    std::vector<Addr> slow{cursor.pc()};
    for (auto moved = cursor.step(); moved && *moved && slow.size() < 512; moved = cursor.step())
      slow.push_back(cursor.pc());
    FrameRow row;
    (void)cursor.find_row(row);
    ASSERT_EQ(addresses_by(context, top), slow)
        << i << ": " << stop_reason_name(cursor.stop_reason()) << ", " << error_text(cursor.stop_error().code) << " at "
        << to_text(row, local_space().arch);
    frames += slow.size();
  }
  EXPECT_GT(frames, 60'000u);
}

}  // namespace
}  // namespace jitunwind::test
