// The bold guesses: frame records, calls through bad pointers, and leaves. They find callers in real code, find nothing
// in numbers that only look like it, and are not made unless they are asked for.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <vector>

#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/rows/apply_row.h"
#include "jitunwind/unwind_core/sources/guesses/code_pattern_p.h"
#include "jitunwind/unwind_core/sources/sources.h"
#include "jitunwind/unwind_core/targets/mappings.h"
#include "jitunwind/unwind_core/walk/context.h"
#include "tests/support/fake_space.h"

namespace jitunwind::test {
namespace {

Addr addr_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }
template <class F>
Addr addr_of_code(F* f) {
  return addr_of(reinterpret_cast<const void*>(f));
}

const LocalMemory k_memory;
const AddressSpace k_local{*host_arch(), k_memory, local_modules(), {}, {}};

std::optional<FrameRow> row_by(const RowSource& source, const AddressSpace& space, CodeAddress at,
                               const RegisterFile* registers, Guesses guesses = Guesses::bold) {
  MemoryWindow window;
  Lookup lookup(space, at, window, registers, guesses);
  FrameRow row;
  const Found found = source.find_row(lookup, row);
  EXPECT_TRUE(found);
  return found && *found ? std::optional(row) : std::nullopt;
}

/// Pages for code and stacks that no module owns, followed by an unreadable page.
class Pages {
 public:
  explicit Pages(std::size_t count)
      : size_(count * 4096),
        bytes_(
            static_cast<std::uint8_t*>(::mmap(nullptr, size_ + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    EXPECT_NE(bytes_, MAP_FAILED);
    EXPECT_EQ(::mprotect(bytes_, size_, PROT_READ | PROT_WRITE), 0);
  }
  /// Keeps the addresses occupied, because the kernel's answers about the pages are remembered for a moment.
  ~Pages() { ::mprotect(bytes_, size_, PROT_NONE); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::uint8_t* bytes() const { return bytes_; }
  Addr at(std::size_t offset) const { return addr_of(bytes_) + offset; }
  void put(std::size_t offset, std::initializer_list<int> code) {
    for (int b : code) bytes_[offset++] = static_cast<std::uint8_t>(b);
  }
  void put_word(std::size_t offset, std::uint64_t value) { std::memcpy(bytes_ + offset, &value, sizeof value); }
  void make_executable() { EXPECT_EQ(::mprotect(bytes_, size_, PROT_READ | PROT_EXEC), 0); }

 private:
  std::size_t size_;
  std::uint8_t* bytes_;
};

/// A stack with words that the test sets, and code beside it.
struct Scene {
  Pages stack{2};
  Pages code{1};
  RegisterFile registers;

  Scene() {
    code.put(0x10, {0xe8, 0, 0, 0, 0});              // call next
    code.put(0x20, {0xff, 0xd0});                    // call rax
    code.put(0x30, {0x41, 0xff, 0x54, 0x24, 0x08});  // call [r12+8]
    code.put(0x40, {0xff, 0xe0, 0x90});              // jmp rax; nop
    code.put(0x60, {0xe8, 0xcb, 0xff, 0xff, 0xff});  // call 0x30
    code.make_executable();
    set(0x100, 0x200);
  }
  void set(std::size_t sp, std::size_t fp) {
    registers.set(arch::x86_64.column(arch::x86_64.sp), stack.at(sp));
    registers.set(arch::x86_64.column(arch::x86_64.fp), stack.at(fp));
  }
  void record(std::size_t at, Addr saved_fp, Addr return_address) {
    stack.put_word(at, saved_fp);
    stack.put_word(at + 8, return_address);
  }
  bool finds(const RowSource& source, CodeAddress at = CodeAddress::interrupted(1)) const {
    return row_by(source, k_local, at, &registers).has_value();
  }
};

TEST(AfterCall, KnowsEveryFormOfCall) {
  const std::vector<std::vector<int>> calls{
      {0xe8, 1, 2, 3, 4},                    // call rel32
      {0xff, 0xd0},                          // call rax
      {0x41, 0xff, 0xd7},                    // call r15
      {0xff, 0x13},                          // call [rbx]
      {0xff, 0x16},                          // call [rsi]
      {0xff, 0x14, 0x24},                    // call [rsp]
      {0x41, 0xff, 0x14, 0xc4},              // call [r12+rax*8]
      {0xff, 0x14, 0x25, 1, 2, 3, 4},        // call [disp32]
      {0x42, 0xff, 0x14, 0xe5, 1, 2, 3, 4},  // call [r12*8+disp32]
      {0xff, 0x55, 0xf8},                    // call [rbp-8]
      {0xff, 0x54, 0x24, 0x08},              // call [rsp+8]
      {0xff, 0x15, 1, 2, 3, 4},              // call [rip+disp32]
      {0xff, 0x93, 1, 2, 3, 4},              // call [rbx+disp32]
      {0xff, 0x94, 0x24, 1, 2, 3, 4},        // call [rsp+disp32]
      {0x2e, 0xff, 0xd1},                    // cs call rcx (retpoline builds)
      {0x67, 0xe8, 1, 2, 3, 4},              // addr32 call rel32 (linker relaxation)
  };
  const std::vector<std::vector<int>> others{
      {0xe9, 1, 2, 3, 4}, {0xff, 0xe0}, {0xff, 0x25, 1, 2, 3, 4}, {0xc3},      {0xff, 0xd8}, {0xff, 0x1c, 0x24},
      {0xff, 0xc0},       {0x90},       {0xe8, 1, 2, 3},          {0xff, 0x14}};
  for (const bool is_call : {true, false})
    for (const auto& code : is_call ? calls : others) {
      Pages pages(1);
      for (std::size_t i = 0; i < code.size(); ++i) pages.bytes()[64 + i] = static_cast<std::uint8_t>(code[i]);
      pages.make_executable();
      MemoryWindow window;
      EXPECT_EQ(is_after_call(k_local, window, pages.at(64 + code.size())), is_call) << testing::PrintToString(code);
    }
}

TEST(AfterCall, NeedsExecutableMemory) {
  Pages pages(2);
  pages.put(0x100, {0xff, 0xd0});
  MemoryWindow window;
  EXPECT_FALSE(is_after_call(k_local, window, pages.at(0x102)));
  pages.make_executable();
  EXPECT_TRUE(is_after_call(k_local, window, pages.at(0x102)));
  // These are the bytes of the call in the data of a module.
  static const std::uint8_t data[] = {0xff, 0xd0, 0x90};
  EXPECT_FALSE(is_after_call(k_local, window, addr_of(data) + 2));
  for (const Addr at : {Addr{0}, Addr{1}, ~Addr{0}}) EXPECT_FALSE(is_after_call(k_local, window, at));
}

TEST(AfterCall, OfAArch64) {
  struct Case {
    std::uint32_t word;
    bool is_call;
  };
  for (const Case& c : {Case{0x94000001, true}, Case{0x97ffffff, true}, Case{0xd63f0100, true}, Case{0xd63f0b1f, true},
                        Case{0xd73f0a11, true}, Case{0x14000001, false}, Case{0xd61f0100, false},
                        Case{0xd65f03c0, false}, Case{0xd503201f, false}}) {
    FakeMemory memory;
    memory.put(0x4000, c.word, 4);
    const NoModules modules;
    const AddressSpace space{arch::aarch64, memory, modules, {}, {}};
    MemoryWindow window;
    EXPECT_EQ(is_after_call(space, window, 0x4004), c.is_call) << std::hex << c.word;
  }
}

TEST(IsCode, AgreesWithTheKernelsMap) {
  MemoryWindow window;
  Pages pages(3);
  ASSERT_EQ(::mprotect(pages.bytes() + 4096, 4096, PROT_READ | PROT_EXEC), 0);
  const int on_stack = 0;
  EXPECT_TRUE(is_code(k_local, window, addr_of_code(&row_by)));
  EXPECT_TRUE(is_code(k_local, window, addr_of_code(&::getpid)));
  EXPECT_FALSE(is_code(k_local, window, pages.at(4095)));
  EXPECT_TRUE(is_code(k_local, window, pages.at(4096)));
  EXPECT_TRUE(is_code(k_local, window, pages.at(8191)));
  EXPECT_FALSE(is_code(k_local, window, pages.at(8192)));
  EXPECT_FALSE(is_code(k_local, window, addr_of(&on_stack)));
  EXPECT_FALSE(is_code(k_local, window, addr_of(&k_local)));
  for (const Addr at : {Addr{0}, Addr{4095}, Addr{1} << 47, Addr{1} << 63, ~Addr{0}})
    EXPECT_FALSE(is_code(k_local, window, at)) << at;
}

TEST(FramePointer, FindsARecordWithOrWithoutAModule) {
  Scene scene;
  for (const Addr ra : {scene.code.at(0x15), scene.code.at(0x22), scene.code.at(0x35)}) {
    scene.record(0x200, scene.stack.at(0x300), ra);
    const auto row = row_by(frame_pointer_source(), k_local, CodeAddress::interrupted(1), &scene.registers);
    ASSERT_TRUE(row);
    EXPECT_EQ(to_text(*row, arch::x86_64), "cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]");
    EXPECT_EQ(row->origin, RowOrigin::frame_pointer);
  }
  scene.record(0x200, 0, scene.code.at(0x15));
  EXPECT_TRUE(scene.finds(frame_pointer_source()));
}

TEST(FramePointer, RefusesWhatIsNoRecord) {
  Scene scene;
  const Addr good = scene.code.at(0x15);
  const auto refused = [&scene] { return !scene.finds(frame_pointer_source()); };
  scene.record(0x200, scene.stack.at(0x300), good);
  ASSERT_FALSE(refused());

  scene.record(0x200, scene.stack.at(0x300), scene.code.at(0x42));
  EXPECT_TRUE(refused()) << "return address behind a jump";
  scene.record(0x200, scene.stack.at(0x300), scene.stack.at(0x15));
  EXPECT_TRUE(refused()) << "return address in data";
  scene.record(0x200, scene.stack.at(0x300), 0);
  EXPECT_TRUE(refused()) << "no return address, but a caller's record";
  scene.record(0x200, scene.stack.at(0x1f0), good);
  EXPECT_TRUE(refused()) << "saved frame pointer below";
  scene.record(0x200, scene.stack.at(0x200), good);
  EXPECT_TRUE(refused()) << "saved frame pointer is this record";
  scene.record(0x200, scene.stack.at(0x301), good);
  EXPECT_TRUE(refused()) << "saved frame pointer not aligned";

  scene.record(0x200, scene.stack.at(0x300), good);
  scene.set(0x208, 0x200);
  EXPECT_TRUE(refused()) << "record below SP";
  scene.set(0x200, 0x200);
  EXPECT_FALSE(refused()) << "record at SP";
  scene.record(0x204, scene.stack.at(0x300), good);
  scene.set(0x100, 0x204);
  EXPECT_TRUE(refused()) << "record not aligned";
  scene.set(0x100, 2 * 4096);
  EXPECT_TRUE(refused()) << "record not readable";
  scene.set(0x100, 2 * 4096 - 8);
  EXPECT_TRUE(refused()) << "half of the record not readable";
  scene.registers.set(arch::x86_64.column(arch::x86_64.fp), ~Addr{0} - 7);
  EXPECT_TRUE(refused()) << "record wraps around";
  scene.registers.forget(arch::x86_64.column(arch::x86_64.fp));
  EXPECT_TRUE(refused()) << "frame pointer unknown";
  EXPECT_FALSE(row_by(frame_pointer_source(), k_local, CodeAddress::interrupted(1), nullptr)) << "not on a stack";
}

// Two zeros may have any meaning, and a guess does not end a stack.
TEST(FramePointer, TwoZerosAreNoEnd) {
  Scene scene;
  scene.record(0x200, 0, 0);
  EXPECT_FALSE(scene.finds(frame_pointer_source()));
}

// covers: LU20
TEST(BoldGuesses, AreMadeForThoseWhoAsk) {
  Scene scene;
  scene.record(0x200, scene.stack.at(0x300), scene.code.at(0x15));
  scene.stack.put_word(0x100, scene.code.at(0x22));
  const CodeAddress nowhere = CodeAddress::interrupted(0), inside = CodeAddress::interrupted(scene.code.at(0x31));
  const auto by = [&](const RowSource& source, CodeAddress at, Guesses guesses) {
    return row_by(source, k_local, at, &scene.registers, guesses).has_value();
  };
  EXPECT_TRUE(by(frame_pointer_source(), inside, Guesses::bold));
  EXPECT_TRUE(by(leaf_source(), inside, Guesses::bold));
  EXPECT_TRUE(by(bad_call_source(), nowhere, Guesses::bold));
  EXPECT_FALSE(by(frame_pointer_source(), inside, Guesses::confirmed));
  EXPECT_FALSE(by(leaf_source(), inside, Guesses::confirmed));
  EXPECT_FALSE(by(bad_call_source(), nowhere, Guesses::confirmed));
}

__attribute__((noinline)) Addr own_return_address() { return addr_of(__builtin_return_address(0)); }

// Code compiled with -fomit-frame-pointer may keep anything in the frame pointer, and its callees save that.
TEST(FramePointer, LetsCodeOfModulesKeepAnythingInTheRegister) {
  Scene scene;
  scene.record(0x200, 0x1234567, own_return_address());
  EXPECT_TRUE(scene.finds(frame_pointer_source()));
  scene.record(0x200, 0x1234567, scene.code.at(0x15));
  EXPECT_FALSE(scene.finds(frame_pointer_source()));
}

// Words that lie on a stack - small numbers, addresses of the stack, of data, of code - replace the record.
TEST(FramePointer, RefusesRandomWords) {
  Scene scene;
  std::mt19937_64 random(4);
  static int data = 0;
  Module module;
  ASSERT_TRUE(local_modules().find(addr_of_code(&row_by), module));
  int believed = 0;
  constexpr int k_tries = 20000;
  for (int i = 0; i < k_tries; ++i) {
    const auto word = [&]() -> Addr {
      switch (random() % 5) {
        case 0:
          return random() % 4096;
        case 1:
          return scene.stack.at(random() % 8192);
        case 2:
          return addr_of(&data) + random() % 256;
        case 3:
          return module.text.begin + random() % module.text.size();
        default:
          return random();
      }
    };
    scene.record(0x200, word(), word());
    believed += scene.finds(frame_pointer_source());
  }
  // A fifth of the return addresses are random addresses of code. About one in thirty of those follows a call, because
  // code is dense with calls; nothing else is believed.
  EXPECT_LT(believed, k_tries / 5 / 15);
}

bool found_caller = false;

void on_crash(int, siginfo_t*, void* context) {
  auto* const uc = static_cast<ucontext_t*>(context);
  const RegisterFile registers = registers_from_ucontext(uc, arch::x86_64);
  const auto pc = registers.get(arch::x86_64.column(arch::x86_64.pc)).value_or(0);
  const auto row = row_by(bad_call_source(), k_local, CodeAddress::interrupted(pc), &registers);
  found_caller = row.has_value();
  if (!row) ::_exit(3);
  MemoryWindow window;
  Caller caller;
  if (!apply_row(*row, registers, arch::x86_64, k_memory, window, caller)) ::_exit(4);
  // Returns to the caller, as the called function would.
  uc->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(caller.pc);
  uc->uc_mcontext.gregs[REG_RSP] = static_cast<greg_t>(caller.cfa);
}

// -fsanitize=function would look for a signature before the target.
__attribute__((noinline, no_sanitize("undefined"))) int call_it(void (*target)()) {
  target();
  return 7;
}

// covers: LU20
TEST(BadCall, FindsTheCallerOfACallIntoNowhere) {
  Pages data(1);
  static int in_module = 0;
  struct sigaction action {};
  action.sa_sigaction = &on_crash;
  action.sa_flags = SA_SIGINFO;
  struct sigaction before_segv, before_bus;
  ASSERT_EQ(::sigaction(SIGSEGV, &action, &before_segv), 0);
  ASSERT_EQ(::sigaction(SIGBUS, &action, &before_bus), 0);
  // Null, an unmapped page, data of the heap's kind, data of a module, the stack.
  int on_stack = 0;
  for (const Addr target : {Addr{0}, Addr{0x10}, data.at(100), addr_of(&in_module), addr_of(&on_stack)}) {
    found_caller = false;
    EXPECT_EQ(call_it(reinterpret_cast<void (*)()>(target)), 7);
    EXPECT_TRUE(found_caller) << target;
  }
  ::sigaction(SIGSEGV, &before_segv, nullptr);
  ::sigaction(SIGBUS, &before_bus, nullptr);
}

TEST(BadCall, BelievesOnlyAReturnAddress) {
  Scene scene;
  const CodeAddress nowhere = CodeAddress::interrupted(0x10);
  scene.stack.put_word(0x100, scene.code.at(0x15));
  EXPECT_TRUE(scene.finds(bad_call_source(), nowhere));
  const auto row = row_by(bad_call_source(), k_local, nowhere, &scene.registers);
  ASSERT_TRUE(row);
  EXPECT_EQ(to_text(*row, arch::x86_64), "cfa=rsp+8 ra=[cfa-8]");
  EXPECT_EQ(row->origin, RowOrigin::bad_call);

  EXPECT_FALSE(scene.finds(bad_call_source(), CodeAddress::returned_to(0x10))) << "a caller's pc";
  EXPECT_FALSE(scene.finds(bad_call_source(), CodeAddress::interrupted(scene.code.at(0)))) << "code made at run time";
  EXPECT_FALSE(scene.finds(bad_call_source(), CodeAddress::interrupted(addr_of_code(&row_by)))) << "code";
  EXPECT_TRUE(scene.finds(bad_call_source(), CodeAddress::interrupted(scene.stack.at(0)))) << "data";
  EXPECT_FALSE(row_by(bad_call_source(), k_local, nowhere, nullptr)) << "not on a stack";
  for (const Addr word : {Addr{0}, Addr{1}, scene.code.at(0x42), scene.stack.at(0x15), ~Addr{0}}) {
    scene.stack.put_word(0x100, word);
    EXPECT_FALSE(scene.finds(bad_call_source(), nowhere)) << word;
  }
  scene.registers.set(arch::x86_64.column(arch::x86_64.sp), 0x10);
  EXPECT_FALSE(scene.finds(bad_call_source(), nowhere)) << "stack not readable";
}

TEST(BadCall, UsesTheLinkRegisterOfAArch64) {
  const Arch& arch = arch::aarch64;
  FakeMemory memory;
  memory.put(0x4000, 0xd63f0100, 4);  // blr x8
  const NoModules modules;
  const AddressSpace space{arch, memory, modules, {}, {}};
  RegisterFile registers;
  registers.set(arch.column(arch.sp), 0x100000);
  registers.set(arch.column(arch.ra), 0x4004);
  const auto row = row_by(bad_call_source(), space, CodeAddress::interrupted(0), &registers);
  ASSERT_TRUE(row);
  EXPECT_EQ(to_text(*row, arch), to_text(entry_row(arch), arch));
  registers.set(arch.column(arch.ra), 0x4008);
  EXPECT_FALSE(row_by(bad_call_source(), space, CodeAddress::interrupted(0), &registers));
  // Readable memory counts as code if the memory object cannot tell.
  registers.set(arch.column(arch.ra), 0x4004);
  EXPECT_FALSE(row_by(bad_call_source(), space, CodeAddress::interrupted(0x4000), &registers));
}

/// Code that may be executed but not read is known at its entry alone. Each pc of the kernel's [vsyscall] is an entry;
/// a call by rax tells nothing there, since rax holds the result.
TEST(CodeThatCannotBeRead, IsLeftAtItsEntry) {
  constexpr Addr k_unreadable = 0x500000, k_vsyscall = 0xffffffffff600000, k_sp = 0x8000;
  FakeMemory bytes;
  bytes.put(0x400008, 0x9090909090909090);
  bytes.put(0x400010, 0xd0ff, 2);  // call rax
  bytes.put(k_sp, 0x400012);
  std::vector<Mapping> list(3);
  for (Mapping& mapping : list) mapping.executable = true;
  list[0].range = {0x400000, 0x401000};
  list[1].range = {k_unreadable, k_unreadable + 0x1000};
  list[2].range = {k_vsyscall, k_vsyscall + 0x1000};
  const Mappings mappings(list);
  const MappedMemory memory(bytes, mappings);
  const NoModules modules;
  const AddressSpace space{arch::x86_64, memory, modules, {}, {}};
  RegisterFile registers;
  registers.set(7, k_sp);
  const auto row_at = [&](Addr pc, Addr rax) {
    registers.set(0, rax);
    return row_by(followed_code_source(), space, CodeAddress::interrupted(pc), &registers, Guesses::confirmed);
  };
  for (const auto& row : {row_at(k_unreadable, k_unreadable), row_at(k_vsyscall, ~Addr{37})}) {
    ASSERT_TRUE(row);
    EXPECT_EQ(to_text(*row, arch::x86_64), "cfa=rsp+8 ra=[cfa-8]");
    EXPECT_EQ(row->origin, RowOrigin::followed_code);
  }
  EXPECT_FALSE(row_at(k_unreadable, ~Addr{37}));
  // Core files have zeros in place of the page that the kernel emulates, and zeros are not the code that runs.
  for (Addr at = k_vsyscall; at != k_vsyscall + 0x1000; at += 8) bytes.put(at, 0);
  const auto in_core = row_at(k_vsyscall, ~Addr{37});
  ASSERT_TRUE(in_core);
  EXPECT_EQ(to_text(*in_core, arch::x86_64), "cfa=rsp+8 ra=[cfa-8]");
  EXPECT_FALSE(row_at(k_unreadable + 4, k_unreadable));
}

/// push rbx would be the first thing to change: a function of two instructions, called directly from code next to it.
TEST(Leaf, BelievesTheCallThatLeadsThere) {
  Scene scene;
  const CodeAddress inside = CodeAddress::interrupted(scene.code.at(0x31));
  scene.stack.put_word(0x100, scene.code.at(0x65));
  const auto row = row_by(leaf_source(), k_local, inside, &scene.registers);
  ASSERT_TRUE(row);
  EXPECT_EQ(to_text(*row, arch::x86_64), "cfa=rsp+8 ra=[cfa-8]");
  EXPECT_EQ(row->origin, RowOrigin::leaf);
  EXPECT_TRUE(is_guess(row->origin));
  EXPECT_FALSE(scene.finds(leaf_source(), CodeAddress::returned_to(scene.code.at(0x31)))) << "a caller";
  EXPECT_FALSE(row_by(leaf_source(), k_local, inside, nullptr)) << "not on a stack";

  // A plausible frame record wins over a call that says nothing about its target or leads elsewhere, not over this one.
  scene.record(0x200, scene.stack.at(0x300), scene.code.at(0x15));
  EXPECT_EQ(row_by(leaf_source(), k_local, inside, &scene.registers)->origin, RowOrigin::leaf);
  scene.stack.put_word(0x100, scene.code.at(0x22));
  EXPECT_EQ(row_by(leaf_source(), k_local, inside, &scene.registers)->origin, RowOrigin::frame_pointer);
  scene.stack.put_word(0x100, scene.code.at(0x65));
  EXPECT_EQ(row_by(leaf_source(), k_local, CodeAddress::interrupted(scene.code.at(0x2f)), &scene.registers)->origin,
            RowOrigin::frame_pointer);
  scene.record(0x200, 1, 2);  // no record
  EXPECT_EQ(row_by(leaf_source(), k_local, CodeAddress::interrupted(scene.code.at(0x2f)), &scene.registers)->origin,
            RowOrigin::leaf);
  scene.stack.put_word(0x100, scene.code.at(0x42));
  EXPECT_FALSE(scene.finds(leaf_source(), inside)) << "not behind a call";
}

}  // namespace
}  // namespace jitunwind::test
