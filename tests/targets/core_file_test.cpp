// A core file as a target: whoever made the core, it shows the stacks that the process saw when it lived. A core that
// is cut, or a file that is no core, gives the remaining frames, or the reason why there are none.
#include <elf.h>
#ifdef HAS_ZLIB
#include <zlib.h>
#endif

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>

#include "tests/support/command.h"
#include "tests/support/cpu_seconds.h"
#include "tests/support/elf_builder.h"
#include "tests/targets/target_programs.h"

namespace jitunwind::test {
namespace {

using Reason = TargetError::Reason;

void write_bytes(const std::string& path, std::span<const char> bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// A program that stood still, and its core, which gcore made.
struct ByGcore {
  explicit ByGcore(const std::string& file = TARGET_PROGRAM) : program(file) {
    const std::string process = std::to_string(program.process());
    output_of("gcore -o '" + (folder / "core") + "' " + process + " 2>&1");
    path = folder / ("core." + process);
  }
  TemporaryFolder folder;
  TargetProgram program;
  std::string path;
};

std::pair<Addr, Addr> kernels_object_of(const Target& target) {
  for (const Mapping& mapping : target.mappings().all())
    if (mapping.path == "[vdso]") return {mapping.range.begin, mapping.range.end};
  return {};
}

class EveryCore : public testing::TestWithParam<const char*> {};

// covers: HL12 DY50
TEST_P(EveryCore, OfGcoreShowsTheStacksThatTheProgramSaw) {
  ByGcore core(GetParam());
  const auto live = Target::attach(core.program.process());
  ASSERT_TRUE(live) << live.error().text();
  const auto dead = Target::open_core(core.path);
  ASSERT_TRUE(dead) << dead.error().text();
  expect_as_the_program_says(*dead, core.program);
  // The process has not gone on, so the outer frames are of the same moment, too.
  for (const TargetThread& thread : live->threads())
    EXPECT_EQ(seen(live->walk(thread)).frames, seen(dead->walk(thread)).frames);
  for (const TargetThread& thread : dead->threads()) EXPECT_EQ(thread.fault_address, std::nullopt) << "it stands";
  EXPECT_EQ(dead->process(), core.program.process());
  EXPECT_EQ(kernels_object_of(*dead), kernels_object_of(*live)) << "no note names it";
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryCore, testing::Values(TARGET_PROGRAMS));

/// Returns the sizes that a core is cut to, close together at the front, where headers and notes are. They descend, so
/// that the file can be cut in place.
std::vector<std::uintmax_t> cuts_of(std::uintmax_t size) {
  std::vector<std::uintmax_t> cuts;
  for (std::uintmax_t i = 0; i < 100; ++i) cuts.push_back(size / 100 * (99 - i));
  for (std::uintmax_t i = 0; i < 100; ++i) cuts.push_back((99 - i) * 251);
  std::ranges::sort(cuts, std::greater());
  return cuts;
}

#ifdef KERNEL_WRITES_CORES
// covers: HL12
TEST(CoreFile, OfTheKernelShowsTheStacksThatTheProgramSaw) {
  const KernelsCore made;
  const auto core = Target::open_core(made.path, {.root = "", .program = TARGET_PROGRAM});
  ASSERT_TRUE(core) << core.error().text();
  expect_as_the_program_says(*core, made.program);
  ASSERT_FALSE(core->threads().empty());
  EXPECT_EQ(core->threads()[0].signal, SIGSEGV);
  EXPECT_EQ(core->threads()[0].name, "target_program");
  EXPECT_EQ(core->threads()[0].fault_address, 0x4710u) << "where it writes to";
  const std::string by_gdb =
      output_of("gdb -batch -ex 'p (long)$_siginfo._sifields._sigfault.si_addr' " TARGET_PROGRAM " '" + made.path +
                "' 2>/dev/null");
  EXPECT_NE(by_gdb.find("$1 = " + std::to_string(0x4710) + "\n"), by_gdb.npos) << by_gdb;
  for (std::size_t i = 1; i < core->threads().size(); ++i) EXPECT_EQ(core->threads()[i].fault_address, std::nullopt);
  const SeenStack crashed = seen(core->walk(core->threads()[0]));
  EXPECT_EQ(crashed.frames.at(0).name, "stand_still");
}

#ifdef __x86_64__
constexpr Addr k_emulated_page = 0xffffffffff600000;  // [vsyscall]

extern "C" [[gnu::noinline]] void call_emulated_page() {
  constexpr long k_no_pointer = 16;
  reinterpret_cast<void (*)(long)>(k_emulated_page)(k_no_pointer);
  asm volatile("");  // no tail call
}

/// A bad pointer that the kernel's old gettimeofday() is given faults in a page of which a core has zeros, if anything.
TEST(CoreFile, OfAFaultInThePageThatTheKernelEmulatesHasItsCaller) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit any_size{RLIM_INFINITY, RLIM_INFINITY};
    if (::chdir(folder.path().c_str()) == 0 && ::setrlimit(RLIMIT_CORE, &any_size) == 0) call_emulated_page();
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status) && WCOREDUMP(status)) << status;
  const auto core = Target::open_core(std::filesystem::directory_iterator(folder.path())->path());
  ASSERT_TRUE(core) << core.error().text();
  const SeenStack stack = seen(core->walk(core->threads().at(0)));
  ASSERT_GE(stack.frames.size(), 3u) << stack.why;
  EXPECT_EQ(stack.frames[0].pc, k_emulated_page);
  EXPECT_EQ(stack.frames[1].name, "call_emulated_page");
  EXPECT_EQ(stack.why, "complete");
}
#endif

