// The C library's functions that name addresses, in front of its own: libjitunwind-listen is linked before it.
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "jitunwind/adapters/code_segments/code_segments.h"
#include "jitunwind/sdk/walk.h"
#include "tests/code_segments/committed.h"
#include "tests/code_segments/in_constructor.h"
#include "tests/support/counted_allocations.h"
#include "tests/support/emulated.h"
#include "tests/support/jit_frame.h"

namespace jitunwind::test {
namespace {

const void* pointer(Addr at) { return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(at)); }

/// The C library's own definition.
template <class Function>
Function* own(Function&, const char* name) {
  void* const libc = ::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  return reinterpret_cast<Function*>(::dlsym(libc, name));
}

using Texts = std::unique_ptr<char*, decltype(&std::free)>;

std::vector<std::string> texts_of(const std::vector<void*>& addresses) {
  const Texts texts(::backtrace_symbols(addresses.data(), static_cast<int>(addresses.size())), &std::free);
  EXPECT_NE(texts, nullptr);
  return {texts.get(), texts.get() + addresses.size()};
}

std::string written_of(const std::vector<void*>& addresses) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const std::size_t before = allocations();
  ::backtrace_symbols_fd(addresses.data(), static_cast<int>(addresses.size()), ends[1]);
  EXPECT_EQ(allocations(), before);
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> piece;
  for (ssize_t read = 0; (read = ::read(ends[0], piece.data(), piece.size())) > 0;)
    text.append(piece.data(), static_cast<std::size_t>(read));
  ::close(ends[0]);
  return text;
}

void* at(Addr address) { return const_cast<void*>(pointer(address)); }

TEST(Symbolizers, DladdrKnowsRegisteredCode) {
  const JitFrame frame;
  Dl_info info{};
  for (const Addr address : {frame.start(), frame.return_address(), frame.start() + frame.size() - 1}) {
    ASSERT_NE(::dladdr(pointer(address), &info), 0);
    EXPECT_STREQ(info.dli_sname, "jit_frame");
    EXPECT_EQ(info.dli_saddr, pointer(frame.start()));
    EXPECT_EQ(info.dli_fbase, pointer(frame.start()));
    EXPECT_STREQ(info.dli_fname, "[jit]");
  }
  EXPECT_EQ(::dladdr(pointer(frame.start() + frame.size()), &info), 0);
  EXPECT_EQ(own(::dladdr, "dladdr")(pointer(frame.start()), &info), 0) << "the C library has never known it";
}

/// Nothing may be asked of a pointer that the C library's users follow.
TEST(Symbolizers, Dladdr1GivesAnObjectWithoutEntriesAndNoSymbol) {
  const JitFrame frame;
  Dl_info info{};
  link_map* object = nullptr;
  ASSERT_NE(::dladdr1(pointer(frame.start()), &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP), 0);
  EXPECT_STREQ(info.dli_sname, "jit_frame");
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(object->l_addr, 0u);
  EXPECT_STREQ(object->l_name, "[jit]");
  EXPECT_EQ(object->l_ld->d_tag, DT_NULL);
  void* symbol = &info;
  ASSERT_NE(::dladdr1(pointer(frame.start()), &info, &symbol, RTLD_DL_SYMENT), 0);
  EXPECT_EQ(symbol, nullptr);
  // The C library gives both of other code.
  void *ours = nullptr, *theirs = nullptr;
  for (const int flags : {RTLD_DL_LINKMAP, RTLD_DL_SYMENT}) {
    ASSERT_NE(::dladdr1(reinterpret_cast<void*>(&::qsort), &info, &ours, flags), 0);
    ASSERT_NE(own(::dladdr1, "dladdr1")(reinterpret_cast<void*>(&::qsort), &info, &theirs, flags), 0);
    EXPECT_EQ(ours, theirs);
  }
}

TEST(Symbolizers, OtherCodeIsTheCLibrarys) {
  const JitFrame frame;
  int local = 0;
  Dl_info ours{}, theirs{};
  for (const void* address : {reinterpret_cast<const void*>(&::qsort), reinterpret_cast<const void*>(&texts_of),
                              static_cast<const void*>(&local), static_cast<const void*>(nullptr)}) {
    ASSERT_EQ(::dladdr(address, &ours), own(::dladdr, "dladdr")(address, &theirs));
    EXPECT_EQ(std::memcmp(&ours, &theirs, sizeof ours), 0) << ours.dli_fname;
  }
  const std::vector<void*> addresses{reinterpret_cast<void*>(&::qsort), &local, nullptr};
  const Texts expected(own(::backtrace_symbols, "backtrace_symbols")(addresses.data(), 3), &std::free);
  const auto texts = texts_of(addresses);
  for (std::size_t i = 0; i != 3; ++i) EXPECT_EQ(texts[i], expected.get()[i]);
}

