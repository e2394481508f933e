// Modules of this process, in a PIE, a non-PIE and two kinds of static programs, compared with the loader's list and
// the kernel's.
#include "jitunwind/unwind_core/modules/local_modules.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/auxv.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/modules/local_modules_p.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "jitunwind/unwind_core/sources/sources.h"
#include "tests/support/linkers.h"

namespace jitunwind {
namespace {

Addr addr_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }
Addr addr_of(const SectionBytes& section) { return addr_of(section.bytes.data()); }

struct Loaded {
  Addr bias;
  std::string name;
  std::vector<ElfW(Phdr)> headers;
};

std::vector<Loaded> loaded_objects() {
  std::vector<Loaded> result;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* into) {
        static_cast<std::vector<Loaded>*>(into)->push_back(
            {info->dlpi_addr, info->dlpi_name, {info->dlpi_phdr, info->dlpi_phdr + info->dlpi_phnum}});
        return 0;
      },
      &result);
  return result;
}

Addr begin_of(const Loaded& object) {
  const auto first = std::ranges::find(object.headers, ElfW(Word){PT_LOAD}, &ElfW(Phdr)::p_type);
  return object.bias + first->p_vaddr;
}

/// Kernels for AArch64 map their object between the loader's segments of code and data, which lie 64 KiB apart. glibc's
/// index assumes that an address can only be of the object that begins last before it, so the loader's data belongs to
/// nobody.
bool is_behind_another(const Loaded& object, Addr at) {
  return std::ranges::any_of(loaded_objects(), [&](const Loaded& other) {
    return begin_of(object) < begin_of(other) && begin_of(other) <= at;
  });
}

/// Returns the permissions of [begin, end) in /proc/self/maps, those of its worst page; "" if there is a hole.
std::string permissions(Addr begin, Addr end) {
  std::ifstream maps("/proc/self/maps");
  std::string result = "rwx";
  Addr covered = begin;
  for (std::string line; covered < end && std::getline(maps, line);) {
    std::istringstream in(line);
    Addr from = 0, to = 0;
    char dash = 0;
    std::string mode;
    in >> std::hex >> from >> dash >> to >> mode;
    if (to <= covered || from > covered) continue;
    for (std::size_t i = 0; i < 3; ++i)
      if (mode[i] == '-') result[i] = '-';
    covered = to;
  }
  return covered >= end ? result : "";
}

class LocalModules : public testing::TestWithParam<const ModuleFinder* (*)()> {
 protected:
  const ModuleFinder& finder() const { return *GetParam()(); }
};

void expect_described(const Module& module, const Loaded& object, const ElfW(Phdr) & segment) {
  SCOPED_TRACE(object.name);
  EXPECT_EQ(module.load_bias, object.bias);
  EXPECT_STREQ(module.path, object.name.empty() ? "/proc/self/exe" : object.name.c_str());
  const Addr begin = object.bias + segment.p_vaddr;
  const bool is_code = (segment.p_flags & PF_X) != 0;
  EXPECT_EQ(module.text, (is_code ? AddrRange{begin, begin + segment.p_memsz} : AddrRange{}));
  EXPECT_TRUE(module.range.contains(begin));
  EXPECT_TRUE(module.range.contains(begin + segment.p_memsz - 1));
  const bool has_header = std::ranges::any_of(object.headers, [](auto& h) { return h.p_type == PT_GNU_EH_FRAME; });
  ASSERT_EQ(!module.eh_frame_hdr.empty(), has_header);
  if (!has_header) return;
  // LSB 5.0, 10.6.2: version 1, and the encoding of eh_frame_ptr that every linker writes, pcrel sdata4.
  EXPECT_EQ(module.eh_frame_hdr.bytes[0], std::byte{1});
  EXPECT_EQ(module.eh_frame_hdr.bytes[1], std::byte{0x1b});
  EXPECT_EQ(addr_of(module.eh_frame_hdr), module.eh_frame_hdr.address);
  EXPECT_EQ(addr_of(module.eh_segment), module.eh_segment.address);
  const Addr end = module.eh_segment.address + module.eh_segment.bytes.size();
  EXPECT_EQ(module.eh_frame_hdr.address + module.eh_frame_hdr.bytes.size(), end);
  EXPECT_EQ(permissions(module.eh_segment.address, end)[0], 'r');
  std::int32_t distance = 0;
  std::memcpy(&distance, module.eh_frame_hdr.bytes.data() + 4, sizeof distance);
  const Addr eh_frame = module.eh_frame_hdr.address + 4 + static_cast<Addr>(std::int64_t{distance});
  EXPECT_TRUE((AddrRange{module.eh_segment.address, end}).contains(eh_frame));
}

