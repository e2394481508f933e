// Rows of a target that are kept across walks: a walk with them equals the walk without them, whatever the target has
// registered, cancelled, loaded and unloaded since.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <filesystem>
#include <functional>
#include <utility>

#include "jitunwind/adapters/gdb_jit/gdb_jit.h"
#include "jitunwind/adapters/gdb_jit/jit_interface_p.h"
#include "jitunwind/dyn_info/registry/registry_state_p.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/trace/counters.h"
#include "tests/support/command.h"
#include "tests/support/jit_frame.h"
#include "tests/targets/target_plugin.h"
#include "tests/targets/target_programs.h"

extern "C" jit_descriptor __jit_debug_descriptor;

namespace jitunwind::test {
namespace {

/// Returns the frames of every thread by an engine that keeps no rows.
std::vector<SeenStack> stacks_without_kept_rows(const Target& target) {
  AddressSpace space = target.space();
  space.row_cache = nullptr;
  std::vector<SeenStack> stacks;
  for (const TargetThread& thread : target.threads())
    stacks.push_back(seen(Walk(Cursor(space, target.registers(thread).value(), Cursor::Top::interrupted))));
  return stacks;
}

std::vector<SeenStack> stacks_of(const Target& target) {
  std::vector<SeenStack> stacks;
  for (const TargetThread& thread : target.threads()) stacks.push_back(seen(target.walk(thread)));
  return stacks;
}

bool is_true(const Result<bool>& result) { return result && *result; }

/// Returns all registers of all frames.
std::vector<std::vector<std::uint64_t>> registers_of(const AddressSpace& space, const Target& target) {
  std::vector<std::vector<std::uint64_t>> frames;
  for (const TargetThread& thread : target.threads()) {
    Cursor cursor(space, target.registers(thread).value(), Cursor::Top::interrupted);
    do {
      frames.emplace_back();
      for (const RegisterInfo& reg : space.arch.registers)
        frames.back().push_back(reg.column >= 0 ? cursor.registers().get(reg.column).value_or(0xbad) : 0);
    } while (is_true(cursor.step()));
  }
  return frames;
}

void expect_the_walks_without_kept_rows(const Target& target) {
  const auto expected = stacks_without_kept_rows(target);
  AddressSpace plain = target.space();
  plain.row_cache = nullptr;
  const auto registers = registers_of(plain, target);
  // Walks twice and once more until all possible rows are kept: an address is kept when it is met for the second time.
  for (int i = 0; i < 3; ++i) {
    const auto stacks = stacks_of(target);
    ASSERT_EQ(stacks.size(), expected.size());
    for (std::size_t thread = 0; thread < stacks.size(); ++thread) {
      EXPECT_EQ(stacks[thread].frames, expected[thread].frames);
      EXPECT_EQ(stacks[thread].why, expected[thread].why);
    }
    EXPECT_EQ(registers_of(target.space(), target), registers);
  }
}

/// The last frame of each thread counts as well, although no compact row can express it.
void expect_rows_to_be_known(const Target& target) {
  const std::uint64_t made = counted(Counter::row_made);
  (void)registers_of(target.space(), target);
  EXPECT_EQ(counted(Counter::row_made), made);
}

class KeptRowsOfEveryProgram : public testing::TestWithParam<const char*> {};

TEST_P(KeptRowsOfEveryProgram, LeadWhereNewOnesLead) {
  const TargetProgram program(GetParam());
  auto target = Target::attach(program.process());
  ASSERT_TRUE(target) << target.error().text();
  ASSERT_NE(target->space().row_cache, nullptr);
  expect_the_walks_without_kept_rows(*target);
  expect_as_the_program_says(*target, program);
  expect_rows_to_be_known(*target);
}

INSTANTIATE_TEST_SUITE_P(Kinds, KeptRowsOfEveryProgram, testing::Values(TARGET_PROGRAMS));

TEST(KeptRowsOfATarget, StayWhileItRunsAfterItWasCopied) {
  const TargetProgram program(TARGET_PROGRAM);
  auto target = Target::attach(program.process(), Target::Hold::to_copy);
  ASSERT_TRUE(target) << target.error().text();
  expect_the_walks_without_kept_rows(*target);
  const auto renewed = target->renew();
  ASSERT_TRUE(renewed) << renewed.error().text();
  expect_rows_to_be_known(*target);
  expect_the_walks_without_kept_rows(*target);
}

/// A child of this process that does what it is told, step by step.
class Child {
 public:
  /// `run` calls stand() at the end of each step.
  explicit Child(const std::function<void(const Child&)>& run) {
    if (::pipe(go_) != 0 || ::pipe(stands_) != 0) std::abort();
    process_ = ::fork();
    if (process_ == 0) {
      die_with_the_test();
      run(*this);
      ::_exit(0);
    }
    ::close(std::exchange(stands_[1], -1));  // so that the end of a child ends a wait for it
    wait();
  }
  ~Child() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    for (const int pipe_end : {go_[0], go_[1], stands_[0]}) ::close(pipe_end);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t process() const { return process_; }
  /// The child calls this to wait for its next step.
  void stand() const {
    char byte = 0;
    (void)!::write(stands_[1], &byte, 1);
    (void)!::read(go_[0], &byte, 1);
  }
  /// The parent calls this to let the child do one more step. The child must not be stopped.
  void go_on() const {
    char byte = 0;
    (void)!::write(go_[1], &byte, 1);
    wait();
  }

