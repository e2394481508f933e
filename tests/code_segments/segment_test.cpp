// The tables of one segment, at every moment.
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "jitunwind/adapters/code_segments/code_folder_p.h"
#include "jitunwind/sdk/walk.h"
#include "tests/code_segments/small_segment.h"
#include "tests/code_segments/symbols_of.h"

namespace jitunwind::test {
namespace {

/// The registry knows nothing of this code: the unwinder finds it by the link map.
TEST(Segment, TheUnwinderFindsUnregisteredCode) {
  SmallSegment small;
  const Segment::Index index = small.add("unregistered");
  const Callee callee = [](void*) -> void* { throw std::runtime_error("from below"); };
  for (int i = 0; i < 2; ++i)
    EXPECT_THROW(call(small.segment->start((*small.segment)[index]), callee, nullptr), std::runtime_error);
}

/// Some functions are longer than several blocks of the search, and others share one.
TEST(Segment, FunctionsAreFoundByTheirFirstByteAlone) {
  SmallSegment small;
  Segment& segment = *small.segment;
  EXPECT_FALSE(segment.find(segment.text().begin));
  std::vector<Addr> starts;
  for (const std::size_t size : {16, 1200, 16, 16, 512, 496, 16, 700, 32})
    starts.push_back(segment.start(segment[*segment.append({size})]));
  for (Addr at = segment.text().begin; at < segment.text().end; ++at) {
    const auto expected = std::find(starts.begin(), starts.end(), at);
    const auto found = segment.find(at);
    ASSERT_EQ(found.has_value(), expected != starts.end()) << at - segment.text().begin;
    if (found) {
      EXPECT_EQ(*found, expected - starts.begin());
    }
  }
}

/// Parts of a room are none themselves, wherever their functions begin.
TEST(Segment, RoomsAreFoundByAllTheirBytes) {
  SmallSegment small;
  Segment& segment = *small.segment;
  const std::vector<Segment::Index> rooms{*segment.append({16}), *segment.append({640, 5}), *segment.append({96, 2})};
  const Addr second = segment.start(segment[rooms[1]]), third = segment.start(segment[rooms[2]]);
  for (const Addr start : {second, second + 1, second + 639}) EXPECT_TRUE(segment.take_entry(rooms[1], start));
  EXPECT_TRUE(segment.take_entry(rooms[2], third + 80));
  EXPECT_FALSE(segment.take_entry(rooms[2], third + 79));
  EXPECT_FALSE(segment.take_entry(rooms[2], third));
  for (const Segment::Index room : rooms) {
    const AddrRange code{segment.start(segment[room]), segment.start(segment[room]) + segment[room].size};
    for (Addr at = code.begin; at < code.end; ++at) {
      ASSERT_EQ(segment.find_around(at), room) << at - segment.text().begin;
      ASSERT_EQ(segment.find(at).has_value(), at == code.begin) << at - segment.text().begin;
    }
  }
  EXPECT_FALSE(segment.find_around(third + 96));
  EXPECT_EQ(segment.append({16, 16 - 9}), std::nullopt);  // the tables have room for 16 functions
  EXPECT_TRUE(segment.append({16, 16 - 11}));
}

/// Another copy of this library in the process knows the code by the file alone, and nobody tells it of changes.
TEST(Segment, WalksKeepNoRuleOfCodeThatIsReplaced) {
  SmallSegment small;
  const Segment::Index index = small.add("replaced");
  const Addr start = small.segment->start((*small.segment)[index]);
  const auto depth = [&] {
    std::size_t frames = 0;
    call(
        start,
        [](void* into) -> void* {
          for (int i = 0; i < 20; ++i) {
            std::size_t& count = *static_cast<std::size_t*>(into) = 0;
            for (const Frame& frame : walk_here()) count += frame.pc() != 0;
          }
          return into;
        },
        &frames);
    return frames;
  };
  const std::size_t before = depth();
  EXPECT_GT(before, 4u);
  const Description without_frame = *host::describe("leaf").build();
  small.segment->withdraw(index);
  const std::vector<std::byte> frames = small.frames_of(start, 0, 0, &without_frame);
  ASSERT_TRUE(small.segment->publish(index, sizeof FrameCode::k_bytes, frames, "replaced"));
  EXPECT_LT(depth(), before);  // the description is wrong, and is followed
}

Addr g_lsda = 0;
_Unwind_Reason_Code note_lsda(int, _Unwind_Action, _Unwind_Exception_Class, _Unwind_Exception*,
                              _Unwind_Context* context) {
  g_lsda = _Unwind_GetLanguageSpecificData(context) == nullptr
               ? 0
               : reinterpret_cast<std::uintptr_t>(_Unwind_GetLanguageSpecificData(context));
  return _URC_CONTINUE_UNWIND;
}

TEST(Segment, PersonalityRoutinesAreCalledWithTheirData) {
  SmallSegment small;
  const auto index = *small.segment->append({sizeof FrameCode::k_bytes});
  Segment::Function& function = (*small.segment)[index];
  std::memcpy(small.segment->writable(function).data(), FrameCode::k_bytes, sizeof FrameCode::k_bytes);
  const Addr start = small.segment->start(function);
  __builtin___clear_cache(static_cast<char*>(as_pointer(start)), static_cast<char*>(as_pointer(start)) + 64);
  const auto frames = small.frames_of(start, reinterpret_cast<std::uintptr_t>(&note_lsda), 0x1234);
  ASSERT_TRUE(small.segment->publish(index, sizeof FrameCode::k_bytes, frames, "handled"));
  EXPECT_THROW(call(
                   start, [](void*) -> void* { throw std::runtime_error("from below"); }, nullptr),
               std::runtime_error);
  EXPECT_EQ(g_lsda, 0x1234u);
}

/// The tables are made for short names and small frames. Each name is longer than those before.
TEST(Segment, FullTablesAreTold) {
  SmallSegment small(4);
  std::string name(200, 'x');
  std::size_t count = 0;
  for (; small.segment->has_room_in_tables(); ++count, name += 'x') {
    const Segment::Index index = count < 4 ? *small.segment->append({sizeof FrameCode::k_bytes}) : 0;
    if (count >= 4) small.segment->withdraw(index);
    small.write(index, name);
  }
  EXPECT_GT(count, 10u);
  EXPECT_FALSE(small.segment->append({1}));
  EXPECT_TRUE(small.segment->is_half_full());
  EXPECT_EQ(symbol_at(small.segment->text().begin) + std::string("x"), name);
}

/// Every folder that does not serve is refused with its reason.
TEST(Segment, FoldersThatDoNotServe) {
  const TemporaryFolder folder;
  const auto why = [](const std::string& place) -> std::string {
    SegmentLayout layout(local_space().arch, 4096, 4);
    const auto memory = SegmentMemory::publish(place, FilesAtEnd::removed, layout, local_space().arch);
    return memory ? "served" : memory.error().what;
  };
  const auto make = [&](const char* name, mode_t mode) {
    const std::string path = folder / name;
    EXPECT_EQ(::mkdir(path.c_str(), 0700), 0);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  };
  EXPECT_EQ(why(folder / "missing"), "the folder cannot be opened");
  EXPECT_EQ(why(make("everybody's", 0777)), "others may replace what is in the folder");
  EXPECT_EQ(why(make("everybody's/own", 0700)), "others may replace a folder above the folder");
  EXPECT_EQ(why(make("sticky", 01777)), "served");
  EXPECT_EQ(why(make("sticky/own", 0700)), "served");
  // A link in a folder where others may put another one leads to the folder that it led to when it was followed.
  for (const std::string to : {"sticky/own", "everybody's/own"}) {
    const std::string link = folder / "everybody's/link";
    ASSERT_EQ(::symlink((folder / to).c_str(), link.c_str()), 0);
    const auto opened = CodeFolder::open(link, FilesAtEnd::removed);
    EXPECT_EQ(opened ? std::string("served") : opened.error().what,
              to == "sticky/own" ? "served" : "others may replace a folder above the folder");
    if (opened) {
      EXPECT_TRUE(opened->path.starts_with(std::filesystem::canonical(folder.path()).string() + "/sticky/own/"));
      EXPECT_EQ(::rmdir(opened->path.c_str()), 0);
    }
    ASSERT_EQ(::unlink(link.c_str()), 0);
  }
  EXPECT_EQ(why("/proc"), "no folder can be made in the folder");  // as one that may not be written to
  EXPECT_EQ(why("."), "the folder's path is not absolute");
  const std::string own = make("own", 0700);
  std::string name;
  {
    const auto opened = CodeFolder::open(own, FilesAtEnd::removed);
    ASSERT_TRUE(opened) << opened.error().what;
    name = opened->path;
  }
  ASSERT_EQ(::rmdir(name.c_str()), 0);
  ASSERT_EQ(::symlink(make("elsewhere", 0700).c_str(), name.c_str()), 0);
  EXPECT_EQ(why(own), "the process's folder is somebody else's");
  ASSERT_EQ(::unlink(name.c_str()), 0);
  ASSERT_EQ(::mkdir(name.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(name.c_str(), 0755), 0);
  EXPECT_EQ(why(own), "the process's folder is somebody else's");
}

/// readelf and eu-readelf print every table without a complaint.
TEST(Segment, ReadersOfFilesHaveNoComplaint) {
  SmallSegment small;
  const std::string& path = small.segment->memory().path();
  for (const char* const name : {"", "one", "two", "sealed"}) {
    const bool seals = name == std::string_view("sealed");
    if (name[0] != '\0') small.add(name);
    if (seals) {
      ASSERT_TRUE(small.segment->renew(true));
    }
    const Ended binutils = run("readelf --wide --all --debug-dump=frames --unwind " + path);
    EXPECT_EQ(binutils.status, 0);
    EXPECT_EQ(binutils.text.find("arning"), std::string::npos) << binutils.text;
    EXPECT_EQ(binutils.text.find("rror"), std::string::npos) << binutils.text;
    EXPECT_EQ(binutils.text.find(name) != std::string::npos, true);
    EXPECT_EQ(binutils.text.find("Build ID: ") != std::string::npos, seals);
    // perf goes by the section's name, whatever its type is, and would keep all open files by an id of zeros.
    EXPECT_EQ(binutils.text.find(".note.gnu.build-id") != std::string::npos, seals);
    const Ended elfutils = run("eu-readelf --all --debug-dump=frames " + path);
    EXPECT_EQ(elfutils.status, 0) << elfutils.text;
    EXPECT_EQ(elfutils.text.find("annot"), std::string::npos) << elfutils.text;
  }
}

}  // namespace
}  // namespace jitunwind::test