TEST_P(LocalModules, DescribesEverySegmentOfEveryObject) {
  std::size_t segments = 0;
  for (const Loaded& object : loaded_objects())
    for (const ElfW(Phdr) & header : object.headers) {
      if (header.p_type != PT_LOAD) continue;
      ++segments;
      for (Addr offset : {Addr{0}, Addr{header.p_memsz / 2}, Addr{header.p_memsz - 1}}) {
        Module module;
        const Addr at = object.bias + header.p_vaddr + offset;
        if (&finder() == &local_modules() && (header.p_flags & PF_X) == 0 && is_behind_another(object, at)) continue;
        ASSERT_TRUE(finder().find(at, module)) << object.name << " +" << offset;
        expect_described(module, object, header);
      }
    }
  EXPECT_GE(segments, 2u);
}

TEST_P(LocalModules, KnowsTheCodeItIs) {
  Module module;
  ASSERT_TRUE(finder().find(addr_of(reinterpret_cast<void*>(&permissions)), module));
  EXPECT_TRUE(module.text.contains(addr_of(reinterpret_cast<void*>(&permissions))));
  EXPECT_EQ(permissions(module.text.begin, module.text.end), "r-x");
  Dl_info info;
  if (::dladdr(reinterpret_cast<void*>(&permissions), &info) != 0) {
    EXPECT_EQ(module.range.begin, addr_of(info.dli_fbase));
  }
}

TEST_P(LocalModules, FindsTheKernelsObject) {
  const Addr vdso = ::getauxval(AT_SYSINFO_EHDR);
  ASSERT_NE(vdso, 0u);
  Module module;
  ASSERT_TRUE(finder().find(vdso + 0x800, module));
  EXPECT_EQ(module.range.begin, vdso);
  EXPECT_STREQ(module.path, sizeof(void*) == 8 ? "linux-vdso.so.1" : "linux-gate.so.1");
  // Some kernels' objects have no call frame information.
  const std::span headers(
      reinterpret_cast<const ElfW(Phdr)*>(vdso + reinterpret_cast<const ElfW(Ehdr)*>(vdso)->e_phoff),
      reinterpret_cast<const ElfW(Ehdr)*>(vdso)->e_phnum);
  const bool has_a_table = std::ranges::any_of(headers, [](auto& header) { return header.p_type == PT_GNU_EH_FRAME; });
  EXPECT_EQ(module.eh_frame_hdr.empty(), !has_a_table);
}

TEST_P(LocalModules, FindsNothingElsewhere) {
  const int on_stack = 0;
  const auto on_heap = std::make_unique<int>();
  Module module;
  for (Addr at : {Addr{0}, Addr{1}, addr_of(&on_stack), addr_of(on_heap.get()), Addr{1} << 47, ~Addr{0},
                  Addr{0xdeadbeefdeadbeef}})
    EXPECT_FALSE(finder().find(at, module)) << std::hex << at;
}

// A static program without PIE has no .eh_frame_hdr: its .eh_frame is found through the sections of its file.
TEST_P(LocalModules, HaveTheirEhFrameWithOrWithoutATable) {
  const Addr here = addr_of(reinterpret_cast<void*>(&permissions));
  Module module;
  ASSERT_TRUE(finder().find(here, module));
  if (module.eh_frame_hdr.empty()) {
    finder().add_file_sections(module);
    ASSERT_FALSE(module.eh_frame.empty());
    EXPECT_EQ(addr_of(module.eh_frame), module.eh_frame.address);
    EXPECT_EQ(permissions(module.eh_frame.address, module.eh_frame.address + module.eh_frame.bytes.size())[0], 'r');
  }
  const LocalMemory memory;
  const AddressSpace space{*host_arch(), memory, finder(), {}, {}};
  MemoryWindow window;
  Lookup lookup(space, CodeAddress::interrupted(here), window);
  FrameRow row;
  const Found found = eh_frame_source().find_row(lookup, row);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ(to_text(row, *host_arch()), to_text(entry_row(*host_arch()), *host_arch()));
}

