// Changes that are learned of a list whose earlier state is known. The list is written into memory by hand, so that the
// test chooses each part.
#include <gtest/gtest.h>

#include <array>

#include "jitunwind/dyn_info/target_heads_internal.h"
#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/targets/target_files_internal.h"
#include "tests/support/fake_target.h"
#include "tests/targets/noted_object.h"

namespace jitunwind::test {
namespace {

constexpr Addr k_module = 0x400000, k_module_size = 0x1000, k_made = 0x600000;

/// An object with a list of procedures of 16 bytes each, whose names are letters.
class ListedTarget {
 public:
  explicit ListedTarget(bool notes_changes = true)
      : head_(target_.put_list(0)), changes_(target_.allocate(8 + 256 * 24)) {
    for (std::size_t i = 0; i < 8 + 256 * 24; ++i) target_.memory.put(changes_ + i, 0, 1);
    target_.memory.put_bytes(
        k_module, object_with({.head = head_, .changes = notes_changes ? changes_ : 0}, k_module, k_module_size));
  }

  static AddrRange code_of(char name) {
    const Addr begin = k_made + 16 * static_cast<Addr>(name - 'a');
    return {begin, begin + 16};
  }
  /// Sets the chain, the newest procedure first.
  void set_list(const std::string& names, std::uint32_t generation) {
    Addr first = 0;
    for (auto name = names.rbegin(); name != names.rend(); ++name) first = put(*name, first);
    target_.write_list(head_, first, 1, generation);
  }
  /// Makes a procedure of the list the newest one.
  void set_first(char name, std::uint32_t generation) {
    target_.write_list(head_, descriptors_.at(name), 1, generation);
  }
  /// Notes a change as the list's writer does.
  void note(char name, bool is_registered) {
    const Addr place = changes_ + 8 + noted_ % 256 * 24;
    target_.memory.put(place, descriptors_.at(name) + (is_registered ? 0 : 1));
    target_.memory.put(place + 8, code_of(name).begin);
    target_.memory.put(place + 16, code_of(name).end);
    target_.memory.put(changes_, ++noted_);
  }
  /// Unmaps everything, or maps it again.
  void set_mapped(bool is_mapped) {
    mappings_ = is_mapped ? mapped() : Mappings();
    modules_.renew();
    heads.look_again();
  }

  /// Returns "" if no procedure covers the address.
  std::string name_at(Addr at) const {
    MemoryWindow window;
    Lookup lookup(space_, CodeAddress::interrupted(at), window);
    std::array<char, 8> into{};
    ProcedureName out;
    const Found found = list_.find_name(lookup, into, out);
    EXPECT_TRUE(found) << found.error().what;
    return found && *found ? into.data() : "";
  }
  std::string names(const std::string& wanted) const {
    std::string all;
    for (const char name : wanted) all += name_at(code_of(name).begin);
    return all;
  }

 private:
  static Mappings mapped() {
    return Mappings({{.range = {k_module, k_module + k_module_size}, .path = "/object", .readable = true}});
  }
  Addr put(char name, Addr next) {
    const AddrRange code = code_of(name);
    unw_dyn_info_t info{};
    info.start_ip = code.begin;
    info.end_ip = code.end;
    info.u.pi.name_ptr = target_.put_string({name});
    return descriptors_[name] = target_.put_descriptor(info, 0, next);
  }

  FakeTarget target_{arch::x86_64};
  Addr head_, changes_;
  std::uint64_t noted_ = 0;
  std::map<char, Addr> descriptors_;
  Mappings mappings_ = mapped();
  TargetFiles files_ = TargetFiles::none();
  MappedModules modules_{target_.memory, arch::x86_64, mappings_, files_};

 public:
  TargetHeads heads{target_.memory, arch::x86_64, modules_, files_};

