// Functions and jump slots of objects, compared with readelf: of this system's libgcc_s, and of objects that are linked
// in every relevant way, for both CPUs.
#include "jitunwind/unwind_core/image/dynamic_object_internal.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>

#include "jitunwind/unwind_core/image/copied_parts_p.h"
#include "tests/support/command.h"
#include "tests/support/fake_memory.h"

namespace jitunwind::test {
namespace {

constexpr Addr k_bias = 0x7f0000000000;

/// The file as it is loaded, but not relocated.
struct LoadedFile {
  FakeMemory memory;
  Arch arch = arch::x86_64;
  Addr dynamic = 0;
  Addr dynamic_end = 0;

  explicit LoadedFile(const std::string& path) {
    const auto file = std::make_unique<FileParts>(path.c_str());
    const auto image = ElfImage::parse(*file);
    arch = with_byte_order(*find_arch(image->machine(), false), image->big_endian());
    memory = FakeMemory(image->big_endian());
    for (std::size_t i = 0; i < image->segment_count(); ++i) {
      const ElfSegment s = image->segment(i);
      if (s.type == PT_LOAD) memory.put_bytes(k_bias + s.address, image->at_address(s.address, s.file_size));
      if (s.type != PT_DYNAMIC) continue;
      dynamic = k_bias + s.address;
      dynamic_end = dynamic + s.file_size;
    }
  }
  DynamicObject object() const { return DynamicObject(memory, arch, k_bias, dynamic); }
};

struct Defined {
  std::string name;
  Addr address;
  Addr slot;  ///< 0: none
};

/// "000000001f0f8  0000006600000007 R_X86_64_JUMP_SLOT 0000000000018da0 _Unwind_Find_FDE@@GCC_3.0 + 0".
Addr slot_by_readelf(const std::string& relocations, const std::string& type, const std::string& name) {
  for (const std::string& line : lines_of(relocations)) {
    std::istringstream in(line);
    Addr offset = 0;
    std::string info, read_type, value, symbol;
    if (!(in >> std::hex >> offset >> info >> read_type >> value >> symbol) || read_type.rfind(type, 0) != 0) continue;
    if (symbol.substr(0, symbol.find('@')) == name) return offset;
  }
  return 0;
}

/// "   12: 0000000000018da0   346 FUNC    GLOBAL DEFAULT   12 _Unwind_Find_FDE@@GCC_3.0".
std::vector<Defined> functions_by_readelf(const std::string& path) {
  const std::string relocations = output_of("readelf -rW " + path);
  std::vector<Defined> all;
  for (const std::string& line : lines_of(output_of("readelf --dyn-syms -W " + path))) {
    std::istringstream in(line);
    std::string number, size, type, binding, visibility, section, name;
    Addr address = 0;
    if (!(in >> number >> std::hex >> address >> size >> type >> binding >> visibility >> section >> name)) continue;
    if (type != "FUNC" || section == "UND") continue;
    name = name.substr(0, name.find('@'));
    for (const std::string cpu : {"R_X86_64_", "R_AARCH64_"}) {
      Addr slot = slot_by_readelf(relocations, cpu + "JUMP_SL", name);
      if (slot == 0) slot = slot_by_readelf(relocations, cpu + "GLOB_DA", name);
      if (slot != 0 || cpu == "R_AARCH64_") {
        all.push_back({name, address, slot});
        break;
      }
    }
  }
  return all;
}

std::size_t compare(const std::string& path) {
  const LoadedFile loaded(path);
  std::size_t with_slot = 0;
  for (const Defined& defined : functions_by_readelf(path)) {
    DynamicObject object = loaded.object();
    const auto found = object.find_function(defined.name);
    EXPECT_TRUE(found) << path << ' ' << defined.name;
    if (!found) continue;
    EXPECT_EQ(found->address, defined.address + k_bias) << path << ' ' << defined.name;
    EXPECT_EQ(object.find_slot(*found), defined.slot == 0 ? 0 : defined.slot + k_bias) << path << ' ' << defined.name;
    with_slot += defined.slot != 0;
    EXPECT_FALSE(loaded.object().find_function(defined.name + "_")) << defined.name;
    EXPECT_FALSE(loaded.object().find_function(defined.name.substr(1))) << defined.name;
  }
  return with_slot;
}

std::string path_of_libgcc() {
  for (const std::string& line : lines_of(output_of("ldd /proc/self/exe || ldd $(readlink -f /proc/self/exe)")))
    if (line.find("libgcc_s") != std::string::npos)
      return line.substr(line.find('/'), line.rfind(' ') - line.find('/'));
  return output_of("gcc -print-file-name=libgcc_s.so.1");
}

TEST(DynamicObject, OfThisSystemsLibgccIsAsReadelfReadsIt) {
  const std::string path = lines_of(path_of_libgcc()).at(0);
  EXPECT_GE(compare(path), 5u);
  EXPECT_FALSE(LoadedFile(path).object().find_function("malloc")) << "used, not defined";
  EXPECT_FALSE(LoadedFile(path).object().find_function(std::string(1000, 'a')));
}

/// A library of two functions, the first of which calls the second.
class Linked {
 public:
  Linked(const std::string& compile, const std::string& link) {
    std::ofstream(folder_ / "f.c") << "int second(int x) { return x * 3; }\n"
                                      "int first(int x) { return second(x) + 1; }\n"
                                      "int other(void) { return 1; }\n";
    output_of(compile + " -c -O1 -fPIC -fsemantic-interposition " + (folder_ / "f.c") + " -o " + (folder_ / "f.o"));
    output_of(link + " -shared " + (folder_ / "f.o") + " -o " + path());
  }
  std::string path() const { return folder_ / "f.so"; }

