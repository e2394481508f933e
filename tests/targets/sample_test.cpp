// A sample as a target: registers, the top of the stack, and the mappings of a live process at one moment.
#include <elf.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

#include "jitunwind/unwind_core/image/elf_internal.h"
#include "tests/listen/dump_writer.h"
#include "tests/targets/taken_sample.h"

namespace jitunwind::test {
namespace {

/// Static code is known by the mapped files; a sample knows nothing of code made at run time.
TEST(SampleOfAProcess, HasTheFramesOfStaticCode) {
  const TargetProgram program(TARGET_PROGRAM, {"0"});
  const Taken taken = take(program, 64 << 10);
  const auto target = Target::from_sample(taken.sample);
  ASSERT_TRUE(target) << target.error().text();
  ASSERT_EQ(target->threads().size(), 1u);
  const SeenStack stack = seen(target->walk(target->threads()[0]));
  ASSERT_GE(stack.frames.size(), 3u);
  EXPECT_EQ(stack.frames[0], taken.live.frames[0]);
  EXPECT_EQ(stack.frames[1], taken.live.frames[1]);
  EXPECT_EQ(stack.frames[2].pc, taken.live.frames[2].pc) << "the first of code made at run time";
  EXPECT_NE(stack.why, "complete");
}

/// The kernel appends " (deleted)" to names of deleted files, and programs may have such a name.
TEST(SampleOfAProcess, HasTheFramesOfAProgramThatIsCalledDeleted) {
  const TemporaryFolder folder;
  const std::string file = folder / "program (deleted)";
  std::filesystem::copy_file(TARGET_PROGRAM, file);
  std::filesystem::copy_file("/bin/true", folder / "program");
  const TargetProgram program(file, {"0"});
  const Taken taken = take(program, 64 << 10);
  EXPECT_EQ(callers_of_stand_still(taken.live), program.stacks().at(program.process()).frames);
  const auto target = Target::from_sample(taken.sample);
  ASSERT_TRUE(target) << target.error().text();
  const SeenStack stack = seen(target->walk(target->threads()[0]));
  // The system call is in one function of glibc 2.36, and in four of 2.41.
  const auto stands = std::ranges::find(stack.frames, "stand_still", &SeenFrame::name);
  ASSERT_NE(stands, stack.frames.end()) << stack.why;
  EXPECT_TRUE(std::equal(stack.frames.begin(), stands + 1, taken.live.frames.begin()));
}

/// A sample with little of the stack gives the same frames, as many as it has.
TEST(SampleOfAProcess, EndsWhereTheStackEnds) {
  const TargetProgram program(TARGET_PROGRAM, {"0"});
  const Taken taken = take(program, 1024);
  for (std::size_t bytes = 0; bytes <= taken.stack.size(); bytes += 8) {
    Sample part = taken.sample;
    part.stack = std::span(taken.stack).first(bytes);
    const auto target = Target::from_sample(part);
    ASSERT_TRUE(target) << target.error().text();
    const SeenStack stack = seen(target->walk(target->threads()[0]));
    ASSERT_LE(stack.frames.size(), taken.live.frames.size());
    for (std::size_t i = 0; i < stack.frames.size(); ++i)
      ASSERT_EQ(stack.frames[i].pc, taken.live.frames[i].pc) << bytes;
  }
}

/// One target for successive samples gives the same frames as a target for each.
TEST(SampleOfAProcess, IsRenewedWithAnother) {
  const TargetProgram first(TARGET_PROGRAM, {"0"}), second(TARGET_PROGRAM, {"0"});
  const Taken one = take(first, 64 << 10), other = take(second, 64 << 10);
  Sample less = one.sample;
  less.stack = less.stack.first(64);
  less.thread = 7;
  auto target = Target::from_sample(one.sample);
  ASSERT_TRUE(target) << target.error().text();
  for (const Sample& sample : {one.sample, less, other.sample, one.sample, other.sample, less}) {
    ASSERT_TRUE(target->renew(sample));
    const auto alone = Target::from_sample(sample);
    ASSERT_TRUE(alone) << alone.error().text();
    EXPECT_EQ(target->threads()[0].id, sample.thread);
    const SeenStack expected = seen(alone->walk(alone->threads()[0])),
                    renewed = seen(target->walk(target->threads()[0]));
    EXPECT_EQ(renewed.frames, expected.frames);
    EXPECT_EQ(renewed.why, expected.why);
  }
  auto live = Target::attach(first.process());
  ASSERT_TRUE(live) << live.error().text();
  const auto refused = live->renew(one.sample);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, TargetError::Reason::no_samples);
}

/// The files of a JIT belong to the program that wrote them. If the kernel's object has moved or is gone, another
/// program was executed since, whose code may be at the same addresses.
TEST(SampleOfAProcess, KeepsNamesOfJitsUntilAnotherProgramIsExecuted) {
  constexpr Addr k_code = 0x500000;
  const TemporaryFolder folder;
  const std::string path = folder / "jit-4711.dump";
  const Bytes dump =
      Bytes().add(dump_header()).add(dump_loaded("of_the_first_program", k_code, Bytes().fill(64, 0x90)));
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(dump.vector().data()), static_cast<std::streamsize>(dump.size()));
  const std::string code = "500000-501000 r-xp 0 0:0 0\n", mapped = "400000-401000 r-xp 0 0:1 4711 " + path + "\n",
                    kernels = "600000-601000 r-xp 0 0:0 0 [vdso]\n", others = "700000-701000 r-xp 0 0:0 0 [vdso]\n";
  const auto sample_of = [&](const std::string& maps) {
    Sample sample;
    const Arch& arch = *host_arch();
    (void)sample.registers.set(arch.column(arch.pc), k_code + 1);
    (void)sample.registers.set(arch.column(arch.sp), 0x900000);
    sample.mappings = Mappings::parse(maps).all();
    return sample;
  };
  for (const std::string& executed : {others, std::string()}) {
    auto target = Target::from_sample(sample_of(mapped + code + kernels));
    ASSERT_TRUE(target) << target.error().text();
    const auto name = [&] { return seen(target->walk(target->threads()[0])).frames.at(0).name; };
    EXPECT_EQ(name(), "of_the_first_program");
    ASSERT_TRUE(target->renew(sample_of(code + kernels)));
    EXPECT_EQ(name(), "of_the_first_program") << "it has closed its file";
    ASSERT_TRUE(target->renew(sample_of(code + executed)));
    EXPECT_EQ(name(), "");
  }
  // Another file has the name of the deleted one.
  const std::string deleted = mapped.substr(0, mapped.size() - 1) + " (deleted)\n";
  const auto target = Target::from_sample(sample_of(deleted + code + kernels));
  ASSERT_TRUE(target) << target.error().text();
  EXPECT_EQ(seen(target->walk(target->threads()[0])).frames.at(0).name, "");
}