 private:
  TargetList list_{heads};
  std::array<const RowSource*, 1> rows_{&list_};
  std::array<const NameSource*, 1> names_{&list_};
  AddressSpace space_{arch::x86_64, target_.memory, modules_, rows_, names_};
};

using Ranges = std::vector<AddrRange>;

/// A copy of the library that notes no changes: its list is known by its generation alone.
// covers: DY50
TEST(LearnedChanges, AreNoneUnderTheGenerationThatIsKnown) {
  ListedTarget target(false);
  target.set_list("ab", 4);
  EXPECT_EQ(target.names("ab"), "ab");
  Ranges changed;
  EXPECT_TRUE(target.heads.learn_changes(changed));
  EXPECT_EQ(changed, Ranges());
  target.set_list("b", 6);
  EXPECT_FALSE(target.heads.learn_changes(changed)) << "what has changed nobody says";
  EXPECT_EQ(target.names("ab"), "b");
}

/// A library that was loaded anew has its own list, at the same address and after as many changes.
// covers: DY50
TEST(LearnedChanges, AreNotKnownOfAnotherListUnderTheSameGeneration) {
  for (const char* const names : {"cb", ""}) {
    ListedTarget target;
    target.set_list("ab", 4);
    EXPECT_EQ(target.names("abc"), "ab");
    target.set_list(names, 4);
    Ranges changed;
    EXPECT_FALSE(target.heads.learn_changes(changed));
    EXPECT_EQ(target.names("abc"), std::string(names).size() == 2 ? "bc" : "");
  }
}

/// The noted changes do not tell the newest procedure after a cancellation.
TEST(LearnedChanges, AreNoneAfterTheNewestWasCancelledOrAnotherCame) {
  ListedTarget target;
  target.set_list("ab", 4);
  EXPECT_EQ(target.names("abc"), "ab");
  Ranges changed;
  target.note('a', false);
  target.set_first('b', 6);
  EXPECT_TRUE(target.heads.learn_changes(changed));
  EXPECT_TRUE(target.heads.learn_changes(changed));
  EXPECT_EQ(changed, Ranges{ListedTarget::code_of('a')});
  target.set_list("cb", 8);
  target.note('c', true);
  EXPECT_TRUE(target.heads.learn_changes(changed));
  changed.clear();
  EXPECT_TRUE(target.heads.learn_changes(changed));
  EXPECT_EQ(changed, Ranges());
}

TEST(LearnedChanges, AreThoseThatAreNoted) {
  ListedTarget target;
  target.set_list("ab", 4);
  EXPECT_EQ(target.names("abc"), "ab");
  target.note('a', false);
  target.set_list("cb", 8);
  target.note('c', true);
  Ranges changed;
  EXPECT_TRUE(target.heads.learn_changes(changed));
  EXPECT_EQ(changed, (Ranges{ListedTarget::code_of('a'), ListedTarget::code_of('c')}));
  EXPECT_EQ(target.names("abc"), "bc");
}

/// The target was stopped in the middle of a change: a procedure is unlinked, but the change is not noted yet. The
/// state known before differs from the list then, and is the base of the next changes again afterwards.
// covers: DY49
TEST(LearnedChanges, AreNotKnownOfAListThatIsAboutToChange) {
  ListedTarget target;
  target.set_list("ab", 4);
  EXPECT_EQ(target.names("ab"), "ab");
  target.set_list("b", 5);
  Ranges changed;
  EXPECT_FALSE(target.heads.learn_changes(changed));
  EXPECT_EQ(target.names("ab"), "b");
  target.note('a', false);
  target.set_list("b", 6);
  changed.clear();
  EXPECT_TRUE(target.heads.learn_changes(changed));
  EXPECT_EQ(changed, Ranges{ListedTarget::code_of('a')});
  EXPECT_EQ(target.names("ab"), "b");
}

/// Two moments of one change have one generation; each shows another list.
// covers: DY49
TEST(LearnedChanges, AreOfTheMomentWhereTheGenerationIsOdd) {
  ListedTarget target;
  target.set_list("ab", 5);
  EXPECT_EQ(target.names("ab"), "ab");
  target.set_list("b", 5);
  Ranges changed;
  EXPECT_FALSE(target.heads.learn_changes(changed));
  EXPECT_EQ(target.names("ab"), "b");
}

/// Another program may have a list at the same address with the same generation.
TEST(LearnedChanges, AreOfTheProgramThatIsThere) {
  for (const std::uint32_t generation : {4u, 5u}) {
    ListedTarget target;
    target.set_list("ab", generation);
    EXPECT_EQ(target.names("abc"), "ab");
    target.set_list("c", generation);
    target.heads.forget();
    EXPECT_EQ(target.names("abc"), "c") << generation;
  }
}

/// The list's library was unloaded, and nothing tells what code was registered. The list is found again when it is
/// mapped again.
TEST(LearnedChanges, AreNotKnownWhereAListIsGone) {
  ListedTarget target;
  target.set_list("ab", 4);
  EXPECT_EQ(target.names("ab"), "ab");
  target.set_mapped(false);
  Ranges changed;
  EXPECT_FALSE(target.heads.learn_changes(changed));
  EXPECT_EQ(target.names("ab"), "");
  target.set_mapped(true);
  EXPECT_EQ(target.names("ab"), "ab");
}

}  // namespace
}  // namespace jitunwind::test
