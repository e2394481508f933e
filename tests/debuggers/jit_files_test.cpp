// The list of files for debuggers, read as a debugger would, by libelf: always what is registered, no more and no less.
#include <dlfcn.h>
#include <fcntl.h>
#include <gelf.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "adapters/gdb_jit/gdb_jit.h"
#include "adapters/gdb_jit/jit_interface_p.h"
#include "dyn_info/registry.h"
#include "tests/registry/threads.h"
#include "unwind_core/sources/cfi.h"

extern "C" jit_descriptor __jit_debug_descriptor;

namespace {

using namespace jitunwind;
using registry_test::error_of;

constexpr Addr k_code = 0x60000000;

struct Known {
  std::string name;
  Addr size = 0;
  bool operator==(const Known&) const = default;
};
using Symbols = std::map<Addr, Known>;

/// What the sections of a file say, and whether they agree with each other.
struct ReadFile {
  Symbols symbols;
  std::vector<AddrRange> text, frames;
};

void read_symbols(Elf_Scn* section, const GElf_Shdr& header, Elf* elf, ReadFile& file) {
  Elf_Data* const data = elf_getdata(section, nullptr);
  for (int i = 1; i < static_cast<int>(header.sh_size / header.sh_entsize); ++i) {
    GElf_Sym symbol;
    ASSERT_NE(gelf_getsym(data, i, &symbol), nullptr);
    const char* const name = elf_strptr(elf, header.sh_link, symbol.st_name);
    ASSERT_NE(name, nullptr);
    EXPECT_TRUE(file.symbols.emplace(symbol.st_value, Known{name, symbol.st_size}).second) << name << " twice";
    GElf_Shdr text;
    gelf_getshdr(elf_getscn(elf, symbol.st_shndx), &text);
    EXPECT_GE(symbol.st_value, text.sh_addr) << name;
    EXPECT_LE(symbol.st_value + symbol.st_size, text.sh_addr + text.sh_size) << name;
  }
}

void read_frames(const std::byte* begin, std::size_t size, ReadFile& file) {
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  SectionView bytes({{begin, size}, at});
  const CfiContext context{.arch = *find_arch(EM_X86_64, false)};
  FdeScan scan(bytes, context, {at, at + size});
  for (Fde fde;;) {
    const Result<bool> next = scan.next(fde);
    ASSERT_TRUE(next) << next.error().what;
    if (!*next) break;
    file.frames.push_back(fde.range);
  }
}

ReadFile read_file(const jit_code_entry& entry) {
  ReadFile file;
  std::vector<char> copy(entry.symfile_size);
  std::memcpy(copy.data(), entry.symfile_addr, copy.size());
  Elf* const elf = elf_memory(copy.data(), copy.size());
  EXPECT_EQ(elf_kind(elf), ELF_K_ELF);
  std::size_t names = 0;
  EXPECT_EQ(elf_getshdrstrndx(elf, &names), 0);
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    EXPECT_NE(gelf_getshdr(section, &header), nullptr);
    const std::string name = elf_strptr(elf, names, header.sh_name);
    if (name == ".text") {
      EXPECT_EQ(header.sh_type, static_cast<GElf_Word>(SHT_NOBITS));
      file.text.push_back({header.sh_addr, header.sh_addr + header.sh_size});
    }
    if (name == ".symtab") read_symbols(section, header, elf, file);
    if (name != ".eh_frame") continue;
    EXPECT_EQ(header.sh_flags, 0u) << "makes GDB's time quadratic";
    read_frames(entry.symfile_addr + header.sh_offset, header.sh_size, file);
  }
  elf_end(elf);
  return file;
}

/// All files together; sections of different files must not overlap.
Symbols debugger_reads(std::size_t* sections = nullptr) {
  elf_version(EV_CURRENT);
  Symbols all;
  std::map<Addr, Addr> text;
  const jit_code_entry* before = nullptr;
  for (const jit_code_entry* entry = __jit_debug_descriptor.first_entry; entry != nullptr; entry = entry->next_entry) {
    EXPECT_EQ(entry->prev_entry, before);
    before = entry;
    ReadFile file = read_file(*entry);
    EXPECT_EQ(file.frames.size(), file.symbols.size());
    for (const AddrRange& range : file.frames)
      EXPECT_EQ(file.symbols.count(range.begin) ? file.symbols[range.begin].size : 0, range.size());
    for (const AddrRange& range : file.text)
      EXPECT_TRUE(text.emplace(range.begin, range.end).second) << "sections at one address";
    for (auto& [at, known] : file.symbols) EXPECT_TRUE(all.emplace(at, known).second) << known.name << " twice";
  }
  Addr end = 0;
  for (const auto& [begin, its_end] : text) {
    EXPECT_GE(begin, end) << "sections overlap";
    end = its_end;
  }
  if (sections != nullptr) *sections = text.size();
  return all;
}

