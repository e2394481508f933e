// Calls of __register_frame and its relatives by JITs, in a program that is linked with the listening library.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "jitunwind/adapters/listen/frames/told_frames_p.h"
#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/dyn_info/registry/observers.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/rows/dwarf_constants_internal.h"
#include "tests/builders/placed_eh_frame.h"
#include "tests/builders/registered_code.h"
#include "tests/listen/frame_functions.h"
#include "tests/listen/told_frame.h"
#include "tests/listen/told_section.h"
#include "tests/support/command.h"
#include "tests/support/failing_memory.h"

namespace jitunwind::test {
namespace {

// covers: LS01
TEST(RegisterFrame, TakesASection) {
  const auto frames = section_of(200);
  const void* const begin = at(frames->placed().begin);
  const RegisteredCode code;
  __register_frame(begin);
  EXPECT_EQ(registered(), 200u);
  EXPECT_EQ(listen_status().procedures, 200u);
  EXPECT_EQ(code.row_at(k_code + 4), k_row);
  EXPECT_EQ(code.row_at(k_code + 16 * 199 + 15), k_row);
  EXPECT_EQ(code.row_at(k_code + 16 * 200), "no row");
  __deregister_frame(begin);
  EXPECT_EQ(code.row_at(k_code + 4), "no row");
  EXPECT_EQ(registered(), 0u);
}

/// LLVM's libunwind expects this form.
TEST(RegisterFrame, TakesOneFdeWhereTheArgumentIsOne) {
  EhFrame frames;
  const Addr first = frames.fde(k_code, 16) - frames.section.section().address;
  const Addr second = frames.fde(k_code + 16, 16) - frames.section.section().address;
  frames.section.terminator();
  const Addr begin = frames.placed().begin;
  const RegisteredCode code;
  __register_frame(at(begin + second));
  EXPECT_EQ(code.row_at(k_code + 4), "no row");
  EXPECT_EQ(code.row_at(k_code + 20), k_row);
  __register_frame(at(begin + first));
  EXPECT_EQ(registered(), 2u);
  __deregister_frame(at(begin + second));
  EXPECT_EQ(code.row_at(k_code + 4), k_row);
  EXPECT_EQ(code.row_at(k_code + 20), "no row");
  __deregister_frame(at(begin + first));
  EXPECT_EQ(registered(), 0u);
}

TEST(RegisterFrame, GivesTheCallersMemoryBack) {
  const auto frames = section_of(1);
  const void* const begin = at(frames->placed().begin);
  int object = 0;
  __register_frame_info(begin, &object);
  EXPECT_EQ(registered(), 1u);
  EXPECT_EQ(__deregister_frame_info(begin), &object);
  __register_frame_info_bases(begin, &object, nullptr, nullptr);
  EXPECT_EQ(__deregister_frame_info_bases(begin), &object);
  EXPECT_EQ(registered(), 0u);
}

TEST(RegisterFrame, TakesATableOfSections) {
  const auto first = section_of(2);
  const auto second = section_of(3, k_code + 0x1000);
  const void* table[]{at(first->placed().begin), at(second->placed().begin), nullptr};
  __register_frame_table(table);
  EXPECT_EQ(registered(), 5u);
  __deregister_frame(table);
  EXPECT_EQ(registered(), 0u);
  int object = 0;
  __register_frame_info_table(table, &object);
  EXPECT_EQ(__deregister_frame_info(table), &object);
  __register_frame_info_table_bases(table, &object, nullptr, nullptr);
  EXPECT_EQ(registered(), 5u);
  EXPECT_EQ(__deregister_frame_info(table), &object);
}

/// Adds a section with one procedure of 16 bytes, 0x20 behind the base that `relative_to` (DW_EH_PE_*) names.
void put_relative_fde(EhFrame& frames, std::uint8_t relative_to) {
  const auto encoding = static_cast<std::uint8_t>(relative_to | dwarf::pe_udata8);
  const Addr cie = frames.section.cie(host_cie("zR", Bytes{encoding}));
  frames.section.fde(cie, frames.section.bytes().u64(0x20).u64(0x10).u8(0).add(saved_register()));
  frames.section.terminator();
}

TEST(RegisterFrame, ReadsPointersThatAreRelativeToTheBases) {
  EhFrame frames;
  put_relative_fde(frames, dwarf::pe_datarel);
  const void* const begin = at(frames.placed().begin);
  int object = 0;
  const RegisteredCode code;
  __register_frame_info_bases(begin, &object, nullptr, reinterpret_cast<void*>(k_code));
  EXPECT_EQ(code.row_at(k_code + 0x24), k_row);
  EXPECT_EQ(__deregister_frame_info(begin), &object);
}

/// A registered procedure has no text base; libgcc keeps it.
TEST(RegisterFrame, LeavesPointersThatAreRelativeToTextToTheNextDefinition) {
  EhFrame frames;
  put_relative_fde(frames, dwarf::pe_textrel);
  const void* const begin = at(frames.placed().begin);
  const void* table[] = {begin, nullptr};
  const RegisteredCode code;
  alignas(16) std::array<std::byte, 64> object{};  // libgcc's own
  const auto refused = listen_status().refused;
  __register_frame_info_bases(begin, &object, reinterpret_cast<void*>(k_code), nullptr);
  EXPECT_EQ(code.row_at(k_code + 0x24), "no row");
  EXPECT_EQ(listen_status().refused, refused + 1);
  const auto function = reinterpret_cast<void*>(k_code + 0x20);
  EXPECT_EQ(_Unwind_FindEnclosingFunction(reinterpret_cast<void*>(k_code + 0x24)), function);
  EXPECT_EQ(__deregister_frame_info(begin), &object);
  EXPECT_EQ(_Unwind_FindEnclosingFunction(reinterpret_cast<void*>(k_code + 0x24)), nullptr);
  // libgcc is not asked about a table in between: since release 13 it takes its sorted copy for a section when the
  // table leaves, and crashes.
  __register_frame_info_table_bases(table, &object, reinterpret_cast<void*>(k_code), nullptr);
  EXPECT_EQ(code.row_at(k_code + 0x24), "no row");
  EXPECT_EQ(listen_status().refused, refused + 2);
  EXPECT_EQ(__deregister_frame_info(table), &object);
  EXPECT_EQ(_Unwind_FindEnclosingFunction(reinterpret_cast<void*>(k_code + 0x24)), nullptr);
}

/// The text base is given but not used.
TEST(RegisterFrame, ReadsPointersOfATableThatAreRelativeToData) {
  EhFrame frames;
  put_relative_fde(frames, dwarf::pe_datarel);
  const void* table[] = {at(frames.placed().begin), nullptr};
  int object = 0;
  const RegisteredCode code;
  __register_frame_info_table_bases(table, &object, reinterpret_cast<void*>(0x1000), reinterpret_cast<void*>(k_code));
  EXPECT_EQ(code.row_at(k_code + 0x24), k_row);
  EXPECT_EQ(__deregister_frame_info(table), &object);
}

TEST(RegisterFrame, KnowsTheNewestOfTheSameCode) {
  const auto older = section_of(1);
  EhFrame newer;
  newer.section.fde(newer.cie(), k_code, 16, Bytes{0x41, 0x0e, 32});
  newer.section.terminator();
  const void* const first = at(older->placed().begin);
  const void* const second = at(newer.placed().begin);
  const RegisteredCode code;
  __register_frame(first);
  __register_frame(second);
  EXPECT_EQ(code.row_at(k_code + 4), std::string("dyn_table: ") + ToldFrameCode::k_row_of_32_bytes);
  __deregister_frame(second);
  EXPECT_EQ(code.row_at(k_code + 4), k_row);
  __deregister_frame(first);
  EXPECT_EQ(code.row_at(k_code + 4), "no row");
}

/// Engines forget to take code back before they use its memory again.
TEST(RegisterFrame, KnowsACallWithTheSameAddressTwice) {
  const auto frames = section_of(3);
  const void* const begin = at(frames->placed().begin);
  __register_frame(begin);
  __register_frame(begin);
  EXPECT_EQ(registered(), 6u);
  __deregister_frame(begin);
  EXPECT_EQ(registered(), 3u);
  EXPECT_EQ(RegisteredCode().row_at(k_code + 4), k_row);
  __deregister_frame(begin);
  EXPECT_EQ(registered(), 0u);
}

/// libgcc aborts in this case.
TEST(RegisterFrame, PassesByWhatWasNeverTold) {
  const auto frames = section_of(1);
  const void* const begin = at(frames->placed().begin);
  const auto before = listen_status().never_told;
  __deregister_frame(begin);
  EXPECT_EQ(__deregister_frame_info(begin), nullptr);
  EXPECT_EQ(listen_status().never_told, before + 2);
  const std::uint32_t empty = 0;
  __register_frame(&empty);
  __deregister_frame(&empty);
  __register_frame_info(nullptr, nullptr);
  EXPECT_EQ(listen_status().never_told, before + 2) << "an empty section is told of and taken back by nobody";
}

TEST(RegisterFrame, LeavesOutWhatIsBroken) {
  EhFrame frames;
  frames.section.fde(frames.cie(), frames.section.bytes().u32(7));  // ends within its first pointer
  frames.fde(k_code, 16);
  frames.section.terminator();
  const void* const begin = at(frames.placed().begin);
  const auto before = listen_status();
  __register_frame(begin);
  EXPECT_EQ(registered(), 1u);
  const auto status = listen_status();
  EXPECT_EQ(status.refused, before.refused + 1);
  EXPECT_EQ(status.latest_refusal.code, ErrorCode::truncated);
  __deregister_frame(begin);
}

/// The memory ends where the next entry should be.
TEST(RegisterFrame, ReadsASectionWithoutEndAsFarAsThereIsMemory) {
  constexpr std::size_t k_page = 4096;
  auto* const pages =
      static_cast<std::byte*>(::mmap(nullptr, 2 * k_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(::mprotect(pages + k_page, k_page, PROT_NONE), 0);
  EhFrame frames;
  frames.fde(k_code, 16);
  const auto& bytes = frames.section.section().bytes;
  std::byte* const begin = pages + k_page - bytes.size();
  std::copy(bytes.begin(), bytes.end(), begin);
  const auto before = listen_status();
  __register_frame(begin);
  EXPECT_EQ(registered(), 1u);
  EXPECT_EQ(listen_status().refused, before.refused + 1);
  EXPECT_EQ(listen_status().latest_refusal.code, ErrorCode::unreadable_memory);
  EXPECT_EQ(RegisteredCode().row_at(k_code + 4), k_row);
  __deregister_frame(begin);
  ::munmap(pages, 2 * k_page);
}

/// LuaJIT registers one FDE for an area of code; its personality routine catches everything.
TEST(RegisterFrame, BelievesNoFdeThatCatchesEverythingInAnArea) {
  EhFrame frames;
  const Addr cie = frames.section.cie(host_cie("zPR", Bytes{dwarf::pe_absptr}.u64(0x1234).u8(dwarf::pe_absptr)));
  frames.section.fde(cie, frames.section.bytes().u64(k_code + 0x4c).u64(0x10000 - 0x4c).u8(0).add(saved_register()));
  frames.fde(k_code + 0x20000, 16);
  frames.section.terminator();
  const void* const begin = at(frames.placed().begin);
  const auto before = listen_status();
  __register_frame(begin);
  EXPECT_EQ(registered(), 1u);
  EXPECT_EQ(listen_status().refused, before.refused + 1);
  EXPECT_EQ(listen_status().handed_on, before.handed_on + 1) << "libgcc has to find its personality routine";
  EXPECT_NE(_Unwind_FindEnclosingFunction(reinterpret_cast<void*>(k_code + 0x100)), nullptr);
  EXPECT_EQ(RegisteredCode().row_at(k_code + 4), "no row");
  __deregister_frame(begin);
  EXPECT_EQ(_Unwind_FindEnclosingFunction(reinterpret_cast<void*>(k_code + 0x100)), nullptr);
  EXPECT_EQ(registered(), 0u);
}

TEST(RegisterFrame, LeavesCallsToTheNextDefinitionWhereItDoesNotListen) {
  const auto frames = section_of(1);
  const void* const begin = at(frames->placed().begin);
  listen(0);
  __register_frame(begin);
  EXPECT_EQ(registered(), 0u);
  EXPECT_NE(_Unwind_FindEnclosingFunction(reinterpret_cast<void*>(k_code + 4)), nullptr);
  listen(k_silent_dialects);
  __deregister_frame(begin);  // of what was told before it listened
  EXPECT_EQ(_Unwind_FindEnclosingFunction(reinterpret_cast<void*>(k_code + 4)), nullptr);
}

/// Reports a section when something else is registered, and takes it back when that is cancelled.
class TellingObserver final : public RegistryObserver {
 public:
  explicit TellingObserver(const void* begin) : begin_(begin) { EXPECT_TRUE(attach_observer(*this)); }
  ~TellingObserver() { EXPECT_TRUE(detach_observer(*this)); }

  void registered(std::span<const RegisteredProcedure>) noexcept override { __register_frame(begin_); }
  void cancelled(std::span<unw_dyn_info_t* const>) noexcept override { __deregister_frame(begin_); }
  void retired() noexcept override {}

 private:
  const void* begin_;
};

/// This is how the library's own tables reach an unwinder that does not ask. libgcc aborts if it was not told.
TEST(RegisterFrame, LeavesCallsFromWithinTheRegistryToTheNextDefinition) {
  const auto inner = section_of(1);
  const auto outer = section_of(1, k_code + 0x1000);
  const auto pc = reinterpret_cast<void*>(k_code + 4);
  const auto never_told = listen_status().never_told;
  {
    const TellingObserver observer(at(inner->placed().begin));
    __register_frame(at(outer->placed().begin));
    EXPECT_EQ(registered(), 1u);
    EXPECT_EQ(_Unwind_FindEnclosingFunction(pc), reinterpret_cast<void*>(k_code));
    __deregister_frame(at(outer->placed().begin));
  }
  EXPECT_EQ(_Unwind_FindEnclosingFunction(pc), nullptr);
  EXPECT_EQ(listen_status().never_told, never_told);
  EXPECT_EQ(registered(), 0u);
}

TEST(RegisterFrame, TakesThousandsBackInAnyOrder) {
  constexpr unsigned k_many = 20'000;
  EhFrame all(k_many * 128);
  std::vector<Addr> begins;
  for (unsigned i = 0; i < k_many; ++i) {
    begins.push_back(all.section.here() - all.section.section().address);
    all.section.fde(all.section.cie(host_cie()), k_code + 16 * i, 16, saved_register());
    all.section.terminator();
  }
  const Addr begin = all.placed().begin;
  for (const Addr offset : begins) __register_frame(at(begin + offset));
  EXPECT_EQ(registered(), k_many);
  std::shuffle(begins.begin(), begins.end(), std::mt19937(7));
  for (unsigned i = 0; i < k_many; i += 2) __deregister_frame(at(begin + begins[i]));
  EXPECT_EQ(registered(), k_many / 2);
  const auto code_of = [&](Addr offset) {  // behind the CIE and its length, the FDE's length and its distance
    std::uint32_t cie_length = 0;
    std::uint64_t code = 0;
    std::memcpy(&cie_length, at(begin + offset), sizeof cie_length);
    std::memcpy(&code, at(begin + offset + 4 + cie_length + 8), sizeof code);
    return code;
  };
  const RegisteredCode known;
  for (unsigned i = 0; i < k_many; i += 1000) {
    EXPECT_EQ(known.row_at(code_of(begins[i]) + 4), "no row");
    EXPECT_EQ(known.row_at(code_of(begins[i + 1]) + 4), k_row);
  }
  for (unsigned i = 1; i < k_many; i += 2) __deregister_frame(at(begin + begins[i]));
  EXPECT_EQ(registered(), 0u);
}

/// Memory for code that is unmapped with the object. It is far from where the kernel puts other mappings, if possible:
/// a sanitizer's run-time maps memory at any moment, where something was unmapped before.
class CodeMemory {
 public:
  CodeMemory()
      : at_(::mmap(reinterpret_cast<void*>(k_code + 0x1'0000'0000), k_size, PROT_READ | PROT_EXEC,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~CodeMemory() { unmap(); }
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;
  Addr at() const { return reinterpret_cast<std::uintptr_t>(at_); }
  void unmap() const { ::munmap(at_, k_size); }

 private:
  static constexpr std::size_t k_size = 65536;
  void* at_;
};

/// So many looks find every call in a table that had thousands.
constexpr std::size_t k_all = 100'000;

TEST(RegisterFrame, ForgetsCodeThatIsUnmapped) {
  const CodeMemory memory;
  const auto gone = section_of(200, memory.at());
  const auto stays = section_of(3);
  int object = 0;
  const void* const begin = at(gone->placed().begin);
  __register_frame_info(begin, &object);
  __register_frame(at(stays->placed().begin));
  say_name(Dialect::itt, {memory.at(), memory.at() + 16}, "named, too");
  const RegisteredCode code;
  forget_unmapped_frames(k_all);
  EXPECT_EQ(registered(), 204u);
  memory.unmap();
  forget_unmapped_frames(k_all);
  EXPECT_EQ(code.row_at(memory.at() + 4), "no row");
  EXPECT_EQ(code.name_at(memory.at() + 4), "") << "nothing reads the entry any more";
  EXPECT_EQ(code.row_at(k_code + 4), k_row);
  EXPECT_EQ(registered(), 3u);
  EXPECT_EQ(listen_status().procedures, 3u);
  const auto never_told = listen_status().never_told;
  EXPECT_EQ(__deregister_frame_info(begin), &object) << "its owner may still take it back";
  __deregister_frame(at(stays->placed().begin));
  EXPECT_EQ(listen_status().never_told, never_told);
  EXPECT_EQ(listen_status().procedures, 0u);
}

/// Here no thread follows anything.
TEST(RegisterFrame, ForgetsUnmappedCodeInTheCourseOfOtherCalls) {
  const CodeMemory memory;
  const auto gone = section_of(1, memory.at());
  const auto other = section_of(1);
  const void* const begin = at(gone->placed().begin);
  __register_frame(begin);
  memory.unmap();
  int calls = 0;
  for (; calls < 100'000 && listen_status().procedures != 0; ++calls) {
    __register_frame(at(other->placed().begin));
    __deregister_frame(at(other->placed().begin));
  }
  EXPECT_EQ(registered(), 0u);
  EXPECT_LT(calls, 100'000);
  __deregister_frame(begin);
  EXPECT_EQ(listen_status().procedures, 0u);
}

/// Its memory may be gone as well.
TEST(RegisterFrame, IsTakenBackByItsAddressAlone) {
  const auto frames = section_of(2);
  const auto& bytes = frames->section.section().bytes;
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(page));
  int object = 0;
  __register_frame_info(page, &object);
  EXPECT_EQ(registered(), 2u);
  ::munmap(page, 4096);
  EXPECT_EQ(__deregister_frame_info(page), &object);
  EXPECT_EQ(registered(), 0u);
}

TEST(RegisterFrame, IsTakenBackWhileAnotherThreadForgets) {
  std::atomic<bool> stop{false};
  std::thread forgetting([&] {
    while (!stop) forget_unmapped_frames(64);
  });
  for (int i = 0; i < 300; ++i) {
    const CodeMemory memory;
    const auto frames = section_of(60, memory.at());
    const void* const begin = at(frames->placed().begin);
    int object = 0;
    __register_frame_info(begin, &object);
    memory.unmap();
    EXPECT_EQ(__deregister_frame_info(begin), &object);
    EXPECT_EQ(registered(), 0u);
  }
  stop = true;
  forgetting.join();
  EXPECT_EQ(listen_status().procedures, 0u);
}

TEST(RegisterFrame, TakesCallsOfManyThreadsAndForks) {
  std::atomic<bool> stop{false};
  AllocatingThreads allocating(3);
  std::vector<std::thread> threads;
  std::vector<decltype(section_of(5))> sections;
  for (unsigned t = 0; t < 3; ++t) sections.push_back(section_of(5, k_code + 0x10000 * t));
  for (const auto& frames : sections) {
    threads.emplace_back([&stop, &allocating, begin = at(frames->placed().begin)] {
      allocating.run_until(stop, [&] {
        __register_frame(begin);
        __deregister_frame(begin);
      });
    });
  }
  for (int i = 0; i < 50; ++i) {
    const pid_t child = allocating.fork();
    if (child == 0) {
      ::alarm(60);
      const auto frames = section_of(5, k_code + 0x100000);
      const void* const begin = at(frames->placed().begin);
      __register_frame(begin);
      const bool known = RegisteredCode().row_at(k_code + 0x100004) == k_row;
      __deregister_frame(begin);
      _exit(known ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(registered(), 0u);
}

/// Returns the names of all such functions in a library, "__register_frame@@GCC_3.0" and the like.
std::set<std::string> frame_functions_of(const std::string& library) {
  std::set<std::string> functions;
  for (const std::string& line : lines_of(output_of(BINUTILS "readelf --dyn-syms -W '" + library + "'"))) {
    const std::size_t name = line.rfind(' ') + 1;
    if (line.find(" UND ") == line.npos && line.find("register_frame", name) != line.npos)
      functions.insert(line.substr(name));
  }
  return functions;
}

/// Programs that were linked with libgcc_s need its versions.
TEST(RegisterFrame, HasTheVersionsOfLibgcc) {
  const auto functions = frame_functions_of(LISTEN_SHARED);
  EXPECT_EQ(functions.size(), 9u);
  EXPECT_EQ(functions, frame_functions_of(LIBGCC));
}

// Exceptions.

/// A frame that is registered by __register_frame alone.
class ToldFrame {
 public:
  ToldFrame() {
    put_calling_frame(frames_, code_);
    told_ = at(frames_.placed().begin);
    __register_frame(told_);
  }
  ~ToldFrame() { __deregister_frame(told_); }
  void operator()(void (*callee)()) const { reinterpret_cast<void (*)(void (*)())>(code_.begin())(callee); }

 private:
  const ExecutableCopy code_{calling_frame()};
  EhFrame frames_;
  const void* told_;
};

void throw_through_it() { throw std::runtime_error("through"); }

TEST(RegisterFrame, LetsExceptionsPass) {
  const ToldFrame frame;
  for (int i = 0; i < 3; ++i) EXPECT_THROW(frame(throw_through_it), std::runtime_error);
}

void* caller = nullptr;
[[gnu::noinline]] void note_caller() { caller = __builtin_return_address(0); }

TEST(RegisterFrame, TellsTheUnwinderWhatIsGone) {
  {
    const ToldFrame frame;
    frame(note_caller);
    EXPECT_NE(_Unwind_FindEnclosingFunction(caller), nullptr);
  }
  EXPECT_EQ(_Unwind_FindEnclosingFunction(caller), nullptr);
}

}  // namespace
}  // namespace jitunwind::test
