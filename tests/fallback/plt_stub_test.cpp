// Procedure linkage stubs of three linkers, run one instruction at a time, against the truth.
#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>

#include <sstream>
#include <string>

#include "jitunwind/adapters/testing/single_step_p.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/sources/sources.h"
#include "tests/support/command.h"
#include "tests/support/fake_space.h"
#include "tests/support/linkers.h"

namespace jitunwind::test {
using namespace stepping;
namespace {

struct Library {
  const char* name;
  bool lazy;
  std::size_t sections;  ///< .plt, .plt.sec, .plt.got
};

void PrintTo(const Library& library, std::ostream* out) { *out << library.name; }

/// The stubs' sections, by objdump: "<index> .plt <size> <address> ..." in hex.
std::vector<SteppedCode> stub_sections(const std::string& path, Addr bias) {
  std::vector<SteppedCode> found;
  for (const std::string& line : lines_of(output_of("objdump -hw " + path))) {
    std::istringstream in(line);
    int index = 0;
    std::string name;
    Addr size = 0, address = 0;
    if (in >> index >> name >> std::hex >> size >> address && name.starts_with(".plt"))
      found.push_back({name, {bias + address, bias + address + size}});
  }
  return found;
}

bool is_padding(Addr at) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(at);
  const std::string text = instruction_text(std::span(bytes, k_max_instruction_bytes), at);
  return text.find("nop") != std::string::npos || text.find("xchg ax, ax") != std::string::npos;
}

class PltStubs : public testing::TestWithParam<Library> {};

// covers: LU20
TEST_P(PltStubs, HaveRightRowsAtEveryInstruction) {
  const std::string path = std::string(LIBRARY_FOLDER "/plt_") + GetParam().name + ".so";
  void* const handle = ::dlopen(path.c_str(), RTLD_LAZY);
  ASSERT_NE(handle, nullptr) << ::dlerror();
  const auto* const map = static_cast<const link_map*>(handle);
  const auto call_all = reinterpret_cast<long (*)(long)>(::dlsym(handle, "plt_call_all"));
  const auto code = stub_sections(path, map->l_addr);
  ASSERT_EQ(code.size(), GetParam().sections);

  const SingleStepJudge judge{"plt_stub", {&plt_stub_source()}};
  SingleStepOptions options;
  options.modules = &local_modules();
  // The call is made twice: a lazy stub goes through the resolver the first time only.
  const auto body = [call_all] { return call_all(10) == 38 && call_all(0) == -2 ? 0 : 1; };
  const SingleStepRun run = single_step(code, body, std::span(&judge, 1), options);
  EXPECT_TRUE(run.ok()) << run.text();
  EXPECT_EQ(run.activations, 6u);

  std::size_t stubs = 0, missed = 0;
  for (const SteppedCode& section : code) {
    const auto* const begin = reinterpret_cast<const void*>(section.range.begin);
    stubs += instruction_starts(begin, section.range.size()).size();
    for (const Addr at : run.missed(begin, section.range.size())) missed += !is_padding(at);
  }
  // Behind the three stubs' and the first entry's instructions only the stub of __cxa_finalize is left: at most
  // endbr64; jmp and endbr64; push; jmp. Bound at load time, no stub goes to the resolver.
  if (GetParam().lazy) {
    EXPECT_LE(missed, 5u) << "of " << stubs;
  } else {
    EXPECT_GE(run.visited.size(), 3u);
  }
  ::dlclose(handle);
}

std::vector<Library> linked_libraries() {
  std::vector<Library> all{{"bfd_lazy", true, 2},  {"bfd_now", false, 2}, {"bfd_ibt", true, 3},
                           {"gold_lazy", true, 1}, {"lld_lazy", true, 1}, {"lld_ibt", true, 2}};
  std::erase_if(all, [](const Library& library) { return !is_linked(library.name); });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Linkers, PltStubs, testing::ValuesIn(linked_libraries()),
                         [](const auto& info) { return std::string(info.param.name); });

/// One module that is all code.
class OneModule : public ModuleFinder {
 public:
  bool find(Addr at, Module& out) const noexcept override {
    out = {};
    out.range = out.text = {0x1000, 0x9000};
    return out.range.contains(at);
  }
};

struct Stub {
  const Arch& arch;
  std::vector<std::uint8_t> code;
  Addr pc_offset;
  std::int64_t cfa;  ///< offset from SP; -1: no stub
};

std::optional<FrameRow> row_of(const Stub& stub, CodeAddress at, const ModuleFinder& modules) {
  FakeMemory memory;
  memory.put_bytes(0x2000, std::as_bytes(std::span(stub.code)));
  const AddressSpace space{stub.arch, memory, modules, {}, {}};
  MemoryWindow window;
  Lookup lookup(space, at, window);
  FrameRow row;
  const Found found = plt_stub_source().find_row(lookup, row);
  return found && *found ? std::optional(row) : std::nullopt;
}

// Stubs that no linker writes here any more, and those of another CPU.
TEST(PltStubPatterns, MatchAtEveryInstruction) {
  const std::vector<std::uint8_t> bnd_first{0xff, 0x35, 1, 2, 3, 4, 0xf2, 0xff, 0x25, 1, 2, 3, 4};
  const std::vector<std::uint8_t> bnd{0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 1, 2, 3, 4};
  const std::vector<std::uint8_t> ibt{0xf3, 0x0f, 0x1e, 0xfa, 0x68, 7, 0, 0, 0, 0xf2, 0xe9, 1, 2, 3, 4};
  // GNU objdump shows of an AArch64 library: stp x16,x30,[sp,#-16]!; adrp x16,1f000; ldr x17,[x16,#4088]; add
  // x16,x16,#0xff8; br x17. Then adrp x16,20000; ldr x17,[x16]; add x16,x16,#0; br x17.
  const std::vector<std::uint8_t> a64_first{0xf0, 0x7b, 0xbf, 0xa9, 0xf0, 0x00, 0x00, 0x90, 0x11, 0xfe,
                                            0x47, 0xf9, 0x10, 0xe2, 0x3f, 0x91, 0x20, 0x02, 0x1f, 0xd6};
  const std::vector<std::uint8_t> a64{0x10, 0x01, 0x00, 0x90, 0x11, 0x02, 0x40, 0xf9,
                                      0x10, 0x02, 0x00, 0x91, 0x20, 0x02, 0x1f, 0xd6};
  std::vector<std::uint8_t> a64_bti{0x5f, 0x24, 0x03, 0xd5};
  a64_bti.insert(a64_bti.end(), a64.begin(), a64.end());
  std::vector<std::uint8_t> a64_pac(a64.begin(), a64.end() - 4);
  for (int b : {0x9f, 0x21, 0x03, 0xd5, 0x20, 0x02, 0x1f, 0xd6}) a64_pac.push_back(static_cast<std::uint8_t>(b));
  // 32-bit x86: push 4(%ebx); jmp *8(%ebx). jmp *12(%ebx); push $8; jmp plt0. endbr32; push $8; jmp plt0.
  const std::vector<std::uint8_t> x86_first{0xff, 0xb3, 4, 0, 0, 0, 0xff, 0xa3, 8, 0, 0, 0};
  const std::vector<std::uint8_t> x86_pic{0xff, 0xa3, 12, 0, 0, 0, 0x68, 8, 0, 0, 0, 0xe9, 0xd0, 0xff, 0xff, 0xff};
  const std::vector<std::uint8_t> x86_ibt{0xf3, 0x0f, 0x1e, 0xfb, 0x68, 8, 0, 0, 0, 0xe9, 0xd0, 0xff, 0xff, 0xff};
  const std::vector<std::uint8_t> x86_sec{0xf3, 0x0f, 0x1e, 0xfb, 0xff, 0x25, 1, 2, 3, 4};
  const std::vector<Stub> stubs{
      {arch::x86, x86_first, 0, 8},       {arch::x86, x86_first, 6, 12},      {arch::x86, x86_first, 2, -1},
      {arch::x86, x86_pic, 0, 4},         {arch::x86, x86_pic, 6, 4},         {arch::x86, x86_pic, 11, 8},
      {arch::x86, x86_ibt, 0, 4},         {arch::x86, x86_ibt, 4, 4},         {arch::x86, x86_ibt, 9, 8},
      {arch::x86, x86_sec, 0, 4},         {arch::x86, x86_sec, 4, 4},         {arch::x86, x86_sec, 5, -1},
      {arch::x86_64, bnd_first, 0, 16},   {arch::x86_64, bnd_first, 6, 24},   {arch::x86_64, bnd_first, 5, -1},
      {arch::x86_64, bnd, 0, 8},          {arch::x86_64, bnd, 4, 8},          {arch::x86_64, bnd, 2, -1},
      {arch::x86_64, ibt, 4, 8},          {arch::x86_64, ibt, 9, 16},         {arch::x86_64, ibt, 11, -1},
      {arch::aarch64, a64_first, 0, 0},   {arch::aarch64, a64_first, 4, 16},  {arch::aarch64, a64_first, 8, 16},
      {arch::aarch64, a64_first, 12, 16}, {arch::aarch64, a64_first, 16, 16}, {arch::aarch64, a64, 0, 0},
      {arch::aarch64, a64, 4, 0},         {arch::aarch64, a64, 8, 0},         {arch::aarch64, a64, 12, 0},
      {arch::aarch64, a64_bti, 0, 0},     {arch::aarch64, a64_bti, 16, 0},    {arch::aarch64, a64_pac, 8, 0},
      {arch::aarch64, a64_pac, 12, 0},    {arch::aarch64, a64_pac, 16, 0},    {arch::aarch64, a64_pac, 2, -1},
  };
  for (const Stub& stub : stubs) {
    const Addr pc = 0x2000 + stub.pc_offset;
    const auto row = row_of(stub, CodeAddress::interrupted(pc), OneModule());
    ASSERT_EQ(row.has_value(), stub.cfa >= 0) << stub.arch.name << " " << stub.code.size() << " +" << stub.pc_offset;
    if (!row) continue;
    FrameRow expected = entry_row(stub.arch);
    expected.cfa.offset = stub.cfa;
    EXPECT_EQ(to_text(*row, stub.arch), to_text(expected, stub.arch));
    EXPECT_EQ(row->origin, RowOrigin::plt_stub);
    // The pattern does not match a return address, nor code outside of a module.
    EXPECT_FALSE(row_of(stub, CodeAddress::returned_to(pc), OneModule()));
    EXPECT_FALSE(row_of(stub, CodeAddress::interrupted(pc), NoModules()));
  }
}

}  // namespace
}  // namespace jitunwind::test