/// The number of bits in an address is known if there are addresses that use all of them.
// covers: RG14
TEST(SampleOfAProcess, StripsSignaturesOnlyWhereItsAddressesShowTheirBits) {
  constexpr Addr k_48_bits = (Addr{1} << 48) - 1, k_39_bits = (Addr{1} << 39) - 1;
  const auto mask_of = [](const Arch& arch, const std::string& maps) {
    Sample sample;
    sample.arch = &arch;
    sample.mappings = Mappings::parse(maps).all();
    const auto target = Target::from_sample(sample);
    EXPECT_TRUE(target) << target.error().text();
    return target->arch().address_mask;
  };
  const std::string small = "5500000000-5500001000 r-xp 0 0:0 0\n7fffff0000-7ffffff000 rw-p 0 0:0 0 [stack]\n";
  const std::string large = small + "ffffc0000000-ffffc0021000 rw-p 0 0:0 0 [stack]\n";
  EXPECT_EQ(mask_of(arch::aarch64, small), ~Addr{0});
  EXPECT_EQ(mask_of(arch::aarch64, large), k_48_bits);
  const std::string larger = large + "7000000000000-7000000001000 r-xp 0 0:0 0\n";
  EXPECT_EQ(mask_of(arch::aarch64, larger), (Addr{1} << 52) - 1);
  const std::string of_the_kernel = small + "ffff800008000000-ffff800009000000 r-xp 0 0:0 0 [kernel.kallsyms]\n";
  EXPECT_EQ(mask_of(arch::aarch64, of_the_kernel), ~Addr{0});
  Arch told = arch::aarch64;
  told.address_mask = k_39_bits;
  EXPECT_EQ(mask_of(told, small), k_39_bits);
  EXPECT_EQ(mask_of(arch::x86_64, small), ~Addr{0});
}

/// The kernel's object as it is mapped here, and a sample in its first function.
class SampleInTheKernelsObject : public testing::Test {
 protected:
  SampleInTheKernelsObject() {
    const Arch& arch = *host_arch();
    sample.mappings = Mappings::parse(text_of_file("/proc/self/maps")).all();
    mapping = &*std::ranges::find(sample.mappings, "[vdso]", &Mapping::path);
    object.assign(reinterpret_cast<const char*>(mapping->range.begin), mapping->range.size());
    const auto image = ElfImage::parse(std::as_bytes(std::span(object)));
    id_at = static_cast<std::size_t>(reinterpret_cast<const char*>(image->build_id().data()) - object.data());
    id = object.substr(id_at, image->build_id().size());
    const ElfSymbols symbols = image->symbols(SHT_DYNSYM);
    for (std::size_t i = 0; i < symbols.count(); ++i)
      if (symbols[i].type == STT_FUNC) pc = mapping->range.begin + symbols[i].value;
    (void)sample.registers.set(arch.column(arch.pc), pc);
    (void)sample.registers.set(arch.column(arch.sp), 0x900000);
  }

