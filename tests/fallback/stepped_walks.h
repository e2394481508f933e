// Compares walks from every instruction of some code, and of its callees, with the stack of calls that the instructions
// have made: every returned address is a caller, and a walk that claims to be complete has all of them.
#pragma once

#include <execinfo.h>
#include <gtest/gtest.h>
#include <libunwind.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>

#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/arch/arch.h"
#include "tests/registry/every_instruction.h"

namespace jitunwind::test {

inline Addr addr_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

/// Reads a word of a ucontext_t, or of the stack.
inline Addr word_at(const void* at, std::int64_t offset = 0) {
  std::uintptr_t word = 0;
  std::memcpy(&word, static_cast<const std::byte*>(at) + offset, sizeof word);
  return word;
}

/// Addresses, innermost first. The size is fixed, because signal handlers fill it.
class Addresses {
 public:
  void add(Addr at) {
    if (count_ != list_.size()) list_[count_++] = at;
  }
  void clear() { count_ = 0; }
  std::span<const Addr> all() const { return {list_.data(), count_}; }

 private:
  std::array<Addr, 256> list_;
  std::size_t count_ = 0;
};

/// The calls that have not returned, as the instructions show: a call pushes the address behind itself and jumps
/// elsewhere.
class Calls {
 public:
  /// Called before the instruction at pc is executed. `word` reads a word of the stack.
  template <class Word>
  void follow(Addr pc, Addr sp, Word word) {
    while (count_ != 0 && calls_[count_ - 1].slot < sp) --count_;
    if (last_pc_ != 0 && sp == last_sp_ - sizeof(std::uintptr_t)) {
      const Addr pushed = word(sp);
      // A call of the next instruction, which reads its own address, does not count.
      const bool was_called = pushed > last_pc_ && pushed <= last_pc_ + k_longest_call && pc != pushed;
      if (was_called && count_ != calls_.size()) calls_[count_++] = {pushed, sp};
    }
    last_pc_ = pc;
    last_sp_ = sp;
  }
  bool empty() const { return count_ == 0; }
  /// Lists the frames at pc. `outer` are callers of the code that the calls began in.
  void list(Addr pc, std::span<const Addr> outer, Addresses& out) const {
    out.clear();
    out.add(pc);
    for (std::size_t i = count_; i != 0; --i) out.add(calls_[i - 1].return_address);
    for (const Addr caller : outer) out.add(caller);
  }

 private:
  static constexpr Addr k_longest_call = 15;
  struct Call {
    Addr return_address = 0;
    Addr slot = 0;
  };
  std::array<Call, 200> calls_;
  std::size_t count_ = 0;
  Addr last_pc_ = 0, last_sp_ = 0;
};

/// The results of all walks of one kind.
struct Figures {
  std::size_t complete = 0;  ///< and right
  std::size_t early = 0;     ///< right as far as they go
  std::size_t wrong = 0;
  std::size_t walks() const { return complete + early + wrong; }
  Addr first_wrong_at = 0;
  std::size_t first_wrong_frame = 0;