/// Changes the kind of the core's note of mapped files.
void hide_files_note(const std::string& path) {
  std::string bytes = text_of_file(path);
  Elf64_Ehdr header;
  ASSERT_GT(bytes.size(), sizeof header);
  std::memcpy(&header, bytes.data(), sizeof header);
  std::size_t hidden = 0;
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type != PT_NOTE) continue;
    for (std::size_t at = segment.p_offset; at + sizeof(Elf64_Nhdr) < segment.p_offset + segment.p_filesz;) {
      Elf64_Nhdr note;
      std::memcpy(&note, bytes.data() + at, sizeof note);
      const std::size_t next = at + sizeof note + (note.n_namesz + 3) / 4 * 4 + (note.n_descsz + 3) / 4 * 4;
      if (note.n_type == NT_FILE) {
        note.n_type = 0x4711;
        std::memcpy(bytes.data() + at, &note, sizeof note);
        ++hidden;
      }
      at = next;
    }
  }
  ASSERT_EQ(hidden, 1u);
  write_bytes(path, bytes);
}

/// The files are those in the dynamic linker's list.
// covers: HL12
TEST(CoreFile, WithoutANoteOfFilesShowsTheStacksThatTheProgramSaw) {
  const KernelsCore made;
  hide_files_note(made.path);
  const auto core = Target::open_core(made.path);
  ASSERT_TRUE(core) << core.error().text();
  expect_as_the_program_says(*core, made.program);
  std::size_t files = 0;
  for (const Mapping& mapping : core->mappings().all()) files += mapping.path.starts_with('/') && mapping.offset == 0;
  EXPECT_GE(files, 5u) << "the program, libjitunwind, the C and C++ libraries, the dynamic linker";
}

/// The plugin is linked for a place of its own, as prelinked libraries are.
TEST(CoreFile, WithoutANoteOfFilesHasPrelinkedLibraries) {
  const KernelsCore made({"0", TARGET_PLUGIN, "crash"});
  const auto with_note = Target::open_core(made.path);
  ASSERT_TRUE(with_note) << with_note.error().text();
  const SeenStack whole = seen(with_note->walk(with_note->threads().front()));
  ASSERT_EQ(whole.why, "complete");
  ASSERT_TRUE(std::ranges::any_of(whole.frames, [](const SeenFrame& frame) { return frame.name == "plugin_inner"; }));
  hide_files_note(made.path);
  const auto core = Target::open_core(made.path);
  ASSERT_TRUE(core) << core.error().text();
  const SeenStack stack = seen(core->walk(core->threads().front()));
  EXPECT_EQ(stack.frames, whole.frames);
  EXPECT_EQ(stack.why, "complete");
}