/// A handler may have interrupted the C library while it takes the dynamic linker's lock, and would wait for ever. Here
/// another thread has the lock.
TEST(Symbolizers, CodeOutsideOfFilesNeedsNoLockOfTheDynamicLinker) {
  const JitFrame frame;
  const std::vector<void*> addresses{at(frame.return_address()), at(frame.start() + frame.size() + 1)};
  std::promise<std::string> named;
  std::thread asks;
  construct([&] {
    asks = std::thread([&] {
      Dl_info info{};
      std::string text;
      for (void* const address : addresses) text += std::to_string(::dladdr(address, &info)) + " ";
      named.set_value(text + written_of(addresses));
    });
    auto answer = named.get_future();
    const bool is_answered = answer.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
    ASSERT_TRUE(is_answered) << "the thread waits for the dynamic linker";
    const std::string text = answer.get();
    EXPECT_EQ(text.rfind("1 0 [jit](jit_frame+", 0), 0u) << text;
    EXPECT_NE(text.find("]\n[0x"), std::string::npos) << text;
  });
  asks.join();
}

std::vector<void*> listed;
std::vector<std::string> walked;

[[gnu::noinline]] void* list_frames(void* argument) {
  listed.resize(64);
  listed.resize(static_cast<std::size_t>(::backtrace(listed.data(), 64)));
  walked.clear();
  for (const Frame& frame : walk_here()) walked.push_back(frame.name() + "+" + std::to_string(frame.offset()));
  return argument;
}

/// The witness is the walk, whose names and offsets backtrace_symbols() has for each JIT frame; libgcc lists the
/// frames.
TEST(Symbolizers, BacktraceNamesJitFramesAsWalksDo) {
  const JitFrame outer, inner;
  struct Both {
    const JitFrame& inner;
  } both{inner};
  outer([](void* of) { return static_cast<Both*>(of)->inner(list_frames, nullptr); }, &both);
  const auto texts = texts_of(listed);
  std::string joined;
  std::vector<std::string> named;
  for (const std::string& text : texts) {
    joined += text + "\n";
    if (text.starts_with("[jit](")) named.push_back(text);
  }
  std::vector<std::string> expected;
  for (const std::string& frame : walked)
    if (frame.starts_with("jit_frame+")) expected.push_back(frame);
  ASSERT_EQ(named.size(), 2u) << joined;
  ASSERT_EQ(expected.size(), 2u);
  const auto text_of = [](const JitFrame& frame) {
    std::array<char, 100> text;
    std::snprintf(text.data(), text.size(), "[jit](jit_frame+0x%x) [%p]", unsigned{FrameCode::k_after_call},
                  pointer(frame.return_address()));
    return std::string(text.data());
  };
  EXPECT_EQ(named, (std::vector<std::string>{text_of(inner), text_of(outer)}));
  EXPECT_EQ(expected[0], "jit_frame+" + std::to_string(FrameCode::k_after_call));
  // glibc 2.36 writes no blank before the address in a file, and 2.41 writes one.
  std::string written = written_of(listed);
  if (written != joined)
    for (std::size_t at = 0; (at = written.find(")[0x", at)) != written.npos;) written.insert(at + 1, " ");
  EXPECT_EQ(written, joined);
  for (const std::string& text : named) EXPECT_NE(written_of(listed).find(text), std::string::npos) << text;
}

TEST(Symbolizers, AddressBehindTheLastCallIsInItsProcedure) {
  const JitFrame frame;
  const auto texts = texts_of({at(frame.start() + frame.size())});
  EXPECT_NE(texts[0].find("[jit](jit_frame+0x"), std::string::npos) << texts[0];
}

