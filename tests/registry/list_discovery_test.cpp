// The list is found from outside by the ELF note alone, in programs of every kind; binutils agree about the note and
// the symbol.
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "tests/support/command.h"

namespace {

using jitunwind::test::Groups, jitunwind::test::lines_of, jitunwind::test::output_of, jitunwind::test::Pattern,
    jitunwind::test::text_of_file;

struct Kind {
  const char* name;
  const char* program;
  const char* carrier;  // the file that has note and symbol
};
const std::array k_kinds{
    Kind{"shared", LIST_HOLDER_SHARED, JITUNWIND_SHARED},
    Kind{"archive", LIST_HOLDER_ARCHIVE, LIST_HOLDER_ARCHIVE},
    Kind{"static", LIST_HOLDER_STATIC, LIST_HOLDER_STATIC},
    Kind{"static-pie", LIST_HOLDER_STATIC_PIE, LIST_HOLDER_STATIC_PIE},
    Kind{"stripped", LIST_HOLDER_STRIPPED, LIST_HOLDER_STRIPPED},
};

/// A running list_holder.
class Child {
 public:
  explicit Child(const char* program) {
    int in[2], out[2];
    if (pipe(in) != 0 || pipe(out) != 0) std::abort();
    process_ = fork();
    if (process_ == 0) {
      dup2(in[0], 0), dup2(out[1], 1);
      for (const int fd : {in[0], in[1], out[0], out[1]}) close(fd);
      execl(program, program, nullptr);
      _exit(127);
    }
    close(in[0]), close(out[1]);
    to_ = in[1];
    from_ = fdopen(out[0], "r");
  }
  ~Child() {
    if (to_ >= 0) kill(process_, SIGKILL), finish();
    std::fclose(from_);
    if (memory_ >= 0) close(memory_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  std::string read_line() {
    std::array<char, 100> line{};
    return std::fgets(line.data(), line.size(), from_) == nullptr ? "" : line.data();
  }
  /// Must be called once the program runs: memory that is opened before is that of this program.
  void open_memory() { memory_ = open(("/proc/" + std::to_string(process_) + "/mem").c_str(), O_RDONLY); }
  int finish() {
    close(to_);
    to_ = -1;
    int status = 0;
    waitpid(process_, &status, 0);
    return status;
  }
  bool read(std::uint64_t at, void* into, std::size_t size) const {
    return pread(memory_, into, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size);
  }
  template <class T>
  std::optional<T> read(std::uint64_t at) const {
    T value{};
    if (!read(at, &value, sizeof value)) return {};
    return value;
  }
  std::string maps_path() const { return "/proc/" + std::to_string(process_) + "/maps"; }

 private:
  pid_t process_ = 0;
  int to_ = -1;
  FILE* from_ = nullptr;
  int memory_ = -1;
};

std::size_t aligned(std::size_t size) { return (size + 3) & ~std::size_t{3}; }

/// Reads the notes of one type: the address of a head for each of our notes, or that of the list's changes.
std::vector<std::uint64_t> read_notes(const Child& child, std::uint64_t at, std::size_t size, std::uint32_t type) {
  std::vector<std::uint64_t> found;
  std::vector<char> bytes(size);
  if (!child.read(at, bytes.data(), size)) return found;
  for (std::size_t offset = 0; offset + sizeof(Elf64_Nhdr) <= size;) {
    Elf64_Nhdr note;
    std::memcpy(&note, &bytes[offset], sizeof note);
    const std::size_t name = offset + sizeof note;
    const std::size_t description = name + aligned(note.n_namesz);
    offset = description + aligned(note.n_descsz);
    if (offset > size || note.n_namesz != 7 || std::memcmp(&bytes[name], "UNWDYN", 7) != 0) continue;
    EXPECT_TRUE(note.n_type == 1 || note.n_type == 2) << note.n_type;
    EXPECT_EQ(note.n_descsz, 16u);
    if (note.n_type != type) continue;
    std::uint32_t layout = 0, word = 0;
    std::int64_t distance = 0;
    std::memcpy(&layout, &bytes[description], 4);
    std::memcpy(&word, &bytes[description + 4], 4);
    std::memcpy(&distance, &bytes[description + 8], 8);
    EXPECT_EQ(layout, type == 1 ? 1u : 256u);
    EXPECT_EQ(word, sizeof(unw_word_t));
    found.push_back(at + description + 8 + static_cast<std::uint64_t>(distance));
  }
  return found;
}

/// Finds the notes by the program headers of every mapped object, from memory only.
std::vector<std::uint64_t> find_by_notes(const Child& child, std::uint32_t type) {
  std::vector<std::uint64_t> found;
  for (const std::string& line : lines_of(text_of_file(child.maps_path()))) {
    std::uint64_t begin = 0, end = 0, offset = 0;
    char mode[5];
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64, &begin, &end, mode, &offset) != 4) continue;
    const auto header = offset == 0 && mode[0] == 'r' ? child.read<Elf64_Ehdr>(begin) : std::nullopt;
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) continue;
    std::optional<std::uint64_t> bias;
    for (int pass = 0; pass < 2; ++pass) {
      for (unsigned i = 0; i < header->e_phnum; ++i) {
        const auto segment = child.read<Elf64_Phdr>(begin + header->e_phoff + i * sizeof(Elf64_Phdr));
        if (!segment) continue;
        if (segment->p_type == PT_LOAD && segment->p_offset == 0) bias = begin - segment->p_vaddr;
        if (pass == 0 || !bias || segment->p_type != PT_NOTE) continue;
        const auto said = read_notes(child, *bias + segment->p_vaddr, segment->p_memsz, type);
        found.insert(found.end(), said.begin(), said.end());
      }
    }
  }
  return found;
}