/// The library that is loaded first lies behind those of later entries of the list. A core without its first page does
/// not know it, and takes none of the others for it.
TEST(CoreFile, WithoutANoteOfFilesHasNoLibraryWhoseFirstPageIsGone) {
  const KernelsCore made;
  hide_files_note(made.path);
  const auto mappings_of_library = [&] {
    std::vector<Mapping> found;
    const auto core = Target::open_core(made.path);
    EXPECT_TRUE(core) << core.error().text();
    if (core)
      std::ranges::copy_if(core->mappings().all(), std::back_inserter(found),
                           [](const Mapping& m) { return m.path.find("/libjitunwind.so") != m.path.npos; });
    return found;
  };
  const std::vector<Mapping> before = mappings_of_library();
  ASSERT_GT(before.size(), 1u);
  std::string bytes = text_of_file(made.path);
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::size_t wiped = 0;
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type != PT_LOAD || segment.p_vaddr != before[0].range.begin || segment.p_filesz == 0) continue;
    bytes.replace(segment.p_offset, SELFMAG, SELFMAG, 0);
    ++wiped;
  }
  ASSERT_EQ(wiped, 1u);
  write_bytes(made.path, bytes);
  EXPECT_EQ(mappings_of_library().size(), 0u);
}

/// Wherever the core is cut off, it gives frames of the whole one, as many as are left, or a reason.
TEST(CoreFile, CutOffAnywhereShowsWhatIsLeft) {
  const KernelsCore made;
  std::map<pid_t, SeenStack> whole;
  {
    const auto target = Target::open_core(made.path);
    ASSERT_TRUE(target) << target.error().text();
    for (const TargetThread& thread : target->threads()) whole[thread.id] = seen(target->walk(thread));
  }
  std::size_t opened = 0, refused = 0;
  for (const std::uintmax_t size : cuts_of(std::filesystem::file_size(made.path))) {
    std::filesystem::resize_file(made.path, size);
    const auto target = Target::open_core(made.path);
    if (!target) {
      ++refused;
      EXPECT_EQ(target.error().reason, size == 0 ? Reason::no_such_file : Reason::no_core) << target.error().text();
      continue;
    }
    ++opened;
    for (const TargetThread& thread : target->threads()) {
      const SeenStack &all = whole[thread.id], left = seen(target->walk(thread));
      ASSERT_LE(left.frames.size(), all.frames.size()) << size;
      for (std::size_t f = 0; f < left.frames.size(); ++f) ASSERT_EQ(left.frames[f].pc, all.frames[f].pc) << size;
    }
  }
  EXPECT_GT(opened, 50u);
  EXPECT_GT(refused, 5u);
}
#endif

/// GDB writes the notes last, so a core that is cut off has no registers, and the error says so.
TEST(CoreFile, OfGcoreThatIsCutOffIsRefused) {
  const ByGcore core;
  for (const std::uintmax_t size : cuts_of(std::filesystem::file_size(core.path))) {
    std::filesystem::resize_file(core.path, size);
    const auto target = Target::open_core(core.path);
    ASSERT_FALSE(target) << size;
    EXPECT_EQ(target.error().reason, size == 0 ? Reason::no_such_file : Reason::no_core) << target.error().text();
  }
}

