// GDB's lists in a target's memory that is written by hand: which files count, when they are read, and which changes
// are known.
#include <elf.h>
#include <gtest/gtest.h>
#ifdef HAS_ZLIB
#include <zlib.h>
#endif

#include <array>
#include <map>

#include "jitunwind/sdk/targets/jit_code_p.h"
#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/targets/target_files_internal.h"
#include "tests/listen/jit_file.h"
#include "tests/support/fake_memory.h"

namespace jitunwind::test {
namespace {

constexpr Addr k_object = 0x400000, k_object_size = 0x1000, k_descriptor = 0x401000, k_entry = 0x500000,
               k_file = 0x600000, k_code = 0x700000, k_unit = 0x10000;

/// Counts how often each address was the first of a read.
class CountingMemory final : public Memory {
 public:
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override {
    ++reads[at];
    return bytes.read(at, into, window);
  }
  FakeMemory bytes;
  mutable std::map<Addr, std::size_t> reads;
};

/// Makes an object that exports a descriptor.
RawBytes exporting(Addr begin, Addr descriptor) {
  ElfBuilder elf(true, false);
  elf.segments = {{.type = PT_LOAD, .file_size = k_object_size, .memory_size = k_object_size}, {.type = PT_DYNAMIC}};
  const std::string name = std::string(1, '\0') + std::string(k_gdb_descriptor) + '\0';
  elf.sections = {{".dynsym", SHT_DYNSYM, elf.symbols({{1, descriptor - begin, 24, STT_OBJECT, STB_GLOBAL, 1}})},
                  {".dynstr", SHT_STRTAB, elf.bytes().characters(name).vector()},
                  {".hash", SHT_HASH, elf.bytes().u32(1).u32(2).u32(1).u32(0).u32(0).vector()},
                  {".dynamic", SHT_DYNAMIC}};
  Bytes dynamic = elf.bytes();
  const auto add = [&](std::uint64_t tag, std::uint64_t value) { dynamic.word(tag).word(value); };
  add(DT_SONAME, 1);
  add(DT_SYMTAB, elf.offset_of(0));
  add(DT_STRTAB, elf.offset_of(1));
  add(DT_STRSZ, name.size());
  add(DT_HASH, elf.offset_of(2));
  add(DT_NULL, 0);
  elf.sections[3].data = dynamic.vector();
  BuiltSegment& segment = elf.segments[1];
  segment.offset = segment.address = elf.offset_of(3);
  segment.file_size = segment.memory_size = dynamic.size();
  RawBytes bytes = elf.build();
  bytes.resize(k_object_size);
  return bytes;
}

/// A target with objects that have lists, and with files for 256 bytes of code each, at places numbered from 0.
class ListingTarget {
 public:
  explicit ListingTarget(std::size_t objects = 1) {
    for (std::size_t i = 0; i < objects; ++i) {
      const Addr begin = k_object + i * k_unit;
      memory_.bytes.put_bytes(begin, exporting(begin, descriptor_of(i)));
      all_.push_back({.range = {begin, begin + k_object_size}, .path = "/o" + std::to_string(i), .readable = true});
      set_list({}, i);
    }
    map(0, {.readable = true, .executable = true});
  }

  static Addr code_of(std::size_t place) { return k_code + place * k_unit; }
  static AddrRange range_of(std::size_t place) { return {code_of(place), code_of(place) + 0x100}; }
  /// Maps the code at `place`.
  void map(std::size_t place, Mapping mapping) {
    mapping.range = {code_of(place), code_of(place) + k_unit};
    std::erase_if(all_, [&](const Mapping& known) { return known.range.begin == mapping.range.begin; });
    all_.push_back(mapping);
    mappings_ = Mappings(all_);
    modules_.renew();
  }
  /// The file of an entry has a function `name` at the beginning of the code at `place`. Returns its size.
  std::size_t set_file(std::size_t entry, char name, std::size_t place, const BuiltSection* more = nullptr) {
    JitFile file(frames_like_phps(), code_of(place));
    file.elf.machine = EM_X86_64;
    file.elf.sections[2].data[1] = static_cast<std::byte>(name);
    if (more) file.elf.sections.push_back(*more);
    const RawBytes bytes = file.build();
    memory_.bytes.put_bytes(file_of(entry), bytes);
    set_entry(entry, bytes.size());
    return bytes.size();
  }
  void set_entry(std::size_t entry, std::uint64_t file_size) {
    memory_.bytes.put(entry_of(entry) + 16, file_of(entry));
    memory_.bytes.put(entry_of(entry) + 24, file_size);
  }
  /// Sets the chain of an object's list.
  void set_list(const std::vector<std::size_t>& entries, std::size_t object = 0) {
    Addr first = 0;
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
      memory_.bytes.put(entry_of(*entry), std::exchange(first, entry_of(*entry)));
      memory_.bytes.put(entry_of(*entry) + 8, 0);
    }
    const Addr at = descriptor_of(object);
    memory_.bytes.put(at, 1, 4);
    memory_.bytes.put(at + 4, 0, 4);
    memory_.bytes.put(at + 8, 0);
    memory_.bytes.put(at + 16, first);
  }
  FakeMemory& bytes() { return memory_.bytes; }
  static Addr descriptor_of(std::size_t object) { return k_descriptor + object * k_unit; }
  static Addr entry_of(std::size_t entry) { return k_entry + entry * 64; }
  static Addr file_of(std::size_t entry) { return k_file + entry * k_unit; }

