// Input: changes of a code segment's tables, which are cut at each store. libdw, dladdr(), libgcc_s and this library
// read every state. A byte for each change, and its operands: bits 0 and 1 a room, a function in one, all functions of
// one go, a new file; bits 2 and 3 the room's parts, or the description; bit 4 whether the new file is sealed, or the
// function has a personality routine and data.
#include <elfutils/libdw.h>
#include <gelf.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/image/symbol_index_internal.h"
#include "tests/code_segments/segment_readers.h"
#include "tests/fuzz/fuzz_check.h"

using namespace jitunwind;
using jitunwind::test::SmallSegment;

namespace {

constexpr std::size_t k_code = sizeof test::FrameCode::k_bytes;

/// Runs code, with a visit behind each instruction that writes to some pages. They may not be written to; the handler
/// allows it for one instruction (trap flag: Intel SDM 1, 3.4.3.3).
class EveryStore {
 public:
  template <class Code, class Visit>
  static void run(std::span<std::byte> pages, Code code, Visit& visit) {
    pages_ = pages;
    visit_ = [](void* it) { (*static_cast<Visit*>(it))(); };
    argument_ = &visit;
    struct sigaction action {
    }, segv, trap;
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &action, &segv);
    ::sigaction(SIGTRAP, &action, &trap);
    protect(PROT_READ);
    code();
    protect(PROT_READ | PROT_WRITE);
    ::sigaction(SIGSEGV, &segv, nullptr);
    ::sigaction(SIGTRAP, &trap, nullptr);
  }

 private:
  static void protect(int protection) {
    fuzz::check(::mprotect(pages_.data(), pages_.size(), protection) == 0, "the tables can be protected");
  }
  static void handle(int signal, siginfo_t* info, void* context) {
    constexpr greg_t k_trap_flag = 0x100;
    greg_t& flags = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
    if (signal == SIGSEGV) {
      const auto* const at = static_cast<const std::byte*>(info->si_addr);
      fuzz::check(at >= pages_.data() && at < pages_.data() + pages_.size(), "only the tables are protected");
      protect(PROT_READ | PROT_WRITE);
      flags |= k_trap_flag;
    } else {
      flags &= ~k_trap_flag;
      protect(PROT_READ);
      visit_(argument_);
    }
  }

  static inline std::span<std::byte> pages_;
  static inline void (*visit_)(void*) = nullptr;
  static inline void* argument_ = nullptr;
};

/// Readers of the file, beside those of the process.
class Readers : public test::SegmentReaders {
 public:
  using SegmentReaders::SegmentReaders;

  void expect_leaving(Segment::Index index) {
    const auto known = std::ranges::find(known_, start(index), &Known::start);
    if (known == known_.end()) return;
    changing_.push_back(*known);
    known_.erase(known);
  }
  void expect_no_change() { changing_.clear(); }
  void look() {
    SegmentReaders::look();
    const std::byte* const tables = small_.segment->memory().tables();
    file_.assign(tables, tables + small_.layout.text);
    file_.resize(small_.layout.end);  // the code and the dynamic section are not read
    read_by_libdw();
    read_symbols();
    fuzz::check(wrong == nullptr, wrong);
    ++states;
  }

  std::size_t states = 0;

 private:
  Addr in_file(const Known& function) const {
    return small_.layout.text_address + (function.start - small_.segment->text().begin);
  }
  template <class Check>
  void each_function(Check check) {
    for (const Known& known : known_) check(known, true);
    for (const Known& changing : changing_) check(changing, false);
  }

  void read_by_libdw() {
    ::elf_version(EV_CURRENT);
    Elf* const elf = ::elf_memory(reinterpret_cast<char*>(file_.data()), file_.size());
    Dwarf_CFI* const cfi = ::dwarf_getcfi_elf(elf);
    expect(cfi != nullptr, "libdw finds no call frame information");
    each_function([&](const Known& function, bool must_be_known) {
      Dwarf_Frame* frame = nullptr;
      Dwarf_Addr begin = 0, end = 0;
      const bool is_known = ::dwarf_cfi_addrframe(cfi, in_file(function) + 1, &frame) == 0;
      expect(is_known || !must_be_known, "libdw misses a frame");
      if (is_known) (void)::dwarf_frame_info(frame, &begin, &end, nullptr);
      expect(!is_known || (begin >= in_file(function) && end <= in_file(function) + k_code),
             "libdw reads other code's");
      std::free(frame);
    });
    ::dwarf_cfi_end(cfi);
    read_sections(elf);
    ::elf_end(elf);
  }