 private:
  void wait() const {
    char byte = 0;
    EXPECT_EQ(::read(stands_[0], &byte, 1), 1) << "the child has ended";
    EXPECT_TRUE(waits_in(process_, {SYS_read}));
  }

  int go_[2]{};
  int stands_[2]{};
  pid_t process_ = 0;
};

/// Lets a child do one more step and returns its stack afterwards.
SeenStack next_stack(const Child& child, Target& target) {
  target.let_go();
  child.go_on();
  const auto renewed = target.renew();
  EXPECT_TRUE(renewed) << renewed.error().text();
  expect_the_walks_without_kept_rows(target);
  return stacks_of(target).at(0);
}

std::string origin_of(const SeenStack& stack, const std::string& name) {
  for (const SeenFrame& frame : stack.frames)
    if (frame.name == name) return frame.origin;
  return "no such frame";
}

/// A frame whose description is replaced again and again while it stands.
class DescribedAgain {
 public:
  explicit DescribedAgain(const Child& child) : child_(child) {}
  void run() {
    frame_(
        [](void* self) -> void* {
          static_cast<DescribedAgain*>(self)->describe_again_and_again();
          return nullptr;
        },
        this);
  }

 private:
  void describe_again_and_again() {
    child_.stand();
    (void)frame_.registration().cancel();
    child_.stand();
    for (int i = 0; i < 2; ++i) {
      auto ends = x86_64::describe("ends_here");
      ends.row_at(0, "cfa=rsp+8 ra=undefined");
      stand_with(ends);
      stand_with(JitFrame::described());
    }
  }
  template <class Builder>
  void stand_with(const Builder& builder) {
    const auto description = builder.build();
    auto registered = register_code(*description, reinterpret_cast<void*>(frame_.start()), frame_.size());
    if (!registered) ::_exit(3);
    child_.stand();
    (void)registered->cancel();
  }

