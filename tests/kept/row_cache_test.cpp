// Kept rows are forgotten when their source changes: registered, cancelled, retired, replaced and aliased code; modules
// that come and go.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/sources/guesses/unknown_code_internal.h"
#include "jitunwind/unwind_core/sources/sources.h"
#include "jitunwind/unwind_core/trace/counters.h"
#include "jitunwind/unwind_core/walk/address_walk_internal.h"
#include "jitunwind/unwind_core/walk/context.h"
#include "jitunwind/unwind_core/walk/cursor.h"
#include "tests/rows/row_case.h"
#include "tests/support/host_row.h"

namespace jitunwind::test {
namespace {

using rows::CaseProcedure;
using rows::CaseRegion;
using rows::k_code;

const Arch& k_arch = *host_arch();

std::vector<unw_dyn_op_t> ops(std::initializer_list<std::string> texts) {
  std::vector<unw_dyn_op_t> made;
  for (const std::string& text : texts) made.push_back(rows::parse_directive(text.c_str(), k_arch));
  return made;
}

/// Directives of a frame with that many words below its return address.
std::vector<unw_dyn_op_t> frame_of(int words) {
  const std::string sp = k_arch.by_dwarf(k_arch.sp)->name;
  if (k_arch.ra_in_memory) return ops({"ADD " + sp + "," + std::to_string(-8 * words)});
  const std::string ra = k_arch.by_dwarf(k_arch.ra)->name;
  return ops(
      {"ADD " + sp + "," + std::to_string(-8 * words - 8), "SPILL_SP_REL " + ra + "," + std::to_string(8 * words)});
}

/// A procedure at k_code whose frame has `words` words below the return address at every instruction.
class Frame {
 public:
  explicit Frame(int words, Addr at = k_code, Addr size = 16)
      : procedure_({{0, frame_of(words), 0, -1}}, {at, at + size}), info_(procedure_.info()) {}
  unw_dyn_info_t* info() { return &info_; }

 private:
  CaseProcedure procedure_;
  unw_dyn_info_t info_;
};

using Words = std::optional<std::uint64_t>;

/// A stack whose word i holds the i-th address of some code: callers that a walk believes in.
class NumberedStack {
 public:
  NumberedStack() {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] = code_ + i;
  }
  /// Returns how many words below its return address the frame at `pc` has, by one step of a cursor; nothing if it
  /// cannot step. If `may_be_leaf` is set, the return address of a leaf is also given in its register, on CPUs that
  /// have one.
  Words words_of(Addr pc, bool may_be_leaf = false) const {
    RegisterFile registers;
    registers.set(k_arch.column(k_arch.pc), pc);
    registers.set(k_arch.column(k_arch.sp), reinterpret_cast<std::uintptr_t>(&words_[1]));
    if (!k_arch.ra_in_memory && may_be_leaf) registers.set(k_arch.column(k_arch.ra), code_ + 1);
    Cursor cursor(local_space(), registers, Cursor::Top::interrupted);
    const auto moved = cursor.step();
    if (!moved || !*moved) return std::nullopt;
    return cursor.pc() - code_ - 1;
  }
  /// Does the same by a walk of addresses. Precondition: calls push.
  Words words_of_walk(Addr pc) const {
    std::array<void*, 1> caller{};
    const WalkStart start{CodeAddress::interrupted(pc), reinterpret_cast<std::uintptr_t>(&words_[1])};
    if (walk_addresses(local_space(), start, WalkPart::callers, caller) == 0) return std::nullopt;
    return reinterpret_cast<std::uintptr_t>(caller[0]) - code_ - 1;
  }

