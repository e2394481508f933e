// Objects of every kind: without .eh_frame, with a broken one, far from it, with names of any bytes; and the rows of
// good ones, compared with those that llvm-dwarfdump reads.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <jitunwind/jitunwind.h>
#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/ExecutionEngine/Orc/RTDyldObjectLinkingLayer.h>
#include <llvm/Object/ObjectFile.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "jitunwind/unwind_core/arch/arch.h"
#include "tests/builders/registered_code.h"
#include "tests/orc/orc_jit.h"
#include "tests/support/command.h"
#include "tests/world_cfi/reference.h"

namespace jitunwind::test {
namespace {

namespace orc = llvm::orc;

class OrcObjects : public EachLinker {};
JITUNWIND_EACH_LINKER(OrcObjects);

constexpr std::string_view k_no_frames = R"(
define internal i64 @leaf(i64 %x) noinline nounwind {
  %s = add i64 %x, 1
  ret i64 %s
}
define i64 @plain(i64 %x) nounwind {
  %r = call i64 @leaf(i64 %x)
  %s = add i64 %r, 1
  ret i64 %s
}
)";

TEST_P(OrcObjects, WithoutEhFrameHaveNamesAndSaySo) {
  std::vector<std::string> reports;
  OrcJit jit(GetParam(), {.on_undescribed = [&](const OrcUndescribed& u) { reports.push_back(u.text()); }});
  jit.add_object(compile(k_no_frames, "no_frames"));
  const auto plain = jit.find<long (*)(long)>("plain");
  EXPECT_EQ(plain(1), 3);
  const RegisteredCode code;
  const auto at = reinterpret_cast<std::uintptr_t>(plain);
  EXPECT_EQ(code.name_at(at), "plain");
  EXPECT_EQ(code.row_at(at), "no row");
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_NE(reports[0].find(": no call frame information for leaf plain ("), std::string::npos) << reports[0];
}

TEST_P(OrcObjects, WithSomeFunctionsWithoutFde) {
  std::vector<std::string> functions;
  OrcJit jit(GetParam(), {.on_undescribed = [&](const OrcUndescribed& u) { functions = u.functions; }});
  jit.add(std::string(k_no_frames) + std::string(k_local_functions));
  const auto outer = jit.find<Calls>("outer");
  EXPECT_EQ(functions, (std::vector<std::string>{"leaf", "plain"}));
  EXPECT_TRUE(RegisteredCode().row_at(reinterpret_cast<std::uintptr_t>(outer)).starts_with("dyn_table"));
  EXPECT_EQ(registered(), 4u);
}

TEST_P(OrcObjects, WithoutCodeAreNothing) {
  OrcJit jit(GetParam());
  jit.add("@number = global i64 7");
  EXPECT_EQ(*jit.find<long*>("number"), 7);
  EXPECT_EQ(registered(), 0u);
}

/// Returns a copy in which the bytes `from` of .eh_frame are replaced at every place.
std::unique_ptr<llvm::MemoryBuffer> patched(const llvm::MemoryBuffer& object, std::string_view from,
                                            std::string_view to) {
  std::string bytes = object.getBuffer().str();
  auto file = or_exit(llvm::object::ObjectFile::createObjectFile(object.getMemBufferRef()));
  for (const auto& section : file->sections()) {
    if (or_exit(section.getName()) != ".eh_frame") continue;
    const llvm::StringRef contents = or_exit(section.getContents());
    const auto begin = static_cast<std::size_t>(contents.data() - object.getBufferStart());
    for (std::size_t at = begin; (at = bytes.find(from, at)) < begin + contents.size(); at += to.size())
      bytes.replace(at, to.size(), to);
  }
  return llvm::MemoryBuffer::getMemBufferCopy(bytes, "patched");
}

TEST_P(OrcObjects, WithBrokenEhFrameFailToLinkWithOneMessage) {
  OrcJit jit(GetParam());
  std::vector<std::string> messages;
  jit.jit().getExecutionSession().setErrorReporter(
      [&](llvm::Error error) { messages.push_back(llvm::toString(std::move(error))); });
  // DW_CFA_def_cfa_offset of 16 becomes an undefined instruction.
  const auto good = compile(k_local_functions);
  const auto tracker = jit.add_object(patched(*good, std::string_view("\x0e\x10", 2), "\x3f"));
  EXPECT_NE(jit.failure_of("outer"), "");
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_TRUE(messages[0].starts_with("jitunwind: cannot register ")) << messages[0];
  EXPECT_NE(messages[0].find("unknown opcode"), std::string::npos) << messages[0];
  EXPECT_NE(messages[0].find(".eh_frame at 0x"), std::string::npos) << messages[0];
  EXPECT_EQ(registered(), 0u);
  EXPECT_EQ(llvm::toString(tracker->remove()), "");
  jit.add_object(compile(k_local_functions));
  EXPECT_NE(jit.find<Calls>("outer"), nullptr);
}

TEST_P(OrcObjects, HaveNamesOfAnyBytes) {
  OrcJit jit(GetParam());
  jit.add(R"(
define internal i64 @"any \01\7f\80\ff \22name\22 $(;) %s"(ptr %native, i64 %x) noinline {
  %r = call i64 %native(i64 %x)
  %s = add i64 %r, 1
  ret i64 %s
}
define i64 @outer(ptr %native, i64 %x) {
  %r = call i64 @"any \01\7f\80\ff \22name\22 $(;) %s"(ptr %native, i64 %x)
  %s = add i64 %r, 1
  ret i64 %s
}
)");
  jit.find<Calls>("outer")(names_caller, 1);
  EXPECT_EQ(innermost_jit_name, "any \x01\x7f\x80\xff \"name\" $(;) %s");
}

/// Puts code into the lowest 2 GiB, and data, including .eh_frame, there as well or where the kernel maps memory.
class FarMapper : public llvm::SectionMemoryManager::MemoryMapper {
 public:
  explicit FarMapper(bool has_low_data) : has_low_data_(has_low_data) {}
  llvm::sys::MemoryBlock allocateMappedMemory(llvm::SectionMemoryManager::AllocationPurpose purpose, std::size_t size,
                                              const llvm::sys::MemoryBlock*, unsigned,
                                              std::error_code& error) override {
    const bool is_low = has_low_data_ || purpose == llvm::SectionMemoryManager::AllocationPurpose::Code;
    const int where = is_low ? MAP_32BIT : 0;
    size = (size + 4095) & ~std::size_t{4095};
    void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | where, -1, 0);
    error = at == MAP_FAILED ? std::make_error_code(std::errc::not_enough_memory) : std::error_code();
    return at == MAP_FAILED ? llvm::sys::MemoryBlock() : llvm::sys::MemoryBlock(at, size);
  }
  std::error_code protectMappedMemory(const llvm::sys::MemoryBlock& block, unsigned flags) override {
    return llvm::sys::Memory::protectMappedMemory(block, flags);
  }
  std::error_code releaseMappedMemory(llvm::sys::MemoryBlock& block) override {
    ::munmap(block.base(), block.allocatedSize());
    return {};
  }
  /// A change of the builder, by which this mapper serves. `options` must outlive the JIT.
  OrcJit::Builder serves(const OrcOptions& options) {
    return [this, &options](orc::LLJITBuilder& builder) {
      auto machine = or_exit(orc::JITTargetMachineBuilder::detectHost());
      machine.setCodeModel(llvm::CodeModel::Large);
      builder.setJITTargetMachineBuilder(std::move(machine));
      builder.setObjectLinkingLayerCreator(
          [this, &options](orc::ExecutionSession& session,
                           const auto&...) -> llvm::Expected<std::unique_ptr<orc::ObjectLayer>> {
            return std::make_unique<orc::RTDyldObjectLinkingLayer>(
                session, [&](const auto&...) { return std::make_unique<OrcMemoryManager>(options, this); });
          });
    };
  }

