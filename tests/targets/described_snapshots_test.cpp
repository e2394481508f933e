// Code made at run time in programs of other CPUs, found by the lists in their memory. Every directive that is in force
// matters, and wrong lists are noticed. snapshots/described/ has the code.
#include <gtest/gtest.h>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/sdk/targets/target_space_p.h"
#include "jitunwind/unwind_core/byte_reader.h"
#include "tests/targets/snapshots/snapshot.h"

namespace jitunwind::test {
namespace {

/// A snapshot whose memory can be changed, with the places of the structures of libunwind-dynamic.h in it, for the
/// target's word size.
class Described {
 public:
  explicit Described(Snapshot snapshot) : snapshot_(std::move(snapshot)), word_(snapshot_.arch.word_size) {
    const SnapshotMemory memory(snapshot_.memory);
    const TargetSpace target(snapshot_.arch, memory, Mappings::parse(snapshot_.maps), TargetFiles::none());
    MemoryWindow window;
    EXPECT_NE(target.heads().list_head(0, window).value(), 0u);
    EXPECT_EQ(target.heads().known().size(), 1u);
    list_ = target.heads().known().front().head;
  }

  const Snapshot& snapshot() const { return snapshot_; }
  std::string walk() const { return walk_of(snapshot_, SnapshotMemory(snapshot_.memory)); }
  std::size_t word() const { return word_; }

  std::uint64_t get(Addr at, std::size_t size) const {
    std::array<std::byte, 8> bytes{};
    MemoryWindow window;
    const auto used = std::span(bytes).first(size);
    EXPECT_EQ(SnapshotMemory(snapshot_.memory).read(at, used, window), size) << std::hex << at;
    return ByteReader(used, snapshot_.arch.big_endian).unsigned_of(size);
  }
  Addr address(Addr at) const { return get(at, word_); }
  std::int64_t number(Addr at) const {
    return word_ == 8 ? static_cast<std::int64_t>(address(at)) : static_cast<std::int32_t>(address(at));
  }
  void set(Addr at, std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t shift = 8 * (snapshot_.arch.big_endian ? size - 1 - i : i);
      for (Snapshot::Part& part : snapshot_.memory)
        if (at + i >= part.at && at + i - part.at < part.bytes.size())
          part.bytes[at + i - part.at] = static_cast<std::byte>(value >> shift);
    }
    EXPECT_EQ(get(at, size), size == 8 ? value : value & ((std::uint64_t{1} << 8 * size) - 1));
  }
  void set_address(Addr at, Addr value) { set(at, value, word_); }

  Addr list() const { return list_; }
  Addr first_of_list() const { return list_ + 8; }
  std::vector<Addr> procedures() const {
    std::vector<Addr> all;
    for (Addr at = address(first_of_list()); at != 0; at = address(at)) all.push_back(at);
    return all;
  }
  Addr start(Addr procedure) const { return address(procedure + 2 * word_); }
  Addr end(Addr procedure) const { return address(procedure + 3 * word_); }
  Addr format(Addr procedure) const { return procedure + 5 * word_; }
  Addr name(Addr procedure) const { return format(procedure) + 8; }
  Addr regions(Addr procedure) const { return name(procedure) + 2 * word_ + 8; }

  Addr insn_count(Addr region) const { return region + word_; }
  Addr op_count(Addr region) const { return region + word_ + 4; }
  Addr op(Addr region, std::uint64_t number) const { return region + word_ + 8 + number * (8 + word_); }

 private:
  Snapshot snapshot_;
  std::size_t word_;
  Addr list_ = 0;
};

Described described(const std::string& name) { return Described(load_snapshot(name)); }

struct Directive {
  Addr at;
  int tag, reg;
  std::int64_t when;
  std::int64_t value;
};

/// Returns the directives of the procedure's first region that are in force in its frame.
std::vector<Directive> in_force(const Described& target, Addr procedure) {
  const auto& frames = target.snapshot().frames;
  const auto frame = std::ranges::find_if(
      frames, [&](const SnapshotFrame& f) { return f.ip > target.start(procedure) && f.ip < target.end(procedure); });
  if (frame == frames.end()) return {};
  const bool was_interrupted = frame == frames.begin();
  const std::int64_t place =
      static_cast<std::int64_t>(frame->ip - target.start(procedure) - (was_interrupted ? 0 : 1)) /
      target.snapshot().arch.unit;
  std::vector<Directive> all;
  const Addr region = target.address(target.regions(procedure));
  for (std::uint64_t i = 0; i < target.get(target.op_count(region), 4); ++i) {
    const Addr op = target.op(region, i);
    const Directive said{op, static_cast<int>(target.get(op, 1)), static_cast<int>(target.get(op + 2, 2)),
                         static_cast<std::int32_t>(target.get(op + 4, 4)), target.number(op + 8)};
    if (said.tag == UNW_DYN_STOP) break;  // what was behind it is not in the snapshot: the walk does without
    if (place > said.when) all.push_back(said);
  }
  return all;
}

class DescribedSnapshots : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Cpus, DescribedSnapshots, testing::ValuesIn(snapshot_names()),
                         [](const auto& info) { return info.param; });

