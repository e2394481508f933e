// Modules of this process that a function other than dl_iterate_phdr lists.
#include <libunwind.h>

#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "jitunwind/sdk/walk.h"
#include "tests/support/cfi_assembler.h"
#include "tests/support/pcs_from.h"

namespace jitunwind::test {
namespace {

class ListedModules : public testing::Test {
 protected:
  ~ListedModules() override { unw_set_iterate_phdr_function(unw_local_addr_space, nullptr); }
  static void list_by(unw_iterate_phdr_func_t function) {
    unw_set_iterate_phdr_function(unw_local_addr_space, function);
  }
};

std::vector<unw_word_t> pcs_here() {
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t cursor;
  EXPECT_EQ(unw_init_local(&cursor, &context), 0);
  auto pcs = pcs_from(cursor);
  pcs.erase(pcs.begin(), pcs.begin() + 2);  // of this call
  return pcs;
}

std::atomic<unsigned> asked{0};
int counts(unw_iterate_phdr_callback_t callback, void* data) {
  ++asked;
  return ::dl_iterate_phdr(callback, data);
}
int lists_nothing(unw_iterate_phdr_callback_t, void*) { return 0; }

int proc_info_of(const void* code, unw_proc_info_t& info) {
  return unw_get_proc_info_by_ip(unw_local_addr_space, reinterpret_cast<unw_word_t>(code), &info, nullptr);
}

// covers: PI17
TEST_F(ListedModules, AreAskedOfTheFunctionThatWasSet) {
  const std::vector<unw_word_t> expected = pcs_here();
  asked = 0;
  list_by(counts);
  EXPECT_EQ(pcs_here(), expected);
  EXPECT_GE(asked, expected.size());
  asked = 0;
  std::array<void*, 64> listed;
  const int count = unw_backtrace(listed.data(), static_cast<int>(listed.size()));
  ASSERT_EQ(count, static_cast<int>(expected.size()) + 1);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(reinterpret_cast<unw_word_t>(listed[i + 1]), expected[i]);
  EXPECT_GE(asked, expected.size());
  asked = 0;
  unw_context_t context;
  unw_getcontext(&context);
  EXPECT_EQ(backtrace(&context, Cursor::Top::returned_to, listed), expected.size() + 1);
  EXPECT_GE(asked, expected.size());
  for (const unw_iterate_phdr_func_t none : {unw_iterate_phdr_func_t{nullptr}, &::dl_iterate_phdr}) {
    list_by(counts);
    list_by(none);
    asked = 0;
    EXPECT_EQ(pcs_here(), expected);
    EXPECT_EQ(asked, 0u);
  }
}

/// Kept knowledge of the dynamic linker's modules is not used meanwhile.
// covers: PI17
TEST_F(ListedModules, AreNoOthers) {
  (void)pcs_here();
  unw_proc_info_t info;
  std::array<char, 8> file;
  const auto here = reinterpret_cast<const void*>(&pcs_here);
  ASSERT_EQ(proc_info_of(here, info), 0);
  list_by(lists_nothing);
  EXPECT_EQ(proc_info_of(here, info), -UNW_ENOINFO);
  EXPECT_EQ(unw_get_accessors(unw_local_addr_space)
                ->find_proc_info(unw_local_addr_space, reinterpret_cast<unw_word_t>(here), &info, 0, nullptr),
            -UNW_ENOINFO);
  EXPECT_EQ(unw_get_elf_filename_by_ip(unw_local_addr_space, reinterpret_cast<unw_word_t>(here), file.data(),
                                       file.size(), nullptr, nullptr),
            -UNW_ENOINFO);
  unw_set_iterate_phdr_function(nullptr, nullptr);
  EXPECT_EQ(proc_info_of(here, info), -UNW_ENOINFO);
  list_by(nullptr);
  EXPECT_EQ(proc_info_of(here, info), 0);
}

/// A file that was mapped by hand, as the loaders of other systems do: code, .eh_frame and .eh_frame_hdr in one
/// segment.
class PrivateImage {
 public:
  PrivateImage() {
    // push rbx; xor ebx,ebx; call rdi; pop rbx; ret
    static constexpr unsigned char k_code[] = {0x53, 0x31, 0xdb, 0xff, 0xd7, 0x5b, 0xc3};
    at_ = static_cast<std::byte*>(
        ::mmap(nullptr, k_size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memcpy(at_, k_code, sizeof k_code);
    CfiSection eh_frame(address(k_eh_frame));
    const Addr cie = eh_frame.cie({});
    // push: cfa=rsp+16, rbx=[cfa-16]; behind the pop: cfa=rsp+8
    const Addr fde = eh_frame.fde(cie, address(0), sizeof k_code, Bytes{0x41, 0x0e, 16, 0x83, 2, 0x45, 0x0e, 8, 0xc3});
    eh_frame.terminator();
    put(k_eh_frame, eh_frame.data());
    Bytes header;
    header.u8(1).u8(0x1b).u8(0x03).u8(0x3b);  // pc-relative sdata4; udata4; sdata4 from the header on
    header.u32(k_eh_frame - k_header - 4).u32(1);
    header.u32(0 - k_header).u32(fde - address(k_header));
    put(k_header, header);
    headers_[0].p_type = PT_LOAD;
    headers_[0].p_flags = PF_R | PF_X;
    headers_[0].p_filesz = headers_[0].p_memsz = k_size;
    headers_[1].p_type = PT_GNU_EH_FRAME;
    headers_[1].p_vaddr = k_header;
  }
  ~PrivateImage() { ::munmap(at_, k_size); }
  PrivateImage(const PrivateImage&) = delete;
  PrivateImage& operator=(const PrivateImage&) = delete;

  Addr address(std::size_t offset) const { return reinterpret_cast<std::uintptr_t>(at_) + offset; }
  void call(void (*function)()) const { reinterpret_cast<void (*)(void (*)())>(at_)(function); }
  int list(unw_iterate_phdr_callback_t callback, void* data) const {
    dl_phdr_info info{};
    info.dlpi_addr = address(0);
    info.dlpi_name = "private image";
    info.dlpi_phdr = headers_.data();
    info.dlpi_phnum = static_cast<ElfW(Half)>(headers_.size());
    return callback(&info, sizeof info, data);
  }

 private:
  static constexpr std::size_t k_size = 4096, k_eh_frame = 0x400, k_header = 0x800;
  void put(std::size_t offset, const Bytes& bytes) { std::memcpy(at_ + offset, bytes.vector().data(), bytes.size()); }

  std::byte* at_;
  std::array<ElfW(Phdr), 2> headers_{};
};

const PrivateImage* image = nullptr;
int lists_the_image_too(unw_iterate_phdr_callback_t callback, void* data) {
  const int returned = image->list(callback, data);
  return returned != 0 ? returned : ::dl_iterate_phdr(callback, data);
}

// covers: PI17
TEST_F(ListedModules, MayBePrivateImages) {
  const PrivateImage mapped;
  image = &mapped;
  static std::vector<unw_word_t> pcs;
  list_by(lists_the_image_too);
  mapped.call([] { pcs = pcs_here(); });
  const std::vector<unw_word_t> direct = pcs_here();
  ASSERT_GT(pcs.size(), 3u);
  const auto in_image = std::find(pcs.begin(), pcs.end(), mapped.address(5));
  ASSERT_NE(in_image, pcs.end());
  // The frames behind it are call(), if that has its own frame, and this function; the rest is the same.
  const auto between = pcs.end() - in_image - 1 - static_cast<std::ptrdiff_t>(direct.size());
  ASSERT_GE(between, 1);
  ASSERT_LE(between, 2);
  EXPECT_EQ(std::vector(in_image + 1 + between, pcs.end()), direct);
  unw_proc_info_t info;
  ASSERT_EQ(proc_info_of(reinterpret_cast<const void*>(mapped.address(5)), info), 0);
  EXPECT_EQ(info.start_ip, mapped.address(0));
  EXPECT_EQ(info.end_ip, mapped.address(7));
  std::array<char, 32> file;
  unw_word_t offset = 0;
  ASSERT_EQ(
      unw_get_elf_filename_by_ip(unw_local_addr_space, mapped.address(5), file.data(), file.size(), &offset, nullptr),
      0);
  EXPECT_STREQ(file.data(), "private image");
  EXPECT_EQ(offset, 5u);
  list_by(nullptr);
  EXPECT_EQ(proc_info_of(reinterpret_cast<const void*>(mapped.address(5)), info), -UNW_ENOINFO);
}

/// An entry may refer to any memory, such as memory of this library that comes and goes between the steps of one walk.
class ImageWithItsCieElsewhere {
 public:
  ImageWithItsCieElsewhere() {
    elsewhere_ = static_cast<std::byte*>(
        ::mmap(nullptr, 2 * k_page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CfiSection cies(address(0)), eh_frame(address(k_page + k_eh_frame));
    const Addr fde = eh_frame.fde(cies.cie({}), address(k_page), k_eh_frame, Bytes{});
    Bytes header;
    header.u8(1).u8(0x1b).u8(0x03).u8(0x3b);
    header.u32(k_eh_frame - k_header - 4).u32(1);
    header.u32(0 - k_header).u32(fde - address(k_page + k_header));
    put(0, cies.data());
    put(k_page + k_eh_frame, eh_frame.data());
    put(k_page + k_header, header);
    headers_[0].p_type = PT_LOAD;
    headers_[0].p_flags = PF_R | PF_X;
    headers_[0].p_filesz = headers_[0].p_memsz = k_page;
    headers_[1].p_type = PT_GNU_EH_FRAME;
    headers_[1].p_vaddr = k_header;
  }
  ~ImageWithItsCieElsewhere() { ::munmap(elsewhere_, 2 * k_page); }
  ImageWithItsCieElsewhere(const ImageWithItsCieElsewhere&) = delete;
  ImageWithItsCieElsewhere& operator=(const ImageWithItsCieElsewhere&) = delete;

  Addr code(std::size_t offset) const { return address(k_page + offset); }
  void lose_cie() const { ::munmap(elsewhere_, k_page); }
  int list(unw_iterate_phdr_callback_t callback, void* data) const {
    dl_phdr_info info{};
    info.dlpi_addr = address(k_page);
    info.dlpi_name = "";
    info.dlpi_phdr = headers_.data();
    info.dlpi_phnum = static_cast<ElfW(Half)>(headers_.size());
    return callback(&info, sizeof info, data);
  }

 private:
  static constexpr std::size_t k_page = 4096, k_eh_frame = 0x400, k_header = 0x800;
  Addr address(std::size_t offset) const { return reinterpret_cast<std::uintptr_t>(elsewhere_) + offset; }
  void put(std::size_t offset, const Bytes& bytes) {
    std::memcpy(elsewhere_ + offset, bytes.vector().data(), bytes.size());
  }

  std::byte* elsewhere_;
  std::array<ElfW(Phdr), 2> headers_{};
};

const ImageWithItsCieElsewhere* image_with_cie_elsewhere = nullptr;
int lists_image_with_cie_elsewhere(unw_iterate_phdr_callback_t callback, void* data) {
  return image_with_cie_elsewhere->list(callback, data);
}

TEST_F(ListedModules, MayLoseWhatTheirEntriesLeadTo) {
  const ImageWithItsCieElsewhere mapped;
  image_with_cie_elsewhere = &mapped;
  list_by(lists_image_with_cie_elsewhere);
  std::array<unw_word_t, 4> stack{mapped.code(32), mapped.code(48), mapped.code(64), mapped.code(80)};
  unw_context_t context;
  unw_getcontext(&context);
  context.uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(mapped.code(16));
  context.uc_mcontext.gregs[REG_RSP] = reinterpret_cast<greg_t>(stack.data());
  unw_cursor_t cursor;
  ASSERT_EQ(unw_init_local2(&cursor, &context, UNW_INIT_SIGNAL_FRAME), 0);
  unw_word_t pc = 0;
  ASSERT_GT(unw_step(&cursor), 0);
  ASSERT_GT(unw_step(&cursor), 0);
  ASSERT_EQ(unw_get_reg(&cursor, UNW_REG_IP, &pc), 0);
  EXPECT_EQ(pc, mapped.code(48));
  mapped.lose_cie();
  EXPECT_LT(unw_step(&cursor), 0);
}

// covers: PI17
TEST_F(ListedModules, MayChangeDuringWalksOfOtherThreads) {
  const std::vector<unw_word_t> expected = pcs_here();
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) {
      list_by(counts);
      list_by(nullptr);
    }
  });
  for (int i = 0; i < 200; ++i) EXPECT_EQ(pcs_here(), expected);
  stop = true;
  other.join();
}

}  // namespace
}  // namespace jitunwind::test