/// A leaf with a name.
class Procedure {
 public:
  Procedure(Addr start, Addr size, std::string name)
      : name_(std::move(name)), info_(registry_test::procedure(start, size)) {
    info_.u.pi.name_ptr = reinterpret_cast<std::uintptr_t>(name_.c_str());
  }
  unw_dyn_info_t* info() { return &info_; }
  void add_to(Symbols& symbols) const { symbols[info_.start_ip] = {name_, info_.end_ip - info_.start_ip}; }

 private:
  std::string name_;
  unw_dyn_info_t info_;
};

class JitFiles : public testing::Test {
 protected:
  ~JitFiles() override {
    EXPECT_TRUE(detach_gdb());
    EXPECT_EQ(__jit_debug_descriptor.first_entry, nullptr);
  }
};

TEST_F(JitFiles, NothingIsMadeUntilItIsAskedFor) {
  Procedure early(k_code, 16, "early"), late(k_code + 16, 16, "late");
  ASSERT_TRUE(register_procedure(early.info()));
  EXPECT_EQ(__jit_debug_descriptor.first_entry, nullptr);
  EXPECT_FALSE(gdb_statistics().attached);
  ASSERT_TRUE(attach_gdb());
  ASSERT_TRUE(attach_gdb());
  Symbols wanted;
  early.add_to(wanted);
  EXPECT_EQ(debugger_reads(), wanted);
  ASSERT_TRUE(register_procedure(late.info()));
  late.add_to(wanted);
  EXPECT_EQ(debugger_reads(), wanted);
  EXPECT_EQ(gdb_statistics().procedures, 2u);
  ASSERT_TRUE(cancel_procedure(early.info()));
  wanted.erase(k_code);
  EXPECT_EQ(debugger_reads(), wanted);
  ASSERT_TRUE(detach_gdb());
  EXPECT_EQ(__jit_debug_descriptor.first_entry, nullptr);
  ASSERT_TRUE(detach_gdb());
  ASSERT_TRUE(cancel_procedure(late.info()));
}

TEST_F(JitFiles, RetiredGoesWithTheNextChangeOrFlush) {
  ASSERT_TRUE(attach_gdb());
  Procedure old(k_code, 16, "old"), fresh(k_code, 32, "fresh");
  ASSERT_TRUE(register_procedure(old.info()));
  unw_dyn_info_t* const batch[] = {old.info()};
  ASSERT_TRUE(retire_procedures(batch));
  ASSERT_TRUE(flush_gdb());
  EXPECT_EQ(debugger_reads(), Symbols());
  ASSERT_TRUE(register_procedure(fresh.info()));
  Symbols wanted;
  fresh.add_to(wanted);
  EXPECT_EQ(debugger_reads(), wanted);
  ASSERT_TRUE(cancel_procedure(fresh.info()));
}

