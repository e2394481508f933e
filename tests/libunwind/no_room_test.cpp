// Functions that write into a caller's room write no more than it holds, even if it holds nothing or one.
#include <jitunwind/jitunwind.h>
#include <libunwind.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "jitunwind/sdk/local_space.h"
#include "tests/support/jit_frame.h"

namespace jitunwind::test {
namespace {

/// Room for 0 or 1 of T between others, which must not be written.
template <class T>
class Room {
 public:
  explicit Room(std::size_t size) : size_(size) { std::memset(all_.data(), 0x5a, sizeof all_); }
  ~Room() {
    EXPECT_TRUE(is_untouched(0)) << "before room for " << size_;
    for (std::size_t i = 1 + size_; i < all_.size(); ++i) EXPECT_TRUE(is_untouched(i)) << "behind room for " << size_;
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  T* data() { return &all_[1]; }
  std::size_t size() const { return size_; }
  operator std::span<T>() { return {data(), size_}; }
  bool is_terminated() const { return size_ == 0 || all_[1] == T{}; }

 private:
  bool is_untouched(std::size_t i) const {
    std::array<unsigned char, sizeof(T)> untouched, bytes;
    untouched.fill(0x5a);
    std::memcpy(bytes.data(), &all_[i], sizeof(T));
    return bytes == untouched;
  }
  std::array<T, 16> all_;
  std::size_t size_;
};

class NoRoom : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Of, NoRoom, testing::Values(0, 1));

/// Calls `ask` for frames, from within frames of C++, of a procedure made at run time, and of ones behind accessors.
template <class Ask>
void ask_each_frame(Ask ask) {
  const JitFrame frame;
  frame(
      [](void* ask_too) -> void* {
        unsigned asked = 0;
        for (const Frame& each : walk_here()) {
          if (each.name().empty()) continue;
          (*static_cast<Ask*>(ask_too))(each);
          ++asked;
        }
        EXPECT_GT(asked, 4u);
        return nullptr;
      },
      &ask);
}

TEST_P(NoRoom, NamesOfFrames) {
  ask_each_frame([&](const Frame& frame) {
    std::array<char, 512> whole{};
    const auto expected = frame.raw_name(whole);
    ASSERT_TRUE(expected);
    Room<char> room(GetParam());
    const auto name = frame.raw_name(room);
    ASSERT_TRUE(name);
    EXPECT_TRUE(name->truncated);
    EXPECT_EQ(name->length, expected->length);
    EXPECT_EQ(name->start, expected->start);
    EXPECT_TRUE(room.is_terminated());
    EXPECT_EQ(frame.offset(), frame.pc() - expected->start);

    Room<char> of_address(GetParam());
    ProcedureName found;
    EXPECT_TRUE(find_local_name(frame.address(), of_address, found));
    EXPECT_TRUE(found.truncated && of_address.is_terminated());
  });
}

/// A name whose length equals the room's is cut, because the NUL takes room, too.
TEST(Names, FitWithTheirEnd) {
  ask_each_frame([&](const Frame& frame) {
    std::array<char, 512> whole{};
    const auto expected = frame.raw_name(whole);
    ASSERT_TRUE(expected);
    for (const std::size_t size : {expected->length - 1, expected->length, expected->length + 1}) {
      std::array<char, 512> into;
      into.fill('x');
      const auto name = frame.raw_name(std::span(into).first(size));
      ASSERT_TRUE(name);
      EXPECT_EQ(name->truncated, size <= expected->length);
      EXPECT_EQ(std::string(into.data()), std::string(whole.data(), std::min(size - 1, expected->length)));
      EXPECT_EQ(into[size], 'x');
    }
  });
}

/// Asks up to main: code of a C library without symbols, behind it, has no name that could be cut.
TEST_P(NoRoom, NamesAndFilesOfLibunwind) {
  unw_context_t context;
  unw_getcontext(&context);
  const unw_addr_space_t accessed = unw_create_addr_space(unw_get_accessors(unw_local_addr_space), 0);
  for (const unw_addr_space_t space : {unw_local_addr_space, accessed}) {
    unw_cursor_t cursor;
    if (space == unw_local_addr_space) {
      ASSERT_EQ(unw_init_local(&cursor, &context), 0);
    } else {
      ASSERT_EQ(unw_init_remote(&cursor, space, &context), 0);
    }
    std::array<char, 512> whole{};
    do {
      unw_word_t ip = 0, offset = 0;
      ASSERT_EQ(unw_get_proc_name(&cursor, whole.data(), whole.size(), nullptr), 0);
      unw_get_reg(&cursor, UNW_REG_IP, &ip);
      Room<char> name(GetParam()), file(GetParam()), name_by_ip(GetParam()), file_by_ip(GetParam());
      EXPECT_EQ(unw_get_proc_name(&cursor, name.data(), name.size(), &offset), -UNW_ENOMEM);
      EXPECT_EQ(unw_get_elf_filename(&cursor, file.data(), file.size(), &offset), -UNW_ENOMEM);
      EXPECT_EQ(unw_get_proc_name_by_ip(space, ip, name_by_ip.data(), name_by_ip.size(), &offset, &context),
                -UNW_ENOMEM);
      EXPECT_EQ(unw_get_elf_filename_by_ip(space, ip, file_by_ip.data(), file_by_ip.size(), &offset, &context),
                -UNW_ENOMEM);
      for (const Room<char>* room : {&name, &file, &name_by_ip, &file_by_ip}) EXPECT_TRUE(room->is_terminated());
    } while (std::string_view(whole.data()) != "main" && unw_step(&cursor) > 0);
    EXPECT_STREQ(whole.data(), "main");
  }
  unw_destroy_addr_space(accessed);
}

TEST_P(NoRoom, Addresses) {
  const std::size_t size = GetParam();
  Room<void*> here(size), of_context(size), of_libunwind(size), of_its_context(size);
  EXPECT_EQ(backtrace(here), size);
  unw_context_t context;
  unw_getcontext(&context);
  EXPECT_EQ(backtrace(&context, Cursor::Top::interrupted, of_context), size);
  EXPECT_EQ(unw_backtrace(of_libunwind.data(), static_cast<int>(size)), static_cast<int>(size));
  EXPECT_EQ(unw_backtrace2(of_its_context.data(), static_cast<int>(size), &context, 0), static_cast<int>(size));
}

/// A negative number of frames counts as 0.
TEST(NoRoomAtAll, NegativeSizesAreNone) {
  Room<void*> none(0);
  EXPECT_EQ(unw_backtrace(none.data(), -1), 0);
  unw_context_t context;
  unw_getcontext(&context);
  EXPECT_EQ(unw_backtrace2(none.data(), -1, &context, 0), 0);
}

TEST_P(NoRoom, Procedures) {
  const JitFrame frame;
  std::array<unw_dyn_info_t*, 1> none{nullptr};
  const auto batch = std::span(none).first(0);
  EXPECT_TRUE(register_procedures(batch));
  EXPECT_TRUE(cancel_procedures(batch));
  EXPECT_TRUE(retire_procedures(batch));
  EXPECT_FALSE(register_procedures(none)) << "a batch of one that is null";
  EXPECT_FALSE(cancel_procedures(none));
  EXPECT_FALSE(retire_procedures(none));
}

}  // namespace
}  // namespace jitunwind::test