  /// Debuggers and symbolizers go by the sections' headers, and read each section from its begin to its end.
  void read_sections(Elf* elf) {
    Elf_Scn* section = nullptr;
    while ((section = ::elf_nextscn(elf, section)) != nullptr) {
      GElf_Shdr header;
      if (::gelf_getshdr(section, &header) == nullptr) return expect(false, "libelf reads no header");
      if (header.sh_type == SHT_DYNSYM) read_symbols(elf, header, ::elf_getdata(section, nullptr));
      if (header.sh_addr == small_.layout.frames) read_frames(elf, ::elf_getdata(section, nullptr));
    }
  }
  void read_symbols(Elf* elf, const GElf_Shdr& header, Elf_Data* symbols) {
    GElf_Sym symbol;
    for (int i = 1; ::gelf_getsym(symbols, i, &symbol) != nullptr; ++i) {
      if (symbol.st_shndx == SHN_UNDEF) continue;
      const char* const name = ::elf_strptr(elf, header.sh_link, symbol.st_name);
      bool is_known = false;
      each_function([&](const Known& function, bool) {
        if (in_file(function) != symbol.st_value || name == nullptr) return;
        is_known = is_known || name == function.name || name == function.other;
      });
      expect(is_known, "libelf reads another symbol");
    }
  }
  void read_frames(Elf* elf, Elf_Data* frames) {
    const auto* const ident = reinterpret_cast<const unsigned char*>(::elf_getident(elf, nullptr));
    Dwarf_CFI_Entry entry;
    int ends = 0;
    for (Dwarf_Off at = 0, next = 0; ends == 0; at = next)
      ends = ::dwarf_next_cfi(ident, frames, true, at, &next, &entry);
    expect(ends == 1, "libdw cannot read the section to its end");
  }

  void read_symbols() {
    const auto image = ElfImage::parse(file_);
    expect(static_cast<bool>(image), "this library does not read the file");
    if (!image) return;
    const SymbolTable table{&*image, image->symbols(SHT_DYNSYM)};
    each_function([&](const Known& function, bool must_be_known) {
      const auto found = find_symbol({&table, 1}, in_file(function) + 1);
      expect(found ? found->name == function.name || found->name == function.other : !must_be_known,
             "this library names a function wrongly");
    });
  }

  std::vector<std::byte> file_;
};

/// One segment, and the changes of an input.
class Changes {
 public:
  explicit Changes(std::span<const std::uint8_t> input) : input_(input) { whole(); }

  void run() {
    constexpr int k_most = 24;
    for (int i = 0; i < k_most && !input_.empty(); ++i) {
      const std::uint8_t change = next();
      const unsigned detail = (change >> 2) & 3;
      const bool flag = (change & 16) != 0;
      readers_.expect_no_change();
      switch (change & 3) {
        case 0:
          append(detail);
          break;
        case 1:
          publish(detail, flag);
          break;
        case 2:
          withdraw();
          break;
        default:
          renew(flag);
      }
      readers_.expect_no_change();
      readers_.look();
    }
    fuzz::check(!testing::Test::HasFailure(), "the frames can be made");
  }

 private:
  struct Room {
    Segment::Index index = 0;
    std::size_t used = 0, all = 1;
  };
  Segment& segment() { return *small_.segment; }
  std::uint8_t next() {
    const std::uint8_t byte = input_.empty() ? std::uint8_t{0} : input_.front();
    input_ = input_.subspan(std::min<std::size_t>(1, input_.size()));
    return byte;
  }
  Room* any_room() { return rooms_.empty() ? nullptr : &rooms_[next() % rooms_.size()]; }
  /// The kernel gives no page to memory that may not be written to.
  void whole() { segment().memory().back_all_ahead(); }
  template <class Code>
  void cut(Code code) {
    auto visit = [this] { readers_.look(); };
    EveryStore::run({segment().memory().tables(), small_.layout.text}, code, visit);
  }

  void append(std::size_t parts) {
    if (segment().memory().is_sealed()) renew(false);
    std::optional<Segment::Index> room;
    cut([&] { room = segment().append({(1 + parts) * k_code, parts}); });
    if (room) rooms_.push_back({.index = *room, .all = 1 + parts});
  }

  void publish(unsigned kind, bool is_handled) {
    Room* const room = any_room();
    const std::string name(1 + next() * 2 % 499, static_cast<char>('a' + count_++ % 26));
    if (room == nullptr || room->used == room->all || !segment().has_room_in_tables(segment()[room->index])) return;
    if (segment().memory().is_sealed()) renew(false);
    const Addr start = segment().start(segment()[room->index]) + room->used * k_code;
    const auto entry = segment().take_entry(room->index, start);
    fuzz::check(entry.has_value(), "a room has a part for each of its functions");
    const Addr pointer = is_handled ? start + 1 : 0;
    const Description& description = descriptions_[kind % descriptions_.size()];
    const std::vector<std::byte> frames = small_.frames_of(start, pointer, pointer, &description);
    readers_.expect_changing(*entry, name.c_str());
    bool is_published = false;
    cut([&] { is_published = segment().publish(*entry, k_code, frames, name); });
    ++room->used;
    if (!is_published) return withdraw(*room);
    readers_.expect_known(*entry, name.c_str());
  }

  void withdraw() {
    if (Room* const room = any_room()) withdraw(*room);
  }
  void withdraw(Room& room) {
    if (room.used == 0) return;
    while (room.used != 0) readers_.expect_leaving(room.index + static_cast<Segment::Index>(--room.used));
    cut([&] { segment().withdraw(room.index); });
  }

  void renew(bool seals) {
    const auto former = segment().renew(seals);
    fuzz::check(static_cast<bool>(former), "the file can be renewed");
    (void)::unlink(former->c_str());
    if (!segment().memory().is_sealed()) whole();
  }

  std::span<const std::uint8_t> input_;
  SmallSegment small_;
  Readers readers_{small_};
  std::vector<Room> rooms_;
  unsigned count_ = 0;
  const std::array<Description, 3> descriptions_{
      test::frame_description("pushes"),
      *test::host::describe("one push").push({0, 1}, test::host::rbx).pop({-2, -1}, test::host::rbx).build(),
      *test::host::describe("leaf").build()};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Changes({data, size}).run();
  return 0;
}
