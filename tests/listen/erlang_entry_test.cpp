// Erlang's entries in GDB's list.
#include "jitunwind/sdk/dialects/jit_files/erlang_entry.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "jitunwind/sdk/dialects/jit_object.h"
#include "tests/support/cfi_assembler.h"

namespace jitunwind::test {
namespace {

/// The bytes between the text and the next structure are whatever malloc returned.
Bytes structure(const Bytes& head, const std::string& text, std::size_t padded_size) {
  Bytes bytes = Bytes().add(head).u16(text.size() + 1).text(text);
  return bytes.fill(padded_size + text.size() + 1 - bytes.size(), 0xee);
}
Bytes line_info(unsigned at, unsigned line, const std::string& file) {
  return structure(Bytes().u32(at).u32(line), file, 12);
}
Bytes range_info(unsigned start, unsigned end, const std::string& name, const std::vector<Bytes>& lines = {}) {
  Bytes bytes = structure(Bytes().u32(start).u32(end).u32(lines.size()), name, 16);
  for (const Bytes& line : lines) bytes.add(line);
  return bytes;
}
Bytes module_info(Addr base, unsigned size, const std::string& name, const std::vector<Bytes>& ranges) {
  Bytes bytes = structure(Bytes().u32(1).u32(0xeeee).u64(base).u32(ranges.size()).u32(size), name, 32);
  for (const Bytes& range : ranges) bytes.add(range);
  return bytes;
}
Bytes lists_module() {
  return module_info(0x10000, 0x100, "lists",
                     {range_info(0x40, 0x80, "lists:map/2", {line_info(0x44, 7, "lists.erl"), line_info(0x50, 8, "x")}),
                      range_info(0, 0x40, "lists:codeHeader"), range_info(0x80, 0x90, "")});
}

Result<ErlangEntry> read(const Bytes& bytes) { return read_erlang_entry(bytes.vector(), *host_arch()); }

// covers: LS07
TEST(ErlangEntry, NamesTheRangesOfAModule) {
  const auto entry = read(lists_module());
  ASSERT_TRUE(entry);
  EXPECT_FALSE(entry->emulator);
  EXPECT_EQ(entry->module, "lists");
  EXPECT_EQ(entry->code, (AddrRange{0x10000, 0x10100}));
  ASSERT_EQ(entry->ranges.size(), 3u);
  EXPECT_EQ(entry->ranges[0].name, "lists:codeHeader");
  EXPECT_EQ(entry->ranges[1].code, (AddrRange{0x10040, 0x10080}));
  EXPECT_EQ(entry->ranges[1].name, "lists:map/2");
  EXPECT_FALSE(entry->ranges[1].lines.find(3));
  EXPECT_EQ(entry->ranges[1].lines.find(0xf)->line, 7u);
  EXPECT_EQ(entry->ranges[1].lines.find(0x10)->file, "x");
  EXPECT_EQ(entry->ranges[2].name, "");
}

TEST(ErlangEntry, SaysWhatFramesTheEmulatorHas) {
  for (const unsigned layout : {0u, 1u}) {
    const auto entry = read(Bytes().u32(0).u32(0xeeee).u32(layout).u32(0xeeee).u64(0x4711).u64(0));
    ASSERT_TRUE(entry);
    ASSERT_TRUE(entry->emulator);
    EXPECT_EQ(entry->emulator->has_frame_pointers, layout == 1);
    EXPECT_EQ(entry->emulator->normal_exit, 0x4711u);
    EXPECT_TRUE(entry->code.empty());
  }
}

TEST(ErlangEntry, IsNoneWhereItIsCutOrLies) {
  const Bytes whole = lists_module();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    Bytes cut = whole;
    cut.vector().resize(size);
    EXPECT_FALSE(read(cut)) << size;
  }
  EXPECT_FALSE(read(module_info(0x10000, 0, "m", {})));
  EXPECT_FALSE(read(module_info(~Addr{0} - 8, 0x100, "m", {})));
  EXPECT_FALSE(read(Bytes().u32(2).fill(100, 0)));
  EXPECT_FALSE(read(Bytes().fill(100, 0))) << "longer than the emulator's";
  EXPECT_FALSE(read(Bytes().u32(0).u32(0).u32(2).fill(20, 0)));
  EXPECT_FALSE(read(Bytes{0x7f, 'E', 'L', 'F'}.fill(100, 0)));
  EXPECT_FALSE(read(module_info(0x10000, 0x100, "m", {}).put(16, 0xffffffff, 4))) << "ranges that are not there";
}

TEST(ErlangEntry, LeavesOutRangesThatAreNotOfTheModule) {
  const auto entry =
      read(module_info(0x10000, 0x20, "m",
                       {range_info(0, 0x21, "too long"), range_info(8, 8, "empty"), range_info(9, 4, "inverted"),
                        range_info(4, 8, "good", {line_info(100, 1, "elsewhere"), line_info(4, 2, "here")})}));
  ASSERT_TRUE(entry);
  ASSERT_EQ(entry->ranges.size(), 1u);
  EXPECT_EQ(entry->ranges[0].name, "good");
  EXPECT_EQ(entry->ranges[0].lines.find(3)->file, "here");
}

/// The entry is a file of GDB's list, as ELF files are.
TEST(ErlangEntry, IsAFileOfGdbsList) {
  const auto object = JitObject::read(lists_module().vector(), *host_arch());
  ASSERT_TRUE(object);
  ASSERT_EQ(object->code().size(), 1u);
  EXPECT_EQ(object->code()[0], (AddrRange{0x10000, 0x10100}));
  std::array<char, 32> text{};
  ProcedureName name;
  ASSERT_TRUE(*object->find_name(0x1007f, text, name));
  EXPECT_STREQ(text.data(), "lists:map/2");
  EXPECT_EQ(name.start, 0x10040u);
  EXPECT_FALSE(*object->find_name(0x10090, text, name));
  EXPECT_EQ(object->find_line(0x10050)->line, 8u);
  EXPECT_FALSE(object->find_line(0x10000));
  FrameRow row;
  EXPECT_FALSE(*object->find_row(0x10044, row));
  const auto procedures = object->procedures();
  ASSERT_EQ(procedures.all.size(), 2u) << "those that have names";
  EXPECT_EQ(procedures.all[1].name, "lists:map/2");
  EXPECT_FALSE(procedures.all[1].fde);
  EXPECT_EQ(procedures.all[1].lines.find(4)->line, 7u);

  const auto emulator = JitObject::read(Bytes().fill(32, 0).vector(), *host_arch());
  ASSERT_TRUE(emulator) << "which has no code";
  EXPECT_TRUE(emulator->code().empty());
  EXPECT_FALSE(*emulator->find_name(0, text, name));
}

}  // namespace
}  // namespace jitunwind::test