  const Child& child_;
  JitFrame frame_;
};
void describe_again_and_again(const Child& child) { DescribedAgain(child).run(); }

TEST(KeptRowsOfATarget, AreOfWhatIsRegisteredNow) {
  const Child child(describe_again_and_again);
  auto target = Target::attach(child.process());
  ASSERT_TRUE(target) << target.error().text();
  expect_the_walks_without_kept_rows(*target);
  EXPECT_EQ(origin_of(stacks_of(*target).at(0), "jit_frame"), "dyn_directives");
  EXPECT_EQ(origin_of(next_stack(child, *target), "jit_frame"), "no such frame") << "it was cancelled";
  for (int i = 0; i < 2; ++i) {
    const SeenStack ended = next_stack(child, *target);
    EXPECT_EQ(ended.frames.back().name, "ends_here");
    const SeenStack whole = next_stack(child, *target);
    EXPECT_EQ(origin_of(whole, "jit_frame"), "dyn_directives");
    EXPECT_GT(whole.frames.size(), ended.frames.size());
  }
}

/// The process is let go before it is walked: rows are those of the moment when it stood still.
TEST(KeptRowsOfATarget, AreOfTheMomentThatWasCopied) {
  const Child child(describe_again_and_again);
  auto target = Target::attach(child.process(), Target::Hold::to_copy);
  ASSERT_TRUE(target) << target.error().text();
  expect_the_walks_without_kept_rows(*target);
  const auto kept = stacks_of(*target);
  child.go_on();
  // The list has changed since, so a walk either ends there or does not need it; no frame is wrong.
  for (const SeenStack& stack : stacks_of(*target)) {
    EXPECT_LE(stack.frames.size(), kept.at(0).frames.size());
    EXPECT_TRUE(std::equal(stack.frames.begin(), stack.frames.end(), kept.at(0).frames.begin(),
                           [](const SeenFrame& a, const SeenFrame& b) { return a.pc == b.pc && a.sp == b.sp; }));
  }
  ASSERT_TRUE(target->renew());
  expect_the_walks_without_kept_rows(*target);
}

/// Procedures that come and go beside another procedure's frame.
class ManyBeside {
 public:
  explicit ManyBeside(const Child& child) : child_(child) {}
  void run() {
    frame_(
        [](void* self) -> void* {
          static_cast<ManyBeside*>(self)->change_others();
          return nullptr;
        },
        this);
  }

 private:
  static constexpr Addr k_code = 0x6000'0000, k_size = 64;

  void add(std::size_t procedures) {
    for (; procedures != 0; --procedures) {
      auto registered = register_code(*description_, reinterpret_cast<void*>(k_code + next_++ * k_size), k_size);
      if (!registered) ::_exit(3);
      others_.push_back(std::move(*registered));
    }
  }
  void cancel(std::size_t first, std::size_t behind) {
    for (; first != behind; ++first) (void)others_[first].cancel();
  }
  /// All calls stand at one place, so that no frame is new.
  void change_others() {
    for (int step = 0; step < 7; ++step) {
      if (step == 0) add(3000);
      if (step == 1) cancel(17, 18), add(100);
      if (step == 2) cancel(1000, 1100);
      if (step == 3) procedure_list_head().generation += 1;  // as it is in the middle of a change
      if (step == 4) procedure_list_head().generation -= 1, add(10);
      if (step == 5) add(1000);
      if (step == 6) (void)frame_.registration().cancel(), add(10);
      child_.stand();
    }
  }

  const Child& child_;
  JitFrame frame_;
  Result<Description, BuildError> description_ = JitFrame::described().build();
  std::vector<Registration> others_;
  Addr next_ = 0;
};

TEST(KeptRowsOfATarget, StayWhileOthersAreRegisteredAndCancelled) {
  const Child child([](const Child& self) { ManyBeside(self).run(); });
  auto target = Target::attach(child.process());
  ASSERT_TRUE(target) << target.error().text();
  expect_the_walks_without_kept_rows(*target);
  const auto next = [&] {
    target->let_go();
    child.go_on();
    const auto renewed = target->renew();
    EXPECT_TRUE(renewed) << renewed.error().text();
  };
  for (int i = 0; i < 2; ++i) {
    next();
    expect_rows_to_be_known(*target);
    expect_the_walks_without_kept_rows(*target);
    EXPECT_EQ(origin_of(stacks_of(*target).at(0), "jit_frame"), "dyn_directives");
  }
  next();  // in the middle of a change: nothing is known of this moment, and what was known before is not forgotten
  expect_the_walks_without_kept_rows(*target);
  next();
  expect_rows_to_be_known(*target);
  expect_the_walks_without_kept_rows(*target);
  next();  // more changes than the target keeps: all is read again
  expect_the_walks_without_kept_rows(*target);
  EXPECT_EQ(origin_of(stacks_of(*target).at(0), "jit_frame"), "dyn_directives");
  next();
  expect_the_walks_without_kept_rows(*target);
  EXPECT_EQ(origin_of(stacks_of(*target).at(0), "jit_frame"), "no such frame") << "it was cancelled";
}

/// Code that is registered after a process was let go is learned at the next stop, whatever was asked meanwhile.
TEST(KeptRowsOfATarget, StayWhenTheListHasChangedUnderAWalk) {
  const Child child([](const Child& self) { ManyBeside(self).run(); });
  auto target = Target::attach(child.process(), Target::Hold::to_copy);
  ASSERT_TRUE(target) << target.error().text();
  child.go_on();
  ASSERT_TRUE(target->renew());
  expect_the_walks_without_kept_rows(*target);
  target->let_go();
  child.go_on();
  const SeenStack stack = stacks_without_kept_rows(*target).at(0);
  EXPECT_NE(stack.why.find("has changed since the target was let go"), stack.why.npos) << stack.why;
  ASSERT_TRUE(target->renew());
  expect_rows_to_be_known(*target);
  expect_the_walks_without_kept_rows(*target);
}

/// The memory of a file of GDB's list holds another file of the same size by now, whether it was asked about before or
/// not; the entry is unchanged.
class FileInPlace {
 public:
  explicit FileInPlace(const Child& child) : child_(child) {}
  void run() {
    put_into_list();
    call(first_);
    call(second_);
  }
  /// Stands while no memory can be executed, as PHP does while it compiles.
  void run_without_execute_right() {
    put_into_list();
    first_(&stand_without_execute_right, this);
  }