/// Static code is missing without the files: a walk ends at the first unknown code, says why, and has no wrong frame.
TEST(CoreFile, WithoutItsFilesEndsAtTheFirstUnknownCode) {
  ByGcore core;
  const auto whole = Target::open_core(core.path);
  ASSERT_TRUE(whole) << whole.error().text();
  const auto without = Target::open_core(core.path, {.root = core.folder.path(), .program = ""});
  ASSERT_TRUE(without) << without.error().text();
  for (const TargetThread& thread : without->threads()) {
    const SeenStack all = seen(whole->walk(thread)), some = seen(without->walk(thread));
    EXPECT_LE(some.frames.size(), all.frames.size());
    for (std::size_t i = 0; i < some.frames.size(); ++i) EXPECT_EQ(some.frames[i].pc, all.frames[i].pc);
    EXPECT_NE(some.why.find("code that cannot be read, nor unwind information of it"), std::string::npos) << some.why;
  }
}

/// Copies the files of the core below a folder that is like the root of the machine which the core comes from.
void copy_files(const ByGcore& core, const std::string& root) {
  const auto here = Target::open_core(core.path);
  ASSERT_TRUE(here) << here.error().text();
  for (const Mapping& mapping : here->mappings().all()) {
    if (!mapping.is_of_file() || mapping.deleted) continue;
    const std::filesystem::path copy = root + mapping.path;
    std::filesystem::create_directories(copy.parent_path());
    std::filesystem::copy_file(mapping.path, copy, std::filesystem::copy_options::skip_existing);
  }
}

TEST(CoreFile, FindsItsFilesBelowAFolder) {
  ByGcore core;
  copy_files(core, core.folder.path());
  const auto target = Target::open_core(core.path, {.root = core.folder.path(), .program = ""});
  ASSERT_TRUE(target) << target.error().text();
  expect_as_the_program_says(*target, core.program);
}

/// Absolute links are those of the other machine.
TEST(CoreFile, FindsItsFilesBelowAFolderWithLinks) {
  ByGcore core;
  const std::string root = core.folder / "root";
  copy_files(core, root + "/copies");
  for (const auto& entry : std::filesystem::directory_iterator(root + "/copies"))
    std::filesystem::create_symlink("/copies" / entry.path().filename(), root / entry.path().filename());
  const auto target = Target::open_core(core.path, {.root = root, .program = ""});
  ASSERT_TRUE(target) << target.error().text();
  expect_as_the_program_says(*target, core.program);
}

/// The kernel appends " (deleted)" to names of deleted files, and programs may have such a name.
TEST(CoreFile, HasItsFilesIfItIsCalledDeleted) {
  const TemporaryFolder folder;
  const std::string file = folder / "program (deleted)";
  std::filesystem::copy_file(TARGET_PROGRAM, file);
  const ByGcore core(file);
  const auto target = Target::open_core(core.path);
  ASSERT_TRUE(target) << target.error().text();
  expect_as_the_program_says(*target, core.program);
  // Another file has the name without that ending, and must not be taken for the program.
  std::filesystem::copy_file("/bin/true", folder / "program");
  const auto again = Target::open_core(core.path);
  ASSERT_TRUE(again) << again.error().text();
  expect_as_the_program_says(*again, core.program);
  std::filesystem::remove(file);
  std::filesystem::rename(folder / "program", file);
  const auto without = Target::open_core(core.path);
  ASSERT_TRUE(without) << without.error().text();
  for (const TargetThread& thread : without->threads())
    for (const SeenFrame& frame : seen(without->walk(thread)).frames) EXPECT_NE(frame.name, "main");
}

TEST(CoreFile, OfAnotherProgramIsRefused) {
  ByGcore core;
  const auto target = Target::open_core(core.path, {.root = "", .program = "/bin/true"});
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().reason, Reason::core_of_other_program) << target.error().text();
  EXPECT_NE(target.error().what.find("target_program"), std::string::npos) << target.error().what;
  const auto gone = Target::open_core(core.path, {.root = "", .program = "/no/such/program"});
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().reason, Reason::no_such_file) << gone.error().text();
}

