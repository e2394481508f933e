// Readers come between any two instructions of a writer.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/uncancelled_internal.h"
#include "tests/code_segments/segment_readers.h"
#include "tests/registry/every_instruction.h"

namespace jitunwind::test {
namespace {

using namespace std::string_literals;

/// Asks the readers of this process, and keeps every state of the file.
class Readers : public SegmentReaders {
 public:
  struct State {
    std::vector<std::byte> bytes;
    std::vector<Known> known, changing;
  };

  explicit Readers(SmallSegment& small) : SegmentReaders(small) {
    states_.reserve(4096);
    see();
  }

  static void visit(void* self) { static_cast<Readers*>(self)->see(); }
  /// Between any two system calls, which are more than three instructions apart.
  static void visit_mappings(void* self) {
    Readers& readers = *static_cast<Readers*>(self);
    if (++readers.instructions % 3 == 0) readers.look_at_mappings();
  }
  void see() {
    if (is_new_state()) look();
  }

  std::size_t instructions = 0;
  const std::vector<State>& states() const { return states_; }

 private:
  std::span<const std::byte> tables() const {
    return {small_.segment->memory().writable(), small_.layout.frames + 4096};
  }
  bool is_new_state() {
    const auto now = tables();
    if (!states_.empty() && std::equal(now.begin(), now.end(), states_.back().bytes.begin())) return false;
    states_.push_back({{now.begin(), now.end()}, known_, changing_});
    return true;
  }

  /// Readers of other processes go from a line of /proc/PID/maps to the file of its name. It allocates nothing, since
  /// it interrupts malloc(), too.
  void look_at_mappings() {
    look();
    const Addr text = small_.segment->text().begin;
    std::size_t of_text = 0;
    ReadableFile maps("/proc/self/maps");
    LineReader<1024> lines(maps);
    for (std::string_view line; lines.next(line);) {
      if (line.find(folder_) == line.npos) continue;
      unsigned long begin = 0, end = 0, inode = 0;
      char text_of_line[1025]{}, kind[5]{}, name[512]{};
      line.copy(text_of_line, sizeof text_of_line - 1);
      std::sscanf(text_of_line, "%lx-%lx %4s %*x %*s %lu %511s", &begin, &end, kind, &inode, name);
      of_text += begin <= text && text < end && kind[2] == 'x';
      struct stat status {};
      expect(::stat(name, &status) == 0 && status.st_ino == inode,
             "a mapping's name is that of no file, or of another");
    }
    expect(of_text == 1, "the text is not mapped");
    struct stat status {};
    expect(::stat(small_.segment->memory().path().c_str(), &status) == 0, "the library has no file");
  }