#ifdef PLUGIN_FOLDER
// plugin_second is laid out as plugin_bfd and usually comes to lie in its place.
TEST_P(LocalModules, FollowsDlopenAndDlclose) {
  for (const std::string name :
       test::linked({"plugin_bfd.so", "plugin_second.so", "plugin_gold.so", "plugin_bfd.so"})) {
    const std::string path = PLUGIN_FOLDER "/" + name;
    void* const handle = ::dlopen(path.c_str(), RTLD_NOW);
    ASSERT_NE(handle, nullptr) << ::dlerror();
    const Addr entry = addr_of(::dlsym(handle, name == "plugin_second.so" ? "second_entry" : "plugin_entry"));
    ASSERT_NE(entry, 0u);
    for (int time = 0; time < 2; ++time) {
      Module module;
      ASSERT_TRUE(finder().find(entry, module));
      EXPECT_EQ(module.path, path);
      EXPECT_TRUE(module.text.contains(entry));
      for (const Loaded& object : loaded_objects())
        if (object.name == path)
          for (const ElfW(Phdr) & header : object.headers)
            if (header.p_type == PT_LOAD && header.p_flags & PF_X) expect_described(module, object, header);
    }
    ::dlclose(handle);
    Module module;
    EXPECT_FALSE(finder().find(entry, module));
  }
}

// A thread's answer never mixes what two others remember at the same time.
TEST_P(LocalModules, AreFoundByManyThreadsWhileOthersComeAndGo) {
  struct Known {
    Addr at;
    Module module;
  };
  std::vector<Known> stay;
  for (const Loaded& object : loaded_objects())
    for (const ElfW(Phdr) & header : object.headers) {
      if (header.p_type != PT_LOAD || !(header.p_flags & PF_X)) continue;
      Known known{object.bias + header.p_vaddr, {}};
      ASSERT_TRUE(listed_modules().find(known.at, known.module));
      stay.push_back(known);
    }
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wrong{0}, finds{0};
  const auto look = [&] {
    std::size_t n = 0;
    for (; !stop.load(std::memory_order_relaxed); ++n) {
      const Known& known = stay[n % stay.size()];
      Module module;
      if (!finder().find(known.at, module) || module.range != known.module.range ||
          module.eh_frame_hdr.address != known.module.eh_frame_hdr.address || module.path != known.module.path)
        ++wrong;
    }
    finds += n;
  };
  std::thread a(look), b(look);
  for (int i = 0; i < 200; ++i)
    for (const char* path : {PLUGIN_FOLDER "/plugin_bfd.so", PLUGIN_FOLDER "/plugin_second.so"}) {
      void* const handle = ::dlopen(path, RTLD_NOW);
      ASSERT_NE(handle, nullptr) << ::dlerror();
      Module module;
      EXPECT_TRUE(finder().find(addr_of(::dlsym(handle, "plugin_entry_address")), module));
      EXPECT_STREQ(module.path, path);
      ::dlclose(handle);
    }
  stop = true;
  a.join(), b.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(finds, 0u);
}

#ifdef JITUNWIND_HAS_GOLD
TEST(LocalModulesOfGold, HaveTheirTableBeforeItsHeader) {
  void* const handle = ::dlopen(PLUGIN_FOLDER "/plugin_gold.so", RTLD_NOW);
  ASSERT_NE(handle, nullptr) << ::dlerror();
  Module module;
  ASSERT_TRUE(local_modules().find(addr_of(::dlsym(handle, "plugin_entry")), module));
  EXPECT_LT(module.eh_segment.address, module.eh_frame_hdr.address);
  std::int32_t distance = 0;
  std::memcpy(&distance, module.eh_frame_hdr.bytes.data() + 4, sizeof distance);
  EXPECT_LT(distance, 0);
  ::dlclose(handle);
}
#endif
#endif

INSTANTIATE_TEST_SUITE_P(Ways, LocalModules,
                         testing::Values([] { return &local_modules(); }, [] { return &listed_modules(); }),
                         [](const auto& info) { return info.index == 0 ? "Best" : "ByIteration"; });

TEST(LocalModulesOfGlibc, AreAskedForWithoutALock) { EXPECT_TRUE(has_dl_find_object()); }

}  // namespace
}  // namespace jitunwind
