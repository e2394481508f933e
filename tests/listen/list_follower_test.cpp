// GDB's list of this process while it changes.
#include "jitunwind/adapters/listen/followers_p.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/adapters/listen/names/heard_names_p.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "tests/builders/placed_eh_frame.h"
#include "tests/builders/registered_code.h"
#include "tests/listen/frame_functions.h"
#include "tests/listen/jit_file.h"
#include "tests/listen/told_section.h"

#ifdef __SANITIZE_THREAD__
/// The sanitizer would end forked children that start a thread, and followers are started in them.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }
#endif

namespace jitunwind::test {
namespace {

/// A page of code that is unmapped with the object.
class CodePage {
 public:
  CodePage() : at_(::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~CodePage() { unmap(); }
  CodePage(const CodePage&) = delete;
  CodePage& operator=(const CodePage&) = delete;
  Addr at() const { return reinterpret_cast<std::uintptr_t>(at_); }
  void unmap() { ::munmap(at_, 4096); }

 private:
  void* at_;
};

/// An entry and its file, as an engine keeps them.
class Entry {
 public:
  explicit Entry(RawBytes file) : file_(std::move(file)) {
    entry_.file = reinterpret_cast<std::uintptr_t>(file_.data());
    entry_.size = file_.size();
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  ListEntry& get() { return entry_; }
  RawBytes& file() { return file_; }

 private:
  RawBytes file_;
  ListEntry entry_;
};

class Lists : public testing::Test {
 protected:
  Lists() : module_(::dlopen(LIST_MODULE, RTLD_NOW | RTLD_LOCAL)) {
    if (module_) descriptor_ = static_cast<ListDescriptor*>(::dlsym(module_, "__jit_debug_descriptor"));
  }
  ~Lists() override {
    put({});
    follower_.look();
    EXPECT_EQ(listen_status().files, 0u);
    EXPECT_EQ(registry_statistics().registered, 0u);
    ::dlclose(module_);
  }
  void SetUp() override { ASSERT_NE(descriptor_, nullptr) << ::dlerror(); }
  /// Sets the entries of the list, the newest first.
  void put(const std::vector<Entry*>& entries) {
    const ListEntry* next = nullptr;
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
      (*entry)->get().next = next;
      next = &(*entry)->get();
    }
    descriptor_->first = next;
  }
  void look_at(const std::vector<Entry*>& entries) {
    put(entries);
    follower_.look();
  }

