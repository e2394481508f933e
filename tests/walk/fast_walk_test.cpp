// Walks with kept rows and walks that make each row, where they could differ. mixed_walks_test.cpp has random stacks.
#include <alloca.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/walk.h"
#include "tests/support/emulated.h"
#include "tests/support/jit_frame.h"

namespace jitunwind::test {
namespace {

using Word = std::uintptr_t;  ///< of a stack
constexpr Addr k_word = sizeof(Word);

std::vector<Addr> addresses_by(const void* context, Cursor::Top top) {
  std::array<void*, 512> listed;
  std::vector<Addr> pcs;
  for (std::size_t i = 0, count = backtrace(context, top, listed); i < count; ++i)
    pcs.push_back(reinterpret_cast<std::uintptr_t>(listed[i]));
  return pcs;
}

/// Walks by rows that are made for each frame.
std::vector<Addr> slow_addresses(Cursor& cursor) {
  std::vector<Addr> pcs{cursor.pc()};
  for (auto moved = cursor.step(); moved && *moved && pcs.size() < 512; moved = cursor.step())
    pcs.push_back(cursor.pc());
  return pcs;
}
Cursor slow_cursor(const void* context, Cursor::Top top) {
  return Cursor(local_space_without_kept_rows(), registers_from_ucontext(context, local_space().arch), top);
}

int wrong_lists() {
  alignas(16) std::byte context[k_context_size];
  jitunwind_capture_context(context);
  Cursor slow = slow_cursor(context, Cursor::Top::returned_to);
  return addresses_by(context, Cursor::Top::returned_to) != slow_addresses(slow);
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
  std::ptrdiff_t before = 0;  ///< frames that are described
  std::ptrdiff_t after = 0;
};

std::ptrdiff_t described_frames() {
  Walk walk = walk_here();
  return std::count_if(walk.begin(), walk.end(), [](const Frame& frame) { return is_registered(frame.origin()); });
}

/// A description is cancelled while its code is on the stack, below many frames that stay as they are.
TEST(FastWalks, SeeThatAFrameIsDescribedNoMore) {
  JitFrame frame;
  Described described{&frame};
  (void)frame(
      [](void* of) -> void* {
        auto& d = *static_cast<Described*>(of);
        for (int i = 0; i < 5; ++i) d.wrong += wrong_lists_below(40);
        d.before = described_frames();
        EXPECT_TRUE(d.frame->registration().cancel());
        for (int i = 0; i < 5; ++i) d.wrong += wrong_lists_below(40);
        d.after = described_frames();
        return nullptr;
      },
      &described);
  EXPECT_EQ(described.wrong, 0);
  EXPECT_EQ(described.before, 1) << "not the case that this test is about";
  EXPECT_EQ(described.after, 0);
}

/// Frames that call each other in another order each time: a walk does not come from a frame to the one of the walk
/// before.
class UnlikeStacks {
 public:
  UnlikeStacks() {
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = i;
  }
  JitFrame& frame(std::size_t number) { return frames_[number]; }
  int wrong_lists_of(int stacks) {
    wrong_ = 0;
    for (int i = 0; i < stacks; ++i) {
      std::shuffle(order_.begin(), order_.end(), random_);
      called_ = 0;
      (void)call_next(this);
    }
    return wrong_;
  }

 private:
  static void* call_next(void* of) {
    auto& stacks = *static_cast<UnlikeStacks*>(of);
    if (stacks.called_ != stacks.order_.size()) return stacks.frames_[stacks.order_[stacks.called_++]](call_next, of);
    stacks.wrong_ += wrong_lists();
    return nullptr;
  }