  /// Returns "" if no file names the code.
  std::string name_of(std::size_t place) const {
    MemoryWindow window;
    Lookup lookup(space_, CodeAddress::interrupted(code_of(place)), window);
    std::array<char, 8> into{};
    ProcedureName out;
    const Found found = jit.find_name(lookup, into, out);
    EXPECT_TRUE(found);
    return found && *found ? into.data() : "";
  }
  bool has_row(std::size_t place) const {
    MemoryWindow window;
    Lookup lookup(space_, CodeAddress::interrupted(code_of(place)), window);
    FrameRow row;
    const Found found = jit.find_row(lookup, row);
    return found && *found;
  }
  /// Returns the number of reads since the last call.
  std::size_t reads_at(Addr at) { return std::exchange(memory_.reads[at], 0); }
  std::size_t reads_of_file(std::size_t entry) { return reads_at(file_of(entry)); }

 private:
  CountingMemory memory_;
  std::vector<Mapping> all_;
  Mappings mappings_;
  TargetFiles files_ = TargetFiles::none();
  MappedModules modules_{memory_, arch::x86_64, mappings_, files_};

 public:
  JitCode jit{memory_, arch::x86_64, modules_, mappings_, files_};

 private:
  std::array<const RowSource*, 1> rows_{&jit};
  std::array<const NameSource*, 1> names_{&jit};
  AddressSpace space_{arch::x86_64, memory_, modules_, rows_, names_};
};

using Ranges = std::vector<AddrRange>;

struct Renewed {
  bool is_known = false;
  Ranges changed{};
  friend bool operator==(const Renewed&, const Renewed&) = default;
  friend void PrintTo(const Renewed& renewed, std::ostream* out) {
    *out << (renewed.is_known ? "known " : "not known ") << testing::PrintToString(renewed.changed);
  }
};
Renewed renew(ListingTarget& target, bool is_mapped_as_before = true) {
  Renewed renewed;
  renewed.is_known = target.jit.renew(is_mapped_as_before, renewed.changed);
  return renewed;
}

TEST(JitCode, IsThatOfFilesInEveryList) {
  ListingTarget target(3);
  target.set_file(0, 'x', 0);
  target.set_file(1, 'y', 1);
  target.set_list({0}, 0);
  target.set_list({1}, 2);
  target.map(1, {.readable = true, .executable = true});
  EXPECT_EQ(target.name_of(0), "x");
  EXPECT_EQ(target.name_of(1), "y");
  EXPECT_TRUE(target.has_row(1));
  Ranges described;
  target.jit.append_described_code(described);
  ASSERT_EQ(described.size(), 2u);
  EXPECT_EQ(described[0].begin, target.code_of(0));
  EXPECT_EQ(described[1].begin, target.code_of(1));
}

/// Lists of several descriptors may end with the same entries, whose files are read once.
TEST(JitCode, OfEntriesInSeveralListsIsReadOnce) {
  ListingTarget target(2);
  target.set_file(0, 'x', 0);
  target.set_list({0}, 0);
  target.set_list({0}, 1);
  EXPECT_EQ(target.name_of(0), "x");
  EXPECT_EQ(target.reads_of_file(0), 1u);
}

TEST(JitCode, IsThatOfTheFirstFileInTheList) {
  ListingTarget target;
  target.set_file(0, 'x', 0);
  target.set_file(1, 'y', 0);
  target.set_list({1, 0});
  EXPECT_EQ(target.name_of(0), "y");
  target.set_list({0, 1});
  EXPECT_TRUE(renew(target).is_known);
  EXPECT_EQ(target.name_of(0), "x") << "the same files in another order";
}

TEST(JitCode, IsNoneWhereNothingIsMapped) {
  ListingTarget target;
  target.set_file(0, 'x', 5);
  target.set_list({0});
  EXPECT_EQ(target.name_of(5), "");
  target.map(5, {.readable = true, .executable = true});
  EXPECT_TRUE(renew(target, false).is_known);
  EXPECT_EQ(target.name_of(5), "x");
}

/// Executable memory of files belongs to modules. If there is no other executable memory, the lists are not read.
TEST(JitCode, IsNotLookedForWhereNoneCanBe) {
  struct Case {
    Mapping mapping;
    bool may_be;
  };
  const Case k_cases[] = {{{.readable = true}, false},
                          {{.path = "/file", .readable = true, .executable = true}, false},
                          {{.path = "[stack]", .readable = true, .executable = true}, false},
                          {{.path = "[anon:code]", .readable = true, .executable = true}, true},
                          {{.path = "/memfd:code", .readable = true, .executable = true, .deleted = true}, true},
                          {{.readable = true, .executable = true}, true}};
  for (const Case& one : k_cases) {
    ListingTarget target;
    target.set_file(0, 'x', 0);
    target.set_list({0});
    target.map(0, one.mapping);
    EXPECT_EQ(target.name_of(0), one.may_be ? "x" : "") << one.mapping.path;
    EXPECT_EQ(target.reads_of_file(0), one.may_be ? 1u : 0u) << one.mapping.path;
  }
}

/// Executable memory is taken for code without a file, and lists are not looked for.
TEST(JitCode, IsToldOfWhereItMayNotBeExecuted) {
  ListingTarget target;
  target.set_file(0, 'x', 0);
  target.set_file(1, 'y', 1);
  target.set_list({1, 0});
  target.map(1, {.readable = true});
  EXPECT_FALSE(target.jit.was_told_of(ListingTarget::code_of(0)));
  EXPECT_EQ(target.reads_of_file(0), 0u);
  EXPECT_TRUE(target.jit.was_told_of(ListingTarget::code_of(1)));
  EXPECT_FALSE(target.jit.was_told_of(ListingTarget::code_of(1) + 0x100));
}

/// An entry may give any size for its file.
TEST(JitCode, OfFilesThatCannotBeReadIsNone) {
  ListingTarget target;
  const std::size_t size = target.set_file(0, 'x', 0);
  target.set_list({0});
  for (const std::uint64_t wrong : {std::uint64_t{1}, size + 1, std::uint64_t{1} << 20, std::uint64_t{1} << 40,
                                    ~std::uint64_t{0}, std::uint64_t{0} - ListingTarget::file_of(0)}) {
    target.set_entry(0, wrong);
    (void)renew(target);
    EXPECT_EQ(target.name_of(0), "") << wrong;
  }
  target.set_entry(0, size);
  EXPECT_TRUE(renew(target).is_known);
  EXPECT_EQ(target.name_of(0), "x");
  target.bytes().forget(ListingTarget::file_of(0) + 16, 1);
  (void)renew(target);
  EXPECT_EQ(target.name_of(0), "") << "a byte of it is missing";
  target.set_file(0, 'z', 0);
  target.bytes().forget(ListingTarget::descriptor_of(0), 4);
  (void)renew(target);
  EXPECT_EQ(target.name_of(0), "") << "the descriptor";
}

/// Files that were asked about are compared when the target has run, because rows of them may be kept. Other files are
/// compared when they are asked about.
TEST(JitCode, ThatHasChangedIsTold) {
  ListingTarget target;
  for (std::size_t i = 0; i < 3; ++i) {
    target.set_file(i, 'x', i);
    target.map(i, {.readable = true, .executable = true});
  }
  target.set_list({0, 1, 2});
  EXPECT_EQ(target.name_of(0), "x");
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(target.reads_of_file(i), 1u) << i;
  EXPECT_EQ(renew(target), Renewed{true});
  EXPECT_EQ(target.reads_of_file(0), 1u) << "it was asked about";
  EXPECT_EQ(target.reads_of_file(1), 0u);

  target.set_file(0, 'y', 0);
  target.set_file(1, 'y', 1);
  const Ranges twice{ListingTarget::range_of(0), ListingTarget::range_of(0)};
  EXPECT_EQ(renew(target), (Renewed{true, twice})) << "of the file that went, and of the one that came";
  EXPECT_EQ(target.name_of(0), "y");
  EXPECT_EQ(target.name_of(1), "y") << "nobody had asked about it";

  target.set_list({0, 2});
  EXPECT_EQ(renew(target), (Renewed{true, {ListingTarget::range_of(1)}}));
  EXPECT_EQ(target.name_of(1), "");
  target.set_list({0, 1, 2});
  EXPECT_EQ(renew(target), (Renewed{true, {ListingTarget::range_of(1)}}));
  EXPECT_EQ(target.name_of(1), "y");
}

/// Another file may cover code by now that none had before, although nobody has asked about it.
TEST(JitCode, IsLookedForInAllFilesWhereItIsInNone) {
  ListingTarget target;
  target.set_file(0, 'x', 0);
  target.set_file(1, 'x', 1);
  target.map(1, {.readable = true, .executable = true});
  target.set_list({0, 1});
  EXPECT_EQ(target.name_of(0), "x");
  target.map(2, {.readable = true, .executable = true});
  EXPECT_TRUE(renew(target, false).is_known);
  target.set_file(1, 'z', 2);  // of the same size, as the entry says
  EXPECT_TRUE(renew(target).is_known);
  EXPECT_EQ(target.name_of(2), "z");
  EXPECT_EQ(target.name_of(1), "");
}

/// A file of a running target counts as long as it is unchanged. A changed file does not count before renew().
TEST(JitCode, OfATargetThatRunsIsThatOfTheMoment) {
  ListingTarget target;
  target.set_file(0, 'x', 0);
  target.set_file(1, 'x', 1);
  target.map(1, {.readable = true, .executable = true});
  target.set_list({0, 1});
  EXPECT_EQ(target.name_of(0), "x");
  (void)renew(target);
  target.jit.let_run();
  target.set_file(1, 'y', 1);
  EXPECT_EQ(target.name_of(0), "x");
  EXPECT_EQ(target.name_of(1), "");
  EXPECT_EQ(target.name_of(1), "");
  EXPECT_TRUE(renew(target).is_known);
  EXPECT_EQ(target.name_of(1), "y");
}

/// Lists are read just before the target runs; later changes are of another moment.
TEST(JitCode, IsReadBeforeTheTargetRuns) {
  ListingTarget target;
  target.set_file(0, 'x', 0);
  target.set_list({0});
  target.jit.let_run();
  target.set_list({});
  EXPECT_EQ(target.name_of(0), "x");
  (void)renew(target);
  EXPECT_EQ(target.name_of(0), "");
}

/// The process may run another program by now, whose lists are elsewhere.
TEST(JitCode, OfAnotherProgramIsLookedForAnew) {
  ListingTarget target(2);
  target.set_file(0, 'x', 0);
  target.set_list({0}, 1);
  EXPECT_EQ(target.name_of(0), "x");
  target.set_file(0, 'y', 0);
  target.jit.forget();
  EXPECT_EQ(target.name_of(0), "y");
  EXPECT_EQ(target.reads_at(ListingTarget::descriptor_of(1)), 2u);
}

#ifdef HAS_ZLIB
/// Any number of entries may say the same file, which takes a few bytes, and much memory where it is decompressed.
TEST(JitCode, OfFilesThatAreDecompressedHasALimit) {
  constexpr std::size_t k_size = std::size_t{128} << 20, k_entries = 6;
  const std::string zeros(k_size, '\0');
  uLongf size = k_size / 64;
  RawBytes stream(size);
  ASSERT_EQ(::compress2(reinterpret_cast<Bytef*>(stream.data()), &size, reinterpret_cast<const Bytef*>(zeros.data()),
                        k_size, 4),
            Z_OK);
  stream.resize(size);
  RawBytes contents = Bytes().u32(ELFCOMPRESS_ZLIB).u32(0).u64(k_size).u64(1).vector();
  contents.insert(contents.end(), stream.begin(), stream.end());
  const BuiltSection section{".debug_line", SHT_PROGBITS, contents, 0, SHF_COMPRESSED};
  ListingTarget target;
  std::vector<std::size_t> entries;
  for (std::size_t entry = 0; entry < k_entries; ++entry) entries.push_back(entry);
  const std::size_t file_size = target.set_file(0, 'a', 0, &section);
  for (const std::size_t entry : entries) {
    target.set_entry(entry, file_size);
    target.bytes().put(ListingTarget::entry_of(entry) + 16, ListingTarget::file_of(0));
  }
  target.set_list(entries);
  EXPECT_EQ(target.name_of(0), "a");
  EXPECT_EQ(target.reads_of_file(0), 2u) << "of 256 MiB together";
}
#endif

}  // namespace
}  // namespace jitunwind::test