 private:
  /// The frame's code calls this. It is no lambda, which would be called by a function of its own where nothing is
  /// inlined.
  static void* stand_without_execute_right(void* self) {
    const auto page = reinterpret_cast<void*>(page_of(reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))));
    if (::mprotect(page, k_page_size, PROT_READ) != 0) ::_exit(3);
    static_cast<FileInPlace*>(self)->child_.stand();
    if (::mprotect(page, k_page_size, PROT_READ | PROT_EXEC) != 0) ::_exit(3);
    return nullptr;
  }
  void put_into_list() {
    if (!attach_gdb()) ::_exit(3);
    for (const jit_code_entry* made = __jit_debug_descriptor.first_entry; made; made = made->next_entry)
      files_.emplace_back(reinterpret_cast<const char*>(made->symfile_addr), made->symfile_size);
    (void)detach_gdb();
    for (JitFrame* const frame : {&first_, &second_}) (void)frame->registration().cancel();
    entries_.resize(files_.size());
    for (std::size_t i = 0; i < files_.size(); ++i) {
      entries_[i].symfile_addr = reinterpret_cast<const std::byte*>(files_[i].data());
      entries_[i].symfile_size = files_[i].size();
      entries_[i].next_entry = std::exchange(__jit_debug_descriptor.first_entry, &entries_[i]);
    }
  }
  void call(const JitFrame& frame) {
    frame(
        [](void* self) -> void* {
          static_cast<FileInPlace*>(self)->stand_with_both_names();
          return nullptr;
        },
        this);
  }
  void stand_with_both_names() {
    for (const char* const name : {"jit_frame", "jit_other", "jit_third"}) {
      for (std::string& file : files_)
        for (std::size_t at; (at = file.find(name_)) != file.npos && name != name_;)
          file.replace(at, name_.size(), name);
      name_ = name;
      child_.stand();
    }
  }

  const Child& child_;
  JitFrame first_, second_;
  std::vector<std::string> files_;
  std::vector<jit_code_entry> entries_;
  std::string name_ = "jit_frame";
};

TEST(KeptRowsOfATarget, AreOfTheFileThatIsThereNow) {
  for (const Target::Hold hold : {Target::Hold::while_attached, Target::Hold::to_copy}) {
    const Child child([](const Child& self) { FileInPlace(self).run(); });
    auto target = Target::attach(child.process(), hold);
    ASSERT_TRUE(target) << target.error().text();
    expect_the_walks_without_kept_rows(*target);
    EXPECT_EQ(origin_of(stacks_of(*target).at(0), "jit_frame"), "eh_frame");
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(origin_of(next_stack(child, *target), "jit_other"), "eh_frame");
      EXPECT_EQ(origin_of(next_stack(child, *target), "jit_third"), "eh_frame");
      if (i == 0) (void)next_stack(child, *target);
    }
  }
}