  /// Returns "whole of the kernel's object", or the reason why the walk ends.
  std::string seen_with(const std::string& build_id, const std::string& build_ids = {}) {
    mapping->build_id = build_id;
    const auto target = Target::from_sample(sample, {.build_ids = build_ids});
    if (!target) return target.error().text();
    std::string read(object.size(), ' ');
    MemoryWindow window;
    read.resize(target->space().memory.read(mapping->range.begin, std::as_writable_bytes(std::span(read)), window));
    const SeenStack stack = seen(target->walk(target->threads()[0]));
    if (stack.frames.at(0).name.empty()) return stack.why;
    EXPECT_EQ(stack.frames.at(0).origin, "eh_frame");
    return read == object ? "this" : "another";
  }

  Sample sample{};
  Mapping* mapping = nullptr;
  std::string object, id;
  std::size_t id_at = 0;
  Addr pc = 0;
};

TEST_F(SampleInTheKernelsObject, HasThisMachinesIfTheBuildIdsAreTheSame) { EXPECT_EQ(seen_with(id), "this"); }

TEST_F(SampleInTheKernelsObject, HasAnotherMachinesFromAFolderOfBuildIds) {
  const TemporaryFolder folder;
  std::string other = id, name;
  other[0] = static_cast<char>(other[0] ^ 1);
  for (const char byte : other) {
    constexpr std::string_view k_digits = "0123456789abcdef";
    name += {k_digits[byte >> 4 & 0xf], k_digits[byte & 0xf]};
    if (name.size() == 2) name += "/";
  }
  const std::string place = folder / ".build-id/" + name;
  std::filesystem::create_directories(place);
  std::ofstream(place + "/vdso", std::ios::binary) << std::string(object).replace(id_at, other.size(), other);
  EXPECT_EQ(seen_with(other, folder / ""), "another");
  EXPECT_EQ(seen_with(id, folder / ""), "this");
  // The object is filed under a build id that is not its own.
  std::ofstream(place + "/vdso", std::ios::binary) << object;
  EXPECT_NE(seen_with(other, folder / "").find("[vdso]"), std::string::npos);
}

TEST_F(SampleInTheKernelsObject, EndsWithAReasonWhereNobodyHasIt) {
  EXPECT_NE(seen_with("").find("[vdso] that is not this machine's"), std::string::npos) << seen_with("");
  EXPECT_NE(seen_with("another").find("[vdso] that is not this machine's"), std::string::npos);
}

/// The file does not have what a process has written there.
TEST(SampleOfAProcess, HasNoWritableMemoryOfFiles) {
  const TemporaryFolder folder;
  const std::string path = folder / "data";
  std::ofstream(path, std::ios::binary) << std::string(0x2000, 'a');
  Sample sample;
  sample.mappings =
      Mappings::parse("400000-401000 r--p 0 0:1 4711 " + path + "\n401000-402000 rw-p 1000 0:1 4711 " + path + "\n")
          .all();
  const auto target = Target::from_sample(sample);
  ASSERT_TRUE(target) << target.error().text();
  std::array<std::byte, 32> bytes;
  MemoryWindow window;
  EXPECT_EQ(target->space().memory.read(0x400ff0, bytes, window), 16u);
  EXPECT_EQ(bytes[15], std::byte{'a'});
  EXPECT_EQ(target->space().memory.read(0x401000, bytes, window), 0u);
}

/// A mapping whose build id is known is not read from a file of another build.
TEST(SampleOfAProcess, IsNotReadFromAFileOfAnotherBuild) {
  const TargetProgram program(TARGET_PROGRAM, {"0"});
  Taken taken = take(program, 64 << 10);
  for (Mapping& mapping : taken.sample.mappings)
    if (mapping.is_of_file()) mapping.build_id = "another";
  const auto target = Target::from_sample(taken.sample);
  ASSERT_TRUE(target) << target.error().text();
  const SeenStack stack = seen(target->walk(target->threads()[0]));
  EXPECT_EQ(stack.frames.size(), 1u);
  EXPECT_EQ(stack.frames[0].name, "");
}

/// "": the file is no object, or has none.
std::string build_id_of(const std::string& path) {
  const std::string file = text_of_file(path);
  const auto image = ElfImage::parse(std::as_bytes(std::span(file)));
  if (!image) return {};
  return {reinterpret_cast<const char*>(image->build_id().data()), image->build_id().size()};
}

