// Walks from every instruction of start files (_init, _fini, frame_dummy, ...), of stubs, and of the functions that
// these call: while a library is loaded, called and unloaded, and while a program starts and ends. Most of this code
// has no unwind information.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <string>

#include "jitunwind/sdk/target.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "tests/fallback/stepped_walks.h"
#include "tests/support/command.h"
#include "tests/targets/target_programs.h"

namespace jitunwind::test {
namespace {

struct Loading {
  Scene scene;
  AddrRange library;
};

void judge_library(void* argument) {
  Loading& loading = *static_cast<Loading*>(argument);
  const ucontext_t& at = *registry_test::EveryInstruction::interrupted();
  if (!follow(loading.scene, at)) return;
  const auto is_there = [&](Addr frame) { return loading.library.contains(frame); };
  if (std::ranges::any_of(loading.scene.truth.all(), is_there)) judge_every_way(loading.scene, at);
}

std::string stem_of(const testing::TestParamInfo<const char*>& info) {
  return std::filesystem::path(info.param).stem();
}

class CrtOfLibrary : public testing::TestWithParam<const char*> {};

// covers: LU20
TEST_P(CrtOfLibrary, HasNoWrongCallerAndNoneThatIsNotFound) {
  void* handle = ::dlopen(GetParam(), RTLD_LAZY);
  ASSERT_NE(handle, nullptr) << ::dlerror();
  Module module;
  ASSERT_TRUE(local_modules().find(addr_of(::dlsym(handle, "plt_call_all")), module));
  ::dlclose(handle);  // and is loaded in the same place again
  static Loading loading;
  loading = {{}, module.range};
  registry_test::EveryInstruction every;
  every.run(&judge_library, &loading, [&] {
    handle = ::dlopen(GetParam(), RTLD_LAZY);
    const auto call_all = reinterpret_cast<long (*)(long)>(::dlsym(handle, "plt_call_all"));
    (void)call_all(10);
    ::dlclose(handle);
  });
  EXPECT_GT(loading.scene.steps.walks(), 200u);
  expect_right(GetParam(), loading.scene, {1});
}

INSTANTIATE_TEST_SUITE_P(Linkers, CrtOfLibrary, testing::Values(CRT_LIBRARIES), &stem_of);

/// Finds functions of start files that others call, by the program's symbols.
struct Crt {
  std::vector<Addr> entries;

  /// `begin` is the address of the program's first byte.
  Crt(const std::string& program, Addr begin) {
    const Addr bias = output_of("readelf -hW " + program).find("EXEC") != std::string::npos ? 0 : begin;
    for (const std::string& line : lines_of(output_of("nm " + program))) {
      std::istringstream in(line);
      Addr at = 0;
      std::string kind, name;
      if (!(in >> std::hex >> at >> kind >> name)) continue;
      const auto called = {"_init", "_fini", "frame_dummy", "__do_global_dtors_aux"};
      if (std::ranges::find(called, name) != called.end()) entries.push_back(bias + at);
    }
  }
};

/// A program that runs up to functions of its start files, and is stepped through these.
class SteppedProgram {
 public:
  explicit SteppedProgram(const char* path) : process_(::fork()) {
    if (process_ == 0) {
      die_with_the_test();
      ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      ::execl(path, path, nullptr);
      ::_exit(127);
    }
    if (!wait()) return;
    if (auto target = Target::of_traced(process_)) target_.emplace(std::move(*target));
  }

  void run(const Crt& crt) {
    std::map<Addr, Addr> words;
    for (const Addr entry : crt.entries) words[entry] = ask(PTRACE_PEEKTEXT, entry);
    for (const auto& [entry, word] : words) tell(PTRACE_POKETEXT, entry, (word & ~Addr{0xff}) | k_breakpoint);
    while (go_on(PTRACE_CONT)) {
      const Addr entry = user(pc()) - 1;
      tell(PTRACE_POKETEXT, entry, words.at(entry));
      tell(PTRACE_POKEUSER, place_of_register(pc()), entry);
      run_through();
    }
  }
  std::optional<Target>& target() { return target_; }
  const Figures& figures() const { return figures_; }
  int status() const { return status_; }

