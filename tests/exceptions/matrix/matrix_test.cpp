// Runs every cell: {unwinder} x {C++ run-time library} x {what is done with exceptions} x {kind of frame}, and prints
// the table. Cells that cannot be are run as well, and must fail in the way that their reason says; so must the same
// without any code made at run time, which proves that the reason lies elsewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <iomanip>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/command.h"

namespace jitunwind::test {
namespace {

using namespace std::literals;

constexpr const char* k_kinds[]{"compiled", "plain", "frame_pointer", "realigned", "sp_slot", "variable"};
constexpr const char* k_kind_titles[]{"(compiled)", "no FP", "FP", "realigned", "SP slot", "alloca"};

/// One row of programs. The program must report the same about itself.
struct Linked {
  bool is_built;
  const char* program;
  const char* unwinder;   // title
  const char* library;    // title
  const char* raises_in;  // the end of the file's name; "": the program itself
  const char* catches_in;
  const char* path;
};

constexpr bool k_always = true;
constexpr bool k_not_sanitized = !MATRIX_SANITIZED;
constexpr bool k_with_libcxx = MATRIX_HAS_LIBCXX;
constexpr bool k_with_llvm = MATRIX_HAS_LLVM;
constexpr Linked k_all_programs[]{
    {k_always, "libgcc_libstdcxx", "libgcc_s", "libstdc++", "libgcc_s.so.1", "libstdc++.so.6", "interposed"},
    {k_always, "own_libstdcxx", "own", "libstdc++", "libjitunwind-eh.so.1", "libstdc++.so.6", "own runtime"},
    {k_with_llvm, "llvm_libstdcxx", "LLVM", "libstdc++", "libunwind.so.1", "libstdc++.so.6", "registered FDEs"},
    {k_not_sanitized, "static_libstdcxx", "static libgcc", "libstdc++", "", "", "interposed"},
    {k_not_sanitized, "whole_libstdcxx", "-static", "libstdc++", "", "", "interposed"},
    {k_not_sanitized, "own_whole_libstdcxx", "own -static", "libstdc++", "", "", "own runtime"},
    // Debian's -lc++ names libunwind.so.1, which is then bound before libgcc_s, unless that is named first.
    {k_with_libcxx, "libgcc_libcxx", "libgcc_s", "libc++", "libgcc_s.so.1", "libc++abi.so.1", "interposed"},
    {k_with_libcxx, "own_libcxx", "own", "libc++", "libjitunwind-eh.so.1", "libc++abi.so.1", "own runtime"},
    {k_with_libcxx && k_with_llvm, "llvm_libcxx", "LLVM", "libc++", "libunwind.so.1", "libc++abi.so.1",
     "registered FDEs"},
    {k_with_libcxx, "static_libcxx", "static libgcc", "libc++", "", "", "interposed"},
};

std::vector<Linked> programs() {
  std::vector<Linked> built;
  std::copy_if(std::begin(k_all_programs), std::end(k_all_programs), std::back_inserter(built),
               [](const Linked& linked) { return linked.is_built; });
  return built;
}

constexpr const char* k_scenarios[]{"throw_through", "catch_in_frame",  "cleanup_in_frame", "rethrow",
                                    "nested",        "foreign",         "cancel",           "exit_thread",
                                    "jump_past",     "cancel_rethrown", "uncaught",         "threads"};

bool ends_a_thread(std::string_view scenario) {
  return scenario == "cancel" || scenario == "cancel_rethrown" || scenario == "exit_thread";
}

// Impossible cells.

struct Reason {
  char mark;
  const char* text;
  /// Selects the cells that the reason is for.
  bool (*concerns)(const Linked& linked, std::string_view scenario);
  const char* says;  // part of the output
};
constexpr Reason k_impossible[]{
    {'1',
     "glibc ends threads by libgcc_s, which it loads itself; personality routines then ask LLVM's libunwind about\n"
     "    contexts of libgcc_s. Killed by a signal, without code made at run time as well.",
     [](const Linked& linked, std::string_view scenario) {
       return linked.unwinder == "LLVM"sv && ends_a_thread(scenario);
     },
     ""},
    {'2',
     "libc++abi throws anew what `throw;` finds that is not its own, and nobody catches that: a cancelled thread must\n"
     "    not come through `catch (...) { throw; }`, whatever is below.",
     [](const Linked& linked, std::string_view scenario) {
       return linked.library == "libc++"sv && linked.unwinder != "LLVM"sv && scenario == "cancel_rethrown";
     },
     "uncaught foreign exception"},
};

/// The cell works only after the program has thrown once. If it was tried without a throw, it must have aborted.
constexpr Reason k_after_a_throw{
    '3',
    "run after a throw: in a static libgcc that has not thrown yet _Unwind_SetGR() aborts, when libgcc_s, which glibc\n"
    "    ends threads by, has a landing pad entered. So without code made at run time.",
    [](const Linked& linked, std::string_view scenario) {
      return linked.unwinder == "static libgcc"sv && ends_a_thread(scenario);
    },
    ""};

const Reason* why_impossible(const Linked& linked, std::string_view scenario) {
  for (const Reason& reason : k_impossible)
    if (reason.concerns(linked, scenario)) return &reason;
  return nullptr;
}

// Running a cell.

struct Cell {
  const Linked& linked;
  const char* scenario;
  const char* kind;
};

std::string path_of(const Linked& linked) { return MATRIX_PROGRAMS + std::string(linked.program); }

Ended run_cell(const Cell& cell, const char* more = "") {
  const std::string no_reports = "handle_segv=0:handle_abort=0";
  return run("ulimit -c 0; ASAN_OPTIONS=" + no_reports + " TSAN_OPTIONS=" + no_reports + " timeout 60 " +
             path_of(cell.linked) + " " + cell.scenario + " " + cell.kind + " " + more);
}

std::string name_of(const Cell& cell) {
  return std::string(cell.linked.program) + ", " + cell.scenario + ", " + cell.kind;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// Checks that the program reports the linking that the table has.
bool is_linked_so(const Cell& cell, const Ended& ended) {
  const auto lines = lines_of(ended.text);
  if (lines.size() < 4) return false;
  const auto file = [&](const char* name) {
    // A static program knows no file.
    return *name != '\0'                                ? "/" + std::string(name)
           : ends_with(cell.linked.unwinder, "-static") ? ": ?"
                                                        : path_of(cell.linked);
  };
  const std::string raises_in = file(cell.linked.raises_in);
  // Sanitizers have an _Unwind_RaiseException of their own, which calls the next.
  return (MATRIX_SANITIZED || ends_with(lines[0], raises_in)) && ends_with(lines[1], raises_in) &&
         ends_with(lines[2], file(cell.linked.catches_in)) && lines[3] == "path: "s + cell.linked.path;
}

bool is_good(const Ended& ended) { return ended.status == 0 && ends_with(ended.text, "\nok\n"); }

/// Checks that a signal killed the program after it had printed the reason.
bool was_killed(const Ended& ended, const Reason& reason) {
  return ended.status > 128 && ended.text.find(reason.says) != std::string::npos && !is_good(ended);
}

/// Returns the table's text for a cell.
std::string judge(const Cell& cell) {
  const bool after_a_throw = k_after_a_throw.concerns(cell.linked, cell.scenario);
  const Ended ended = run_cell(cell, after_a_throw ? "after-a-throw" : "");
  if (!is_linked_so(cell, ended)) {
    ADD_FAILURE() << name_of(cell) << " is linked with something else:\n" << ended.text;
    return "WRONG";
  }
  if (after_a_throw) {
    EXPECT_TRUE(was_killed(run_cell(cell), k_after_a_throw)) << name_of(cell) << " needs no throw before";
  }
  const Reason* const impossible = why_impossible(cell.linked, cell.scenario);
  if (impossible != nullptr) {
    const bool killed = was_killed(ended, *impossible);
    EXPECT_TRUE(killed) << name_of(cell) << ", reason " << impossible->mark << ":\n" << ended.text;
    return killed ? std::string("no ") + impossible->mark : "WRONG";
  }
  EXPECT_TRUE(is_good(ended)) << name_of(cell) << ":\n" << ended.text << "status " << ended.status;
  if (!is_good(ended)) return "WRONG";
  return after_a_throw ? std::string("ok ") + k_after_a_throw.mark : "ok";
}

// covers: EX14 EX01 EX02 EX03 EX04 EX05
TEST(Matrix, EveryCell) {
  std::ostringstream table;
  const auto begin_line = [&](const char* unwinder, const char* library, const char* scenario) {
    table << std::left << std::setw(14) << unwinder << std::setw(10) << library << std::setw(17) << scenario;
  };
  begin_line("unwinder", "C++", "");
  for (const char* title : k_kind_titles) table << std::setw(11) << title;
  for (const Linked& linked : programs()) {
    for (const char* scenario : k_scenarios) {
      table << '\n';
      begin_line(linked.unwinder, linked.library, scenario);
      for (const char* kind : k_kinds) table << std::setw(11) << judge({linked, scenario, kind});
    }
  }
  for (const Reason& reason : k_impossible) table << "\nno " << reason.mark << ": " << reason.text;
  table << "\nok " << k_after_a_throw.mark << ": " << k_after_a_throw.text << '\n';
  table << "Registers: rbx, rbp, r12 to r15, SP, and the control words of MXCSR and x87. Vector registers: x86-64 has\n"
           "    none that calls preserve (AMD64 ABI, figure 3.4); AArch64's: vector_registers_test.cpp.\n";
  std::fputs(table.str().c_str(), stdout);
}

TEST(Matrix, EveryScenarioIsInIt) {
  std::vector<std::string> expected(std::begin(k_scenarios), std::end(k_scenarios));
  for (const Linked& linked : programs()) {
    auto all = lines_of(output_of(path_of(linked)));
    std::sort(all.begin(), all.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(all, expected) << linked.program;
  }
}

}  // namespace
}  // namespace jitunwind::test
