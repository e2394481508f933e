// Descriptions of random procedures are right at every instruction. A description with one mistake is refused, or is
// still right.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "jitunwind/builders/described_rows.h"
#include "tests/builders/live_code.h"
#include "tests/builders/random_frame.h"

namespace jitunwind::test {
namespace {

using namespace x86_64;
using Kind = Said::Kind;

std::size_t how_many() {
  const char* const wanted = std::getenv("RANDOM_FRAMES");
  return wanted != nullptr ? std::strtoul(wanted, nullptr, 10) : 1000;
}

std::string text_of(const std::vector<Said>& said) {
  std::string text;
  for (const Said& s : said)
    text += std::to_string(static_cast<int>(s.kind)) + "({" + std::to_string(s.at.begin) + ", " +
            std::to_string(s.at.end) + "}, " + std::to_string(s.reg.dwarf()) + ", " + std::to_string(s.number) + ")\n";
  return text;
}

std::vector<RandomFrame> random_frames(std::mt19937_64& random, std::size_t count) {
  std::vector<RandomFrame> frames;
  for (std::size_t i = 0; i < count; ++i) frames.push_back(random_frame(random));
  return frames;
}

// covers: DY34 DY55
TEST(RandomFrames, AreRightAtEveryInstruction) {
  constexpr std::size_t k_together = 500;
  std::mt19937_64 random(1);
  std::uint64_t instructions = 0;
  for (std::size_t done = 0; done < how_many(); done += k_together) {
    LiveCode live(8 << 20);
    void (*const helper)() = add_helper(live, 0);
    void (*const popping_helper)() = add_helper(live, 16);
    const std::vector<RandomFrame> frames = random_frames(random, k_together);
    std::vector<Function> functions;
    for (const RandomFrame& frame : frames) {
      functions.push_back(live.add(frame.code, described(frame.said, frame.code.size())));
      ASSERT_NE(functions.back(), nullptr) << text_of(frame.said);
    }
    const auto run = live.step([&] {
      for (std::size_t i = 0; i < frames.size(); ++i)
        for (int n = 0; n <= frames[i].early_returns; ++n)
          if (functions[i](frames[i].helper_pops ? popping_helper : helper, n) != k_random_result) return 1;
      return 0;
    });
    ASSERT_TRUE(run.ok()) << run.text();
    ASSERT_EQ(live.missed(run), 0u);
    instructions += run.reports[0].instructions;
  }
  std::printf("%llu instructions\n", static_cast<unsigned long long>(instructions));
}

/// Returns the rows of registered code that differ from those of its description, one a line.
std::string differences(const Registration& live, const Description& description) {
  const std::uint64_t size = live.range().size();
  DescribedRows described_rows(description, size);
  std::string text;
  for (std::uint64_t at = 0; at < size; ++at) {
    const auto wanted = described_rows.row(at);
    FrameRow row;
    const Status found =
        directive_row(*live.info(), arch::x86_64, CodeAddress::interrupted(live.range().begin + at), nullptr, row);
    if (!found || !wanted || row != *wanted)
      text += "+" + std::to_string(at) + ": " + (found ? to_text(row, arch::x86_64) : found.error().text()) + "\n";
  }
  return text;
}

TEST(RandomFrames, OfMarksHaveTheRowsOfBuild) {
  std::mt19937_64 random(3);
  Marks marks;
  for (std::size_t i = 0; i < how_many(); ++i) {
    const RandomFrame frame = random_frame(random);
    std::vector<Said> said = frame.said;
    const auto size = static_cast<std::int64_t>(frame.code.size());
    // Instructions may be said in any order and be counted from either end, as long as remember() is in its place.
    if (std::ranges::count(said, Kind::remember, &Said::kind) == 0 && i % 2 == 0) std::ranges::shuffle(said, random);
    if (i % 3 == 0)
      for (Said& s : said)
        if (s.kind != Kind::remember && random() % 2 == 0) s.at.begin -= size, s.at.end -= size;
    const auto built = described(frame.said, frame.code.size());
    ASSERT_TRUE(built) << built.error().text();
    mark(marks.size(frame.code.size()), said);
    const auto live = register_code(marks, {.start = 0x7a00'0000'0000, .size = frame.code.size()});
    ASSERT_TRUE(live) << live.error().text() << text_of(said);
    ASSERT_EQ(differences(*live, *built), "") << text_of(said) << built->to_text();
  }
}

/// A change that makes the described code impossible, or impossible with this frame.
struct Mistake {
  const char* name;
  /// Returns false if nothing in this procedure can be changed so.
  bool (*make)(std::vector<Said>& said, const RandomFrame& frame, std::mt19937_64& random);
};

/// Returns any of the statements that fit, or null.
template <class Fits>
Said* any(std::vector<Said>& said, std::mt19937_64& random, Fits fits) {
  std::vector<Said*> found;
  for (Said& s : said)
    if (fits(s)) found.push_back(&s);
  return found.empty() ? nullptr : found[random() % found.size()];
}
/// Returns false if there is none.
template <class Change>
bool change(Said* one, Change with) {
  if (one != nullptr) with(*one);
  return one != nullptr;
}
bool is_instruction(const Said& s) { return s.kind != Kind::remember && s.kind != Kind::restore; }
template <Kind... kinds>
bool is(const Said& s) {
  return ((s.kind == kinds) || ...);
}
Reg other_register(Reg than, std::mt19937_64& random) {
  for (;;)
    if (const Reg reg = k_preserved[random() % k_preserved.size()]; reg != than) return reg;
}
template <Kind... kinds>
bool leave_out(std::vector<Said>& said, const RandomFrame& frame, std::mt19937_64& random) {
  // SP's changes do not matter if there is a frame pointer.
  if (frame.has_pointer) return false;
  Said* const one = any(said, random, is<kinds...>);
  if (one != nullptr) said.erase(said.begin() + (one - said.data()));
  return one != nullptr;
}

const Mistake k_mistakes[] = {
    {"two in the same bytes",
     [](auto& said, auto&, auto& random) {
       Said* const one = any(said, random, is_instruction);
       Said* const other = any(said, random, is_instruction);
       if (one == nullptr || one == other) return false;
       one->at = other->at;
       return true;
     }},
    {"said twice",
     [](auto& said, auto&, auto& random) {
       const Said* const one = any(said, random, is_instruction);
       if (one != nullptr) said.insert(said.begin() + (one - said.data()), Said(*one));
       return one != nullptr;
     }},
    {"no bytes",
     [](auto& said, auto&, auto& random) {
       return change(any(said, random, is_instruction), [](Said& s) { std::swap(s.at.begin, s.at.end); });
     }},
    {"behind the end",
     [](auto& said, auto& frame, auto& random) {
       const auto size = static_cast<std::int64_t>(frame.code.size());
       return change(any(said, random, is_instruction), [&](Said& s) { s.at.end += size; });
     }},
    {"another register saved",
     [](auto& said, auto&, auto& random) {
       const auto saves = [](const Said& s) {
         return is<Kind::push, Kind::save_at_sp, Kind::save_at_fp>(s) && s.reg != rsp;
       };
       return change(any(said, random, saves), [&](Said& s) { s.reg = other_register(s.reg, random); });
     }},
    {"another register restored",
     [](auto& said, auto&, auto& random) {
       return change(any(said, random, is<Kind::pop, Kind::reload>),
                     [&](Said& s) { s.reg = other_register(s.reg, random); });
     }},
    {"no such register",
     [](auto& said, auto&, auto& random) {
       return change(any(said, random, is<Kind::push, Kind::save_at_sp, Kind::save_at_fp>),
                     [](Said& s) { s.reg = Reg(99); });
     }},
    {"another one's slot",
     [](auto& said, auto&, auto& random) {
       Said* const one = any(said, random, is<Kind::save_at_sp>);
       if (one == nullptr) return false;
       for (std::size_t i = static_cast<std::size_t>(one - said.data()); i-- > 0;) {
         if (!is<Kind::save_at_sp>(said[i])) return false;
         if (said[i].reg != one->reg) return one->number = said[i].number, true;
       }
       return false;
     }},
    {"nothing released", leave_out<Kind::pop, Kind::deallocate>},
    {"nothing allocated", leave_out<Kind::push, Kind::push_value, Kind::allocate>},
    {"another size",
     [](auto& said, auto& frame, auto& random) {
       if (frame.has_pointer) return false;
       return change(any(said, random, is<Kind::allocate, Kind::deallocate, Kind::callee_pops>),
                     [&](Said& s) { s.number += random() % 2 == 0 || s.number == 8 ? 8 : -8; });
     }},
    {"nothing remembered",
     [](auto& said, auto&, auto& random) {
       if (std::ranges::count(said, Kind::remember, &Said::kind) != 1) return false;
       said.erase(said.begin() + (any(said, random, is<Kind::remember>) - said.data()));
       return true;
     }},
};

// The test above compares each right description with the code. A changed one that is accepted is compared with the
// right one.
TEST(RandomFrames, WithOneMistakeAreRefusedOrRight) {
  std::mt19937_64 random(2);
  struct Figures {
    std::size_t refused = 0, right = 0;
  };
  std::map<std::string, Figures> figures;
  std::size_t wrong = 0;
  for (std::size_t made = 0; made < how_many() && wrong < 5;) {
    const RandomFrame frame = random_frame(random);
    std::vector<Said> said = frame.said;
    const Mistake& mistake = k_mistakes[random() % std::size(k_mistakes)];
    if (!mistake.make(said, frame, random)) continue;
    ++made;
    const std::uint64_t size = frame.code.size();
    const auto built = described(said, size);
    Figures& counted = figures[mistake.name];
    if (!built) {
      EXPECT_FALSE(built.error().findings.empty());
      ++counted.refused;
    } else if (built->to_text() == described(frame.said, size)->to_text()) {
      ++counted.right;
    } else {
      ++wrong;
      ADD_FAILURE() << mistake.name << "\n"
                    << text_of(said) << "instead of\n"
                    << text_of(frame.said) << built->to_text();
    }
  }
  for (const auto& [name, counted] : figures)
    std::printf("%-26s %6zu refused, %5zu right still\n", name.c_str(), counted.refused, counted.right);
  for (const Mistake& mistake : k_mistakes) EXPECT_GT(figures[mistake.name].refused, 0u) << mistake.name;
}

}  // namespace
}  // namespace jitunwind::test