 private:
  const bool has_low_data_;
};

/// Data of 32 bits' reach keeps its code out of a segment, and the status says why.
TEST(OrcObject, StaysWhereItIsFarFromSegments) {
  CodeSegments segments;
  FarMapper mapper(true);
  const OrcOptions options{.segments = &segments};
  OrcJit jit(Linker::rtdyld, {}, mapper.serves(options));
  jit.add(k_local_functions);
  const auto outer = jit.find<Calls>("outer");
  EXPECT_LT(reinterpret_cast<std::uintptr_t>(outer), 0x8000'0000u);
  EXPECT_EQ(outer(names_caller, 1), 3);
  EXPECT_EQ(innermost_jit_name, "middle");
  const CodeSegmentsStatus status = segments.status();
  EXPECT_EQ(status.published, 0u);
  EXPECT_EQ(status.refused, 1u);
  EXPECT_NE(status.latest_refusal.text().find("more than 2 GiB from the segment"), std::string::npos);
  EXPECT_LT(status.latest_refusal.at, 0x8000'0000u);
}

TEST(OrcObject, MayHaveItsEhFrameFarFromItsCode) {
  FarMapper mapper(false);
  const OrcOptions options{.segments = nullptr};
  OrcJit jit(Linker::rtdyld, {}, mapper.serves(options));
  jit.add(k_local_functions);
  jit.add(k_landing_pads);
  const auto outer = jit.find<Calls>("outer");
  EXPECT_LT(reinterpret_cast<std::uintptr_t>(outer), 0x8000'0000u);
  const auto procedure = RegisteredCode().procedure_at(reinterpret_cast<std::uintptr_t>(outer));
  ASSERT_TRUE(procedure);
  EXPECT_GT(procedure->unwind_info, 0x4000'0000'0000u);
  EXPECT_EQ(outer(names_caller, 1), 3);
  EXPECT_EQ(innermost_jit_name, "middle");
  EXPECT_THROW(outer(throws, 1), std::runtime_error);
  EXPECT_EQ(jit.find<Calls>("catches")(throws, 1), -1);
}

/// An object whose second row does not have what the first instruction has pushed: JITUNWIND_CHECK finds it.
TEST_P(OrcObjects, WithAWrongRowAreRefusedIfThatIsAsked) {
  OrcJit jit(GetParam());
  constexpr std::string_view k_wrong = R"(
module asm ".globl wrong_row"
module asm ".type wrong_row,@function"
module asm "wrong_row: .cfi_startproc"
module asm "push %rbx"
module asm "pop %rbx"
module asm "ret"
module asm ".cfi_endproc"
module asm ".size wrong_row, .-wrong_row"
)";
  jit.add_object(compile(std::string(k_wrong) + std::string(k_local_functions), "wrong_row"));
  const char* const asked = std::getenv("JITUNWIND_CHECK");
  const std::string failure = jit.failure_of("outer");
  if (asked == nullptr || asked != std::string_view("refuse")) {
    EXPECT_EQ(failure, "");
    return;
  }
  EXPECT_NE(failure, "");
  EXPECT_EQ(registered(), 0u);
}

// Rows

std::string text_of(const world::Cell& cell) {
  const auto offset = [&] { return (cell.offset < 0 ? "" : "+") + std::to_string(cell.offset); };
  switch (cell.kind) {
    case world::Cell::Kind::at_cfa:
      return "[cfa" + offset() + "]";
    case world::Cell::Kind::reg:
      return std::string(arch::x86_64.by_dwarf(cell.reg)->name) + offset();
    default:
      return to_text(cell);
  }
}

std::string text_of(world::ReferenceRow row) {
  std::sort(row.rules.begin(), row.rules.end(), [](const auto& a, const auto& b) { return a.reg < b.reg; });
  std::string text = "dyn_table: cfa=" + text_of(row.cfa);
  for (const auto& rule : row.rules) {
    const bool is_ra = rule.reg == world::k_ra_column || rule.reg == arch::x86_64.ra;
    text += std::string(" ") + (is_ra ? "ra" : arch::x86_64.by_dwarf(rule.reg)->name) + "=" + text_of(rule.cell);
  }
  return text;
}

// So many values are alive over calls that every preserved register is saved, and the frame has a variable size.
constexpr std::string_view k_frames = R"(
define i64 @many(ptr %f, i64 %x) {
  %a = call i64 %f(i64 1)
  %b = call i64 %f(i64 2)
  %c = call i64 %f(i64 3)
  %d = call i64 %f(i64 4)
  %e = call i64 %f(i64 5)
  %g = call i64 %f(i64 6)
  %h = call i64 %f(i64 %x)
  %s1 = add i64 %a, %b
  %s2 = add i64 %c, %d
  %s3 = add i64 %e, %g
  %s4 = add i64 %s1, %s2
  %s5 = add i64 %s3, %h
  %s6 = add i64 %s4, %s5
  ret i64 %s6
}
define i64 @variable(ptr %f, i64 %x) {
  %room = alloca i64, i64 %x
  store i64 %x, ptr %room
  %r = call i64 %f(i64 %x)
  %v = load i64, ptr %room
  %s = add i64 %r, %v
  ret i64 %s
}
define i64 @aligned(ptr %f, i64 %x) {
  %room = alloca i64, align 64
  store volatile i64 %x, ptr %room
  %r = call i64 %f(i64 %x)
  %v = load volatile i64, ptr %room
  %s = add i64 %r, %v
  ret i64 %s
}
define i64 @leaf(i64 %x) {
  ret i64 %x
}
)";

// covers: DY46
TEST_P(OrcObjects, HaveTheRowsThatDwarfdumpReads) {
  const std::string all = std::string(k_frames) + std::string(k_local_functions) + std::string(k_landing_pads);
  auto object = compile(all);
  const TemporaryFolder folder;
  const std::string path = folder / "object.o";
  std::ofstream(path, std::ios::binary).write(object->getBufferStart(), static_cast<long>(object->getBufferSize()));
  OrcJit jit(GetParam());
  jit.add_object(std::move(object));
  // The object's only section of code; in the file it is at 0, and this is its first function.
  const auto base = reinterpret_cast<std::uintptr_t>(jit.find<void*>("many"));
  world::Reference reference(world::Tool::dwarfdump, path, *host_arch());
  const RegisteredCode code;
  std::size_t rows = 0;
  std::size_t functions = 0;
  for (world::ReferenceFde fde; reference.next(fde); ++functions)
    for (std::size_t i = 0; i < fde.rows.size(); ++i) {
      const Addr end = i + 1 < fde.rows.size() ? fde.rows[i + 1].at : fde.range.end;
      for (Addr at = fde.rows[i].at; at < end; ++at, ++rows)
        EXPECT_EQ(code.row_at(base + at), text_of(fde.rows[i])) << std::hex << at;
    }
  EXPECT_EQ(functions, 8u);
  EXPECT_GT(rows, 200u);
}

}  // namespace
}  // namespace jitunwind::test
