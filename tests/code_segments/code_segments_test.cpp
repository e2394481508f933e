// Code in segments: what tools see which know nothing of this library, and what becomes of it.
#include <gtest/gtest.h>

#include <execinfo.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "jitunwind/builders/object_registration.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/exceptions/fde_encoder_internal.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/modules/object_list_internal.h"
#include "tests/code_segments/committed.h"
#include "tests/code_segments/symbols_of.h"
#include "tests/support/command.h"
#include "tests/support/emulated.h"
#include "tests/support/host_row.h"

namespace jitunwind::test {
namespace {

TEST(CodeSegments, ToolsOfTheProcessSeeWhatWasAppended) {
  CodeSegments segments;
  const Addr first = commit_frame(segments, "jit_first");
  const Addr second = commit_frame(segments, "jit_second");
  EXPECT_EQ(segments.status().published, 2u) << segments.status().latest_refusal.text();
  EXPECT_EQ(segments.status().files, 1u);
  EXPECT_STREQ(symbol_at(first), "jit_first");
  EXPECT_STREQ(symbol_at(first + 3), "jit_first");
  EXPECT_STREQ(symbol_at(second + 24), "jit_second");
  const LibgccSearch search;
  EXPECT_EQ(search(first + 3), first);
  EXPECT_EQ(search(second + 3), second);
  EXPECT_EQ(search(second + sizeof FrameCode::k_bytes), 0u);

  std::string names;
  const Callee callee = [](void* into) -> void* {
    std::array<void*, 64> stack;
    const int depth = ::backtrace(stack.data(), stack.size());
    char** const symbols = ::backtrace_symbols(stack.data(), depth);
    for (int i = 0; i < depth; ++i) *static_cast<std::string*>(into) += std::string(symbols[i]) + "\n";
    std::free(symbols);
    return into;
  };
  EXPECT_EQ(call(second, callee, &names), &names);
  EXPECT_NE(names.find("(jit_second+0x"), std::string::npos) << names;
  EXPECT_NE(names.find("/code-"), std::string::npos) << names;

  std::string walked;
  call(
      first,
      [](void* into) -> void* {
        for (const Frame& frame : walk_here()) *static_cast<std::string*>(into) += frame.name() + " ";
        return into;
      },
      &walked);
  EXPECT_NE(walked.find("jit_first"), std::string::npos) << walked;
}

TEST(CodeSegments, ThrowsPass) {
  CodeSegments segments;
  const Addr outer = commit_frame(segments, "outer");
  const Addr inner = commit_frame(segments, "inner");
  struct Next {
    Addr start;
    Callee callee;
  } next{inner, [](void*) -> void* { throw std::runtime_error("from below"); }};
  const Callee go_on = [](void* argument) -> void* {
    const Next& at = *static_cast<Next*>(argument);
    return call(at.start, at.callee, nullptr);
  };
  EXPECT_THROW(call(outer, go_on, &next), std::runtime_error);
}

TEST(CodeSegments, MarksArePublishedToo) {
  CodeSegments segments;
  const auto room = segments.allocate(sizeof FrameCode::k_bytes);
  ASSERT_TRUE(room);
  host::Marks marks;
  ASSERT_TRUE(segments.commit(marks, {.start = room->start, .size = sizeof FrameCode::k_bytes, .name = "marked"}));
  EXPECT_STREQ(symbol_at(room->start), "marked");
  EXPECT_EQ(LibgccSearch()(room->start), room->start);
}

/// Functions that are registered by other means lie in one room, and others have their place later.
TEST(CodeSegments, RoomsOfSeveralFunctions) {
  constexpr std::size_t k_bytes = sizeof FrameCode::k_bytes, k_count = 5;
  CodeSegments segments;
  const LibgccSearch search;
  const Addr before = commit_frame(segments, "before");
  Addr start = 0;
  for (const std::size_t first : {0, 12, 4}) {
    const auto room = segments.allocate(k_bytes * k_count + 16, k_count);
    ASSERT_TRUE(room);
    if (start == 0) commit_frame(segments, "behind");
    EXPECT_TRUE(start == 0 || room->start == start);
    start = room->start;
    const Description description = frame_description("one of the room");
    std::vector<Registration> registered;
    for (std::size_t i = 0; i < k_count; ++i) {
      std::memcpy(room->writable.data() + first + i * k_bytes, FrameCode::k_bytes, k_bytes);
      const std::string name = "function " + std::to_string(first) + std::to_string(i);
      auto one = register_code(description, {.start = start + first + i * k_bytes, .size = k_bytes, .name = name});
      ASSERT_TRUE(one);
      registered.push_back(std::move(*one));
      if (i == 1) {
        ASSERT_TRUE(segments.publish({start, start + first + 2 * k_bytes}));
      }
    }
    ASSERT_TRUE(segments.publish({start + first + 2 * k_bytes, start + room->writable.size()}));
    EXPECT_EQ(segments.status().refused, 0u) << segments.status().latest_refusal.text();
    EXPECT_EQ(segments.status().published, 2 + k_count);
    for (std::size_t i = 0; i < k_count; ++i) {
      const Addr function = start + first + i * k_bytes;
      EXPECT_EQ(symbol_at(function + 1), "function " + std::to_string(first) + std::to_string(i));
      EXPECT_EQ(search(function + 1), function);
      EXPECT_THROW(call(
                       function, [](void*) -> void* { throw std::runtime_error("from below"); }, nullptr),
                   std::runtime_error);
    }
    registered.clear();
    ASSERT_TRUE(segments.release(start));
    EXPECT_EQ(search(start + first + 1), 0u);
    EXPECT_EQ(symbol_at(start + first + 1), nullptr);
    EXPECT_STREQ(symbol_at(before + 1), "before");
  }
  EXPECT_EQ(segments.publish({start, start + 1}).error().code, ErrorCode::not_registered);    // released
  EXPECT_EQ(segments.publish({before, before + 1}).error().code, ErrorCode::not_registered);  // committed
  const Addr large = segments.allocate(4096, 4095)->start;  // more functions than a segment has
  EXPECT_EQ(segments.publish({large, large + 4097}).error().code, ErrorCode::not_registered);
  EXPECT_EQ(segments.publish({large, large}).error().code, ErrorCode::not_registered);
  EXPECT_TRUE(segments.publish({large, large + 4096}));
  EXPECT_EQ(segments.status().latest_refusal.code, ErrorCode::no_info);
  EXPECT_EQ(segments.allocate(8, 8).error().code, ErrorCode::e_range);
}

/// Functions without call frame information have their name.
TEST(CodeSegments, NamesAloneArePublished) {
  CodeSegments segments;
  const auto room = segments.allocate(64, 2);
  ASSERT_TRUE(room);
  const AddrRange code{room->start, room->start + 64};
  const std::array<ObjectFunction, 2> functions{{{code.begin, 16, "one"}, {code.begin + 16, 16, "two"}}};
  auto object = register_object({{&code, 1}, {}, functions});
  ASSERT_TRUE(object);
  ASSERT_TRUE(segments.publish(code));
  EXPECT_STREQ(symbol_at(code.begin + 15), "one");
  EXPECT_STREQ(symbol_at(code.begin + 16), "two");
  EXPECT_EQ(LibgccSearch()(code.begin + 16), 0u);
  ASSERT_TRUE(object->cancel());
  ASSERT_TRUE(segments.release(code.begin));
  EXPECT_EQ(symbol_at(code.begin + 16), nullptr);
}

TEST(CodeSegments, EmptyRoomsServeAgain) {
  CodeSegments segments;
  const LibgccSearch search;
  const Addr before = commit_frame(segments, "before");
  const Addr start = commit_frame(segments, "first");
  const Addr behind = commit_frame(segments, "behind");
  for (const std::string name : {"second", "third", "a_much_longer_name_than_the_others_have"}) {
    ASSERT_TRUE(segments.release(start));
    EXPECT_EQ(symbol_at(start), nullptr);
    EXPECT_EQ(search(start), 0u);
    EXPECT_EQ(commit_frame(segments, name), start);
    EXPECT_EQ(symbol_at(start + 1), name);
    EXPECT_EQ(search(start + 1), start);
    EXPECT_STREQ(symbol_at(before + 1), "before");
    EXPECT_STREQ(symbol_at(behind + 1), "behind");
  }
  EXPECT_EQ(segments.status().functions, 3u);
  EXPECT_EQ(segments.status().published, 3u);
}

/// The FDE that the encoder makes of registered code.
struct EncodedFde final : FdeReceiver {
  explicit EncodedFde(AddrRange code) { encode_fdes(code, *this); }
  Addr place() noexcept override { return 1; }
  void fde(AddrRange, std::span<const std::byte> both) override {
    bytes.assign(both.begin() + static_cast<std::ptrdiff_t>(entry_size(both.data())), both.end());
  }
  void refused(const Error&) noexcept override {}
  std::vector<std::byte> bytes;
};

/// Sizes at which the distance to the rows that are counted from the end takes another number of bytes, in any order.
std::vector<std::size_t> sizes_of_all_distances() {
  const std::size_t unit = local_space().arch.unit;
  std::vector<std::size_t> sizes;
  for (const std::size_t least : {40, 200, 240, 65'500}) {
    for (std::size_t i = 0; i < 64; ++i) sizes.push_back(least / unit * unit * (least > 60 ? unit : 1) + i * unit);
  }
  std::shuffle(sizes.begin(), sizes.end(), std::mt19937(1));
  return sizes;
}

/// The memory that a relative pointer leads to. An offset of 0 stands for none.
Addr pointed_to(const std::byte* entry, std::size_t at) {
  Addr distance = 0;
  if (at != 0) std::memcpy(&distance, entry + at, sizeof distance);
  return at == 0 ? 0 : reinterpret_cast<std::uintptr_t>(entry + at) + distance;
}

/// The CIE of an FDE.
const std::byte* cie_of(const std::byte* fde) {
  std::uint32_t distance = 0;
  std::memcpy(&distance, fde + 4, sizeof distance);
  return fde + 4 - distance;
}

/// Expects the frames that were published of committed code to be those that are encoded of it.
void expect_own_frames(AddrRange code, Addr personality = 0, Addr lsda = 0) {
  constexpr std::size_t k_range = 16;  // what precedes it in an FDE depends on its place
  const std::byte* const published = LibgccSearch().fde(code.end - 1);
  std::vector<std::byte> encoded = EncodedFde(code).bytes;
  ASSERT_NE(published, nullptr) << code.size();
  const std::byte* const cie = cie_of(published);
  const FdePointers pointers = pointers_of(cie);
  ASSERT_EQ(pointed_to(cie, pointers.personality), personality);
  ASSERT_EQ(pointed_to(cie, pointers.lsda), lsda);
  if (lsda != 0) std::memcpy(&encoded[pointers.lsda - entry_size(cie)], cie + pointers.lsda, sizeof lsda);
  const std::span<const std::byte> here(published, entry_size(published));
  ASSERT_GE(here.size(), encoded.size()) << code.size();
  ASSERT_TRUE(std::equal(encoded.begin() + k_range, encoded.end(), here.begin() + k_range)) << code.size();
  for (const std::byte byte : here.subspan(encoded.size())) ASSERT_EQ(byte, std::byte{0}) << code.size();
}

/// They are encoded once, and get another size and distance for code of another size.
TEST(CodeSegments, FramesOfOneShapeServeEverySize) {
  CodeSegments segments;
  const auto with_row_at = [](std::int64_t offset, std::string_view row) {
    return *host::describe("rows").row_at(offset, host_row(row)).row_at(-8, host_row("cfa=SP+16 ra=[cfa-8]")).build();
  };
  const auto unit = static_cast<std::int64_t>(local_space().arch.unit);
  auto many = host::describe("many"), more = host::describe("rows");
  for (int i = 0; i < 60; ++i) many.allocate({i * unit, (i + 1) * unit}, 16);
  for (int i = 0; i < 1200; ++i) more.allocate({i * unit, (i + 1) * unit}, 16);  // their frames are not kept
  for (const Description& description :
       {frame_description("frame"), *host::describe("leaf").build(), with_row_at(120, "cfa=SP+32 ra=[cfa-8]"),
        with_row_at(4, "cfa=[SP+8] ra=[cfa-8]"), *many.ends_without_return().build(),
        *more.ends_without_return().build()}) {
    for (const std::size_t size : sizes_of_all_distances()) {
      if (size < description.shape().min_size()) continue;
      const Addr start = segments.allocate(size).value().start;
      ASSERT_TRUE(segments.commit(description, {.start = start, .size = size}));
      ASSERT_NO_FATAL_FAILURE(expect_own_frames({start, start + size}));
      ASSERT_TRUE(segments.release(start));
    }
  }
}

/// The rows of an alias are those of what is registered at another address now.
TEST(CodeSegments, FramesOfAnAliasServeOnce) {
  CodeSegments segments;
  const Description leaf = *host::describe("leaf").build();
  const Addr other = segments.allocate(64).value().start;
  const Description alias = *host::describe("alias").alias(0, other + 40).build();
  for (const Description& description : {frame_description("frame"), leaf}) {
    const auto there = register_code(description, {.start = other, .size = 64});
    ASSERT_TRUE(there);
    const Addr start = segments.allocate(64).value().start;
    ASSERT_TRUE(segments.commit(alias, {.start = start, .size = 64}));
    expect_own_frames({start, start + 64});
  }
}

/// Marks that say the same share their frames, and those that differ in a word have their own.
TEST(CodeSegments, FramesOfMarksServeThoseThatSayTheSame) {
  const auto unit = static_cast<std::int64_t>(local_space().arch.unit);
  const RegNum sp = local_space().arch.sp;
  const auto at = [=](std::int64_t instruction) { return Instruction{instruction * unit, (instruction + 1) * unit}; };
  using Marks = host::Marks;
  const std::vector<std::function<void(Marks&)>> kinds{
      [](Marks&) {},
      [](Marks& marks) { FrameCode::record(marks); },
      [](Marks& marks) { FrameCode::record(marks.personality(0x1234560)); },
      [](Marks& marks) { FrameCode::record(marks.personality(0x1234570)); },
      [=](Marks& marks) { marks.allocate(at(0), 16); },
      [=](Marks& marks) { marks.allocate(at(0), 32); },
      [=](Marks& marks) { marks.allocate(at(1), 16); },
      [=](Marks& marks) { marks.allocate(at(0), 16).deallocate(at(3), 16); },
      [=](Marks& marks) { marks.allocate(at(0), 16).deallocate(at(-3), 16); },
      [=](Marks& marks) { marks.allocate(at(0), 16).deallocate(at(-4), 16); },
      [=](Marks& marks) { marks.allocate(at(0), 16).deallocate(at(-1), 16); },
      [=](Marks& marks) { marks.add(0, host::Builder::Reg(sp), -16).add(2, host::Builder::Reg(sp), 16); },
      [=](Marks& marks) { marks.entry_state(host_row("cfa=SP+32 SAVED=[cfa-16] ra=[cfa-8]")).deallocate(at(-3), 16); },
      [=](Marks& marks) { marks.entry_state(host_row("cfa=SP+32 SAVED=[cfa-24] ra=[cfa-8]")).deallocate(at(-3), 16); },
      [=](Marks& marks) { marks.allocate(at(0), 16).remember().deallocate(at(2), 16).restore(at(4)); },
      [=](Marks& marks) { marks.allocate(at(0), 16).remember().deallocate(at(-6), 16).restore(at(-4)); },
      [=](Marks& marks) {
        for (int i = 0; i < 60; ++i) marks.allocate(at(i % 8), 16);
      },
      [=](Marks& marks) {
        for (int i = 0; i < 60; ++i) marks.allocate(at(i % 4 - 6), 16);
      },
  };
  CodeSegments segments;
  std::mt19937 random(1);
  Marks marks;
  for (int round = 0; round < 12; ++round) {
    for (const std::size_t size : sizes_of_all_distances()) {
      const std::size_t kind = random() % kinds.size();
      kinds[kind](marks);
      const Addr personality = marks.recorder().facts().personality;
      const Addr lsda = personality != 0 && random() % 2 == 0 ? 0x1234580 + random() % 8 : 0;
      const Addr start = segments.allocate(size).value().start;
      ASSERT_TRUE(segments.commit(marks, {.start = start, .size = size, .lsda = lsda}));
      ASSERT_NO_FATAL_FAILURE(expect_own_frames({start, start + size}, personality, lsda)) << kind;
      ASSERT_TRUE(segments.release(start));
    }
  }
  EXPECT_EQ(segments.status().refused, 0u) << segments.status().latest_refusal.text();
}

/// A function that stays does not make a segment of each thousand that come and go beside it.
TEST(CodeSegments, RoomsServeAsOftenAsIsLiked) {
  CodeSegments segments({.text_bytes = 65536, .functions = 32});
  const Addr stays = commit_frame(segments, "stays");
  std::array<Addr, 20> others{};
  for (std::size_t i = 0; i < 5000; ++i) {
    Addr& start = others[i % others.size()];
    if (start != 0) {
      ASSERT_TRUE(segments.release(start));
    }
    const std::string name = "function_" + std::to_string(i) + (i % 3 == 0 ? "_of_a_longer_name" : "");
    start = commit_frame(segments, name);
    ASSERT_EQ(symbol_at(start + 1), name);
  }
  EXPECT_STREQ(symbol_at(stays + 1), "stays");
  EXPECT_EQ(segments.status().segments, 1u);
  EXPECT_EQ(segments.status().published, 21u);
  EXPECT_EQ(segments.status().refused, 0u) << segments.status().latest_refusal.text();
}

/// Functions with names, rows and language-specific data of any size follow each other.
TEST(CodeSegments, RoomsServeOtherFunctionsAsOftenAsIsLiked) {
  constexpr Addr k_personality = 0x1234560;  // nobody calls it
  static std::array<std::byte, 8> data;
  std::mt19937 random(1);
  std::vector<Description> kinds;
  for (host::Builder builder : {FrameCode::described("one"), FrameCode::with_many_states("other")}) {
    kinds.push_back(*builder.build());
    kinds.push_back(*builder.personality(k_personality).build());
  }
  CodeSegments segments({.text_bytes = 65536, .functions = 64});
  const LibgccSearch search;
  std::array<Addr, 40> starts{};
  for (int i = 0; i < 10'000; ++i) {
    Addr& start = starts[random() % starts.size()];
    if (start != 0) {
      ASSERT_TRUE(segments.release(start));
    }
    const Description& kind = kinds[random() % kinds.size()];
    const Addr lsda = kind.personality() != 0 && random() % 2 == 0
                          ? reinterpret_cast<std::uintptr_t>(&data[random() % data.size()])
                          : 0;
    const std::string name(1 + random() % 150, static_cast<char>('a' + i % 26));
    const std::size_t size = sizeof FrameCode::k_bytes + random() % 16 * local_space().arch.unit;
    start = segments.allocate(size).value().start;
    ASSERT_TRUE(segments.commit(kind, {.start = start, .size = size, .name = name, .lsda = lsda}));
    ASSERT_EQ(symbol_at(start), name);
    const std::byte* const fde = search.fde(start + 1);
    ASSERT_NE(fde, nullptr) << i;
    const std::byte* const cie = cie_of(fde);
    const FdePointers pointers = pointers_of(cie);
    ASSERT_EQ(pointed_to(cie, pointers.personality), kind.personality());
    ASSERT_EQ(pointed_to(cie, pointers.lsda), lsda);
  }
  EXPECT_EQ(segments.status().published, segments.status().functions);
  EXPECT_EQ(segments.status().refused, 0u) << segments.status().latest_refusal.text();
}

TEST(CodeSegments, FullSegmentsHaveSuccessors) {
  CodeSegments segments({.text_bytes = 65536, .functions = 16});
  std::vector<Addr> starts;
  for (int i = 0; i < 100; ++i) starts.push_back(commit_frame(segments, "function_" + std::to_string(i)));
  const LibgccSearch search;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    EXPECT_EQ(symbol_at(starts[i] + 1), "function_" + std::to_string(i));
    EXPECT_EQ(search(starts[i] + 1), starts[i]);
  }
  EXPECT_EQ(segments.status().published, 100u) << segments.status().latest_refusal.text();
  EXPECT_EQ(segments.status().files, 7u);
  const std::string folder = segments.status().folder;
  for (const Addr start : starts) ASSERT_TRUE(segments.release(start));
  EXPECT_EQ(segments.status().files, 1u);  // the newest, which has room
  EXPECT_EQ(segments.status().functions, 0u);
  EXPECT_LE(std::distance(std::filesystem::directory_iterator(folder), {}), 2);  // and one ahead
}

/// Nobody looks for other copies of the unwinder in files that this library has made.
TEST(CodeSegments, FilesAreLoadsOfThisLibrary) {
  const auto of_others = [] { return list_version().loads - own_loads; };
  const std::uint64_t before = of_others();
  CodeSegments segments;
  commit_frame(segments, "loads its file");
  EXPECT_EQ(of_others(), before);
}

TEST(CodeSegments, FilesGoWithTheirObject) {
  std::string folder;
  Addr start = 0;
  {
    CodeSegments segments;
    start = commit_frame(segments, "gone");
    folder = segments.status().folder;
    EXPECT_TRUE(std::filesystem::exists(folder));
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
  EXPECT_EQ(LibgccSearch()(start), 0u);
  EXPECT_EQ(ProcedureHold(start).info(), nullptr);
}

/// Segments hold functions of any size; a large one has a segment of its own.
TEST(CodeSegments, LargeFunctions) {
  CodeSegments segments({.text_bytes = 65536, .functions = 16});
  const Addr small = commit_frame(segments, "small");
  const Addr large = commit_frame(segments, "large", 3u << 20);
  const Addr other = commit_frame(segments, "other");
  EXPECT_EQ(other, small + (sizeof FrameCode::k_bytes + 15) / 16 * 16);
  EXPECT_STREQ(symbol_at(large + 1), "large");
  EXPECT_EQ(segments.status().files, 2u);
  ASSERT_TRUE(segments.release(large));
  EXPECT_EQ(segments.status().files, 1u);
}

TEST(CodeSegments, NamesOfAnyBytes) {
  CodeSegments segments;
  const std::string long_name(100000, 'x');
  EXPECT_EQ(std::strlen(symbol_at(commit_frame(segments, long_name))), 499u);
  using namespace std::string_view_literals;
  EXPECT_STREQ(symbol_at(commit_frame(segments, "a\0b\nc\033]0;d"sv)), "a?b?c?]0;d");
  EXPECT_STREQ(symbol_at(commit_frame(segments, "\xff\xc3(\xe2\x82\xac")), "\xff\xc3(\xe2\x82\xac");
  EXPECT_STREQ(symbol_at(commit_frame(segments, "")), "unnamed");  // the description's
  EXPECT_EQ(segments.status().refused, 0u);
}

TEST(CodeSegments, MistakesAreErrors) {
  CodeSegments segments;
  EXPECT_EQ(segments.allocate(0).error().code, ErrorCode::e_range);
  EXPECT_EQ(segments.allocate((std::size_t{1} << 30) + 1).error().code, ErrorCode::e_range);
  EXPECT_EQ(segments.release(0x1000).error().code, ErrorCode::not_registered);
  const Description description = frame_description("mistaken");
  const auto room = segments.allocate(100);
  ASSERT_TRUE(room);
  EXPECT_EQ(room->start % 16, 0u);
  EXPECT_GE(room->writable.size(), 100u);
  const auto commit = [&](Addr start, std::uint64_t size) {
    const Status committed = segments.commit(description, {.start = start, .size = size});
    return committed ? ErrorCode::unspecified : committed.error().code;
  };
  EXPECT_EQ(commit(room->start + 16, 25), ErrorCode::not_registered);
  EXPECT_EQ(commit(room->start, room->writable.size() + 1), ErrorCode::e_overlap);
  EXPECT_EQ(commit(room->start, 4), ErrorCode::e_overlap);  // the description's own
  EXPECT_EQ(commit(room->start, sizeof FrameCode::k_bytes), ErrorCode::unspecified);
  EXPECT_EQ(commit(room->start, sizeof FrameCode::k_bytes), ErrorCode::not_registered);
  EXPECT_TRUE(segments.release(room->start));
  EXPECT_EQ(segments.release(room->start).error().code, ErrorCode::not_registered);
  EXPECT_EQ(commit(room->start, sizeof FrameCode::k_bytes), ErrorCode::not_registered);
  const auto unused = segments.allocate(100);
  EXPECT_EQ(unused->start, room->start);
  EXPECT_TRUE(segments.release(unused->start));  // never committed
}

/// Threads add, replace and release functions, and look their own ones and each other's up at any time.
TEST(CodeSegments, StormOfThreads) {
  CodeSegments segments({.text_bytes = 65536, .functions = 64});
  const LibgccSearch search;
  std::atomic<int> wrong{0};
  std::array<std::atomic<Addr>, 4> of_others{};
  const auto work = [&](unsigned number) {
    std::vector<std::pair<Addr, std::string>> own;
    for (std::size_t i = 0; i < repetitions(400); ++i) {
      std::string name = "thread_" + std::to_string(number) + "_" + std::to_string(i);
      own.emplace_back(commit_frame(segments, name), std::move(name));
      of_others[number] = own.front().first;
      for (const auto& [start, its_name] : own) {
        const char* const found = symbol_at(start + 1);
        wrong += found == nullptr || found != its_name || search(start + 1) != start;
      }
      if (const Addr other = of_others[(number + 1) % 4]) {
        // It may have gone meanwhile, and another function may have its place.
        const Addr found = search(other + 1);
        wrong += found != 0 && found != other;
      }
      if (own.size() < 20) continue;
      const auto gone = own.begin() + static_cast<std::ptrdiff_t>(i % 20);
      if (of_others[number] == gone->first) of_others[number] = 0;
      wrong += !segments.release(gone->first);
      own.erase(gone);
    }
    for (const auto& [start, name] : own) wrong += !segments.release(start);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(segments.status().functions, 0u);
  EXPECT_EQ(segments.status().refused, 0u) << segments.status().latest_refusal.text();
  EXPECT_LE(segments.status().segments, 2u);
}

}  // namespace
}  // namespace jitunwind::test