  std::array<JitFrame, 12> frames_;
  std::array<std::size_t, 12> order_;
  std::size_t called_ = 0;
  std::mt19937 random_{7};
  int wrong_ = 0;
};

TEST(FastWalks, SeeOnUnlikeStacksThatAFrameIsDescribedNoMore) {
  UnlikeStacks stacks;
  EXPECT_EQ(stacks.wrong_lists_of(100), 0);
  EXPECT_TRUE(stacks.frame(5).registration().cancel());
  EXPECT_EQ(stacks.wrong_lists_of(100), 0);
}

/// Calls with `room` bytes on the stack, whose contents do not change, from one of two places.
struct Shift {
  const JitFrame* frame;
  std::size_t room_of_caller;
  std::size_t room;
  int wrong = 0;
};

[[gnu::noinline]] void walk_where_it_was(Shift& shift) {
  void* volatile room = ::alloca(shift.room);
  // The frame pointer is 0 below this frame, wherever the frame is.
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

/// The inner frames have not moved. The return address that was behind them is still in memory, but is none now: only
/// the saved frame pointer tells.
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

/// There are more threads at once than can remember their walks, and more one after the other.
TEST(FastWalks, ManyThreads) {
  std::atomic<int> wrong{0};
  std::atomic<int> waiting{0};
  constexpr int k_threads = 100;
  for (std::size_t round = 0; round <= repetitions(2); ++round) {
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

/// Frames with all kinds of rows at addresses without code: rows whose base is SP, the frame pointer or another
/// register, rows that read outside of their frames, and one without a caller.
constexpr const char* k_rows[]{
    "cfa=SP+8 ra=[cfa-8]",
    "cfa=SP+24 FP=[cfa-16] ra=[cfa-8]",
    "cfa=SP+48 SAVED=[cfa-24] ra=[cfa-8]",
    "cfa=FP+16 FP=[cfa-16] ra=[cfa-8]",
    "cfa=FP+32 FP=[cfa-16] ra=[cfa-8]",
    "cfa=SAVED+16 FP=[cfa-16] ra=[cfa-8]",
    "cfa=SP+16 ra=[cfa-16]",
    "cfa=SP+16 FP=[cfa-96] ra=[cfa-8]",
    "cfa=[FP-8] FP=[cfa-16] ra=[cfa-8]",
    "cfa=SP+0 ra=[cfa+8]",
    "cfa=SP+8 ra=undefined",
};
constexpr std::size_t k_words = 96;

/// A stack that ends at the end of memory, filled at random with values that stacks have.
class RandomStack {
 public:
  RandomStack() {
    constexpr std::size_t k_page = 4096;
    memory_ = static_cast<std::byte*>(
        ::mmap(nullptr, 3 * k_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(::mprotect(memory_ + 2 * k_page, k_page, PROT_NONE), 0);
    words_ = reinterpret_cast<Word*>(memory_ + 2 * k_page) - k_words;
    for (const char* row : k_rows) frames_.push_back(std::make_unique<JitFrame>(row));
  }
  ~RandomStack() { ::munmap(memory_, 3 * 4096); }
  RandomStack(const RandomStack&) = delete;
  RandomStack& operator=(const RandomStack&) = delete;

  void fill(std::mt19937& random) {
    for (std::size_t i = 0; i < k_words; ++i) words_[i] = static_cast<Word>(word(random));
  }
  RegisterFile registers(std::mt19937& random) const {
    const Arch& arch = local_space().arch;
    RegisterFile all;
    for (const RegisterInfo& reg : arch.registers)
      if (reg.column >= 0) all.set(reg.column, word(random) & arch.word_mask());
    // Contexts of broken stacks have arbitrary SPs.
    all.set(arch.column(arch.sp), random() % 8 == 0 ? word(random) & arch.word_mask() : at(random));
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
  Word* words_ = nullptr;
  std::vector<std::unique_ptr<JitFrame>> frames_;
};

/// This walk stops wherever the other one stops, for any reason.
TEST(FastWalks, StopWhereSlowOnesDo) {
  RandomStack stack;
  std::mt19937 random(41);
  std::size_t frames = 0;
  constexpr std::size_t k_stacks = repetitions(44'000);
  for (std::size_t i = 0; i < k_stacks; ++i) {
    stack.fill(random);
    const RegisterFile registers = stack.registers(random);
    alignas(16) std::byte context[k_context_size]{};
    registers_to_ucontext(registers, local_space().arch, context);
    const auto top = i % 2 == 0 ? Cursor::Top::returned_to : Cursor::Top::interrupted;
    Cursor cursor = slow_cursor(context, top);
    const std::vector<Addr> slow = slow_addresses(cursor);
    FrameRow row;
    (void)cursor.find_row(row);
    ASSERT_EQ(addresses_by(context, top), slow)
        << i << ": " << stop_reason_name(cursor.stop_reason()) << ", " << error_text(cursor.stop_error().code) << " at "
        << to_text(row, local_space().arch);
    frames += slow.size();
  }
  EXPECT_GT(frames, k_stacks * 3 / 2);
}

/// A stack in an array on the calling thread's stack, where walks are remembered. It has frames of three kinds, each
/// with the frame pointer that leads on. A frame that neither uses nor saves the frame pointer has its caller's; in the
/// other frames its value decides nothing.
class MadeStack {
 public:
  static constexpr std::size_t k_frames = 24;
  static constexpr std::size_t k_words = 8 * k_frames;
  /// A walk that leaves the stack finds zeros, not the present data of this function's callers.
  using Words = std::array<Word, k_words + 64>;

  /// `words` are zeros. `kind_of` gives the kind of each frame by its number, from 1 on; all numbers here count from
  /// the outermost frame.
  template <class KindOf>
  MadeStack(Words& words, std::span<const JitFrame> frames, std::mt19937_64& random, KindOf kind_of)
      : words_(std::span(words).first(k_words)), frames_(frames), random_(random) {
    Addr cfa = reinterpret_cast<std::uintptr_t>(words_.data() + words_.size());
    Addr fp = any_word();
    // Frames are made from the outermost one, which has no caller, inwards.
    for (std::size_t i = 0; i < k_frames; ++i) {
      const std::size_t kind = i == 0 ? k_outermost : kind_of(i);
      if (kind == k_by_fp || kind == k_saving) word(cfa - 2 * k_word) = static_cast<Word>(fp);
      cfas_[i] = cfa;
      word(cfa - k_word) = static_cast<Word>(code_);
      if (kind == k_by_fp) fp = cfa - 2 * k_word;
      if (kind == k_saving) fp = any_word();
      code_ = code_of(kind);
      cfa -= k_sizes[kind];
    }
    sp_ = cfa;
    fp_ = fp;
  }

  /// Changes one thing: the frame pointer that the walk begins with, a word, or a return address; in every second case
  /// near the inner end.
  void change() {
    const auto below = [&](std::size_t count) {
      return static_cast<std::size_t>(random_() % (random_() % 2 == 0 ? std::size_t{4} : count));
    };
    const auto innermost =
        static_cast<std::size_t>(reinterpret_cast<Word*>(static_cast<std::uintptr_t>(sp_)) - words_.data());
    Word& any = words_[innermost + below(words_.size() - innermost)];
    switch (random_() % 8) {
      case 0:
        fp_ = any_word();
        break;
      case 1:
      case 2:
      case 3:
        fp_ = reinterpret_cast<std::uintptr_t>(&any);
        break;
      case 4:
        any = static_cast<Word>(random_() % 2 == 0 ? random_()
                                                   : reinterpret_cast<std::uintptr_t>(&any) + random_() % 16 * k_word);
        break;
      default:
        set_caller(k_frames - 1 - below(k_frames - 1), static_cast<std::size_t>(random_() % (k_outermost + 1)));
    }
  }

  void set_caller(std::size_t frame, std::size_t kind) {
    word(cfas_[frame] - k_word) = static_cast<Word>(code_of(kind));
  }
  void set_saved_fp(std::size_t frame, Addr fp) { word(cfas_[frame] - 2 * k_word) = static_cast<Word>(fp); }
  void set_fp(Addr fp) { fp_ = fp; }
  /// The frame pointer of a frame that is found by it.
  Addr fp_of(std::size_t frame) const { return cfas_[frame] - 2 * k_word; }

  /// Expects the fast walk, repeatedly, to find what the slow one does. `found` gets the number of frames.
  void expect_the_same(std::size_t& found) const {
    alignas(16) std::byte context[k_context_size]{};
    put_context(context);
    Cursor cursor = slow_cursor(context, Cursor::Top::returned_to);
    const std::vector<Addr> slow = slow_addresses(cursor);
    // The walk is repeated so often that remembering pays, or walks would soon do without it.
    for (int again = 0; again < 8; ++again) ASSERT_EQ(addresses_by(context, Cursor::Top::returned_to), slow) << again;
    found = slow.size();
  }

  static constexpr const char* k_kinds[]{"cfa=SP+32 ra=[cfa-8]", "cfa=FP+16 FP=[cfa-16] ra=[cfa-8]",
                                         "cfa=SP+48 FP=[cfa-16] ra=[cfa-8]", "cfa=SP+8 ra=undefined"};
  using Frames = std::array<JitFrame, 4>;
  static Frames make_frames() {
    return {JitFrame(k_kinds[0]), JitFrame(k_kinds[1]), JitFrame(k_kinds[2]), JitFrame(k_kinds[3])};
  }
  static constexpr std::size_t k_plain = 0, k_by_fp = 1, k_saving = 2, k_outermost = 3;

 private:
  void put_context(void* context) const {
    const Arch& arch = local_space().arch;
    RegisterFile all;
    for (const RegisterInfo& reg : arch.registers)
      if (reg.column >= 0) all.set(reg.column, 0);
    all.set(arch.column(arch.sp), sp_);
    all.set(arch.column(arch.fp), fp_);
    all.set(arch.column(arch.pc), code_);
    registers_to_ucontext(all, arch, context);
  }

  static constexpr Addr k_sizes[]{4 * k_word, 8 * k_word, 6 * k_word, k_word};

  static Word& word(Addr at) { return *reinterpret_cast<Word*>(static_cast<std::uintptr_t>(at)); }
  Addr any_word() { return static_cast<Word>(random_()); }
  Addr code_of(std::size_t kind) const { return frames_[kind].start() + 4; }

  std::span<Word> words_;
  std::span<const JitFrame> frames_;
  std::mt19937_64& random_;
  std::array<Addr, k_frames> cfas_{};
  Addr code_ = 0;
  Addr sp_ = 0;
  Addr fp_ = 0;
};

/// Successive walks of stacks that have something in common: the memory of the last walk is used only as far as it
/// holds, and frame pointers that decide nothing are not asked about.
TEST(FastWalks, RememberOnlyWhatHolds) {
  const MadeStack::Frames frames = MadeStack::make_frames();
  std::mt19937_64 random(43);
  MadeStack::Words words;
  std::size_t whole = 0, all = 0;
  for (std::size_t round = 0; round < repetitions(1500); ++round) {
    words.fill(0);
    MadeStack stack(words, frames, random,
                    [&](std::size_t) { return static_cast<std::size_t>(random() % MadeStack::k_outermost); });
    for (int change = 0; change < 8; ++change) {
      std::size_t found = 0;
      ASSERT_NO_FATAL_FAILURE(stack.expect_the_same(found)) << round << ", " << change;
      ++all;
      if (found == MadeStack::k_frames) ++whole;
      stack.change();
    }
  }
  // Most changes matter, but many do not.
  EXPECT_GT(whole, all / 4);
  EXPECT_LT(whole, all);
}

/// A walk that leaves the remembered part needs the frame pointer: the one it began with, as long as no frame has saved
/// one, and then the saved one.
TEST(FastWalks, GoOnWithTheirFramePointer) {
  const MadeStack::Frames frames = MadeStack::make_frames();
  std::mt19937_64 random(44);
  MadeStack::Words words{};
  MadeStack stack(words, frames, random, [](std::size_t number) {
    return number < 20 ? MadeStack::k_by_fp : number == 20 ? MadeStack::k_saving : MadeStack::k_plain;
  });
  std::size_t found = 0;
  stack.set_fp(stack.fp_of(7));
  ASSERT_NO_FATAL_FAILURE(stack.expect_the_same(found));
  EXPECT_EQ(found, MadeStack::k_frames);
  stack.set_fp(stack.fp_of(10));
  ASSERT_NO_FATAL_FAILURE(stack.expect_the_same(found));
  EXPECT_EQ(found, MadeStack::k_frames) << "the frame pointer decides nothing";
  stack.set_saved_fp(12, stack.fp_of(5));
  ASSERT_NO_FATAL_FAILURE(stack.expect_the_same(found));
  EXPECT_EQ(found, MadeStack::k_frames - 6) << "12 returns to one that is found where 5 is";
  stack.set_caller(22, MadeStack::k_by_fp);
  ASSERT_NO_FATAL_FAILURE(stack.expect_the_same(found));
  EXPECT_EQ(found, 2 + 11u) << "22 returns to one that is found where 10 is";
}

}  // namespace
}  // namespace jitunwind::test