  void add(std::span<const Addr> truth, std::span<const Addr> walk, bool says_complete) {
    const std::size_t common = std::min(truth.size(), walk.size());
    const auto difference =
        std::mismatch(truth.begin(), truth.begin() + static_cast<std::ptrdiff_t>(common), walk.begin());
    const auto right = static_cast<std::size_t>(difference.first - truth.begin());
    if (right == walk.size() && right == truth.size() && says_complete)
      ++complete;
    else if (right == walk.size() && !says_complete)
      ++early;
    else if (wrong++ == 0)
      first_wrong_at = truth[0], first_wrong_frame = right;
  }
  std::string text(const char* name) const {
    std::array<char, 200> line;
    std::snprintf(line.data(), line.size(), "%s: %zu walks, %.1f %% complete, %zu wrong", name, walks(),
                  walks() == 0 ? 0 : 100.0 * static_cast<double>(complete) / static_cast<double>(walks()), wrong);
    return line.data();
  }
};

struct Scene {
  Calls calls;
  Addresses outer;         ///< callers of the code that is watched
  Addresses callers_here;  ///< of that code, one instruction ago
  Addresses truth;
  Addresses walk;
  Figures steps, listed, by_libunwind, through_signal, bold;
  bool begins_elsewhere = false;       ///< walks from another SP come first
  std::size_t wrong_and_unmarked = 0;  ///< bold walks with a wrong frame behind none that says it is a guess
};

inline bool walk_by_steps(Walk walk, Addresses& out) {
  out.clear();
  for (const Frame& frame : walk) out.add(frame.pc());
  return walk.stop_reason() == StopReason::outermost;
}

inline void judge_steps(Scene& scene, const ucontext_t& at) {
  const bool whole = walk_by_steps(walk_interrupted(&at), scene.walk);
  scene.steps.add(scene.truth.all(), scene.walk.all(), whole);
}

/// Lists do not tell their end: they are complete where steps are.
inline void judge_lists(Scene& scene, const ucontext_t& at) {
  const bool whole = walk_by_steps(walk_interrupted(&at), scene.walk);
  std::array<void*, 256> list;
  const std::size_t count = backtrace(&at, Cursor::Top::interrupted, list);
  scene.walk.clear();
  for (std::size_t i = 0; i < count; ++i) scene.walk.add(addr_of(list[i]));
  scene.listed.add(scene.truth.all(), scene.walk.all(), whole);
}

inline void judge_libunwind(Scene& scene, const ucontext_t& at) {
  unw_cursor_t cursor;
  void* const context = const_cast<ucontext_t*>(&at);
  unw_init_local2(&cursor, static_cast<unw_context_t*>(context), UNW_INIT_SIGNAL_FRAME);
  scene.walk.clear();
  int moved = 0;
  do {
    unw_word_t ip = 0;
    unw_get_reg(&cursor, UNW_REG_IP, &ip);
    scene.walk.add(ip);
  } while ((moved = unw_step(&cursor)) > 0);
  scene.by_libunwind.add(scene.truth.all(), scene.walk.all(), moved == 0);
}

/// Walks from the handler, whose own frames come first.
inline void judge_through_signal(Scene& scene) {
  Addresses all;
  const bool whole = walk_by_steps(walk_here(), all);
  const auto pc = std::ranges::find(all.all(), scene.truth.all()[0]);
  scene.walk.clear();
  for (auto at = pc; at != all.all().end(); ++at) scene.walk.add(*at);
  scene.through_signal.add(scene.truth.all(), scene.walk.all(), whole);
}

inline void judge_bold(Scene& scene, const ucontext_t& at) {
  bool marked = false, whole = false;
  scene.walk.clear();
  Walk walk = walk_interrupted(&at, Guesses::bold);
  const auto truth = scene.truth.all();
  std::size_t i = 0;
  for (const Frame& frame : walk) {
    const bool wrong = i >= truth.size() || frame.pc() != truth[i];
    if (wrong && !marked) ++scene.wrong_and_unmarked;
    if (wrong) marked = true;  // counted once
    marked = marked || frame.is_guess();
    scene.walk.add(frame.pc());
    ++i;
  }
  whole = walk.stop_reason() == StopReason::outermost;
  scene.bold.add(truth, scene.walk.all(), whole);
}

/// Returns false if nothing can be judged, since the watched code has made no call.
inline bool follow(Scene& scene, const ucontext_t& at) {
  const Arch& arch = *host_arch();
  const Addr pc = word_at(&at, arch.by_dwarf(arch.pc)->ucontext);
  const bool had_none = scene.calls.empty();
  scene.calls.follow(pc, word_at(&at, arch.by_dwarf(arch.sp)->ucontext),
                     [](Addr sp) { return word_at(reinterpret_cast<const void*>(static_cast<std::uintptr_t>(sp))); });
  if (scene.calls.empty()) {
    // Code of this program has unwind information: the callers of its callees are behind it.
    (void)walk_by_steps(walk_interrupted(&at), scene.walk);
    scene.callers_here.clear();
    for (const Addr caller : scene.walk.all().subspan(1)) scene.callers_here.add(caller);
    return false;
  }
  if (had_none) scene.outer = scene.callers_here;
  scene.calls.list(pc, scene.outer.all(), scene.truth);
  return true;
}

/// Walks from the same pc with another SP, as a wrong caller would be walked. Later walks must not believe what was
/// found there.
inline void walk_from_another_sp(Scene& scene, ucontext_t at) {
  const Arch& arch = *host_arch();
  const std::int16_t place = arch.by_dwarf(arch.sp)->ucontext;
  const Addr sp = word_at(&at, place) + Addr{4} * arch.word_size;
  std::memcpy(reinterpret_cast<std::byte*>(&at) + place, &sp, arch.word_size);
  (void)walk_by_steps(walk_interrupted(&at), scene.walk);
}

inline void judge_every_way(Scene& scene, const ucontext_t& at) {
  if (scene.begins_elsewhere) walk_from_another_sp(scene, at);
  judge_steps(scene, at);
  judge_lists(scene, at);
  judge_libunwind(scene, at);
  judge_through_signal(scene);
  judge_bold(scene, at);
}

inline void judge(void* argument) {
  Scene& scene = *static_cast<Scene*>(argument);
  const ucontext_t& at = *registry_test::EveryInstruction::interrupted();
  if (follow(scene, at)) judge_every_way(scene, at);
}

/// Finds their callers by another unwinder: libgcc's, which glibc uses.
[[gnu::noinline]] inline bool ends_as_libgcc_says(std::span<const Addr> callers) {
  std::array<void*, 128> list;
  const int count = ::backtrace(list.data(), static_cast<int>(list.size()));
  std::size_t same = 0;
  for (int i = count; i != 0 && same < callers.size(); --i, ++same)
    if (addr_of(list[static_cast<std::size_t>(i - 1)]) != callers[callers.size() - 1 - same]) break;
  return same >= 3;  // main() and what called it
}

struct Expected {
  double complete;                ///< at least so much of the walks by steps, 0 to 1
  bool begins_elsewhere = false;  ///< Scene::begins_elsewhere
};

/// Expects no wrong walk, and at least so many complete ones.
inline void expect_right(const char* name, const Scene& scene, Expected expected) {
  EXPECT_TRUE(ends_as_libgcc_says(scene.outer.all()));
  struct Way {
    const char* name;
    const Figures& figures;
  };
  for (const Way& way : {Way{"steps", scene.steps}, Way{"backtrace()", scene.listed},
                         Way{"unw_step", scene.by_libunwind}, Way{"from the handler", scene.through_signal}}) {
    EXPECT_EQ(way.figures.wrong, 0u) << way.name << ": frame " << way.figures.first_wrong_frame << " of a walk from "
                                     << std::hex << way.figures.first_wrong_at;
    EXPECT_EQ(way.figures.walks(), scene.steps.walks()) << way.name;
    EXPECT_EQ(way.figures.complete, scene.steps.complete) << way.name;
  }
  EXPECT_GE(static_cast<double>(scene.steps.complete), expected.complete * static_cast<double>(scene.steps.walks()));
  EXPECT_EQ(scene.wrong_and_unmarked, 0u);
  std::printf("%s: %s; %s\n", name, scene.steps.text("steps").c_str(), scene.bold.text("bold").c_str());
}

inline void expect_right(const char* name, const std::function<void()>& code, Expected expected) {
  static Scene scene;
  scene = {};
  scene.begins_elsewhere = expected.begins_elsewhere;
  registry_test::EveryInstruction every;
  const std::size_t instructions = every.run(&judge, &scene, code);
  EXPECT_GT(instructions, 500u);
  EXPECT_GT(scene.steps.walks(), instructions / 2);
  expect_right(name, scene, expected);
}

}  // namespace jitunwind::test
