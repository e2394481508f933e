// libunwind-coredump.h: the core of a process with three threads shows the stacks that the process itself saw. Every
// callback gives the same answer alone as in a walk.
#include <elf.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "jitunwind/sdk/compat/targets/core_segment_p.h"
#include "tests/support/counted_allocations.h"
#include "tests/targets/built_cores.h"
#include "tests/targets/libunwind_helpers.h"

#include <libunwind-coredump.h>

namespace jitunwind::test {
namespace {

/// A program that stood still, and its core, which gcore made. Another file may have the program's name when the core
/// is opened.
struct Dump {
  explicit Dump(const std::string& file = TARGET_PROGRAM) : program(file) { write(); }
  /// Over the core that was written before.
  void write() const {
    output_of("gcore -o '" + (folder / "core") + "' " + std::to_string(program.process()) + " 2>&1");
  }
  TemporaryFolder folder;
  TargetProgram program;
  std::string path = folder / ("core." + std::to_string(program.process()));
};

/// The core of _UCD_create, as long as the object lives.
class Core {
 public:
  explicit Core(const std::string& path) : core_(_UCD_create(path.c_str())) {}
  ~Core() { _UCD_destroy(core_); }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  UCD_info* get() const { return core_; }

 private:
  UCD_info* core_;
};

// covers: HL08 HL12
TEST(CoredumpHelper, ShowsTheStackOfEachThread) {
  const Dump dump;
  const AccessorSpace space(_UCD_accessors);
  const Core core(dump.path);
  ASSERT_NE(core.get(), nullptr);
  ASSERT_EQ(_UCD_get_num_threads(core.get()), 3);
  std::vector<pid_t> threads;
  for (int i = 0; i < 3; ++i) {
    _UCD_select_thread(core.get(), i);
    const pid_t thread = _UCD_get_pid(core.get());
    threads.push_back(thread);
    ASSERT_TRUE(dump.program.stacks().contains(thread)) << thread;
    expect_as_the_program_saw(remote_stack(space, core.get()), dump.program.stacks().at(thread));
  }
  EXPECT_EQ(threads.front(), dump.program.process());
  std::ranges::sort(threads);
  EXPECT_EQ(std::adjacent_find(threads.begin(), threads.end()), threads.end());
  // Numbers that no thread has change nothing.
  const pid_t selected = _UCD_get_pid(core.get());
  for (const int number : {-1, 3, 1000}) {
    _UCD_select_thread(core.get(), number);
    EXPECT_EQ(_UCD_get_pid(core.get()), selected);
  }
}

// covers: HL09 HL11
TEST(CoredumpHelper, IsReadOnlyAndDead) {
  const Dump dump;
  const AccessorSpace space(_UCD_accessors);
  const Core core(dump.path);
  ASSERT_NE(core.get(), nullptr);
  unw_word_t sp = 0, value = 0;
  ASSERT_EQ(_UCD_access_reg(space.get(), UNW_REG_SP, &sp, 0, core.get()), 0);
  EXPECT_EQ(_UCD_access_mem(space.get(), sp, &value, 0, core.get()), 0);
  EXPECT_EQ(_UCD_access_mem(space.get(), sp, &value, 1, core.get()), -UNW_EINVAL);
  EXPECT_EQ(_UCD_access_mem(space.get(), 0, &value, 0, core.get()), -UNW_EINVAL);
  EXPECT_EQ(_UCD_access_reg(space.get(), UNW_REG_SP, &sp, 1, core.get()), -UNW_EINVAL);
  unw_fpreg_t fp_value;
  EXPECT_EQ(_UCD_access_fpreg(space.get(), 17, &fp_value, 0, core.get()), -UNW_EBADREG);
  EXPECT_EQ(_UCD_access_fpreg(space.get(), 17, &fp_value, 1, core.get()), -UNW_EINVAL);
  unw_cursor_t cursor;
  ASSERT_EQ(unw_init_remote(&cursor, space.get(), core.get()), 0);
  EXPECT_EQ(_UCD_resume(space.get(), &cursor, core.get()), -UNW_EINVAL);
  EXPECT_EQ(unw_resume(&cursor), -UNW_EINVAL);
}

// covers: HL08
TEST(CoredumpHelper, AnswersEachQuestionAlone) {
  const Dump dump;
  const AccessorSpace space(_UCD_accessors);
  const Core core(dump.path);
  ASSERT_NE(core.get(), nullptr);
  const auto& own = dump.program.stacks().at(dump.program.process()).frames;
  const auto main_frame = std::ranges::find(own, "main", &SeenFrame::name);
  ASSERT_NE(main_frame, own.end());
  unw_proc_info_t info;
  ASSERT_EQ(_UCD_find_proc_info(space.get(), main_frame->pc, &info, 1, core.get()), 0);
  EXPECT_LT(info.start_ip, main_frame->pc);
  EXPECT_GT(info.end_ip, main_frame->pc);
  EXPECT_NE(info.unwind_info, nullptr);
  _UCD_put_unwind_info(space.get(), &info, core.get());
  std::array<char, 256> text{};
  unw_word_t offset = 0, start = 0, end = 0;
  EXPECT_EQ(_UCD_get_proc_name(space.get(), main_frame->pc, text.data(), text.size(), &offset, core.get()), 0);
  EXPECT_STREQ(text.data(), "main");
  EXPECT_EQ(main_frame->pc - offset, info.start_ip);
  EXPECT_EQ(_UCD_get_proc_ip_range(space.get(), main_frame->pc, &start, &end, core.get()), 0);
  EXPECT_EQ(start, info.start_ip);
  EXPECT_EQ(_UCD_get_elf_filename(space.get(), main_frame->pc, text.data(), text.size(), &offset, core.get()), 0);
  EXPECT_EQ(std::string(text.data()), std::filesystem::canonical(TARGET_PROGRAM).string());
  unw_word_t head = 0;
  EXPECT_EQ(_UCD_get_dyn_info_list_addr(space.get(), &head, core.get()), 0);
  EXPECT_NE(head, 0u);
  EXPECT_EQ(_UCD_get_cursig(core.get()), 0);
  EXPECT_EQ(_UCD_access_mem(space.get(), head, &head, 0, nullptr), -UNW_EINVAL);
}

/// Returns the number of the core's segment that contains an address. gcore leaves out the code of files.
int segment_of(const std::string& core, Addr at) {
  std::ifstream file(core, std::ios::binary);
  Elf64_Ehdr head;
  file.read(reinterpret_cast<char*>(&head), sizeof head);
  file.seekg(static_cast<std::streamoff>(head.e_phoff));
  for (int i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr segment;
    file.read(reinterpret_cast<char*>(&segment), sizeof segment);
    if (segment.p_type == PT_LOAD && at - segment.p_vaddr < segment.p_memsz) return i;
  }
  return -1;
}

/// A core is of either byte order. Segments that are not loaded, and those that the core does not have, have no
/// address.
TEST(SegmentsOfACore, HaveTheirAddressesInBothByteOrders) {
  constexpr Addr k_at = 0x12'3456'7000;
  const TemporaryFolder folder;
  for (const bool big_endian : {false, true}) {
    built::Core core(EM_AARCH64, true, big_endian);
    core.add_memory({.type = PT_LOAD, .address = k_at, .memory_size = 0x1000}, core.bytes().u64(0));
    core.write(folder / "core");
    EXPECT_EQ(address_of_segment(folder / "core", 0), std::nullopt);
    EXPECT_EQ(address_of_segment(folder / "core", 1), k_at);
    EXPECT_EQ(address_of_segment(folder / "core", 2), std::nullopt);
  }
}

/// No symbol names the program's code if the file is missing; with the file at another place they do.
// covers: HL08
TEST(CoredumpHelper, TakesFilesThatAreElsewhere) {
  TemporaryFolder folder;
  const std::string here = folder / "program", elsewhere = folder / "moved";
  std::filesystem::copy_file(TARGET_PROGRAM, here);
  const Dump dump(here);
  const AccessorSpace space(_UCD_accessors);
  const auto& own = dump.program.stacks().at(dump.program.process()).frames;
  const Addr in_main = std::ranges::find(own, "main", &SeenFrame::name)->pc;
  std::filesystem::rename(here, elsewhere);
  std::array<char, 256> text{};
  const auto name_of = [&](const Core& core) {
    return _UCD_get_proc_name(space.get(), in_main, text.data(), text.size(), nullptr, core.get());
  };
  const Core by_address(dump.path), by_segment(dump.path);
  ASSERT_NE(by_address.get(), nullptr);
  EXPECT_EQ(name_of(by_address), -UNW_ENOINFO);
  EXPECT_EQ(_UCD_add_backing_file_at_vaddr(by_address.get(), 8, elsewhere.c_str()), -1);
  EXPECT_EQ(_UCD_add_backing_file_at_vaddr(by_address.get(), in_main, "/nowhere"), -1);
  EXPECT_EQ(_UCD_add_backing_file_at_vaddr(by_address.get(), in_main, elsewhere.c_str()), 0);
  EXPECT_EQ(name_of(by_address), 0);
  EXPECT_STREQ(text.data(), "main");
  for (const int number : {-1, 0xffff})
    EXPECT_EQ(_UCD_add_backing_file_at_segment(by_segment.get(), number, elsewhere.c_str()), -1);
  int segment = -1;
  const auto target = Target::open_core(dump.path);
  ASSERT_TRUE(target) << target.error().text();
  for (const Mapping& mapping : target->mappings().all())
    if (mapping.path == here && segment < 0) segment = segment_of(dump.path, mapping.range.begin);
  ASSERT_GE(segment, 0);
  EXPECT_EQ(_UCD_add_backing_file_at_segment(by_segment.get(), segment, elsewhere.c_str()), 0);
  EXPECT_EQ(name_of(by_segment), 0);
  expect_as_the_program_saw(remote_stack(space, by_segment.get()), dump.program.stacks().at(dump.program.process()));
}

/// Another core under the same name does not replace the opened one, whatever threads it has. If the file itself is cut
/// meanwhile, the missing part cannot be read.
// covers: HL08
TEST(CoredumpHelper, StaysTheCoreThatItWas) {
  const Dump dump, other;
  const AccessorSpace space(_UCD_accessors);
  const Core core(dump.path), cut(other.path);
  ASSERT_NE(core.get(), nullptr);
  ASSERT_NE(cut.get(), nullptr);
  _UCD_select_thread(core.get(), 2);
  const pid_t thread = _UCD_get_pid(core.get());
  const auto& frames = other.program.stacks().at(other.program.process()).frames;
  const Addr in_main = std::ranges::find(frames, "main", &SeenFrame::name)->pc;
  std::filesystem::copy_file(other.path, dump.path + ".new");
  std::filesystem::rename(dump.path + ".new", dump.path);
  EXPECT_EQ(_UCD_add_backing_file_at_vaddr(core.get(), in_main, TARGET_PROGRAM), -1);
  EXPECT_EQ(_UCD_get_pid(core.get()), thread);
  expect_as_the_program_saw(remote_stack(space, core.get()), dump.program.stacks().at(thread));
  unw_word_t sp = 0, word = 0;
  ASSERT_EQ(_UCD_access_reg(space.get(), UNW_REG_SP, &sp, 0, cut.get()), 0);
  std::filesystem::resize_file(other.path, 4096);
  EXPECT_EQ(_UCD_access_mem(space.get(), sp, &word, 0, cut.get()), -UNW_EINVAL);
  unw_cursor_t cursor;
  EXPECT_EQ(unw_init_remote(&cursor, space.get(), cut.get()), 0);
  while (unw_step(&cursor) > 0) {
  }
  EXPECT_EQ(_UCD_add_backing_file_at_vaddr(cut.get(), in_main, TARGET_PROGRAM), -1);
}

/// A process has the same threads in each of its cores, but their registers and its memory may be others.
// covers: HL08
TEST(CoredumpHelper, IsNoOtherCoreOfTheSameProcess) {
  const Dump dump;
  const AccessorSpace space(_UCD_accessors);
  const auto& frames = dump.program.stacks().at(dump.program.process()).frames;
  const Addr in_main = std::ranges::find(frames, "main", &SeenFrame::name)->pc;
  const auto takes_program = [&](const Core& core) {
    return _UCD_add_backing_file_at_vaddr(core.get(), in_main, TARGET_PROGRAM);
  };
  const Core first(dump.path);
  ASSERT_NE(first.get(), nullptr);
  EXPECT_EQ(takes_program(first), 0);
  dump.write();
  EXPECT_EQ(takes_program(first), -1) << "written over";
  const Core second(dump.path);
  std::filesystem::copy_file(dump.path, dump.path + ".new");
  std::filesystem::rename(dump.path + ".new", dump.path);
  EXPECT_EQ(takes_program(second), -1) << "another file";
  EXPECT_EQ(takes_program(Core(dump.path)), 0);
}

#ifdef KERNEL_WRITES_CORES
// covers: HL08
TEST(CoredumpHelper, TellsTheSignalOfACrash) {
  const KernelsCore made;
  const Core core(made.path);
  ASSERT_NE(core.get(), nullptr);
  EXPECT_EQ(_UCD_get_cursig(core.get()), WTERMSIG(made.status));
  EXPECT_EQ(WTERMSIG(made.status), SIGSEGV);
}
#endif

/// Any allocation may be the first that fails: there is no core then, and nothing stays allocated.
// covers: HL08
TEST(CoredumpHelper, IsNoneWithoutMemory) {
  const Dump dump;
  const std::size_t held = allocations_held(), before = allocations();
  _UCD_destroy(_UCD_create(dump.path.c_str()));
  const std::size_t needed = allocations() - before;
  EXPECT_GT(needed, 20u);
  for (std::size_t times = 0; times <= needed; ++times) {
    UCD_info* core = nullptr;
    {
      const NoMemory here(times);
      core = _UCD_create(dump.path.c_str());
    }
    EXPECT_EQ(core != nullptr, times == needed) << times << " of " << needed;
    _UCD_destroy(core);
    EXPECT_EQ(allocations_held(), held) << times;
  }
}

// covers: HL08 XP07
TEST(CoredumpHelper, IsNoneOfOtherFiles) {
  EXPECT_EQ(_UCD_create(nullptr), nullptr);
  EXPECT_EQ(_UCD_create("/nowhere"), nullptr);
  EXPECT_EQ(_UCD_create("/etc/passwd"), nullptr);
  EXPECT_EQ(_UCD_create(TARGET_PROGRAM), nullptr);
  // Only a Target opens cores of other CPUs.
  const TemporaryFolder folder;
  const auto foreign = built::core_of({{.id = 7, .first_general = 1, .first_vector = 1, .vector_bytes = 528}}, false);
  foreign.write(folder / "foreign");
  EXPECT_TRUE(Target::open_core(folder / "foreign"));
  EXPECT_EQ(_UCD_create((folder / "foreign").c_str()), nullptr);
  _UCD_destroy(nullptr);
  EXPECT_EQ(_UCD_get_num_threads(nullptr), 0);
  unw_word_t value = 0;
  EXPECT_EQ(_UCD_access_reg(nullptr, UNW_REG_IP, &value, 0, nullptr), -UNW_EINVAL);
}

// covers: SF07
TEST(CoredumpHelper, OfTwoCoresIsForTwoThreads) {
  const Dump dump;
  const AccessorSpace space(_UCD_accessors);
  std::array<std::thread, 2> threads;
  for (std::thread& thread : threads)
    thread = std::thread([&] {
      for (int i = 0; i < 20; ++i) {
        const Core core(dump.path);
        ASSERT_NE(core.get(), nullptr);
        expect_as_the_program_saw(remote_stack(space, core.get()), dump.program.stacks().at(dump.program.process()));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace jitunwind::test