TEST(CoreFile, IsNoneWhateverItIs) {
  const TemporaryFolder folder;
  const auto reason = [](const std::string& path) {
    const auto target = Target::open_core(path);
    EXPECT_FALSE(target) << path;
    EXPECT_TRUE(target || !target.error().what.empty());
    return target ? Reason::this_process : target.error().reason;
  };
  EXPECT_EQ(reason(folder / "none"), Reason::no_such_file);
  EXPECT_EQ(reason(folder.path()), Reason::no_such_file);
  EXPECT_EQ(reason("/bin/true"), Reason::no_core);
  write_bytes(folder / "text", std::string("this is no core file\n"));
  EXPECT_EQ(reason(folder / "text"), Reason::no_core);
  output_of("gzip -c /bin/true > '" + (folder / "core.gz") + "'");
  const auto compressed = Target::open_core(folder / "core.gz");
  ASSERT_FALSE(compressed);
  EXPECT_NE(compressed.error().remedy.find("gzip -d"), std::string::npos) << compressed.error().text();
  // The core's header names another machine.
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_CORE;
  for (const int machine : {EM_68K, EM_386}) {  // not known; known, and of 32 bits
    header.e_machine = static_cast<Elf64_Half>(machine);
    const auto* const begin = reinterpret_cast<const char*>(&header);
    write_bytes(folder / "machine", {begin, sizeof header});
    (void)reason(folder / "machine");
  }
}

/// Makes a core of threads, from number 7 on, with these segments, whose bytes are all "abcdefghijklmnop". The notes
/// are in a segment, or in a section alone. `files` is the count in an NT_FILE note, which has one file.
RawBytes core_with(const std::vector<BuiltSegment>& segments, bool has_note_segment = true, std::size_t threads = 1,
                   std::optional<std::uint64_t> files = std::nullopt, bool numbers_in_section_0 = false) {
  ElfBuilder core(true, false);
  core.type = ET_CORE;
  core.numbers_in_section_0 = numbers_in_section_0;
  Bytes notes = core.bytes();
  for (std::size_t i = 0; i < threads; ++i)
    notes.add(core.note("CORE", NT_PRSTATUS, core.bytes().fill(112 + 27 * 8 + 8, 0).put(32, 7 + i, 4).string()));
  if (files) {
    const Bytes note = core.bytes().u64(*files).u64(4096).u64(0x400000).u64(0x402000).u64(0).text("/file");
    notes.add(core.note("CORE", NT_FILE, note.string()));
  }
  core.sections = {{"note", SHT_NOTE, notes.vector()},
                   {"bytes", SHT_PROGBITS, core.bytes().characters("abcdefghijklmnop").vector()}};
  core.segments = segments;
  if (has_note_segment) core.segments.push_back({.type = PT_NOTE, .section = 0});
  for (BuiltSegment& segment : core.segments) segment.offset = core.offset_of(1);
  return core.build();
}