std::uint64_t nanoseconds_now() {
  timespec now{};
  EXPECT_EQ(::clock_gettime(CLOCK_MONOTONIC, &now), 0);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// covers: DY52
TEST(ListDiscovery, NoteLeadsToTheListInEveryKindOfProgram) {
  for (const Kind& kind : k_kinds) {
    SCOPED_TRACE(kind.name);
    const std::uint64_t before = nanoseconds_now();
    Child child(kind.program);
    const std::uint64_t told = std::strtoull(child.read_line().c_str(), nullptr, 16);
    ASSERT_NE(told, 0u);
    child.open_memory();
    EXPECT_EQ(find_by_notes(child, 1), std::vector<std::uint64_t>{told});
    const auto list = child.read<unw_dyn_info_list_t>(told);
    ASSERT_TRUE(list);
    EXPECT_EQ(list->version, 1u);
    std::vector<std::uint64_t> starts;
    for (auto at = reinterpret_cast<std::uint64_t>(list->first); at != 0 && starts.size() < 10;) {
      const auto info = child.read<unw_dyn_info_t>(at);
      ASSERT_TRUE(info);
      starts.push_back(info->start_ip);
      at = reinterpret_cast<std::uint64_t>(info->next);
    }
    EXPECT_EQ(starts, (std::vector<std::uint64_t>{0x30000, 0x20000, 0x10000, 0x9000}));
    const auto changes = find_by_notes(child, 2);
    ASSERT_EQ(changes.size(), 1u);
    const auto count = child.read<std::uint64_t>(changes[0]);
    ASSERT_TRUE(count);
    const std::uint64_t begun = *count - 4;
    EXPECT_GE(begun, before) << "no list has begun at this time of the clock";
    EXPECT_LE(begun, nanoseconds_now());
    EXPECT_EQ(list->generation, (static_cast<std::uint32_t>(begun >> 10) & ~1u) + 8) << "four registrations";
    for (std::uint64_t i = 0; i < 4; ++i) {
      struct Change {
        std::uint64_t descriptor, begin, end;
      };
      const auto change = child.read<Change>(changes[0] + 8 + (begun + i) % 256 * sizeof(Change));
      ASSERT_TRUE(change);
      EXPECT_EQ(change->begin, starts[3 - i]);
      const auto info = child.read<unw_dyn_info_t>(change->descriptor);
      ASSERT_TRUE(info) << "registered: even";
      EXPECT_EQ(info->start_ip, change->begin);
      EXPECT_EQ(info->end_ip, change->end);
    }
    const int status = child.finish();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_EQ(child.read_line(), "exit 1 1\n") << "cancelled by a static object while the process exited";
  }
}

TEST(ListDiscovery, ReadelfShowsTheNoteAndNoRelocation) {
  for (const Kind& kind : k_kinds) {
    SCOPED_TRACE(kind.name);
    const std::string notes = output_of("readelf -nW '" + std::string(kind.carrier) + "'");
    EXPECT_TRUE(has_match(notes, Pattern("UNWDYN\\s+0x00000010"))) << notes;
    const std::string segments = output_of("readelf -lW '" + std::string(kind.carrier) + "'");
    EXPECT_NE(segments.find("NOTE"), std::string::npos);
    // [Nr] .note.unwdyn NOTE address ...
    const std::string sections = output_of("readelf -SW '" + std::string(kind.carrier) + "'");
    Groups section;
    ASSERT_TRUE(has_match(sections, section, Pattern(R"(\.note\.unwdyn\s+NOTE\s+([0-9a-f]+)\s+\w+\s+([0-9a-f]+))")));
    const std::uint64_t begin = std::stoull(section[1], nullptr, 16);
    const std::uint64_t end = begin + std::stoull(section[2], nullptr, 16);
    std::istringstream relocations(output_of("readelf -rW '" + std::string(kind.carrier) + "'"));
    std::size_t lines = 0;
    for (std::string line; std::getline(relocations, line);) {
      std::uint64_t at = 0, info = 0;
      if (std::sscanf(line.c_str(), "%" SCNx64 " %" SCNx64, &at, &info) != 2) continue;
      ++lines;
      EXPECT_FALSE(at >= begin && at < end) << line;
    }
    EXPECT_TRUE(lines > 10 || kind.carrier != std::string(JITUNWIND_SHARED)) << "the search must see relocations";
  }
}

TEST(ListDiscovery, SymbolIsTheObjectOf16Bytes) {
  const Pattern symbol(R"(16 OBJECT\s+GLOBAL\s+\w+\s+\d+ _U_dyn_info_list(@@JITUNWIND_1)?\n)");
  const std::string dynamic = output_of("readelf --dyn-syms -W '" + std::string(JITUNWIND_SHARED) + "'");
  EXPECT_TRUE(has_match(dynamic, symbol));
  for (const Kind& kind : k_kinds) {
    if (kind.carrier == std::string(LIST_HOLDER_STRIPPED)) continue;
    const std::string all = output_of("readelf -sW '" + std::string(kind.carrier) + "'");
    EXPECT_TRUE(has_match(all, symbol)) << kind.name;
  }
  // A program that asks for it exports the symbol, as section 2 of the protocol says.
  const std::string exported = output_of("readelf --dyn-syms -W '" LIST_HOLDER_ARCHIVE "'");
  EXPECT_TRUE(has_match(exported, symbol)) << exported;
}

}  // namespace