 private:
  static constexpr Addr k_breakpoint = 0xcc;  // int3

  bool wait() {
    return ::waitpid(process_, &status_, 0) == process_ && WIFSTOPPED(status_) && WSTOPSIG(status_) == SIGTRAP;
  }
  bool go_on(__ptrace_request how) { return ::ptrace(how, process_, nullptr, nullptr) == 0 && wait(); }
  static void* pointer(Addr at) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)); }
  Addr ask(__ptrace_request what, Addr at) const {
    return static_cast<std::uintptr_t>(::ptrace(what, process_, pointer(at), nullptr));
  }
  void tell(__ptrace_request what, Addr at, Addr value) const {
    EXPECT_EQ(::ptrace(what, process_, pointer(at), pointer(value)), 0);
  }
  RegNum pc() const { return target_->arch().pc; }
  RegNum sp() const { return target_->arch().sp; }
  Addr place_of_register(RegNum reg) const { return static_cast<Addr>(target_->arch().by_dwarf(reg)->prstatus); }
  Addr user(RegNum reg) const { return ask(PTRACE_PEEKUSER, place_of_register(reg)); }

  /// Steps from a function's first instruction until it has returned.
  void run_through() {
    const Addr sp_at_entry = user(sp());
    const auto word = [this](Addr at) { return ask(PTRACE_PEEKDATA, at); };
    const Addresses outer = callers(word(sp_at_entry), sp_at_entry);
    Calls calls;
    Addresses truth;
    do {
      calls.follow(user(pc()), user(sp()), word);
      calls.list(user(pc()), outer.all(), truth);
      judge(truth.all());
    } while (go_on(PTRACE_SINGLESTEP) && user(sp()) <= sp_at_entry);
  }
  /// Returns the caller, which has unwind information, and the caller's callers.
  Addresses callers(Addr return_address, Addr sp_at_entry) {
    const Arch& arch = target_->arch();
    Addresses found;
    if (!target_->renew()) return found;
    auto registers = target_->registers(target_->threads().at(0));
    if (!registers) return found;
    registers->set(arch.column(arch.pc), return_address);
    registers->set(arch.column(arch.sp), sp_at_entry + arch.word_size);
    Cursor cursor(target_->space(), *registers, Cursor::Top::returned_to);
    const auto moves = [&] {
      const auto moved = cursor.step();
      return moved && *moved;
    };
    do found.add(cursor.pc());
    while (moves());
    EXPECT_EQ(cursor.stop_reason(), StopReason::outermost);
    return found;
  }
  void judge(std::span<const Addr> truth) {
    ASSERT_TRUE(target_->renew());
    Addresses found;
    const bool whole = walk_by_steps(target_->walk(target_->threads().at(0)), found);
    figures_.add(truth, found.all(), whole);
  }

  pid_t process_;
  int status_ = 0;
  std::optional<Target> target_;
  Figures figures_;
};

class CrtOfProgram : public testing::TestWithParam<const char*> {};

// covers: LU20
TEST_P(CrtOfProgram, HasNoWrongCallerAndNoneThatIsNotFound) {
  SteppedProgram program(GetParam());
  ASSERT_TRUE(program.target());
  const auto& mappings = program.target()->mappings().all();
  const auto first = std::ranges::find(mappings, GetParam(), &Mapping::path);
  ASSERT_NE(first, mappings.end());
  const Crt crt(GetParam(), first->range.begin);
  EXPECT_EQ(crt.entries.size(), 4u);
  program.run(crt);
  EXPECT_TRUE(WIFEXITED(program.status()) && WEXITSTATUS(program.status()) == 0);
  const Figures& figures = program.figures();
  EXPECT_GT(figures.walks(), 30u);
  EXPECT_EQ(figures.wrong, 0u) << "frame " << figures.first_wrong_frame << " of a walk from " << std::hex
                               << figures.first_wrong_at;
  EXPECT_EQ(figures.early, 0u);
  std::puts(figures.text("from outside").c_str());
}

INSTANTIATE_TEST_SUITE_P(Kinds, CrtOfProgram, testing::Values(CRT_PROGRAMS), &stem_of);

}  // namespace
}  // namespace jitunwind::test
