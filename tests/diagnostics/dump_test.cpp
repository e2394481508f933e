// Walks and the registry as text.
#include "jitunwind/sdk/dump.h"

#include <gtest/gtest.h>
#include <algorithm>

#include "jitunwind/unwind_core/rows/row_text.h"
#include "tests/diagnostics/captured_log.h"
#include "tests/diagnostics/unknown_frame.h"
#include "tests/support/counted_allocations.h"
#include "tests/support/jit_frame.h"
#include "tests/support/texts.h"

namespace jitunwind::test {
namespace {

/// The results of one walk: its frames, its text, and the written bytes.
template <class Through>
struct Dumped {
  const Through& frame;
  Pipe pipe;
  std::vector<Addr> pcs;
  std::string text;
  std::string jit_row;
  std::size_t allocations_of_writing = 0;

  explicit Dumped(const Through& through) : frame(through) {
    frame(
        [](void* self) -> void* {
          auto& out = *static_cast<Dumped*>(self);
          const Walk walk = walk_here(Guesses::bold);
          Walk counted = walk;
          for (const Frame& each : counted) {
            out.pcs.push_back(each.pc());
            FrameRow row;
            if (each.pc() == out.frame.return_address() && each.row(row)) out.jit_row = to_text(row, *host_arch());
          }
          out.text = walk_text(walk);
          const std::size_t before = allocations();
          dump_walk(walk, out.pipe.in());
          out.allocations_of_writing = allocations() - before;
          return nullptr;
        },
        this);
  }

  /// Inlining decides how many other frames lie between it and the function that it calls.
  std::string line_of_frame() const {
    const auto at = std::find(pcs.begin(), pcs.end(), frame.return_address());
    return at == pcs.end() ? "none" : lines_of(text).at(static_cast<std::size_t>(at - pcs.begin()));
  }
};

TEST(Dump, OfAWalkHasALineForEachFrameAndItsEnd) {
  const JitFrame frame;
  const Dumped dumped(frame);
  const std::vector<std::string> lines = lines_of(dumped.text);
  ASSERT_EQ(lines.size(), dumped.pcs.size() + 1) << dumped.text;
  for (std::size_t i = 0; i < dumped.pcs.size(); ++i)
    EXPECT_EQ(lines[i].rfind("#" + std::to_string(i) + " " + hex_of(dumped.pcs[i]) + " sp=0x", 0), 0u) << lines[i];
  EXPECT_EQ(lines.back(), "ended: outermost");
  const std::string offset = hex_of(frame.return_address() - frame.start());
  const std::string line = dumped.line_of_frame();
  EXPECT_NE(line.find(" jit_frame+" + offset + " dyn_directives " + dumped.jit_row), std::string::npos) << line;
}

TEST(Dump, OfAWalkIsWrittenWithoutAllocating) {
  const JitFrame frame;
  const Dumped dumped(frame);
  EXPECT_EQ(dumped.pipe.read(), dumped.text);
  EXPECT_EQ(dumped.allocations_of_writing, 0u);
}

TEST(Dump, SaysWhatIsGuessedAndWhereAWalkBreaks) {
  const UnknownFrame unknown;
  const std::string guessed = Dumped(unknown).line_of_frame();
  EXPECT_NE(guessed.find(" guess cfa="), std::string::npos) << guessed;
  const JitFrame broken("cfa=[rsp+0x7fffffff0000] ra=[cfa-8]");
  const std::vector<std::string> lines = lines_of(Dumped(broken).text);
  EXPECT_EQ(lines.back().rfind("ended: broken (", 0), 0u) << lines.back();
}

TEST(Dump, OfTheRegistryListsTheOldestFirst) {
  const std::string before = registry_text();
  std::string after;
  std::string written;
  {
    const JitFrame first;
    const JitFrame second;
    after = registry_text();
    const Pipe pipe;
    EXPECT_TRUE(dump_registry(pipe.in()));
    written = pipe.read();
    const std::vector<std::string> lines = lines_of(after);
    ASSERT_EQ(lines.size(), lines_of(before).size() + 2) << after;
    const auto line = [](const JitFrame& frame) {
      return hex_of(frame.start()) + "-" + hex_of(frame.start() + frame.size()) + " directives jit_frame";
    };
    EXPECT_EQ(lines[lines.size() - 3], line(first));
    EXPECT_EQ(lines[lines.size() - 2], line(second));
    EXPECT_EQ(lines.back(), std::to_string(lines.size() - 1) + " registered");
  }
  EXPECT_EQ(written, after);
  EXPECT_EQ(registry_text(), before);
}

TEST(Dump, OfTheRegistrySaysWhereThereIsNoMemory) {
  const JitFrame frame;
  const Pipe pipe;
  bool listed = true;
  {
    const NoMemory none;
    listed = dump_registry(pipe.in());
  }
  EXPECT_FALSE(listed);
  EXPECT_EQ(pipe.read(), "");
}

}  // namespace
}  // namespace jitunwind::test