TEST(KeptRowsOfATarget, AreOfCodeThatMayNotBeExecutedAtTheMoment) {
  const Child child([](const Child& self) { FileInPlace(self).run_without_execute_right(); });
  auto target = Target::attach(child.process());
  ASSERT_TRUE(target) << target.error().text();
  const SeenStack stack = stacks_of(*target).at(0);
  EXPECT_EQ(origin_of(stack, "jit_frame"), "eh_frame");
  EXPECT_EQ(stack.why, "complete");
}

/// A library is loaded at the place of another one with the same layout, whose frames have another size.
TEST(KeptRowsOfATarget, AreOfTheLibraryThatIsThereNow) {
  const Child child([](const Child& self) {
    static const Child& told = self;
    for (const char* const path : {ROOM_SMALL, ROOM_LARGE, ROOM_SMALL, ROOM_LARGE}) {
      void* const library = ::dlopen(path, RTLD_NOW);
      const auto call = reinterpret_cast<void (*)(void (*)())>(library ? ::dlsym(library, "room_call") : nullptr);
      if (!call) ::_exit(3);
      call([] { told.stand(); });
      ::dlclose(library);
    }
  });
  auto target = Target::attach(child.process());
  ASSERT_TRUE(target) << target.error().text();
  expect_the_walks_without_kept_rows(*target);
  const auto at = [](const SeenStack& stack) {
    for (const SeenFrame& frame : stack.frames)
      if (frame.name == "room_call") return frame.pc;
    return Addr{0};
  };
  const Addr first = at(stacks_of(*target).at(0));
  EXPECT_NE(first, 0u);
  bool is_there_again = false;
  for (int i = 0; i < 3; ++i) {
    const SeenStack stack = next_stack(child, *target);
    EXPECT_EQ(stack.why, "complete");
    is_there_again = is_there_again || at(stack) == first;
  }
  EXPECT_TRUE(is_there_again) << "the test would show nothing";
}

/// An address at which nothing is mapped, under sanitizers as well.
constexpr Addr k_free_page = 0x2000'0000'0000;

/// The child stands below a frame that the library describes in a list of its own. Returns the library, still loaded.
void* stand_in_library(const Child& child, const std::string& path, const PluginDescribes& how) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  using Call = void* (*)(JitFrame::Callee, const void*, const PluginDescribes&);
  const auto call = reinterpret_cast<Call>(library ? ::dlsym(library, "plugin_described_again") : nullptr);
  if (!call) ::_exit(3);
  const auto stand = [](void* told) -> void* {
    static_cast<const Child*>(told)->stand();
    return nullptr;
  };
  call(stand, &child, how);
  return library;
}

/// A list that came with a library while the target ran is found beside the one that was known.
// covers: DY51
TEST(KeptRowsOfATarget, AreOfListsThatCameLater) {
  const Child child([](const Child& self) {
    JitFrame own;
    self.stand();
    stand_in_library(self, TARGET_PLUGIN, {.page = k_free_page});
  });
  auto target = Target::attach(child.process());
  ASSERT_TRUE(target) << target.error().text();
  expect_the_walks_without_kept_rows(*target);
  EXPECT_EQ(origin_of(stacks_of(*target).at(0), "jit_frame"), "no such frame");
  const SeenStack stack = next_stack(child, *target);
  EXPECT_EQ(origin_of(stack, "jit_frame"), "dyn_directives");
  EXPECT_EQ(stack.why, "complete");
}

/// The last of a target's lists: docs/registry.md "Finding the list".
struct LastList {
  Addr head = 0;
  std::uint32_t generation = 0;
  Addr newest = 0;  ///< a descriptor
};
LastList last_list(const Target& target) {
  struct Head {
    std::uint32_t version, generation;
    Addr newest;
  } bytes{};
  LastList last;
  for (std::size_t number = 0; const Addr head = target.registered_list(number).value(); ++number) last.head = head;
  MemoryWindow window;
  const auto room = std::as_writable_bytes(std::span(&bytes, 1));
  EXPECT_EQ(target.space().memory.read(last.head, room, window), room.size());
  return {last.head, bytes.generation, bytes.newest};
}