TEST(Symbolizers, CodeWithoutANameHasItsDistanceFromTheBegin) {
  alignas(16) static std::array<char, 64> place;  // in a module
  const Addr anywhere = 0x100000;
  const auto description = FrameCode::described("").build();
  ASSERT_TRUE(description);
  const auto nameless = register_code(*description, {.start = anywhere, .size = sizeof FrameCode::k_bytes});
  ASSERT_TRUE(nameless) << nameless.error().text();
  Dl_info info{};
  ASSERT_NE(::dladdr(pointer(anywhere + 2), &info), 0);
  EXPECT_EQ(info.dli_sname, nullptr);
  EXPECT_EQ(info.dli_saddr, nullptr);
  EXPECT_STREQ(info.dli_fname, "[jit]");
  EXPECT_EQ(texts_of({at(anywhere + 4)})[0], "[jit](+0x4) [0x100004]");
  const Addr inside = reinterpret_cast<std::uintptr_t>(place.data());
  const auto in_module = register_code(*description, {.start = inside, .size = sizeof FrameCode::k_bytes});
  ASSERT_TRUE(in_module);
  Dl_info theirs{};
  ASSERT_NE(::dladdr(place.data(), &info), 0);
  ASSERT_NE(own(::dladdr, "dladdr")(place.data(), &theirs), 0);
  EXPECT_STREQ(info.dli_fname, theirs.dli_fname);
}

/// Code of a module that is registered has the file's name and the registered one, which walks give.
TEST(Symbolizers, CodeInAFileHasBothItsFileAndItsName) {
  CodeSegments segments;
  const Addr start = commit_frame(segments, "in_a_segment");
  Dl_info info{}, theirs{};
  ASSERT_NE(own(::dladdr, "dladdr")(pointer(start + 1), &theirs), 0);
  ASSERT_NE(::dladdr(pointer(start + 1), &info), 0);
  EXPECT_STREQ(info.dli_sname, "in_a_segment");
  EXPECT_STREQ(info.dli_fname, theirs.dli_fname);
  EXPECT_EQ(info.dli_fbase, theirs.dli_fbase);
  EXPECT_EQ(info.dli_saddr, theirs.dli_saddr);
  const std::vector<void*> addresses{at(start + 1)};
  const Texts expected(own(::backtrace_symbols, "backtrace_symbols")(addresses.data(), 1), &std::free);
  EXPECT_EQ(texts_of(addresses)[0], expected.get()[0]);
}

TEST(Symbolizers, NamesStayValidWhenTheCodeIsGone) {
  Dl_info info{}, again{};
  {
    const JitFrame frame;
    ASSERT_NE(::dladdr(pointer(frame.start()), &info), 0);
  }
  EXPECT_STREQ(info.dli_sname, "jit_frame");
  const JitFrame other;
  ASSERT_NE(::dladdr(pointer(other.start()), &again), 0);
  EXPECT_EQ(info.dli_sname, again.dli_sname) << "a name is kept once";
}

/// Each of many addresses has its own name; names that are too long are cut.
TEST(Symbolizers, KnowAsManyNamesAsThereAre) {
  constexpr unsigned k_names = repetitions(100'000);
  constexpr Addr k_first = 0x10000000;
  const auto description = FrameCode::described("").build();
  ASSERT_TRUE(description);
  std::vector<Registration> registered;
  for (unsigned i = 0; i != k_names; ++i) {
    const std::string name = "number_" + std::to_string(i);
    auto one =
        register_code(*description, {.start = k_first + 64 * i, .size = sizeof FrameCode::k_bytes, .name = name});
    ASSERT_TRUE(one);
    registered.push_back(std::move(*one));
  }
  for (unsigned i = 0; i != k_names; ++i) {
    Dl_info info{};
    ASSERT_NE(::dladdr(pointer(k_first + 64 * i + 1), &info), 0);
    ASSERT_EQ(info.dli_sname, "number_" + std::to_string(i));
  }
  const std::string longest(5000, 'x');
  const auto named = register_code(*description, {.start = 0x1000, .size = sizeof FrameCode::k_bytes, .name = longest});
  ASSERT_TRUE(named);
  Dl_info info{};
  ASSERT_NE(::dladdr(pointer(0x1000), &info), 0);
  EXPECT_EQ(info.dli_sname, longest.substr(0, 4095));
}

TEST(Symbolizers, ReportLackOfMemoryAsTheCLibraryDoes) {
  const JitFrame frame;
  const std::vector<void*> addresses(100, at(frame.start()));
  for (std::size_t times = 0; times != 3; ++times) {
    const NoMemory none(times);
    std::free(::backtrace_symbols(addresses.data(), static_cast<int>(addresses.size())));
  }
  EXPECT_EQ(texts_of(addresses).size(), addresses.size());
}

}  // namespace
}  // namespace jitunwind::test