 private:
  TemporaryFolder folder_;
};

TEST(DynamicObject, OfEveryWayToLinkIsAsReadelfReadsIt) {
  const std::string gcc = "gcc";
  EXPECT_EQ(compare(Linked(gcc, "ld").path()), 1u);
  EXPECT_EQ(compare(Linked(gcc, "ld --hash-style=sysv").path()), 1u);
  EXPECT_EQ(compare(Linked(gcc, "ld --hash-style=both -z now").path()), 1u);
  EXPECT_EQ(compare(Linked(gcc + " -fno-plt", "ld").path()), 1u) << "a word of the global offset table";
  EXPECT_EQ(compare(Linked(gcc, "ld -Bsymbolic").path()), 0u);
}

#ifdef CLANG
TEST(DynamicObject, OfOtherCpusIsAsReadelfReadsIt) {
  const std::string clang = CLANG " --target=", lld = "ld.lld -z notext";
  for (const std::string target : {"aarch64-linux-gnu", "aarch64_be-linux-gnu", "x86_64-linux-gnu"}) {
    EXPECT_EQ(compare(Linked(clang + target, lld).path()), 1u) << target;
    EXPECT_EQ(compare(Linked(clang + target, lld + " --hash-style=sysv").path()), 1u) << target;
    EXPECT_EQ(compare(Linked(clang + target + " -fno-plt", lld).path()), 1u) << target;
  }
}
#endif

TEST(DynamicObject, SaysWhetherItStaysLoaded) {
  EXPECT_TRUE(LoadedFile(Linked("gcc", "ld -z nodelete").path()).object().stays_loaded());
  EXPECT_FALSE(LoadedFile(Linked("gcc", "ld -z now").path()).object().stays_loaded());
}

/// Whatever is missing or wrong, there is an answer, and a slot is a word that may be one.
TEST(DynamicObject, OfBrokenBytesIsAnswered) {
  for (const std::string hash : {"gnu", "sysv"}) {
    const LoadedFile whole(Linked("gcc", "ld --hash-style=" + hash).path());
    std::mt19937 random(1);
    std::size_t found_some = 0;
    for (Addr at = whole.dynamic; at < whole.dynamic_end; at += 8) {
      for (const std::uint64_t value : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{random()}}) {
        LoadedFile broken = whole;
        broken.memory.put(at, value);
        DynamicObject object = broken.object();
        const auto function = object.find_function("second");
        const Addr slot = function ? object.find_slot(*function) : 0;
        EXPECT_EQ(slot % 8, 0u);
        found_some += slot != 0;
      }
    }
    EXPECT_GT(found_some, 0u);
    // The first page has the tables, byte by byte.
    for (Addr at = k_bias; at < k_bias + 0x400; ++at) {
      LoadedFile broken = whole;
      broken.memory.put(at, random(), 1);
      DynamicObject object = broken.object();
      if (const auto function = object.find_function("second")) {
        EXPECT_EQ(object.find_slot(*function) % 8, 0u);
      }
      broken.memory.forget(at, 1);
      (void)broken.object().find_function("second");
    }
  }
}

}  // namespace
}  // namespace jitunwind::test
