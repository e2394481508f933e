// The CPU tables: every row consistent with its neighbours, with <libunwind.h>'s numbers and with the C library's
// structures.
#include "jitunwind/unwind_core/arch/arch.h"

#if defined(__x86_64__) || defined(__i386__)
#include <asm/perf_regs.h>
#endif
#include <gtest/gtest.h>
#include <sys/ucontext.h>
#include <sys/user.h>
#include <ucontext.h>

#include <cstddef>
#include <set>

#include "jitunwind/unwind_core/error.h"

namespace jitunwind {
namespace {

TEST(Arch, TablesAreConsistent) {
  ASSERT_GE(all_arches().size(), 2u);
  for (const Arch* a : all_arches()) {
    SCOPED_TRACE(a->name);
    EXPECT_EQ(find_arch(a->name), a);
    EXPECT_EQ(find_arch(a->elf_machine, a->big_endian), a);
    std::set<int> columns, unw, perf;
    std::set<std::string> names;
    int last = -1;
    for (const RegisterInfo& r : a->registers) {
      EXPECT_GT(int{r.dwarf}, last) << r.name << ": sorted by DWARF number";
      last = r.dwarf;
      EXPECT_LT(r.column, static_cast<int>(k_max_columns)) << r.name;
      if (r.column >= 0) {
        EXPECT_TRUE(columns.insert(r.column).second) << r.name;
      }
      if (r.libunwind >= 0) {
        EXPECT_TRUE(unw.insert(r.libunwind).second) << r.name;
      }
      if (r.perf >= 0) {
        EXPECT_TRUE(perf.insert(r.perf).second) << r.name;
        EXPECT_EQ(a->by_perf(r.perf), &r);
      }
      EXPECT_TRUE(names.insert(r.name).second) << r.name;
      EXPECT_TRUE(!r.preserved || r.column >= 0) << r.name << ": a preserved register needs a place";
      EXPECT_EQ(a->by_dwarf(r.dwarf), &r);
      EXPECT_EQ(a->by_name(r.name), &r);
      if (r.libunwind >= 0) {
        EXPECT_EQ(a->by_libunwind(r.libunwind), &r);
      }
    }
    EXPECT_EQ(columns.size(), static_cast<std::size_t>(*columns.rbegin()) + 1) << "columns without holes";
    if (a->calls_push()) {
      EXPECT_EQ(a->address_mask, a->word_mask()) << "walks take what a call has pushed as it is";
    }
    for (RegNum role : {a->sp, a->fp, a->ra, a->pc}) EXPECT_GE(a->column(role), 0);
    for (const CodePattern& p : a->trampolines) EXPECT_EQ(p.bytes.size(), p.mask.size());
    for (const CodePattern& p : a->plt_stubs) EXPECT_EQ(p.bytes.size(), p.mask.size());
    EXPECT_EQ(a->by_dwarf(60000), nullptr);
    EXPECT_EQ(a->by_libunwind(-1), nullptr);
    EXPECT_EQ(a->by_perf(-1), nullptr);
    EXPECT_EQ(a->by_name("nonsense"), nullptr);
  }
  EXPECT_EQ(find_arch("z80"), nullptr);
  EXPECT_EQ(find_arch(62, true), nullptr);
  EXPECT_EQ(find_arch(4711, false), nullptr);
}

// covers: RG13
TEST(Arch, X86_64NumbersAndOffsets) {
  const auto reg = [](const char* name) { return *arch::x86_64.by_name(name); };
  const char* const order[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
                               "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip"};
  for (int i = 0; i < 17; ++i) {
    EXPECT_EQ(reg(order[i]).dwarf, i);
    EXPECT_EQ(reg(order[i]).libunwind, i);
  }
  std::set<std::string> preserved;
  for (const RegisterInfo& r : arch::x86_64.registers)
    if (r.preserved) preserved.insert(r.name);
  EXPECT_EQ(preserved, (std::set<std::string>{"rbx", "rbp", "r12", "r13", "r14", "r15"}));
#if defined(__x86_64__)
  const auto greg = [](int index) {
    return offsetof(ucontext_t, uc_mcontext.gregs) + 8 * static_cast<unsigned>(index);
  };
#define SAME_PERF(name, number) EXPECT_EQ(int{reg(#name).perf}, PERF_REG_X86_##number) << #name
  SAME_PERF(rax, AX);
  SAME_PERF(rbx, BX);
  SAME_PERF(rcx, CX);
  SAME_PERF(rdx, DX);
  SAME_PERF(rsi, SI);
  SAME_PERF(rdi, DI);
  SAME_PERF(rbp, BP);
  SAME_PERF(rsp, SP);
  SAME_PERF(rip, IP);
  SAME_PERF(r8, R8);
  SAME_PERF(r9, R9);
  SAME_PERF(r10, R10);
  SAME_PERF(r11, R11);
  SAME_PERF(r12, R12);
  SAME_PERF(r13, R13);
  SAME_PERF(r14, R14);
  SAME_PERF(r15, R15);
#undef SAME_PERF
#define SAME(name, index, member)                                              \
  EXPECT_EQ(static_cast<unsigned>(reg(#name).ucontext), greg(index)) << #name; \
  EXPECT_EQ(static_cast<unsigned>(reg(#name).prstatus), offsetof(user_regs_struct, member)) << #name
  SAME(rax, REG_RAX, rax);
  SAME(rdx, REG_RDX, rdx);
  SAME(rcx, REG_RCX, rcx);
  SAME(rbx, REG_RBX, rbx);
  SAME(rsi, REG_RSI, rsi);
  SAME(rdi, REG_RDI, rdi);
  SAME(rbp, REG_RBP, rbp);
  SAME(rsp, REG_RSP, rsp);
  SAME(r8, REG_R8, r8);
  SAME(r9, REG_R9, r9);
  SAME(r10, REG_R10, r10);
  SAME(r11, REG_R11, r11);
  SAME(r12, REG_R12, r12);
  SAME(r13, REG_R13, r13);
  SAME(r14, REG_R14, r14);
  SAME(r15, REG_R15, r15);
  SAME(rip, REG_RIP, rip);
#undef SAME
#endif
}

TEST(Arch, X86NumbersAndOffsets) {
  std::set<std::string> preserved;
  for (const RegisterInfo& r : arch::x86.registers)
    if (r.preserved) preserved.insert(r.name);
  EXPECT_EQ(preserved, (std::set<std::string>{"ebx", "ebp", "esi", "edi"}));
#if defined(__i386__)
  EXPECT_EQ(host_arch(), &arch::x86);
  const auto expect_same = [](const char* name, int index, std::size_t user, int perf) {
    const RegisterInfo& reg = *arch::x86.by_name(name);
    const std::size_t gregs = offsetof(ucontext_t, uc_mcontext.gregs);
    EXPECT_EQ(static_cast<std::size_t>(reg.ucontext), gregs + 4 * static_cast<std::size_t>(index)) << name;
    EXPECT_EQ(static_cast<std::size_t>(reg.prstatus), user) << name;
    EXPECT_EQ(int{reg.perf}, perf) << name;
  };
  expect_same("eax", REG_EAX, offsetof(user_regs_struct, eax), PERF_REG_X86_AX);
  expect_same("ecx", REG_ECX, offsetof(user_regs_struct, ecx), PERF_REG_X86_CX);
  expect_same("edx", REG_EDX, offsetof(user_regs_struct, edx), PERF_REG_X86_DX);
  expect_same("ebx", REG_EBX, offsetof(user_regs_struct, ebx), PERF_REG_X86_BX);
  expect_same("esp", REG_ESP, offsetof(user_regs_struct, esp), PERF_REG_X86_SP);
  expect_same("ebp", REG_EBP, offsetof(user_regs_struct, ebp), PERF_REG_X86_BP);
  expect_same("esi", REG_ESI, offsetof(user_regs_struct, esi), PERF_REG_X86_SI);
  expect_same("edi", REG_EDI, offsetof(user_regs_struct, edi), PERF_REG_X86_DI);
  expect_same("eip", REG_EIP, offsetof(user_regs_struct, eip), PERF_REG_X86_IP);
#endif
}

TEST(Errors, EveryCodeHasNameTextAndLibunwindError) {
  std::set<std::string> names;
  for (int i = 0;; ++i) {
    const auto code = static_cast<ErrorCode>(i);
    if (i != 0 && error_name(code) == error_name(ErrorCode::unspecified)) break;  // behind the last
    EXPECT_TRUE(names.insert(error_name(code)).second) << error_name(code);
    EXPECT_STRNE(error_text(code), "");
    EXPECT_GE(unw_error(code), 1);
    EXPECT_LE(unw_error(code), 10);
  }
  EXPECT_GT(names.size(), 50u);
  EXPECT_EQ(unw_error(ErrorCode::no_info), 10);
}

}  // namespace
}  // namespace jitunwind