// covers: DY48 DY50 XP04
TEST_P(DescribedSnapshots, AreFoundByTheListInTheirMemory) {
  const Described target = described(GetParam());
  EXPECT_EQ(target.procedures().size(), 3u);
  EXPECT_EQ(target.walk(), "");
  std::vector<std::string> names;
  for (const SnapshotFrame& frame : target.snapshot().frames)
    if (!frame.name.empty()) names.push_back(frame.name);
  EXPECT_EQ(names, (std::vector<std::string>{"described_trapping", "described_plain", "described_framed"}));
}

/// Moves of SP are exempt once a frame pointer gives the frame's place.
TEST_P(DescribedSnapshots, NoticeEveryDirectiveThatIsWrong) {
  const Described target = described(GetParam());
  const Arch& arch = target.snapshot().arch;
  int noticed = 0;
  for (const Addr procedure : target.procedures()) {
    bool has_frame_pointer = false;
    for (const Directive& said : in_force(target, procedure)) {
      const bool is_of_sp = arch.by_libunwind(said.reg) == arch.by_dwarf(arch.sp);
      if (said.tag == UNW_DYN_ADD && is_of_sp && has_frame_pointer) continue;
      has_frame_pointer = has_frame_pointer || (said.tag == UNW_DYN_SAVE_REG && is_of_sp);
      Described wrong = target;
      const bool is_save = said.tag == UNW_DYN_SAVE_REG;
      wrong.set_address(said.at + 8, static_cast<Addr>(said.value + (is_save ? 1 : arch.stack_alignment)));
      EXPECT_NE(wrong.walk(), "") << "tag " << said.tag << ", register " << said.reg << ", when " << said.when;
      Described unknown = target;
      unknown.set(said.at, 99, 1);
      EXPECT_NE(unknown.walk().find("unknown directive"), std::string::npos) << unknown.walk();
      ++noticed;
    }
  }
  EXPECT_GE(noticed, 9);
}

struct Lie {
  const char* what;
  void (*tell)(Described& target);
  const char* answer;  ///< a part of what the walk ends with; "": there is no lie in it
};

Addr newest(const Described& target) { return target.procedures().front(); }
Addr first_region(const Described& target, std::size_t procedure) {
  return target.address(target.regions(target.procedures()[procedure]));
}
constexpr Addr k_nowhere = 0x70000000;

constexpr Lie k_lies[] = {
    {"the version is of another time", [](Described& t) { t.set(t.list(), 2, 4); }, "list of procedures"},
    {"the program was stopped within a change", [](Described& t) { t.set(t.list() + 4, 7, 4); }, ""},
    {"there is room for more directives behind the last",
     [](Described& t) { t.set(t.op_count(first_region(t, 0)), 0xffffffff, 4); }, ""},
    {"a region goes on behind its procedure",
     [](Described& t) { t.set(t.insn_count(first_region(t, 1)), 0x7fffffff, 4); }, ""},
    {"the list has no end", [](Described& t) { t.set_address(t.procedures().back(), newest(t)); },
     "list of procedures"},
    {"the list leads nowhere", [](Described& t) { t.set_address(t.procedures().back(), k_nowhere); },
     "descriptor of a procedure"},
    {"the list begins nowhere", [](Described& t) { t.set_address(t.first_of_list(), k_nowhere); },
     "descriptor of a procedure"},
    {"a procedure ends where it begins",
     [](Described& t) { t.set_address(newest(t) + 3 * t.word(), t.start(newest(t))); }, "without unwind information"},
    {"a format that there is not", [](Described& t) { t.set(t.format(newest(t)), 77, 4); }, "format"},
    {"regions that are nowhere", [](Described& t) { t.set_address(t.regions(newest(t)), k_nowhere); }, "region"},
    {"a region from the end before others",
     [](Described& t) {
       t.set(t.insn_count(first_region(t, 1)), 0xfffffffd, 4);
       t.set_address(first_region(t, 1), first_region(t, 0));
     },
     "negative insn_count"},
    {"regions without end", [](Described& t) { t.set_address(first_region(t, 1), first_region(t, 1)); }, "region"},
};

// covers: DY53 XP04
TEST_P(DescribedSnapshots, SeeThroughListsThatLie) {
  for (const Lie& lie : k_lies) {
    Described target = described(GetParam());
    lie.tell(target);
    const std::string wrong = target.walk();
    if (*lie.answer == '\0')
      EXPECT_EQ(wrong, "") << lie.what;
    else
      EXPECT_NE(wrong.find(lie.answer), std::string::npos) << lie.what << ": " << wrong;
  }
}

}  // namespace
}  // namespace jitunwind::test