void expect_what_is_described(const SeenStack& stack, bool as_the_end) {
  if (as_the_end) {
    EXPECT_EQ(stack.frames.back().name, "ends_here");
  } else {
    EXPECT_EQ(origin_of(stack, "jit_frame"), "dyn_directives");
    EXPECT_EQ(stack.why, "complete");
  }
}

/// A library with its own list is loaded again and again at the same place. The list is at the same address, has the
/// same number of changes, or one more or less, and describes the same code differently.
// covers: DY50 DY51
TEST(KeptRowsOfATarget, AreOfTheListThatIsThereNow) {
  constexpr int k_loads = 24;
  const auto as_the_end = [](int load) { return load % 2 != 0; };
  const auto has_one_more = [](int load) { return load / 2 % 2 != 0; };
  const Child child([&](const Child& self) {
    for (int load = 0; load < k_loads; ++load) {
      const PluginDescribes how{.page = k_free_page, .as_the_end = as_the_end(load), .one_more = has_one_more(load)};
      ::dlclose(stand_in_library(self, TARGET_PLUGIN, how));
    }
  });
  auto target = Target::attach(child.process());
  ASSERT_TRUE(target) << target.error().text();
  expect_the_walks_without_kept_rows(*target);
  expect_what_is_described(stacks_of(*target).at(0), as_the_end(0));
  LastList before = last_list(*target);
  int at_the_same_place = 0;
  for (int load = 1; load < k_loads; ++load) {
    const SeenStack stack = next_stack(child, *target);
    expect_what_is_described(stack, as_the_end(load));
    const LastList now = last_list(*target);
    EXPECT_NE(now.generation, before.generation) << "load " << load;
    if (now.head == before.head && (has_one_more(load) != has_one_more(load - 1) || now.newest == before.newest))
      ++at_the_same_place;
    before = now;
    stacks_of(*target);  // kept when it is met for the second time
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(JITUNWIND_CLANG_SANITIZER)  // which map memory of their own between
  EXPECT_EQ(at_the_same_place, k_loads - 1) << "the test would show nothing";
#endif
}

/// Here the library's list has the same generation each time, as the lists of other libraries that count from 0. The
/// place of the newest descriptor distinguishes them, whether the library is loaded from the same file or from another.
// covers: DY50 DY51
TEST(KeptRowsOfATarget, AreOfTheListWhoseNewestProcedureIsThere) {
  for (const bool same_file : {false, true}) {
    const TemporaryFolder folder;
    const std::string first = folder / "first.so", second = folder / "second.so";
    for (const std::string& path : {first, second}) std::filesystem::copy_file(TARGET_PLUGIN, path);
    const Child child([&](const Child& self) {
      for (unsigned i = 0; i < 4; ++i) {
        const bool odd = i % 2 != 0;
        const PluginDescribes how{.page = k_free_page, .as_the_end = odd, .place = odd ? 1u : 0u, .generation = 8};
        ::dlclose(stand_in_library(self, same_file || !odd ? first : second, how));
      }
    });
    auto target = Target::attach(child.process());
    ASSERT_TRUE(target) << target.error().text();
    expect_the_walks_without_kept_rows(*target);
    expect_what_is_described(stacks_of(*target).at(0), false);
    [[maybe_unused]] const LastList list = last_list(*target);
    for (int i = 1; i < 4; ++i) {
      const SeenStack stack = next_stack(child, *target);
#if !defined(__SANITIZE_ADDRESS__) && !defined(JITUNWIND_CLANG_SANITIZER)  // which map memory of their own between
      EXPECT_EQ(last_list(*target).head, list.head) << "the test would show nothing";
      EXPECT_EQ(last_list(*target).generation, list.generation) << "the test would show nothing";
#endif
      expect_what_is_described(stack, i % 2 != 0);
    }
  }
}

}  // namespace
}  // namespace jitunwind::test
