// Heads of a target's lists of registered procedures: found by notes, right and wrong ones, and by symbols if there are
// no notes.
#include <elf.h>
#include <gtest/gtest.h>

#include <iterator>
#include <vector>

#include "jitunwind/dyn_info/target_heads_internal.h"
#include "jitunwind/unwind_core/memory/bytes.h"
#include "jitunwind/unwind_core/memory/process.h"
#include "jitunwind/unwind_core/targets/target_files_internal.h"
#include "tests/support/texts.h"
#include "tests/targets/noted_object.h"
#include "tests/targets/target_programs.h"

namespace jitunwind::test {
namespace {

using Heads = std::vector<Addr>;
constexpr Addr k_begin = 0x400000, k_size = 0x1000, k_head = 0x800;  // of each object, and in it

Heads heads_in(const Memory& memory, const Mappings& mappings, const TargetFiles& files) {
  const MappedModules modules(memory, arch::x86_64, mappings, files);
  const TargetHeads heads(memory, arch::x86_64, modules, files);
  Heads found;
  MemoryWindow window;
  for (std::size_t number = 0;; ++number) {
    const auto head = heads.list_head(number, window);
    if (!head || *head == 0) return found;
    found.push_back(*head);
  }
}

using Note = ListNotes;

/// Returns the heads in a target with these objects, which lie one after the other.
Heads heads_of(const std::vector<Note>& notes) {
  std::vector<RawBytes> objects;
  std::vector<BytesMemory::Piece> pieces;
  std::vector<Mapping> mappings;
  objects.reserve(notes.size());
  for (const Note& note : notes) {
    const Addr begin = k_begin + 2 * k_size * objects.size();
    objects.push_back(object_with(note, begin, k_size));
    pieces.push_back({begin, objects.back()});
    mappings.push_back({.range = {begin, begin + k_size}, .path = "/o" + std::to_string(begin), .readable = true});
  }
  return heads_in(BytesMemory(pieces), Mappings(std::move(mappings)), TargetFiles::none());
}

Addr head_in(std::size_t object) { return k_begin + 2 * k_size * object + k_head; }

// covers: DY51
TEST(HeadsByNotes, AreThoseOfEveryObject) {
  EXPECT_EQ(heads_of({{head_in(0)}, {head_in(1)}}), (Heads{head_in(0), head_in(1)}));
  EXPECT_EQ(heads_of({{head_in(1)}, {head_in(1)}}), Heads{head_in(1)}) << "one list is one";
  std::vector<Note> many;
  Heads first;
  for (std::size_t i = 0; i < 2 * ListHead::k_most; ++i) {
    many.push_back({head_in(i)});
    if (i < ListHead::k_most) first.push_back(head_in(i));
  }
  EXPECT_EQ(heads_of(many), first);
}

TEST(HeadsByNotes, AreNoneWhereTheNoteIsNotUnderstood) {
  for (const Note& wrong : {Note{.head = head_in(0), .layout = 2}, Note{.head = head_in(0), .word_size = 4},
                            Note{.head = head_in(0), .size = 12}, Note{.head = head_in(0) + 0x10'0000}})
    EXPECT_EQ(heads_of({wrong, {head_in(1)}}), Heads{head_in(1)}) << wrong.layout << " " << wrong.word_size;
}

/// A live process that prints the address of its list.
class ListWithoutNote {
 public:
  explicit ListWithoutNote(const std::vector<std::string>& command) {
    int out[2];
    EXPECT_EQ(::pipe(out), 0);
    process_ = ::fork();
    if (process_ == 0) {
      die_with_the_test();
      ::dup2(out[1], STDOUT_FILENO);
      ::close(out[0]), ::close(out[1]);
      ::execl(command[0].c_str(), command[0].c_str(), command.size() > 1 ? command[1].c_str() : nullptr, nullptr);
      ::_exit(127);
    }
    ::close(out[1]);
    FILE* const said = ::fdopen(out[0], "r");
    unsigned long at = 0;
    EXPECT_EQ(std::fscanf(said, "%lx", &at), 1) << command[0];
    std::fclose(said);
    list_ = at;
  }
  ~ListWithoutNote() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  ListWithoutNote(const ListWithoutNote&) = delete;
  ListWithoutNote& operator=(const ListWithoutNote&) = delete;

  Addr list() const { return list_; }
  Heads found() const {
    const Mappings mappings = Mappings::parse(text_of_file("/proc/" + std::to_string(process_) + "/maps"));
    return heads_in(ProcessMemory(process_), mappings, TargetFiles());
  }

 private:
  pid_t process_ = 0;
  Addr list_ = 0;
};

/// A stripped program exports the list, one that exports nothing has a symbol table, and so may a library with
/// libunwind's name. Other libraries are not searched.
// covers: DY50
TEST(HeadsBySymbol, AreFoundWhereNoNoteIs) {
  for (const auto& command : std::vector<std::vector<std::string>>{
           {EXPORTED_LIST}, {HIDDEN_LIST}, {NO_LIST, LIST_IN_LIBUNWIND}, {NO_LIST, EXPORTED_BY_LIBRARY}}) {
    const ListWithoutNote target(command);
    EXPECT_EQ(target.found(), Heads{target.list()}) << command.back();
  }
  EXPECT_EQ(ListWithoutNote({NO_LIST, LIST_IN_ANOTHER}).found(), Heads{});
}

}  // namespace
}  // namespace jitunwind::test