// Registered and cancelled at random, in slots side by side and far apart, in batches and one by one.
TEST_F(JitFiles, AlwaysWhatIsRegistered) {
  ASSERT_TRUE(attach_gdb());
  constexpr std::size_t k_slots = 3000;
  std::mt19937 random(7);
  std::map<std::size_t, std::unique_ptr<Procedure>> live;
  const auto start = [](std::size_t slot) { return k_code + 48 * slot + (slot % 500 == 0 ? 0x100000 * slot : 0); };
  for (unsigned step = 0; step < 60; ++step) {
    std::vector<unw_dyn_info_t*> batch;
    const bool grow = step < 30 || step % 3 == 0;
    for (unsigned i = 0; i < 1 + random() % 200; ++i) {
      const std::size_t slot = random() % k_slots;
      const auto found = live.find(slot);
      if (grow && found == live.end()) {
        live[slot] = std::make_unique<Procedure>(start(slot), 16 + random() % 33, "f" + std::to_string(slot));
        if (i % 2 == 0) {
          ASSERT_TRUE(register_procedure(live[slot]->info()));
        } else {
          batch.push_back(live[slot]->info());
        }
      } else if (!grow && found != live.end()) {
        ASSERT_TRUE(cancel_procedure(found->second->info()));
        live.erase(found);
      }
    }
    ASSERT_TRUE(register_procedures(batch));
    Symbols wanted;
    for (const auto& [slot, procedure] : live) procedure->add_to(wanted);
    ASSERT_EQ(debugger_reads(), wanted) << "step " << step;
    EXPECT_LE(gdb_statistics().files, live.size() / 512 + live.size() / 64 + 20);
  }
  EXPECT_GT(live.size(), 500u);
  for (auto& [slot, procedure] : live) ASSERT_TRUE(cancel_procedure(procedure->info()));
  EXPECT_EQ(debugger_reads(), Symbols());
}

// As code is mostly made: one behind the other, with a little room between them.
TEST_F(JitFiles, NeighboursShareSectionsAndFilesAreFew) {
  ASSERT_TRUE(attach_gdb());
  constexpr std::size_t k_many = 5000;
  std::vector<std::unique_ptr<Procedure>> all;
  for (std::size_t i = 0; i < k_many; ++i) {
    all.push_back(std::make_unique<Procedure>(k_code + 64 * i, 40, "g" + std::to_string(i)));
    ASSERT_TRUE(register_procedure(all.back()->info()));
  }
  std::size_t sections = 0;
  EXPECT_EQ(debugger_reads(&sections).size(), k_many);
  EXPECT_LE(gdb_statistics().files, k_many / 512 + 10);
  EXPECT_LE(sections, k_many / 512 + 10);
  for (auto& procedure : all) ASSERT_TRUE(cancel_procedure(procedure->info()));
}

TEST_F(JitFiles, OtherLibrariesEntriesStay) {
  const std::byte foreign_file{};
  jit_code_entry second{nullptr, nullptr, &foreign_file, 1};
  jit_code_entry first{&second, nullptr, &foreign_file, 1};
  second.prev_entry = &first;
  __jit_debug_descriptor.first_entry = &first;
  ASSERT_TRUE(attach_gdb());
  Procedure procedure(k_code, 16, "f");
  ASSERT_TRUE(register_procedure(procedure.info()));
  // As LLVM does it: takes one out, puts one in front, ours in between.
  second.prev_entry->next_entry = nullptr;
  jit_code_entry newest{__jit_debug_descriptor.first_entry, nullptr, &foreign_file, 1};
  newest.next_entry->prev_entry = &newest;
  __jit_debug_descriptor.first_entry = &newest;
  ASSERT_TRUE(cancel_procedure(procedure.info()));
  ASSERT_TRUE(detach_gdb());
  EXPECT_EQ(__jit_debug_descriptor.first_entry, &newest);
  EXPECT_EQ(newest.next_entry, &first);
  EXPECT_EQ(first.prev_entry, &newest);
  EXPECT_EQ(first.next_entry, nullptr);
  __jit_debug_descriptor.first_entry = nullptr;
}

TEST_F(JitFiles, ThreadsRegisterWhileItComesAndGoes) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (Addr t = 0; t < 3; ++t) {
    threads.emplace_back([&stop, t] {
      for (Addr i = 0; !stop; ++i) {
        Procedure procedure(k_code + 0x100000 * t + 64 * (i % 50), 32, "t" + std::to_string(i));
        if (!register_procedure(procedure.info()) || !cancel_procedure(procedure.info())) std::abort();
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(attach_gdb());
    ASSERT_TRUE(flush_gdb());
    if (i % 10 == 0) {
      const pid_t child = ::fork();
      if (child == 0) {
        Procedure procedure(k_code, 32, "child");
        const bool right = register_procedure(procedure.info()) && cancel_procedure(procedure.info()) && detach_gdb();
        ::_exit(right && __jit_debug_descriptor.first_entry == nullptr ? 0 : 1);
      }
      int status = -1;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }
    ASSERT_TRUE(detach_gdb());
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(attach_gdb());
  EXPECT_EQ(debugger_reads(), Symbols());
}

}  // namespace
