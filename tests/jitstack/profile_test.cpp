// Profiles: the counting of stacks, the folded text, and the picture.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "jitunwind/sdk/jitstack/profile/flame_graph_p.h"
#include "tests/support/command.h"

namespace jitunwind::jitstack {
namespace {

using test::Groups, test::Pattern;

/// Makes a stack, the innermost frame first; "jit:" marks registered code, "guess:" guesses.
SeenStack stack_of(const std::string& thread, const std::vector<std::string>& names, bool is_whole = true) {
  SeenStack stack;
  stack.thread.name = thread;
  stack.stop = is_whole ? StopReason::outermost : StopReason::no_info;
  for (const std::string& name : names) {
    SeenFrame frame{.name = name, .module = "/bin/program", .origin = RowOrigin::eh_frame};
    if (name.starts_with("jit:")) frame.name = name.substr(4), frame.module = "", frame.is_jit = true;
    if (name.starts_with("guess:")) frame.name = "", frame.module = "", frame.origin = RowOrigin::followed_code;
    stack.frames.push_back(frame);
  }
  return stack;
}

Profile profile_of(const std::vector<SeenStack>& stacks) {
  Profile profile;
  for (const SeenStack& stack : stacks) profile.add(stack, "/bin/program");
  return profile;
}

TEST(Profile, CountsStacksByTheirFrames) {
  const Profile profile = profile_of({
      stack_of("t", {"f", "jit:j", "main"}),
      stack_of("t", {"f", "jit:j", "main"}),
      stack_of("t", {"jit:j", "main"}),
      stack_of("u", {"f", "main"}),
      stack_of("u", {"f", "guess:"}, false),
  });
  EXPECT_EQ(profile.stacks(), 5u);
  EXPECT_EQ(profile.cut_short(), 1u);
  EXPECT_EQ(profile.folded(), "t;main;j_[j] 1\nt;main;j_[j];f 2\nu;[cut short];[?];f 1\nu;main;f 1\n");
}

TEST(Profile, FoldedNamesCannotBeTakenForFrames) {
  EXPECT_EQ(profile_of({stack_of("a;b\n", {"f 7\n;g"})}).folded(), "a:b\\x0a;f 7\\x0a:g 1\n");
}

struct Box {
  double x, y, width;
};

/// Returns the boxes by the beginning of their title, up to the colon.
std::map<std::string, Box> boxes_of(const std::string& svg) {
  std::map<std::string, Box> boxes;
  const Pattern frame("<title>([^:]*): [^<]*</title><rect x=\"([0-9.]+)\" y=\"([0-9.]+)\" width=\"([0-9.]+)\"");
  for (const Groups& at : all_in(svg, frame)) boxes[at[1]] = {std::stod(at[2]), std::stod(at[3]), std::stod(at[4])};
  return boxes;
}

TEST(FlameGraph, FramesStandOnTheirCallersAsWideAsTheyAreFrequent) {
  const Profile profile = profile_of({stack_of("t", {"a", "main"}), stack_of("t", {"b", "main"}),
                                      stack_of("t", {"b", "main"}), stack_of("t", {"main"})});
  const auto boxes = boxes_of(flame_graph(profile, "title", "subtitle"));
  ASSERT_EQ(boxes.size(), 5u);
  const Box main = boxes.at("main (program)"), a = boxes.at("a (program)"), b = boxes.at("b (program)");
  EXPECT_NEAR(a.width, main.width / 4, 0.02);
  EXPECT_NEAR(b.width, main.width / 2, 0.02);
  EXPECT_NEAR(a.x, main.x, 0.02);
  EXPECT_NEAR(b.x, a.x + a.width, 0.02);
  EXPECT_EQ(a.y, b.y);
  EXPECT_LT(a.y, main.y);
  EXPECT_LT(main.y, boxes.at("t").y);
  EXPECT_NEAR(boxes.at("all").width, main.width, 0.02);
}

TEST(FlameGraph, HostileNamesAreText) {
  const std::string name = "</title><script>alert(1)</script>\033[31m\xff&\"'";
  const std::string svg = flame_graph(profile_of({stack_of(name, {name, "jit:" + name})}), name, name);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_NE(svg.find("&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m\\xff&amp;&quot;&#39;"), std::string::npos);
  // The picture has only tags of its own, and every one of them is closed.
  EXPECT_TRUE(std::ranges::all_of(svg, [](char c) { return c == '\n' || static_cast<unsigned char>(c) >= 0x20; }));
  const auto count = [&](const char* text) {
    std::size_t found = 0;
    for (std::size_t at = svg.find(text); at != std::string::npos; at = svg.find(text, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("<g "), count("</g>"));
  EXPECT_EQ(count("<title>"), count("</title>"));
  EXPECT_EQ(count("<text"), count("</text>"));
}

TEST(FlameGraph, NamesAreCutBetweenCharacters) {
  std::vector<SeenStack> stacks;
  for (int i = 0; i < 16; ++i) {
    std::string name = std::to_string(100 + i);
    for (int j = 0; j < 40; ++j) name += "\xc3\xa4";
    stacks.push_back(stack_of("t", {name}));
  }
  const std::string svg = flame_graph(profile_of(stacks), "", "");
  const Pattern cut(">(1[01][0-9])((?:\xc3\xa4)+)\xe2\x80\xa6</text>");
  EXPECT_EQ(all_in(svg, cut).size(), 16u);
}

TEST(FlameGraph, DeepAndManyStacksMakeNoEndlessPicture) {
  std::vector<std::string> deep(20'000, "recursive");
  std::vector<SeenStack> stacks{stack_of("t", deep)};
  for (int i = 0; i < 10'000; ++i) stacks.push_back(stack_of("t", {"f" + std::to_string(i)}));
  const std::string svg = flame_graph(profile_of(stacks), "", "");
  EXPECT_LT(svg.size(), 1'000'000u);
  const std::string one_deep = flame_graph(profile_of({stack_of("t", deep)}), "", "");
  EXPECT_LE(boxes_of(one_deep).size(), 1001u);
  EXPECT_NE(one_deep.find("recursive"), std::string::npos);
}

#ifdef RSVG_CONVERT_PROGRAM
TEST(FlameGraph, OthersCanDrawIt) {
  const test::TemporaryFolder folder;
  const std::string svg = folder / "graph.svg";
  std::ofstream(svg) << flame_graph(profile_of({stack_of("t <\033>", {"jit:a&b", "guess:", "main"}, false)}), "<t>",
                                    "s");
  EXPECT_EQ(test::output_of(RSVG_CONVERT_PROGRAM " '" + svg + "' -o '" + (folder / "graph.png") + "' 2>&1"), "");
  EXPECT_GT(std::filesystem::file_size(folder / "graph.png"), 5000u);
}
#endif

}  // namespace
}  // namespace jitunwind::jitstack