  void* module_;
  ListDescriptor* descriptor_ = nullptr;
  ListFollower follower_;
  CodePage page_;
  const RegisteredCode code_;
};

RawBytes file_at(Addr code, char name = 'f') {
  JitFile file(frames_like_phps(), code);
  file.elf.sections[2].data[1] = static_cast<std::byte>(name);
  return file.build();
}

// covers: LS05
TEST_F(Lists, GiveNamesAndFramesAsLongAsTheyHaveThem) {
  Entry entry(file_at(page_.at()));
  look_at({&entry});
  EXPECT_EQ(code_.name_at(page_.at() + 4), "f");
  EXPECT_EQ(code_.row_at(page_.at() + 4), k_row);
  EXPECT_EQ(code_.name_at(page_.at() + 0x44), "g");
  EXPECT_EQ(code_.row_at(page_.at() + 0x44), "no row");
  EXPECT_EQ(listen_status().files, 1u);
  look_at({});
  EXPECT_EQ(code_.name_at(page_.at() + 4), "");
  EXPECT_EQ(code_.row_at(page_.at() + 4), "no row");
}

/// LLVM's list keeps entries of code that is gone.
TEST_F(Lists, SayNothingOfCodeThatIsGoneAlready) {
  Entry gone(file_at(page_.at()));
  page_.unmap();
  look_at({&gone});
  EXPECT_EQ(listen_status().files, 1u);
#if !defined(__SANITIZE_ADDRESS__) && !defined(JITUNWIND_CLANG_SANITIZER)  // which may map memory of their own there
  EXPECT_EQ(registry_statistics().registered, 0u);
#endif
}

/// A compiler's line number program, in a file that is linked to the code's address, gives the lines.
TEST_F(Lists, GiveLines) {
  JitFile file(frames_like_phps(), page_.at());
  const Bytes program = Bytes().u8(0).u8(9).u8(2).u64(page_.at()).u8(3).u8(6).u8(1).u8(2).u8(16).u8(0).u8(1).u8(1);
  const Bytes header = Bytes()
                           .add({1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1})  // to the standard opcodes
                           .u8(0)
                           .text("a.c")
                           .add({0, 0, 0, 0});
  const Bytes unit = Bytes().u16(2).u32(header.size()).add(header).add(program);
  const Bytes lines = Bytes().u32(unit.size()).add(unit);
  file.elf.sections.push_back({".debug_line", SHT_PROGBITS, lines.vector()});
  Entry entry(file.build());
  look_at({&entry});
  const auto line = heard_line(page_.at() + 4);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->file, "a.c");
  EXPECT_EQ(line->line, 7u);
}

TEST_F(Lists, AreBelievedInTheirNewestEntry) {
  Entry older(file_at(page_.at(), 'o'));
  Entry newer(file_at(page_.at(), 'n'));
  look_at({&newer, &older});
  EXPECT_EQ(code_.name_at(page_.at() + 4), "n");
  EXPECT_EQ(code_.row_at(page_.at() + 4), k_row);
}

/// malloc returns the same place for the next file of the same size.
TEST_F(Lists, AreReadAnewWhereAFileIsAnother) {
  Entry entry(file_at(page_.at(), 'a'));
  look_at({&entry});
  EXPECT_EQ(code_.name_at(page_.at() + 4), "a");
  const RawBytes other = file_at(page_.at(), 'b');
  std::copy(other.begin(), other.end(), entry.file().begin());
  follower_.look();
  EXPECT_EQ(code_.name_at(page_.at() + 4), "b");
  EXPECT_EQ(code_.row_at(page_.at() + 4), k_row);
}

/// Engines that change an entry in the middle announce it in the descriptor. Other changes are noticed later.
TEST_F(Lists, AreFollowedWhereTheirDescriptorSaysNothingNew) {
  Entry first(file_at(page_.at())), second(file_at(page_.at() + 0x200));
  look_at({&first, &second});
  EXPECT_EQ(listen_status().files, 2u);
  first.get().next = nullptr;
  for (int i = 0; i < 16; ++i) follower_.look();
  EXPECT_EQ(listen_status().files, 1u);
  EXPECT_EQ(code_.name_at(page_.at() + 0x204), "");
  first.get().next = &second.get();
  descriptor_->relevant = &second.get();
  follower_.look();
  EXPECT_EQ(code_.name_at(page_.at() + 0x204), "f") << "at once";
  descriptor_->relevant = nullptr;
}

// covers: LS10
TEST_F(Lists, SayNothingOfCodeThatIsNotMapped) {
  Entry entry(file_at(page_.at()));
  look_at({&entry});
  EXPECT_EQ(code_.name_at(page_.at() + 4), "f");
  const Addr at = page_.at();
  page_.unmap();
  forget_unmapped_names(10);
  EXPECT_EQ(code_.name_at(at + 4), "");
  EXPECT_EQ(registry_statistics().registered, 0u);
  follower_.look();
  EXPECT_EQ(listen_status().files, 1u) << "the entry is still there";
}

TEST_F(Lists, AreHeardBesideCallFrameInformationThatIsTold) {
  EhFrame frames;
  frames.fde(page_.at(), 16);
  frames.section.terminator();
  const void* const told = reinterpret_cast<const void*>(frames.placed().begin);
  __register_frame(told);
  Entry entry(file_at(page_.at()));
  look_at({&entry});
  EXPECT_EQ(code_.name_at(page_.at() + 4), "f");
  EXPECT_EQ(code_.row_at(page_.at() + 4), k_row);
  const auto with_both = registry_statistics().registered;
  look_at({});
  EXPECT_EQ(code_.row_at(page_.at() + 4), k_row) << "what was told is taken back by who told it";
  look_at({&entry});
  EXPECT_EQ(registry_statistics().registered, with_both);
  __deregister_frame(told);
  EXPECT_EQ(code_.row_at(page_.at() + 4), "no row");
}

TEST_F(Lists, KeepTheirFramesWhenAnotherVoiceNamesTheCode) {
  Entry entry(file_at(page_.at()));
  look_at({&entry});
  say_name(Dialect::itt, {page_.at(), page_.at() + 16}, "renamed");
  EXPECT_EQ(code_.name_at(page_.at() + 4), "renamed");
  EXPECT_EQ(code_.row_at(page_.at() + 4), k_row);
}

TEST_F(Lists, AreNotReadBeyondWhereThisLibrarysOwnPartBegins) {
  RawBytes marked(k_own_gdb_list_mark_distance);
  std::memcpy(marked.data(), k_own_gdb_list_mark.data(), k_own_gdb_list_mark.size());
  const RawBytes file = file_at(page_.at());
  marked.insert(marked.end(), file.begin(), file.end());
  Entry own(marked);
  own.get().file += k_own_gdb_list_mark_distance;
  own.get().size = file.size();
  Entry behind(file_at(page_.at() + 0x200));
  look_at({&own, &behind});
  EXPECT_EQ(listen_status().files, 0u);
}

// covers: LS12
TEST(ListsOfAForkedChild, AreFollowedAnew) {
  void* const module = ::dlopen(LIST_MODULE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(module, nullptr) << ::dlerror();
  auto* const list = static_cast<ListDescriptor*>(::dlsym(module, "__jit_debug_descriptor"));
  const auto becomes = [](Addr at, std::string_view name, std::uint64_t files) {
    const auto is_so = [&] { return RegisteredCode().name_at(at) == name && listen_status().files == files; };
    for (int i = 0; i < 6000 && !is_so(); ++i) ::usleep(10'000);
    return is_so();
  };
  const CodePage page;
  Entry parents(file_at(page.at(), 'p')), childs(file_at(page.at() + 0x200, 'c'));
  list->first = &parents.get();
  listen(static_cast<std::uint32_t>(Dialect::gdb));
  EXPECT_TRUE(becomes(page.at() + 4, "p", 1));
  const pid_t child = ::fork();
  if (child == 0) {
    childs.get().next = &parents.get();
    list->first = &childs.get();
    if (!becomes(page.at() + 0x204, "c", 2) || !becomes(page.at() + 4, "p", 2)) ::_exit(1);
    childs.get().next = nullptr;
    ::_exit(becomes(page.at() + 4, "", 1) ? 0 : 2);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  list->first = nullptr;
  EXPECT_TRUE(becomes(page.at() + 4, "", 0));
  listen(k_silent_dialects);
  ::dlclose(module);
}

/// The C library does not free the lock of its list of objects in a child, so the following thread must not hold it at
/// a fork.
// covers: LS12
TEST(ListsOfAForkedChild, KeepNoLockOfTheDynamicLinker) {
  std::atomic<bool> stop{false};
  std::thread thread([&stop] {
    for (ListFollower follower; !stop;) follower.look();
  });
  int others = 0;
  for (int i = 0; i < 100; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      ::dl_iterate_phdr([](dl_phdr_info*, std::size_t, void*) { return 0; }, nullptr);
      ::_exit(0);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    others += status != 0;
    if (others != 0) break;
  }
  EXPECT_EQ(others, 0);
  stop = true;
  thread.join();
}

TEST_F(Lists, MayHoldAnything) {
  Entry entry(file_at(page_.at()));
  Entry no_file(RawBytes(100));
  Entry nowhere(RawBytes(8));
  nowhere.get().file = 0x10;
  Entry endless(RawBytes(8));
  endless.get().size = ~std::uint64_t{0};
  const auto before = listen_status().refused;
  look_at({&no_file, &nowhere, &endless, &entry});
  EXPECT_EQ(listen_status().refused, before + 3);
  EXPECT_EQ(code_.name_at(page_.at() + 4), "f");
  entry.get().next = &no_file.get();  // a ring
  follower_.look();
  EXPECT_EQ(code_.name_at(page_.at() + 4), "f");
}

/// Limits the process's address space to so many bytes more, as long as the object lives.
class LittleMoreMemory {
 public:
  explicit LittleMoreMemory(std::size_t bytes) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;  // proc(5): the whole program
    EXPECT_NE(pages, 0u);
    ::getrlimit(RLIMIT_AS, &before_);
    rlimit now = before_;
    now.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + bytes;
    EXPECT_EQ(::setrlimit(RLIMIT_AS, &now), 0);
  }
  ~LittleMoreMemory() { ::setrlimit(RLIMIT_AS, &before_); }
  LittleMoreMemory(const LittleMoreMemory&) = delete;
  LittleMoreMemory& operator=(const LittleMoreMemory&) = delete;

 private:
  rlimit before_{};
};

/// Anonymous memory of which only the beginning is readable.
class MostlyUnreadable {
 public:
  MostlyUnreadable(std::size_t size, std::size_t readable)
      : begin_(::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)), size_(size) {
    EXPECT_EQ(::mprotect(begin_, readable, PROT_READ | PROT_WRITE), 0);
  }
  ~MostlyUnreadable() { ::munmap(begin_, size_); }
  MostlyUnreadable(const MostlyUnreadable&) = delete;
  MostlyUnreadable& operator=(const MostlyUnreadable&) = delete;
  std::byte* begin() const { return static_cast<std::byte*>(begin_); }

 private:
  void* begin_;
  std::size_t size_;
};

TEST_F(Lists, TakeNoMemoryForAFileOfWhichTheEndIsNotThere) {
  const MostlyUnreadable memory(JitObject::k_largest, 0x10000);
  Entry entry({});
  entry.get().file = reinterpret_cast<std::uintptr_t>(memory.begin());
  entry.get().size = JitObject::k_largest;
  const auto refused = listen_status().refused;
  const LittleMoreMemory little(JitObject::k_largest / 2);
  look_at({&entry});
  EXPECT_EQ(listen_status().refused, refused + 1);
  EXPECT_EQ(listen_status().latest_refusal.code, ErrorCode::unreadable_memory);
}

/// The file's last byte is the last readable one.
TEST_F(Lists, HoldLargeFilesUpToTheirLastByte) {
  constexpr std::size_t k_size = 0x20000;
  const MostlyUnreadable memory(2 * k_size, k_size);
  RawBytes file = file_at(page_.at());
  file.resize(k_size);
  std::memcpy(memory.begin(), file.data(), file.size());
  Entry entry({});
  entry.get().file = reinterpret_cast<std::uintptr_t>(memory.begin());
  entry.get().size = k_size;
  look_at({&entry});
  EXPECT_EQ(code_.name_at(page_.at() + 4), "f");
}

}  // namespace
}  // namespace jitunwind::test
