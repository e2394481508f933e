// Signal frames that a core file or a sample has the beginning of, on every CPU: of the trampoline's code, or of the
// data that the kernel has put on the stack. The walk ends there, and the error says what is missing.
#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/byte_reader.h"
#include "tests/support/all_targets.h"
#include "tests/support/bytes.h"
#include "tests/support/texts.h"
#include "tests/targets/recorded_cores.h"

namespace jitunwind::test {
namespace {

/// The program headers of a core file of any CPU.
class Segments {
 public:
  Segments(std::string& file, const Arch& arch)
      : file_(file), big_endian_(arch.big_endian), wide_(arch.word_size == 8) {}

  /// Makes the memory that contains `at` end there. Returns false if no memory contains it.
  bool cut(Addr at) {
    const std::uint64_t headers = wide_ ? get(offsetof(Elf64_Ehdr, e_phoff), 8) : get(offsetof(Elf32_Ehdr, e_phoff), 4);
    const std::uint64_t count =
        get(wide_ ? offsetof(Elf64_Ehdr, e_phnum) : offsetof(Elf32_Ehdr, e_phnum), sizeof(Elf32_Half));
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t header = headers + i * (wide_ ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr));
      const std::size_t size = wide_ ? 8 : 4;
      const std::uint64_t vaddr = header + (wide_ ? offsetof(Elf64_Phdr, p_vaddr) : offsetof(Elf32_Phdr, p_vaddr));
      const std::uint64_t filesz = header + (wide_ ? offsetof(Elf64_Phdr, p_filesz) : offsetof(Elf32_Phdr, p_filesz));
      const std::uint64_t memsz = header + (wide_ ? offsetof(Elf64_Phdr, p_memsz) : offsetof(Elf32_Phdr, p_memsz));
      const Addr begin = get(vaddr, size);
      if (get(header, 4) != PT_LOAD || at - begin >= get(filesz, size)) continue;
      for (const std::uint64_t field : {filesz, memsz})
        ByteWriter(std::as_writable_bytes(std::span(file_).subspan(field, size)), big_endian_)
            .unsigned_of(at - begin, size);
      return true;
    }
    return false;
  }

 private:
  std::uint64_t get(std::uint64_t at, std::size_t size) const {
    return ByteReader(std::as_bytes(std::span(file_).subspan(at, size)), big_endian_).unsigned_of(size);
  }

  std::string& file_;
  bool big_endian_;
  bool wide_;
};

struct Walked {
  std::vector<Addr> pcs;
  std::vector<Addr> sps;
  StopReason reason = StopReason::none;
  Error error{};
  std::string why;
};

Walked walked(const Target& target, Guesses guesses = Guesses::bold) {
  Walked all;
  Walk walk = target.walk(target.threads()[0], guesses);
  for (const Frame& frame : walk) {
    all.pcs.push_back(frame.pc());
    all.sps.push_back(frame.sp());
  }
  all.reason = walk.stop_reason();
  all.error = walk.stop_error();
  all.why = walk.why();
  return all;
}

/// Expects the frames up to the one in which memory ends, at `end`.
void expect_cut(const Walked& walk, const Walked& whole, std::size_t signal, Addr end) {
  ASSERT_GE(walk.pcs.size(), signal) << walk.why;
  for (std::size_t i = 0; i < std::min(walk.pcs.size(), signal + 2); ++i) {
    EXPECT_EQ(walk.pcs[i], whole.pcs[i]) << i;
    EXPECT_EQ(walk.sps[i], whole.sps[i]) << i;
  }
  if (walk.pcs.size() > signal + 1) return;
  EXPECT_EQ(walk.reason, StopReason::broken) << walk.why;
  EXPECT_EQ(walk.error.code, ErrorCode::unreadable_memory) << walk.why;
  EXPECT_GE(walk.error.at + 8, end) << walk.why;
}

class CutCore : public testing::TestWithParam<Recorded> {
 protected:
  void SetUp() override {
    bytes_ = text_of_file(files_.core);
    const auto core = files_.open();
    ASSERT_TRUE(core) << core.error().text();
    arch_ = core->arch();
    whole_ = walked(*core, Guesses::confirmed);
    ASSERT_GT(whole_.pcs.size(), k_signal + 2);
  }
  /// Walks with memory that ends at an address.
  Walked cut_at(Addr at) {
    std::string bytes = bytes_;
    EXPECT_TRUE(Segments(bytes, arch_).cut(at)) << std::hex << at;
    std::fstream(files_.core, std::ios::in | std::ios::out | std::ios::binary).write(bytes.data(), k_headers);
    const auto core = files_.open();
    EXPECT_TRUE(core) << core.error().text();
    return core ? walked(*core) : Walked{};
  }

  static constexpr std::streamsize k_headers = 1024;
  static constexpr std::size_t k_signal = 2;  // behind give_up() and handle_fault()
  const Unpacked files_{GetParam().name};
  std::string bytes_;
  Arch arch_{};
  Walked whole_;
};

INSTANTIATE_TEST_SUITE_P(Cpus, CutCore, testing::ValuesIn(k_recorded),
                         [](const auto& info) { return std::string(info.param.name); });

// covers: HL12 RG04
TEST_P(CutCore, EndsAtATrampolineThatIsCutOff) {
  // The shortest trampoline is one instruction of two bytes.
  const Addr end = whole_.pcs[k_signal] + 1;
  const Walked walk = cut_at(end);
  ASSERT_EQ(walk.pcs.size(), k_signal + 1) << walk.why;
  EXPECT_EQ(walk.reason, StopReason::broken) << walk.why;
  EXPECT_EQ(walk.error.at, end) << walk.why;
  EXPECT_NE(walk.why.find("signal trampoline"), std::string::npos) << walk.why;
}

