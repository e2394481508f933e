// States of registers by ranges of code, kept and applied; files of code.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "tests/libunwind/context_words.h"
#include "tests/support/command.h"
#include "tests/support/eh_frame_hdr.h"
#include "tests/support/jit_frame.h"

#include <libunwind.h>

namespace jitunwind::test {
namespace {

struct Range {
  unw_word_t start, end;
  std::vector<char> data;
};

int keep(void* token, void* data, size_t size, unw_word_t start, unw_word_t end) {
  const char* const bytes = static_cast<const char*>(data);
  static_cast<std::vector<Range>*>(token)->push_back({start, end, {bytes, bytes + size}});
  return 0;
}

unw_word_t reg(unw_cursor_t& cursor, int number) {
  unw_word_t value = 0;
  EXPECT_EQ(unw_get_reg(&cursor, number, &value), 0);
  return value;
}

/// Leaves each frame by the kept states of its procedure and by a step; both must find the same registers.
void compare_with_steps(std::size_t& frames, std::size_t& states) {
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t stepped, applied;
  ASSERT_EQ(unw_init_local(&stepped, &context), 0);
  applied = stepped;
  for (int moved = 1; moved > 0; ++frames) {
    std::vector<Range> ranges;
    ASSERT_EQ(unw_reg_states_iterate(&applied, keep, &ranges), 0);
    unw_proc_info_t info;
    ASSERT_EQ(unw_get_proc_info(&applied, &info), 0);
    unw_word_t covered = info.start_ip;
    const Range* here = nullptr;
    for (const Range& range : ranges) {
      EXPECT_EQ(range.start, covered);
      covered = range.end;
      if (const unw_word_t ip = reg(applied, UNW_REG_IP) - 1; ip >= range.start && ip < range.end) here = &range;
    }
    EXPECT_EQ(covered, info.end_ip);
    states += ranges.size();
    ASSERT_NE(here, nullptr);
    std::vector<char> somewhere(here->data.size() + 1);
    std::memcpy(somewhere.data() + 1, here->data.data(), here->data.size());
    EXPECT_EQ(unw_apply_reg_state(&applied, somewhere.data() + 1), 0);
    moved = unw_step(&stepped);
    constexpr int k_registers[]{UNW_REG_IP, UNW_REG_SP, k_kept, k_fp, k_other_kept};
    for (const int number : k_registers) EXPECT_EQ(reg(applied, number), reg(stepped, number)) << frames;
  }
}

// covers: PI14 PI15 PI16
TEST(RegStates, AreWhatStepsGoBy) {
  const JitFrame frame;
  struct Counts {
    std::size_t frames = 0, states = 0;
  } counts;
  frame(
      [](void* into) -> void* {
        compare_with_steps(static_cast<Counts*>(into)->frames, static_cast<Counts*>(into)->states);
        return into;
      },
      &counts);
  EXPECT_GT(counts.frames, 5u);
  EXPECT_GT(counts.states, 3 * counts.frames);
}

/// A trampoline below a handler's frame is known by its bytes alone. Its one state and a step lead to the same
/// registers, in this process and in a space with its accessors.
// covers: PI14 PI15 AS13
TEST(RegStates, OfATrampolineWithoutAnFdeAreItsRow) {
  const CodePattern& trampoline = host_arch()->trampolines[0];
  void* const code = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(code, MAP_FAILED);
  std::memcpy(code, trampoline.bytes.data(), trampoline.bytes.size());
  const auto start = reinterpret_cast<unw_word_t>(code), end = start + trampoline.bytes.size();
  unw_context_t interrupted, context;
  unw_getcontext(&interrupted);
  unw_getcontext(&context);
  // SP of the trampoline is where the kernel would have put the context that it goes back to.
  const auto sp = reinterpret_cast<unw_word_t>(&interrupted) - static_cast<unw_word_t>(host_arch()->sigframe_ucontext);
  set_word(&context, k_pc, start);
  set_word(&context, UNW_REG_SP, sp);

  const unw_addr_space_t wrapped = unw_create_addr_space(unw_get_accessors(unw_local_addr_space), 0);
  for (const unw_addr_space_t space : {unw_local_addr_space, wrapped}) {
    unw_cursor_t stepped, applied;
    ASSERT_EQ(unw_init_remote(&stepped, space, &context), 0);
    applied = stepped;
    std::vector<Range> ranges;
    ASSERT_EQ(unw_reg_states_iterate(&applied, keep, &ranges), 0);
    ASSERT_EQ(ranges.size(), 1u);
    EXPECT_EQ(ranges[0].start, start);
    EXPECT_EQ(ranges[0].end, end);
    EXPECT_EQ(unw_is_signal_frame(&stepped), 1);
    ASSERT_GT(unw_step(&stepped), 0);
    ASSERT_EQ(unw_apply_reg_state(&applied, ranges[0].data.data()), 0);
    for (const int number : {int{UNW_REG_IP}, int{UNW_REG_SP}, k_kept, k_fp, k_other_kept}) {
      const unw_word_t value = word(&interrupted, number == UNW_REG_IP ? k_pc : number);
      EXPECT_EQ(reg(stepped, number), value) << number;
      EXPECT_EQ(reg(applied, number), value) << number;
    }
  }
  unw_destroy_addr_space(wrapped);
  ::munmap(code, 4096);
}

// covers: PI14
TEST(RegStates, CallbacksEndThem) {
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t cursor;
  ASSERT_EQ(unw_init_local(&cursor, &context), 0);
  int calls = 0;
  const auto stop = [](void* token, void*, size_t, unw_word_t, unw_word_t) {
    return ++*static_cast<int*>(token) == 2 ? 77 : 0;
  };
  EXPECT_EQ(unw_reg_states_iterate(&cursor, stop, &calls), 77);
  EXPECT_EQ(calls, 2);
}

TEST(RegStates, OtherDataIsRefused) {
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t cursor;
  ASSERT_EQ(unw_init_local(&cursor, &context), 0);
  std::array<unsigned char, 64> data{};
  EXPECT_EQ(unw_apply_reg_state(&cursor, data.data()), -UNW_EBADVERSION);
}

int in_range(const Hdr& hdr, unw_word_t ip, unw_proc_info_t& info, int need_unwind_info = 1) {
  return unw_get_proc_info_in_range(hdr.begin, hdr.end, hdr.at, hdr.size, 0, 0, unw_local_addr_space, ip, &info,
                                    need_unwind_info, nullptr);
}

// covers: PI08
TEST(ProcInfoInRange, IsThatOfTheTable) {
  const Hdr hdr = hdr_of_libc();
  ASSERT_NE(hdr.at, 0u);
  std::size_t procedures = 0;
  for (unw_word_t ip = hdr.begin; ip < hdr.end; ip += 4099) {
    unw_proc_info_t info, expected;
    const int known = unw_get_proc_info_by_ip(unw_local_addr_space, ip, &expected, nullptr);
    ASSERT_EQ(in_range(hdr, ip, info), known) << std::hex << ip;
    if (known != 0) continue;
    ++procedures;
    EXPECT_EQ(info.start_ip, expected.start_ip);
    EXPECT_EQ(info.end_ip, expected.end_ip);
    EXPECT_EQ(info.lsda, expected.lsda);
    EXPECT_EQ(info.handler, expected.handler);
    EXPECT_EQ(info.unwind_info, expected.unwind_info);
  }
  EXPECT_GT(procedures, 100u);
}

// covers: PI08
TEST(ProcInfoInRange, NeedsNeitherALengthNorUnwindInfo) {
  Hdr hdr = hdr_of_libc();
  const auto known = reinterpret_cast<unw_word_t>(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
  unw_proc_info_t expected, info;
  ASSERT_EQ(in_range(hdr, known, expected), 0);
  EXPECT_LE(expected.start_ip, known);
  EXPECT_GT(expected.end_ip, known);
  for (const std::size_t size : {std::size_t{0}, static_cast<std::size_t>(hdr.size)})
    for (const int need : {0, 1}) {
      hdr.size = size;
      std::memset(&info, 0x5a, sizeof info);
      ASSERT_EQ(in_range(hdr, known, info, need), 0) << size << need;
      EXPECT_EQ(info.start_ip, expected.start_ip);
      EXPECT_EQ(info.end_ip, expected.end_ip);
    }
  EXPECT_EQ(in_range(hdr, hdr.begin - 1, info), -UNW_ENOINFO);
}

// covers: PI08
TEST(ProcInfoInRange, ErrorsOfTheTable) {
  Hdr hdr = hdr_of_libc();
  unw_proc_info_t info;
  const auto known = reinterpret_cast<unw_word_t>(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
  ASSERT_EQ(in_range(hdr, known, info), 0);
  EXPECT_EQ(in_range(hdr, hdr.end, info), -UNW_ENOINFO);
  const unw_word_t size = hdr.size;
  hdr.size = 20;
  EXPECT_EQ(in_range(hdr, known, info), -UNW_EINVAL) << "cut off";
  std::vector<unsigned char> copy(size);
  std::memcpy(copy.data(), reinterpret_cast<const void*>(hdr.at), size);
  // Members are relative to the table, which is read at a wrong address here. That does not matter as long as nothing
  // is found.
  hdr.at = reinterpret_cast<unw_word_t>(copy.data());
  hdr.size = size;
  copy[0] = 7;
  EXPECT_EQ(in_range(hdr, known, info), -UNW_EBADVERSION);
  copy[0] = 1;
  for (const std::size_t encoding : {1u, 2u}) {  // of the pointer to .eh_frame, of the number of entries
    const auto kept = std::exchange(copy[encoding], static_cast<unsigned char>(0x0f));
    EXPECT_EQ(in_range(hdr, known, info), -UNW_EINVAL) << encoding;
    copy[encoding] = kept;
  }
  copy[3] = 0x3f;
  EXPECT_EQ(in_range(hdr, known, info), -UNW_EINVAL) << "members of the table";
  copy[3] = 0x3b;
  std::memset(&copy[8], 0, 4);
  EXPECT_EQ(in_range(hdr, known, info), -UNW_ENOINFO) << "no entries";
  hdr.at = 16;
  EXPECT_EQ(in_range(hdr, known, info), -UNW_EBADFRAME) << "unreadable";
}

void own_function() {}

// covers: PI13
TEST(ElfFiles, AreWhereAddr2lineFindsTheCode) {
  const auto ip = reinterpret_cast<unw_word_t>(&own_function);
  std::array<char, 4096> file;
  unw_word_t offset = 0;
  ASSERT_EQ(unw_get_elf_filename_by_ip(unw_local_addr_space, ip, file.data(), file.size(), &offset, nullptr), 0);
  char command[5000];
  std::snprintf(command, sizeof command, JITUNWIND_ADDR2LINE " -f -C -e '%s' 0x%lx", file.data(),
                static_cast<unsigned long>(offset));
  EXPECT_NE(output_of(command).find("own_function"), std::string::npos) << command;

  Dl_info info;
  void* const malloc_at = dlsym(RTLD_DEFAULT, "getpid");
  ASSERT_NE(dladdr(malloc_at, &info), 0);
  const auto in_libc = reinterpret_cast<unw_word_t>(malloc_at);
  ASSERT_EQ(unw_get_elf_filename_by_ip(unw_local_addr_space, in_libc, file.data(), file.size(), &offset, nullptr), 0);
  EXPECT_STREQ(file.data(), info.dli_fname);
  EXPECT_EQ(offset, in_libc - reinterpret_cast<unw_word_t>(info.dli_fbase));
  EXPECT_EQ(unw_get_elf_filename_by_ip(unw_local_addr_space, in_libc, file.data(), 5, nullptr, nullptr), -UNW_ENOMEM);
  EXPECT_EQ(std::strlen(file.data()), 4u);
  EXPECT_EQ(unw_get_elf_filename_by_ip(unw_local_addr_space, in_libc, file.data(), 0, &offset, nullptr), -UNW_ENOMEM);
  EXPECT_EQ(std::strlen(file.data()), 4u) << "nothing is written";
}

// covers: PI13
TEST(ElfFiles, CodeMadeAtRunTimeHasNone) {
  const JitFrame frame;
  std::array<char, 64> file{'x'};
  EXPECT_EQ(unw_get_elf_filename_by_ip(unw_local_addr_space, frame.start(), file.data(), file.size(), nullptr, nullptr),
            -UNW_ENOINFO);
  EXPECT_STREQ(file.data(), "");
  EXPECT_EQ(unw_get_elf_filename_by_ip(unw_local_addr_space, 16, file.data(), file.size(), nullptr, nullptr),
            -UNW_ENOINFO);
}

// covers: PI13
TEST(ElfFiles, OfACursor) {
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t cursor;
  ASSERT_EQ(unw_init_local(&cursor, &context), 0);
  std::array<char, 4096> file, own;
  unw_word_t offset = 0, own_offset = 0;
  ASSERT_EQ(unw_get_elf_filename(&cursor, file.data(), file.size(), &offset), 0);
  const auto ip = reg(cursor, UNW_REG_IP);
  ASSERT_EQ(unw_get_elf_filename_by_ip(unw_local_addr_space, ip, own.data(), own.size(), &own_offset, nullptr), 0);
  EXPECT_STREQ(file.data(), own.data());
  EXPECT_EQ(offset, own_offset);
}

}  // namespace
}  // namespace jitunwind::test