Result<Target, TargetError> open_bytes(const RawBytes& bytes) {
  const TemporaryFolder folder;
  write_bytes(folder / "core", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return Target::open_core(folder / "core");
}

/// Reads up to 16 bytes, as many as exist.
std::string text_at(const Target& target, Addr at) {
  std::string text(16, '\0');
  MemoryWindow window;
  text.resize(target.space().memory.read(at, std::as_writable_bytes(std::span(text)), window));
  return text;
}

/// If two segments overlap, the first one counts. Bytes behind a segment's end do not count.
TEST(CoreFile, SegmentsThatContradictEachOtherAreReadOnce) {
  const auto core = open_bytes(core_with({{.address = 0x10000, .file_size = 16, .memory_size = 16},
                                          {.address = 0x10008, .file_size = 16, .memory_size = 16},
                                          {.address = 0x20000, .file_size = 16, .memory_size = 5}}));
  ASSERT_TRUE(core) << core.error().text();
  EXPECT_EQ(text_at(*core, 0x10000), "abcdefghijklmnop");
  EXPECT_EQ(text_at(*core, 0x10008), "ijklmnop");
  EXPECT_EQ(text_at(*core, 0x20000), "abcde");
}

/// Counts of files and of program headers that exceed all memory, or that overflow when they are multiplied.
TEST(CoreFile, HasNoMoreThanItHasBytesFor) {
  constexpr std::uint64_t k_wraps = ~std::uint64_t{0} / 24 + 2;  // 24 times this are 24 or so
  const std::vector<BuiltSegment> segments{{.address = 0x10000, .file_size = 16, .memory_size = 16}};
  for (const std::uint64_t files : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{1} << 32, std::uint64_t{1} << 61,
                                    k_wraps, ~std::uint64_t{0}}) {
    const auto core = open_bytes(core_with(segments, true, 1, files));
    ASSERT_TRUE(core) << core.error().text();
    EXPECT_EQ(core->mappings().find(0x400000) != nullptr, files == 1) << files;
    EXPECT_EQ(text_at(*core, 0x10000), "abcdefghijklmnop");
  }
  RawBytes bytes = core_with(segments, true, 1, 1, true);  // e_phnum is PN_XNUM
  EXPECT_TRUE(open_bytes(bytes));
  Elf64_Ehdr head;
  std::memcpy(&head, bytes.data(), sizeof head);
  ASSERT_EQ(head.e_phnum, PN_XNUM);
  constexpr std::uint32_t k_most = ~std::uint32_t{0};
  std::memcpy(bytes.data() + head.e_shoff + offsetof(Elf64_Shdr, sh_info), &k_most, sizeof k_most);
  const auto core = open_bytes(bytes);
  ASSERT_TRUE(core) << core.error().text();
  EXPECT_EQ(core->threads().size(), 1u) << "of the section of notes";
  EXPECT_EQ(text_at(*core, 0x10000), "");
}

/// Tools that copy sections leave no segment of notes.
TEST(CoreFile, HasItsNotesInASectionWhereNoSegmentHasThem) {
  const auto core = open_bytes(core_with({{.address = 0x10000, .file_size = 16, .memory_size = 16}}, false));
  ASSERT_TRUE(core) << core.error().text();
  ASSERT_EQ(core->threads().size(), 1u);
  EXPECT_EQ(core->threads()[0].id, 7);
}

#ifdef HAS_ZLIB
TEST(CoreFile, HasNoThreadsInCompressedNotes) {
  for (const bool is_compressed : {false, true}) {
    ElfBuilder core(true, false);
    core.type = ET_CORE;
    RawBytes notes =
        core.note("CORE", NT_PRSTATUS, core.bytes().fill(112 + 27 * 8 + 8, 0).put(32, 7, 4).string()).vector();
    if (is_compressed) {
      uLongf size = ::compressBound(notes.size());
      RawBytes stream(size), all = core.bytes().u32(ELFCOMPRESS_ZLIB).u32(0).u64(notes.size()).u64(4).vector();
      ASSERT_EQ(::compress(reinterpret_cast<Bytef*>(stream.data()), &size, reinterpret_cast<const Bytef*>(notes.data()),
                           notes.size()),
                Z_OK);
      all.insert(all.end(), stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(size));
      notes = all;
    }
    core.sections = {{"note", SHT_NOTE, notes, 0, is_compressed ? std::uint64_t{SHF_COMPRESSED} : 0}};
    EXPECT_NE(bool(open_bytes(core.build())), is_compressed);
  }
}
#endif

/// The registers are found by the threads' numbers: eight times as many threads take eight times as long, not 64 times.
TEST(CoreFile, MayHaveMoreThreadsThanAnyProgram) {
  const auto seconds_for = [](std::size_t threads) {
    const auto core = open_bytes(core_with({}, true, threads));
    EXPECT_TRUE(core && core->threads().size() == threads);
    const double begin = cpu_seconds();
    for (const TargetThread& thread : core->threads()) EXPECT_TRUE(core->registers(thread));
    return cpu_seconds() - begin;
  };
  (void)seconds_for(4000);
  EXPECT_LT(seconds_for(32'000), 25 * seconds_for(4000));
}

}  // namespace
}  // namespace jitunwind::test