/// A process may map a file, another build that took its place, and the first one again.
TEST(SampleOfAProcess, IsReadFromTheBuildThatEachOfItsMappingsIsOf) {
  const std::string here = build_id_of(TARGET_PROGRAM);
  ASSERT_NE(here, "");
  const auto sample_of = [&](const std::string& build_id) {
    Sample sample;
    sample.mappings = Mappings::parse("400000-401000 r--p 0 0:0 0 " TARGET_PROGRAM "\n").all();
    sample.mappings[0].build_id = build_id;
    return sample;
  };
  for (const std::string& first : {here, std::string("gone")}) {
    auto target = Target::from_sample(sample_of(first));
    ASSERT_TRUE(target) << target.error().text();
    const auto bytes_read = [&] {
      std::array<std::byte, 32> bytes;
      MemoryWindow window;
      return target->space().memory.read(0x400000, bytes, window);
    };
    EXPECT_EQ(bytes_read(), first == here ? 32u : 0u);
    const std::string& second = first == here ? "gone" : here;
    ASSERT_TRUE(target->renew(sample_of(second)));
    EXPECT_EQ(bytes_read(), second == here ? 32u : 0u);
  }
}

/// perf gives the build id of a mapping in place of its device and inode, but only if the page with the id is in
/// memory.
TEST(SampleOfAProcess, HasModulesOfWhichOneMappingSaysMoreThanAnother) {
  const TargetProgram program(TARGET_PROGRAM, {"0"});
  Taken taken = take(program, 64 << 10);
  const auto frames = [&] {
    const auto target = Target::from_sample(taken.sample);
    return target ? seen(target->walk(target->threads()[0])).frames : std::vector<SeenFrame>();
  };
  const std::vector<SeenFrame> expected = frames();
  ASSERT_GE(expected.size(), 3u);
  for (Mapping& mapping : taken.sample.mappings) {
    if (!mapping.is_of_file() || mapping.offset != 0) continue;
    mapping.build_id = build_id_of(mapping.path);
    mapping.device = mapping.inode = 0;
  }
  EXPECT_EQ(frames(), expected);
}

/// A mapping of another build of the file is no part of the module in front of it.
TEST(SampleOfAProcess, HasNoModuleOfTwoBuilds) {
  const TargetProgram program(TARGET_PROGRAM, {"0"});
  Taken taken = take(program, 64 << 10);
  const Arch& arch = *host_arch();
  const Addr pc = taken.sample.registers.value(arch.column(arch.pc));
  for (Mapping& mapping : taken.sample.mappings) {
    mapping.device = mapping.inode = 0;
    if (mapping.is_of_file()) mapping.build_id = build_id_of(mapping.path);
  }
  const auto has_module = [&] {
    const auto target = Target::from_sample(taken.sample);
    Module module;
    return target && target->space().modules.find(pc, module);
  };
  EXPECT_TRUE(has_module());
  for (Mapping& mapping : taken.sample.mappings)
    if (mapping.range.contains(pc)) mapping.build_id = "another";
  EXPECT_FALSE(has_module());
}

TEST(MapsText, HasLinesOfTheKernelsForm) {
  const auto is_one = [](const std::string& line) { return Mappings::parse(line + "\n").all().size() == 1; };
  EXPECT_TRUE(is_one("0-1000 r--p 0 0:0 0"));
  EXPECT_FALSE(is_one("00000000000000000-00000000000001000 r--p 0 0:0 0")) << "17 digits";
  EXPECT_FALSE(is_one("fffffffffffff000-10000000000000000 r--p 0 0:0 0"));
  EXPECT_FALSE(is_one("-1000 r--p 0 0:0 0"));
  EXPECT_FALSE(is_one("0:1000 r--p 0 0:0 0"));
  EXPECT_FALSE(is_one("0-100g r--p 0 0:0 0"));
  EXPECT_FALSE(is_one("0-1000"));
  const Mappings mappings =
      Mappings::parse("7f00a0b0c0d0e000-ffffffffffffffff r-xp 9abcdef0 fd:1b 4711   /a b (deleted)\n");
  ASSERT_EQ(mappings.all().size(), 1u);
  const Mapping& only = mappings.all()[0];
  EXPECT_EQ(only.range, (AddrRange{0x7f00a0b0c0d0e000, 0xffffffffffffffff}));
  EXPECT_EQ(only.offset, 0x9abcdef0u);
  EXPECT_EQ(only.device, gnu_dev_makedev(0xfd, 0x1b));
  EXPECT_EQ(only.inode, 4711u);
  EXPECT_EQ(only.path, "/a b");
  EXPECT_TRUE(only.deleted);
}

}  // namespace
}  // namespace jitunwind::test