// covers: HL12 RG04
TEST_P(CutCore, EndsAtASignalFrameThatIsCutOff) {
  const Addr sp = whole_.sps[k_signal];
  std::size_t ended = 0, went_on = 0;
  for (Addr size = arch_.word_size; size <= 1024; size += size < 64 ? arch_.word_size : 40) {
    const Walked walk = cut_at(sp + size);
    expect_cut(walk, whole_, k_signal, sp + size);
    if (testing::Test::HasFailure()) break;
    ended += walk.pcs.size() == k_signal + 1;
    went_on += walk.pcs.size() > k_signal + 1;
  }
  EXPECT_GT(ended, 2u);
  EXPECT_GT(went_on, 2u);
}

class CutSample : public testing::TestWithParam<Arch> {
 protected:
  static constexpr Addr k_code = 0x500000, k_caller = 0x400000, k_stack = 0x7000'0000, k_caller_sp = 0x7000'2000;
  const Arch& arch() const { return GetParam(); }

  /// Walks from the beginning of a trampoline's code and of its frame.
  Walked walk(const CodePattern& trampoline, std::size_t code_size, std::size_t stack_size) {
    std::string code(reinterpret_cast<const char*>(trampoline.bytes.data()), trampoline.bytes.size());
    const std::string path = folder_ / "code";
    std::ofstream(path, std::ios::binary | std::ios::trunc) << code.substr(0, code_size);
    Bytes stack = Bytes::in_order(arch().big_endian).fill(4096, 0);
    const auto save = [&](RegNum reg, Addr value) {
      stack.put(static_cast<std::size_t>(slot(trampoline, reg) - k_stack), value, arch().word_size);
    };
    save(arch().pc, k_caller);
    save(arch().sp, k_caller_sp);
    Sample sample;
    sample.arch = &arch();
    sample.stack_address = k_stack;
    sample.stack = std::span(stack.vector()).first(stack_size);
    (void)sample.registers.set(arch().column(arch().pc), k_code + trampoline.pc_offset);
    (void)sample.registers.set(arch().column(arch().sp), k_stack);
    sample.mappings = Mappings::parse("400000-401000 r-xp 0 0:0 0\n500000-501000 r-xp 0 0:1 4711 " + path +
                                      "\n70000000-70003000 rw-p 0 0:0 0 [stack]\n")
                          .all();
    const auto target = Target::from_sample(sample);
    EXPECT_TRUE(target) << target.error().text();
    return target ? walked(*target) : Walked{};
  }
  Addr slot(const CodePattern& trampoline, RegNum reg) const {
    return k_stack + static_cast<Addr>(std::int64_t{arch().sigframe_ucontext} + trampoline.cfa_offset +
                                       arch().by_dwarf(reg)->ucontext);
  }

 private:
  const TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Cpus, CutSample, testing::ValuesIn(all_targets()), target_name);

// covers: RG04
TEST_P(CutSample, EndsAtATrampolineThatIsCutOff) {
  for (const CodePattern& trampoline : arch().trampolines) {
    for (std::size_t size = trampoline.pc_offset + 1u; size < trampoline.bytes.size(); ++size) {
      const Walked seen = walk(trampoline, size, 4096);
      ASSERT_EQ(seen.pcs, std::vector<Addr>{k_code + trampoline.pc_offset}) << size;
      EXPECT_EQ(seen.reason, StopReason::broken) << seen.why;
      EXPECT_EQ(seen.error.code, ErrorCode::unreadable_memory) << seen.why;
      EXPECT_EQ(seen.error.at, k_code + size) << seen.why;
    }
    const Walked whole = walk(trampoline, trampoline.bytes.size(), 4096);
    EXPECT_EQ(whole.pcs, (std::vector<Addr>{k_code + trampoline.pc_offset, k_caller})) << whole.why;
  }
}

// covers: RG04
TEST_P(CutSample, EndsAtASignalFrameThatIsCutOff) {
  for (const CodePattern& trampoline : arch().trampolines) {
    const Addr pc = slot(trampoline, arch().pc), sp = slot(trampoline, arch().sp);
    std::vector<std::size_t> sizes{0, 1, 128, 256, 512, 1024, 4096};
    for (const Addr of : {pc, sp})
      for (const Addr more : {Addr{0}, Addr{1}, Addr{arch().word_size} - 1, Addr{arch().word_size}})
        sizes.push_back(static_cast<std::size_t>(of + more - k_stack));
    for (const std::size_t size : sizes) {
      const Addr end = k_stack + size;
      const Walked seen = walk(trampoline, trampoline.bytes.size(), size);
      const bool is_whole = std::max(pc, sp) + arch().word_size <= end;
      ASSERT_EQ(seen.pcs.size(), is_whole ? 2u : 1u) << size << ": " << seen.why;
      if (is_whole) {
        EXPECT_EQ(seen.pcs[1], k_caller);
        EXPECT_EQ(seen.sps[1], k_caller_sp);
        continue;
      }
      EXPECT_EQ(seen.reason, StopReason::broken) << seen.why;
      EXPECT_EQ(seen.error.code, ErrorCode::unreadable_memory) << seen.why;
      EXPECT_TRUE(seen.error.at == pc || seen.error.at == sp) << seen.why;
    }
  }
}

}  // namespace
}  // namespace jitunwind::test