 private:
  const Addr code_ = reinterpret_cast<std::uintptr_t>(&ops);
  std::array<std::uint64_t, 64> words_;
};

// covers: CA08
TEST(RowCache, ForgetsWhatIsCancelledAndFindsWhatReplacesIt) {
  const NumberedStack stack;
  const std::uint64_t before = registration_changes().number(k_code);
  for (int words = 0; words < 8; ++words) {
    Frame frame(words);
    ASSERT_TRUE(register_procedure(frame.info()));
    for (int time = 0; time < 3; ++time) EXPECT_EQ(stack.words_of(k_code + 8), Words(words));
    ASSERT_TRUE(cancel_procedure(frame.info()));
    EXPECT_EQ(stack.words_of(k_code + 8), Words());
  }
  EXPECT_NE(registration_changes().number(k_code), before);
}

TEST(RowCache, FollowsNewerProceduresOverOlderOnes) {
  const NumberedStack stack;
  Frame older(3), newer(5);
  ASSERT_TRUE(register_procedure(older.info()));
  EXPECT_EQ(stack.words_of(k_code), Words(3));
  EXPECT_EQ(stack.words_of(k_code), Words(3));
  ASSERT_TRUE(register_procedure(newer.info()));
  EXPECT_EQ(stack.words_of(k_code), Words(5));
  EXPECT_EQ(stack.words_of(k_code), Words(5));
  const auto ticket = retire_procedures(std::array{newer.info()});
  ASSERT_TRUE(ticket);
  EXPECT_EQ(stack.words_of(k_code), Words(3));
  EXPECT_TRUE(reclaimed(*ticket));
  ASSERT_TRUE(cancel_procedures(std::array{older.info()}));
  EXPECT_EQ(stack.words_of(k_code), Words());
}

// The procedure is larger than the 64 pages that are counted one by one.
TEST(RowCache, FollowsProceduresOfAnySize) {
  const NumberedStack stack;
  Frame small(3, k_code + 0x80000);
  ASSERT_TRUE(register_procedure(small.info()));
  EXPECT_EQ(stack.words_of(k_code + 0x80000), Words(3));
  for (const Addr size : {Addr{0x3f000}, Addr{0x40000}, Addr{0x10000000}}) {
    Frame large(6);
    large.info()->start_ip = k_code + 0x80008 - size;
    large.info()->end_ip = k_code + 0x80008;
    ASSERT_TRUE(register_procedure(large.info()));
    EXPECT_EQ(stack.words_of(k_code + 0x80000), Words(6)) << size;
    ASSERT_TRUE(cancel_procedure(large.info()));
    EXPECT_EQ(stack.words_of(k_code + 0x80000), Words(3)) << size;
  }
  ASSERT_TRUE(cancel_procedure(small.info()));
}

// Pointers in tables are relative to a global pointer: rows are made with it but do not depend on it.
TEST(RowCache, KeepsRowsOfProceduresWithAGlobalPointer) {
  const NumberedStack stack;
  for (const Addr gp : {Addr{0}, Addr{0x1234'5678}}) {
    Frame frame(3);
    frame.info()->gp = gp;
    ASSERT_TRUE(register_procedure(frame.info()));
    for (int time = 0; time < 2; ++time) EXPECT_EQ(stack.words_of(k_code + 8), Words(3));
    const std::uint64_t made = counted(Counter::row_made), of_more = counted(Counter::row_of_more);
    EXPECT_EQ(stack.words_of(k_code + 8), Words(3));
    EXPECT_EQ(counted(Counter::row_made), made) << gp;
    EXPECT_EQ(counted(Counter::row_of_more), of_more) << gp;
    ASSERT_TRUE(cancel_procedure(frame.info()));
    EXPECT_EQ(stack.words_of(k_code + 8), Words());
  }
}

TEST(RowCache, FollowsTheTargetsOfAliases) {
  const NumberedStack stack;
  constexpr Addr k_elsewhere = k_code + 0x123000;
  const CaseProcedure clone({{16 / k_arch.unit, ops({"ALIAS " + std::to_string(k_elsewhere)}), 0, -1}},
                            {k_code, k_code + 16});
  unw_dyn_info_t clone_info = clone.info();
  ASSERT_TRUE(register_procedure(&clone_info));
  for (const int words : {2, 4}) {
    Frame target(words, k_elsewhere);
    ASSERT_TRUE(register_procedure(target.info()));
    EXPECT_EQ(stack.words_of(k_code), Words(words));
    EXPECT_EQ(stack.words_of(k_code), Words(words));
    ASSERT_TRUE(cancel_procedure(target.info()));
  }
  ASSERT_TRUE(cancel_procedure(&clone_info));
}

int static_code(int n) { return n + 1; }

TEST(RowCache, SeesStaticCodeDescribedAnew) {
  const NumberedStack stack;
  const Addr pc = reinterpret_cast<std::uintptr_t>(&static_code);
  EXPECT_EQ(stack.words_of(pc, true), Words(0));
  EXPECT_EQ(stack.words_of(pc, true), Words(0));
  Frame over(4, pc);
  ASSERT_TRUE(register_procedure(over.info()));
  EXPECT_EQ(stack.words_of(pc, true), Words(4));
  ASSERT_TRUE(cancel_procedure(over.info()));
  EXPECT_EQ(stack.words_of(pc, true), Words(0));
}

template <int k_number>
int static_code_of(int n) {
  return n + k_number;
}

/// A walk from new static code, which is described anew and then no more. Walks ask the tables of modules alone where
/// nothing was ever registered.
void expect_described_anew(int (*code)(int), Addr size) {
  if (!k_arch.calls_push()) return;  // such walks begin with a frame record there
  const NumberedStack stack;
  const Addr pc = reinterpret_cast<std::uintptr_t>(code);
  EXPECT_EQ(stack.words_of_walk(reinterpret_cast<std::uintptr_t>(&static_code_of<0>)), Words(0));
  Frame over(4, pc, size);
  ASSERT_TRUE(register_procedure(over.info()));
  EXPECT_EQ(stack.words_of_walk(pc), Words(4));
  ASSERT_TRUE(cancel_procedure(over.info()));
  EXPECT_EQ(stack.words_of_walk(pc), Words(0));
}

TEST(RowCache, WalksSeeNewCodeDescribedAnew) { expect_described_anew(&static_code_of<1>, 16); }
// Changes of more than 2 MiB count for all code (code_changes_internal.h), of which no part has a note then.
TEST(RowCache, WalksSeeNewCodeDescribedAnewWithMuchElse) { expect_described_anew(&static_code_of<2>, Addr{4} << 20); }

// Two libraries have one layout, and the second is loaded at the place of the first.
// covers: CA07
TEST(RowCache, TellsModulesThatFollowEachOther) {
  std::array<Addr, 2> begin{};
  std::array<std::uint64_t, 2> version{};
  const std::array paths{PLUGIN_FOLDER "/plugin_bfd.so", PLUGIN_FOLDER "/plugin_second.so"};
  for (std::size_t i = 0; i < paths.size(); ++i) {
    void* const handle = ::dlopen(paths[i], RTLD_NOW);
    ASSERT_NE(handle, nullptr) << ::dlerror();
    const Addr inside = reinterpret_cast<std::uintptr_t>(::dlsym(handle, "plugin_entry_address"));
    ModuleVersion module;
    ASSERT_TRUE(find_module_version(inside, module));
    EXPECT_TRUE(module.range.contains(inside));
    EXPECT_NE(module.version, 0u);
    ModuleVersion again;
    ASSERT_TRUE(find_module_version(inside + 1, again));
    EXPECT_EQ(again.version, module.version);
    begin[i] = module.range.begin;
    version[i] = module.version;
    ::dlclose(handle);
    EXPECT_FALSE(find_module_version(inside, module));
  }
  EXPECT_NE(version[0], version[1]);
  EXPECT_EQ(begin[0], begin[1]) << "not the case that this test is about";
}

struct CountedModules final : ModuleVersions {
  mutable int asked = 0;
  bool find(Addr at, ModuleVersion& out) const noexcept override { return ++asked, find_module_version(at, out); }
};
/// A cache of its own, over the modules of this process.
struct Rows {
  CountedModules modules;
  std::unique_ptr<KeptRules> rules = std::make_unique<KeptRules>();
  RowCache cache{CompactLayout(k_arch), registration_changes(), modules, *rules};

  /// Keeps a row that a function of the module may have.
  void keep(const KeepTicket& ticket, KeptBy by, const ModuleVersion& module) const {
    CompactRow row;
    ExpressionPool pool;
    EXPECT_TRUE(compact(parse_row(host_row("cfa=SP+16 FP=[cfa-16] ra=[cfa-8]"), k_arch, pool)->row, cache.layout, row));
    row.cfa_words = 7;
    (void)cache.keep(ticket, cache.rule_of(row, RowOrigin::eh_frame, by), &row, module);
  }
  /// Returns how many words the frame at `at` has; none: that is not known.
  Words words_of(Addr at, ModuleVersion& walked, KeepTicket& ticket) const {
    RulePlace place;
    KeptRow row;
    return cache.find(at, walked, place, row, ticket) ? Words(row.row.cfa_words) : std::nullopt;
  }
};

// Each _Unwind_Resume() is the first step of a walk.
TEST(RowCache, FindsWhatIsKeptOfLastingModulesWithoutAskingForThem) {
  const Rows rows;
  const Addr pc = reinterpret_cast<std::uintptr_t>(&static_code);
  ModuleVersion module;
  ASSERT_TRUE(find_module_version(pc, module));
  EXPECT_TRUE(module.is_lasting && module.range.contains(pc));
  ModuleVersion walked;
  KeepTicket ticket;
  EXPECT_EQ(rows.words_of(pc, walked, ticket), Words());
  rows.keep(ticket, KeptBy::lasting, {});
  for (ModuleVersion met : {ModuleVersion{}, module}) EXPECT_EQ(rows.words_of(pc, met, ticket), Words(7));
  EXPECT_EQ(rows.modules.asked, 0);
}

// covers: CA07
TEST(RowCache, AsksForModulesThatMayBeUnloaded) {
  const Rows rows;
  void* const handle = ::dlopen(PLUGIN_FOLDER "/plugin_bfd.so", RTLD_NOW);
  ASSERT_NE(handle, nullptr) << ::dlerror();
  const Addr inside = reinterpret_cast<std::uintptr_t>(::dlsym(handle, "plugin_entry_address"));
  ModuleVersion module;
  ASSERT_TRUE(find_module_version(inside, module));
  EXPECT_FALSE(module.is_lasting);
  ModuleVersion unused;
  KeepTicket ticket;
  EXPECT_EQ(rows.words_of(inside, unused, ticket), Words());
  rows.keep(ticket, KeptBy::module, module);
  for (int walk = 1; walk <= 3; ++walk) {
    ModuleVersion walked;
    EXPECT_EQ(rows.words_of(inside, walked, ticket), Words(7));
    EXPECT_EQ(rows.words_of(inside, walked, ticket), Words(7));
    EXPECT_EQ(rows.modules.asked, walk) << "once a walk";
  }
  ModuleVersion other = module;
  ++other.version;
  EXPECT_EQ(rows.words_of(inside, other, ticket), Words());
  ::dlclose(handle);
}

struct CountingSource final : RowSource {
  mutable int asked = 0;
  Found find_row(Lookup&, FrameRow&) const noexcept override { return ++asked, false; }
};

// covers: CA07
TEST(RowCache, AsksOnceAboutCodeThatNoSourceKnows) {
  const Rows rows;
  const CountingSource source;
  const RowSource* const sources[] = {&source};
  const AddressSpace plain{k_arch, local_space().memory, local_space().modules, sources, {}};
  const auto table = std::make_unique<UnknownCode::Table>();
  const UnknownCode unknown(*table);
  RowCache cache = rows.cache;
  cache.unknown = &unknown;
  AddressSpace space{k_arch, plain.memory, plain.modules, sources, {}, &cache};
  const auto times_asked = [&source](const AddressSpace& in) {
    const int before = source.asked;
    MemoryWindow window;
    FrameRow row;
    Lookup lookup(in, CodeAddress::interrupted(k_code), window);
    EXPECT_FALSE(*in.find_row(lookup, row));
    EXPECT_EQ(lookup.unknown != nullptr, in.row_cache != nullptr);
    return source.asked - before;
  };
  const auto is_noted = [&] {  // unless a moment ends just now
    for (int i = 0; i < 3; ++i)
      if (times_asked(space) == 0) return true;
    return false;
  };
  EXPECT_EQ(times_asked(plain), 1);
  EXPECT_EQ(times_asked(space), 2) << "the note is made of an answer after its version";
  EXPECT_TRUE(is_noted());
  {
    Frame frame(3);
    ASSERT_TRUE(register_procedure(frame.info()));
    EXPECT_EQ(times_asked(space), 2) << "something was registered there";
    ASSERT_TRUE(cancel_procedure(frame.info()));
  }
  EXPECT_EQ(times_asked(space), 2);
  EXPECT_TRUE(is_noted());
  space.row_cache = nullptr;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(times_asked(space), 1) << "nothing is kept";
}

/// Asks for a row of either form.
RowAnswer ask_any(const RowSource& source, Addr at, AnyRow& out) {
  MemoryWindow window;
  Lookup lookup(local_space(), CodeAddress::interrupted(at), window);
  return source.find_any_row(lookup, out);
}

[[gnu::noinline]] Addr behind_the_call() { return reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)); }
/// A place in compiled code that has saved its return address: on AArch64 the row of an entry has no compact form.
[[gnu::noinline]] Addr place_in_frame() {
  const Addr place = behind_the_call();
  asm volatile("" ::: "memory");  // the call is not the last instruction
  return place;
}

// covers: CA07
TEST(RowCache, GetsTheSameRowInEitherForm) {
  const CompactLayout& layout = local_space().row_cache->layout;
  Frame frame(3);
  ASSERT_TRUE(register_procedure(frame.info()));
  struct Case {
    const RowSource& source;
    Addr at;
    RowOrigin origin;
  };
  for (const Case& c : {Case{dyn_row_source(), k_code + 3, RowOrigin::dyn_directives},
                        Case{eh_frame_source(), place_in_frame(), RowOrigin::eh_frame},
                        Case{*local_space().row_sources.front(), k_code + 3, RowOrigin::dyn_directives}}) {
    SCOPED_TRACE(origin_name(c.origin));
    FrameRow full, rest;
    AnyRow in_full(full);
    EXPECT_EQ(ask_any(c.source, c.at, in_full), RowAnswer::full);
    AnyRow in_short(rest, &layout);
    EXPECT_EQ(ask_any(c.source, c.at, in_short), RowAnswer::compact);
    EXPECT_EQ(expand(in_short.compact, layout), full);
    EXPECT_EQ(rest.range, full.range);
    EXPECT_EQ(rest.keeps_by, full.keeps_by);
    for (const FrameRow& row : {full, rest}) EXPECT_EQ(row.origin, c.origin);
    EXPECT_EQ(ask_any(c.source, 16, in_short), RowAnswer::none);
  }
  ASSERT_TRUE(cancel_procedure(frame.info()));
}

/// Returns every frame of this stack with all its registers.
std::string stack_text(const AddressSpace& space, const RegisterFile& registers) {
  std::string text;
  Cursor cursor(space, registers, Cursor::Top::returned_to);
  for (bool more = true; more;) {
    for (const RegisterInfo& reg : k_arch.registers) {
      const auto value = cursor.get(reg.dwarf);
      const SaveLocation place = cursor.location(reg.dwarf);
      if (value) text += std::string(reg.name) + "=" + std::to_string(*value) + "@" + std::to_string(place.at) + " ";
    }
    text += origin_name(cursor.origin());
    text += '\n';
    const auto moved = cursor.step();
    more = moved && *moved;
  }
  return text + stop_reason_name(cursor.stop_reason());
}

TEST(RowCache, ChangesNoWalk) {
  AddressSpace plain = local_space();
  plain.row_cache = nullptr;
  std::array<std::byte, k_context_size> context;
  const auto walk = [&](int depth, const auto& self) -> void {
    if (depth > 0) {
      self(depth - 1, self);
      asm volatile("" ::: "memory");
      return;
    }
    jitunwind_capture_context(context.data());
    const RegisterFile registers = registers_from_ucontext(context.data(), k_arch);
    const std::string expected = stack_text(plain, registers);
    EXPECT_GT(std::count(expected.begin(), expected.end(), '\n'), 10);
    EXPECT_NE(expected.find("outermost"), std::string::npos) << expected;
    for (int time = 0; time < 3; ++time) EXPECT_EQ(stack_text(local_space(), registers), expected);
  };
  walk(8, walk);
}

// One procedure is replaced without pause by one with another frame, the new one first. No step ever finds a frame of
// one that was cancelled before the step began.
TEST(RowCache, IsNeverOldBesideWriters) {
  constexpr std::uint64_t k_frames = 8;
  std::atomic<std::uint64_t> newest{0};
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wrong{0}, steps{0};
  const NumberedStack stack;
  auto current = std::make_unique<Frame>(0);
  ASSERT_TRUE(register_procedure(current->info()));
  std::thread reader([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      const std::uint64_t oldest = newest.load();
      const auto words = stack.words_of(k_code + 3);
      const std::uint64_t latest = newest.load() + 1;  // may be registered and not be published yet
      bool known = false;
      for (std::uint64_t n = oldest; n <= latest && n < oldest + k_frames; ++n) known |= words == Words(n % k_frames);
      if (!known) ++wrong;
      ++steps;
    }
  });
  std::uint64_t replacements = 0;
  while (replacements < 2000 || steps < 2000) {
    auto next = std::make_unique<Frame>(static_cast<int>(++replacements % k_frames));
    ASSERT_TRUE(register_procedure(next->info()));
    newest.store(replacements);
    ASSERT_TRUE(cancel_procedure(current->info()));
    current = std::move(next);
    if (replacements % 16 == 0) std::this_thread::yield();
  }
  stop = true;
  reader.join();
  ASSERT_TRUE(cancel_procedure(current->info()));
  EXPECT_EQ(wrong, 0u) << replacements << " replacements, " << steps << " steps";
}

}  // namespace
}  // namespace jitunwind::test