  const std::string folder_ = small_.folder.path();
  std::vector<State> states_;
};

/// elfutils names the functions of a file rightly, or the one that changes not at all.
void expect_named_in(const std::string& path, const Readers::State& state, const SmallSegment& small) {
  const auto in_file = [&](const Readers::Known& function) {
    std::array<char, 32> text{};
    std::snprintf(
        text.data(), text.size(), " 0x%zx",
        static_cast<std::size_t>(small.layout.text_address + function.start - small.segment->text().begin + 1));
    return std::string(text.data());
  };
  std::string command = "eu-addr2line -S -e " + path;
  for (const auto* const functions : {&state.known, &state.changing})
    for (const Readers::Known& function : *functions) command += in_file(function);
  const auto lines = lines_of(output_of(command));  // two for each
  for (std::size_t i = 0; i < state.known.size(); ++i) EXPECT_EQ(lines[2 * i], state.known[i].name + "+0x1"s) << path;
  for (std::size_t i = 0; i < state.changing.size(); ++i) {
    const Readers::Known& changing = state.changing[i];
    const std::string& name = lines[2 * (state.known.size() + i)];
    EXPECT_TRUE(name.find("()+0x") == 0 || name == changing.name + "+0x1"s || name == changing.other + "+0x1"s)
        << path << ": " << name;
  }
}

/// No reader of files complains of any state, and all name the functions rightly. Bytes behind a state are those of
/// now.
void expect_no_complaint(const SmallSegment& small, const Readers& readers) {
  const TemporaryFolder folder;
  std::ifstream now(small.segment->memory().path(), std::ios::binary);
  const std::string file((std::istreambuf_iterator<char>(now)), {});
  ASSERT_EQ(file.size(), small.layout.end);
  std::string paths;
  for (std::size_t i = 0; i < readers.states().size(); ++i) {
    const Readers::State& state = readers.states()[i];
    std::string bytes = file;
    std::memcpy(bytes.data(), state.bytes.data(), state.bytes.size());
    const std::string path = folder / std::to_string(i);
    paths += " " + path;
    std::ofstream(path, std::ios::binary) << bytes;
    expect_named_in(path, state, small);
  }
  const Ended binutils = run("readelf --wide --sections --segments --dyn-syms --dynamic --debug-dump=frames" + paths);
  EXPECT_EQ(binutils.status, 0);
  EXPECT_EQ(binutils.text.find("readelf: "), std::string::npos) << binutils.text;
  const Ended elfutils = run("eu-readelf --section-headers --symbols --dynamic --debug-dump=frames" + paths);
  EXPECT_EQ(elfutils.status, 0);
  EXPECT_EQ(elfutils.text.find("eu-readelf: "), std::string::npos) << elfutils.text;
}

TEST(EveryStore, OfAnAppendedFunction) {
  SmallSegment small;
  const Segment::Index first = small.add("first");
  Readers readers(small);
  readers.expect_known(first, "first");
  const Addr next = small.segment->start((*small.segment)[first]) + (*small.segment)[first].size;
  Segment::Index added = 0;
  registry_test::EveryInstruction every;
  every.run(Readers::visit, &readers, [&] { added = *small.segment->append({sizeof FrameCode::k_bytes}); });
  ASSERT_EQ(small.segment->start((*small.segment)[added]), next);
  readers.expect_changing(added, "second");
  const std::vector<std::byte> frames = small.frames_of(next);
  every.run(Readers::visit, &readers,
            [&] { small.segment->publish(added, sizeof FrameCode::k_bytes, frames, "second"); });
  EXPECT_EQ(readers.wrong, nullptr) << readers.wrong;
  EXPECT_GT(readers.known_by_name, 0u);
  EXPECT_GT(readers.known_by_frame, readers.known_by_name);
  EXPECT_GT(readers.states().size(), 12u);
  expect_no_complaint(small, readers);
}

TEST(EveryStore, OfAFunctionThatGoesAndAnotherInItsPlace) {
  SmallSegment small;
  const Segment::Index first = small.add("first"), second = small.add("second"), third = small.add("third");
  Readers readers(small);
  readers.expect_known(first, "first");
  readers.expect_known(third, "third");
  readers.expect_changing(second, "second", "another");
  registry_test::EveryInstruction every;
  every.run(Readers::visit, &readers, [&] { small.segment->withdraw(second); });
  const Addr start = small.segment->start((*small.segment)[second]);
  EXPECT_EQ(symbol_at(start), nullptr);
  EXPECT_EQ(LibgccSearch()(start + 1), 0u);
  const std::vector<std::byte> frames = small.frames_of(start);
  every.run(Readers::visit, &readers,
            [&] { small.segment->publish(second, sizeof FrameCode::k_bytes, frames, "another"); });
  EXPECT_EQ(readers.wrong, nullptr) << readers.wrong;
  EXPECT_STREQ(symbol_at(start), "another");
  EXPECT_EQ(LibgccSearch()(start + 1), start);
  expect_no_complaint(small, readers);
}

/// A new file comes in place of the former one: every reader finds whole files by the mappings' names.
TEST(EveryStore, OfANewFile) {
  SmallSegment small(1);
  const Segment::Index first = small.add("first");
  Readers readers(small);
  readers.expect_known(first, "first");
  registry_test::EveryInstruction every;
  std::string outdated;
  for (const bool seals : {true, false, true}) {
    // The file that is whole already stays until the next one is made, and the first one for good.
    if (!outdated.empty()) {
      ASSERT_EQ(::unlink(outdated.c_str()), 0);
    }
    const std::size_t before = readers.instructions;
    every.run(Readers::visit_mappings, &readers, [&] { outdated = *small.segment->renew(seals); });
    EXPECT_GT(readers.instructions, before + 1000);
    EXPECT_EQ(readers.wrong, nullptr) << readers.wrong;
    const Ended elfutils = run("eu-readelf --all --debug-dump=frames " + small.segment->memory().path());
    EXPECT_EQ(elfutils.status, 0) << elfutils.text;
  }
}

/// A room of several functions, which go, and come again at other places of the room.
TEST(EveryStore, OfTheFunctionsOfARoom) {
  constexpr std::size_t k_bytes = sizeof FrameCode::k_bytes;
  SmallSegment small;
  const Segment::Index first = small.add("first");
  Readers readers(small);
  readers.expect_known(first, "first");
  Segment::Index room = 0;
  registry_test::EveryInstruction every;
  every.run(Readers::visit, &readers, [&] { room = *small.segment->append({4 * k_bytes, 3}); });
  const Segment::Index third = small.add("third");
  readers.expect_known(third, "third");
  const Addr start = small.segment->start((*small.segment)[room]);
  EXPECT_EQ(small.segment->find_around(start + 4 * k_bytes - 1), room);
  for (const std::size_t begin : {std::size_t{0}, std::size_t{7}}) {
    for (std::size_t at = begin; at < begin + 3 * k_bytes; at += k_bytes) {
      every.run(Readers::visit, &readers, [&] { ASSERT_TRUE(small.segment->take_entry(room, start + at)); });
      const std::string name = "at " + std::to_string(at);
      const Segment::Index entry = room + (*small.segment)[room].parts_used;
      ASSERT_EQ(small.segment->start((*small.segment)[entry]), start + at);
      readers.expect_changing(entry, name.c_str());
      const std::vector<std::byte> frames = small.frames_of(start + at);
      every.run(Readers::visit, &readers, [&] { small.segment->publish(entry, k_bytes, frames, name); });
      EXPECT_FALSE(small.segment->take_entry(room, start + at));
      EXPECT_STREQ(symbol_at(start + at + 1), name.c_str());
      EXPECT_EQ(LibgccSearch()(start + at + k_bytes - 1), start + at);
    }
    readers.expect_changing(room, "at 0");
    every.run(Readers::visit, &readers, [&] { small.segment->withdraw(room); });
    for (std::size_t at = 0; at < 4 * k_bytes; ++at) {
      EXPECT_EQ(symbol_at(start + at), nullptr);
      EXPECT_EQ(LibgccSearch()(start + at), 0u);
    }
  }
  EXPECT_EQ(readers.wrong, nullptr) << readers.wrong;
  expect_no_complaint(small, readers);
}

/// The instructions of an FDE of no code give way to others, which are fewer or as many.
TEST(EveryStore, OfOtherFramesInTheirPlace) {
  SmallSegment small;
  const Segment::Index first = small.add("first"), second = small.add("second"), third = small.add("third");
  const Segment::Slot place = (*small.segment)[second].frames;
  const Addr start = small.segment->start((*small.segment)[second]);
  const Description one_push = *host::describe("one push").push({0, 1}, host::rbx).pop({-2, -1}, host::rbx).build();
  Readers readers(small);
  readers.expect_known(first, "first");
  readers.expect_known(third, "third");
  readers.expect_changing(second, "second", "another");
  registry_test::EveryInstruction every;
  for (const Description& description : {one_push, frame_description("pushes")}) {
    const std::vector<std::byte> frames = small.frames_of(start, 0, 0, &description);
    every.run(Readers::visit, &readers, [&] {
      small.segment->withdraw(second);
      small.segment->publish(second, sizeof FrameCode::k_bytes, frames, "another");
    });
    EXPECT_EQ(LibgccSearch()(start + 1), start);
    EXPECT_EQ((*small.segment)[second].frames.at, place.at);
  }
  EXPECT_EQ(readers.wrong, nullptr) << readers.wrong;
  expect_no_complaint(small, readers);
  EXPECT_THROW(call(
                   start, [](void*) -> void* { throw 1; }, nullptr),
               int);
}

}  // namespace
}  // namespace jitunwind::test
