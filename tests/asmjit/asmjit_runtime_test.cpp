// AsmjitRuntime: walks know the code that it adds by name and leave it rightly, and do not know the code that it
// releases; threads, misuse, and memory that runs out.
#include "jitunwind/adapters/asmjit/asmjit_runtime.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csetjmp>
#include <cstdlib>
#include <new>
#include <thread>

#include "jitunwind/adapters/asmjit/asmjit_builder.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/walk.h"
#include "tests/asmjit/written_code.h"

namespace {
thread_local int g_allocations_left = -1;  // -1: any number

void* allocate(std::size_t size) noexcept {
  if (g_allocations_left == 0) return nullptr;
  if (g_allocations_left > 0) --g_allocations_left;
  return std::malloc(size);
}
}  // namespace

// The function is not inlined: gcc would warn of pairs that do not match then.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (void* memory = allocate(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace jitunwind::test {
namespace {

using namespace asmjit::x86;
using asmjit::Label;

// Stacks of C++ and asmjit frames. The test program exports all symbols and makes no tail calls, so that names are
// complete.
std::vector<std::string> g_names;
std::vector<RowOrigin> g_origins;

extern "C" {
[[gnu::noinline]] void asmjit_test_walks() {
  for (const Frame& frame : walk_here()) {
    g_names.push_back(frame.name());
    g_origins.push_back(frame.origin());
  }
  asm volatile("");
}
using Callback = void (*)();
Callback g_inner = nullptr;
[[gnu::noinline]] void asmjit_test_calls_back() {
  g_inner();
  asm volatile("");
}
}

constexpr auto k_walker = [] { return reinterpret_cast<std::uintptr_t>(&asmjit_test_walks); };
Callback callback_at(void* code) { return reinterpret_cast<Callback>(code); }

// covers: DY47
TEST(AsmjitRuntime, StacksOfBothKindsAreWholeAndNamed) {
  AsmjitRuntime runtime;
  // The outer frame has no frame pointer and uses rbp for something else.
  asmjit::CodeHolder outer_code;
  outer_code.init(runtime.environment());
  AsmjitAssembler a(&outer_code);
  a.push(rbx);
  a.sub(rsp, 48);
  a.mov(rbx, reinterpret_cast<std::uintptr_t>(&asmjit_test_calls_back));
  a.call(rbx);
  a.add(rsp, 48);
  a.pop(rbx);
  a.ret();
  void *outer = nullptr, *inner = nullptr;
  ASSERT_EQ(runtime.add(&outer, &outer_code, "vm_outer"), asmjit::kErrorOk);

  asmjit::CodeHolder inner_code;
  inner_code.init(runtime.environment());
  Compiler cc(&inner_code);
  cc.bind(new_named_label(cc, "vm_inner"));
  asmjit::FuncNode* function = add_func(cc, signature<void>());
  add_dirty(function->frame(), RegGroup::kGp, 1u << 5);
  cc.mov(ebp, 0x1234);
  invoke(cc, k_walker(), signature<void>());
  end_func(cc);
  ASSERT_EQ(cc.finalize(), asmjit::kErrorOk);
  ASSERT_EQ(runtime.add(&inner, &inner_code), asmjit::kErrorOk);

  g_inner = callback_at(inner);
  g_names.clear();
  g_origins.clear();
  callback_at(outer)();
  const auto first = std::ranges::find(g_names, "asmjit_test_walks");
  ASSERT_LT(first - g_names.begin() + 4, static_cast<std::ptrdiff_t>(g_names.size()));
  EXPECT_EQ(first[1], "vm_inner");
  EXPECT_EQ(first[2], "asmjit_test_calls_back");
  EXPECT_EQ(first[3], "vm_outer");
  EXPECT_EQ(g_origins[static_cast<std::size_t>(first - g_names.begin()) + 1], RowOrigin::dyn_directives);
  EXPECT_NE(std::ranges::find(g_names, "main"), g_names.end()) << "the walk reaches the end of the stack";
}

void write_procedure(AsmjitAssembler& a, int number) {
  a.push(rbx);
  a.mov(ebx, number);
  a.mov(eax, ebx);
  a.pop(rbx);
  a.ret();
}

bool is_known(const void* code) {
  RegisterFile registers;
  registers.set(arch::x86_64.column(arch::x86_64.pc), reinterpret_cast<std::uintptr_t>(code));
  Cursor cursor(local_space(), registers, Cursor::Top::interrupted);
  return cursor.origin() == RowOrigin::dyn_directives || cursor.origin() == RowOrigin::dyn_table;
}

TEST(AsmjitRuntime, ForgetsWhatItReleases) {
  AsmjitRuntime runtime;
  std::vector<void*> added;
  for (int i = 0; i < 20; ++i) {
    asmjit::CodeHolder code;
    code.init(runtime.environment());
    AsmjitAssembler a(&code);
    write_procedure(a, i);
    a.procedure("second");
    write_procedure(a, i);
    added.push_back(nullptr);
    ASSERT_EQ(runtime.add(&added.back(), &code), asmjit::kErrorOk);
  }
  EXPECT_EQ(runtime.registered(), 40u);
  EXPECT_TRUE(is_known(added[7]));
  for (void* start : added) {
    EXPECT_EQ(runtime.release(start), asmjit::kErrorOk);
    EXPECT_FALSE(is_known(start));
  }
  EXPECT_EQ(runtime.registered(), 0u);
}

TEST(AsmjitRuntime, ForgetsEverythingWhenItIsResetOrDestroyed) {
  void *first = nullptr, *second = nullptr;
  {
    AsmjitRuntime runtime;
    const auto add = [&](void*& out) {
      asmjit::CodeHolder code;
      code.init(runtime.environment());
      AsmjitAssembler a(&code);
      write_procedure(a, 1);
      ASSERT_EQ(runtime.add(&out, &code), asmjit::kErrorOk);
      EXPECT_TRUE(is_known(out));
    };
    add(first);
    runtime.reset(asmjit::ResetPolicy::kHard);
    EXPECT_FALSE(is_known(first));
    EXPECT_EQ(runtime.release(first), asmjit_version::k_invalid_argument);
    add(second);
  }
  EXPECT_FALSE(is_known(second));
}

TEST(AsmjitRuntime, RefusesToReleaseWhatIsNotItsOwn) {
  AsmjitRuntime runtime, other;
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  AsmjitAssembler a(&code);
  write_procedure(a, 1);
  std::uint8_t* start = nullptr;
  ASSERT_EQ(runtime.add(&start, &code), asmjit::kErrorOk);
  int local = 0;
  EXPECT_EQ(runtime.release(static_cast<void*>(nullptr)), asmjit_version::k_invalid_argument);
  EXPECT_EQ(runtime.release(&local), asmjit_version::k_invalid_argument);
  EXPECT_EQ(runtime.release(start + 1), asmjit_version::k_invalid_argument);
  EXPECT_EQ(other.release(start), asmjit_version::k_invalid_argument);
  EXPECT_TRUE(is_known(start));
  EXPECT_EQ(runtime.release(start), asmjit::kErrorOk);
  EXPECT_EQ(runtime.release(start), asmjit_version::k_invalid_argument) << "twice";
}

struct ReleasedUnderCall {
  AsmjitRuntime runtime;
  void* start = nullptr;
  asmjit::Error error = asmjit::kErrorOk;
  std::vector<RowOrigin> origins;
  StopReason stop = StopReason::none;
  std::jmp_buf back;
};
ReleasedUnderCall* g_released = nullptr;

[[gnu::noinline]] void release_caller_and_walk() {
  ReleasedUnderCall& r = *g_released;
  r.error = r.runtime.release(r.start);
  Walk walk = walk_here();
  for (const Frame& frame : walk) r.origins.push_back(frame.origin());
  r.stop = walk.stop_reason();
  std::longjmp(r.back, 1);  // there is nothing to return to
}

// Releasing such code is the caller's error, but walks must stay safe. Nobody knows what the code would do next, so
// nothing is guessed.
TEST(AsmjitRuntime, WalksOfReleasedCodeThatIsOnTheStackEndThere) {
  ReleasedUnderCall released;
  g_released = &released;
  asmjit::CodeHolder code;
  code.init(released.runtime.environment());
  AsmjitAssembler a(&code);
  a.push(rbp);
  a.mov(rax, reinterpret_cast<std::uintptr_t>(&release_caller_and_walk));
  a.call(rax);
  a.ud2();
  a.pop(rbp);
  a.ret();
  ASSERT_EQ(released.runtime.add(&released.start, &code), asmjit::kErrorOk);
  if (setjmp(released.back) == 0) callback_at(released.start)();
  EXPECT_EQ(released.error, asmjit::kErrorOk);
  ASSERT_EQ(released.origins.size(), 2u);
  EXPECT_EQ(released.origins[1], RowOrigin::none);
  EXPECT_EQ(released.stop, StopReason::no_info);
}

TEST(AsmjitRuntime, TakesNamesAndStartsFromABuilder) {
  AsmjitRuntime runtime;
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  AsmjitBuilder builder(&code);
  for (const char* name : {"first", "", "third"}) {
    ASSERT_EQ(builder.procedure(name), asmjit::kErrorOk);
    builder.push(rbx);
    builder.pop(rbx);
    builder.ret();
  }
  ASSERT_EQ(builder.finalize(), asmjit::kErrorOk);
  const AsmjitDescription d = describe_asmjit(code);
  ASSERT_TRUE(d.complete()) << d.text();
  ASSERT_EQ(d.procedures.size(), 3u);
  EXPECT_EQ(d.procedures[0].name, "first");
  EXPECT_EQ(d.procedures[1].name, "");
  EXPECT_EQ(d.procedures[2].name, "third");
  void* start = nullptr;
  ASSERT_EQ(runtime.add(&start, &code), asmjit::kErrorOk);
  std::array<char, 16> name{};
  RegisterFile registers;
  registers.set(arch::x86_64.column(arch::x86_64.pc), reinterpret_cast<std::uintptr_t>(start) + 2 * 3);
  Cursor cursor(local_space(), registers, Cursor::Top::interrupted);
  ASSERT_TRUE(cursor.name(name));
  EXPECT_STREQ(name.data(), "third");
}

TEST(AsmjitRuntime, AddsOneCodeTwice) {
  AsmjitRuntime runtime;
  asmjit::CodeHolder recorded, replayed;
  recorded.init(runtime.environment());
  replayed.init(runtime.environment());
  AsmjitAssembler a(&recorded);
  const Label self = new_label(a);
  a.push(rbx);
  a.mov(rbx, k_walker());
  a.call(rbx);
  a.pop(rbx);
  a.ret();
  a.bind(self);
  embed_label(a, self);  // bytes that are final only in place
  Compiler cc(&replayed);
  asmjit::FuncNode* function = add_func(cc, signature<void>());
  add_dirty(function->frame(), RegGroup::kGp, 1u << 3);
  set_func_calls(function->frame());
  cc.mov(rbx, k_walker());
  cc.call(rbx);
  end_func(cc);
  const Label pointer = new_label(cc);
  cc.bind(pointer);
  embed_label(cc, pointer);
  ASSERT_EQ(cc.finalize(), asmjit::kErrorOk);
  for (asmjit::CodeHolder* code : {&recorded, &replayed}) {
    void *first = nullptr, *second = nullptr;
    ASSERT_EQ(runtime.add(&first, code, "first"), asmjit::kErrorOk) << describe_asmjit(*code).text();
    ASSERT_EQ(runtime.add(&second, code, "second"), asmjit::kErrorOk) << describe_asmjit(*code).text();
    EXPECT_NE(first, second);
    for (void* start : {first, second}) {
      g_names.clear();
      callback_at(start)();
      const auto walker = std::ranges::find(g_names, "asmjit_test_walks");
      ASSERT_NE(walker, g_names.end());
      EXPECT_EQ(walker[1], start == first ? "first" : "second");
      EXPECT_EQ(runtime.release(start), asmjit::kErrorOk);
    }
  }
}

TEST(AsmjitRuntime, KeepsAsmjitsOwnErrors) {
  AsmjitRuntime runtime;
  asmjit::CodeHolder empty;
  empty.init(runtime.environment());
  AsmjitAssembler a(&empty);
  void* start = &start;
  EXPECT_NE(runtime.add(&start, &empty), asmjit::kErrorOk) << "no code";
  EXPECT_EQ(start, nullptr);

  // asmjit cannot move code a second time once a far call goes through its address table.
  asmjit::JitRuntime plain;
  asmjit::CodeHolder code, same;
  code.init(runtime.environment());
  same.init(runtime.environment());
  AsmjitAssembler far(&code), far_too(&same);
  far.jmp(asmjit::imm(1));
  far_too.jmp(asmjit::imm(1));
  ASSERT_EQ(runtime.add(&start, &code), asmjit::kErrorOk);
  void* again = nullptr;
  ASSERT_EQ(plain.add(&again, &same), asmjit::kErrorOk);
  const asmjit::Error expected = plain.add(&again, &same);
  EXPECT_EQ(runtime.add(&again, &code), expected);
  EXPECT_EQ(runtime.registered(), expected == asmjit::kErrorOk ? 2u : 1u);
}

/// Fails each allocation in turn. Returns their number.
int expect_memory_to_run_out(void (*write)(AsmjitAssembler& a, int number)) {
  AsmjitRuntime runtime;
  bool added = false;
  int refused = 0;
  for (int allocations = 0; !added && allocations < 1000; ++allocations) {
    const AsmjitAssembler other;  // has the memory that the last emitter left
    g_allocations_left = allocations;
    void* start = nullptr;
    asmjit::Error error = asmjit::kErrorOk;
    {
      asmjit::CodeHolder code;
      code.init(runtime.environment());
      AsmjitAssembler a(&code);
      write(a, 1);
      a.procedure("second");
      write(a, 2);
      error = runtime.add(&start, &code);
      g_allocations_left = -1;
    }
    if (error == asmjit::kErrorOk) {
      added = true;
      EXPECT_EQ(runtime.registered(), 2u);
      EXPECT_EQ(runtime.release(start), asmjit::kErrorOk);
    } else {
      ++refused;
      EXPECT_EQ(error, asmjit_version::k_out_of_memory) << allocations;
      EXPECT_EQ(start, nullptr);
      EXPECT_EQ(runtime.registered(), 0u);
    }
  }
  EXPECT_TRUE(added);
  return refused;
}

TEST(AsmjitRuntime, SaysWhenMemoryRunsOutAndKeepsNothing) {
  EXPECT_GT(expect_memory_to_run_out(write_procedure), 6) << "every allocation has failed once";
  const auto write_followed = [](AsmjitAssembler& a, int number) {
    a.mov(r11, rsp);
    a.and_(rsp, -64);
    a.mov(rsp, r11);
    write_procedure(a, number);
  };
  EXPECT_GT(expect_memory_to_run_out(write_followed), 20) << "every allocation has failed once";
}

TEST(AsmjitRuntime, ServesThreads) {
  AsmjitRuntime runtime;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        asmjit::CodeHolder code;
        code.init(runtime.environment());
        AsmjitAssembler a(&code);
        write_procedure(a, 1000 * t + i);
        int (*procedure)() = nullptr;
        if (runtime.add(&procedure, &code) != asmjit::kErrorOk) ++wrong;
        if (!is_known(reinterpret_cast<void*>(procedure))) ++wrong;
        if (procedure() != 1000 * t + i) ++wrong;
        if (runtime.release(procedure) != asmjit::kErrorOk) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(runtime.registered(), 0u);
}

TEST(AsmjitRuntime, TakesCompilerFunctionsThatNeverReturn) {
  AsmjitRuntime runtime;
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  Compiler cc(&code);
  add_func(cc, signature<void>());
  const Label forever = new_label(cc);
  cc.bind(forever);
  cc.jmp(forever);
  end_func(cc);
  ASSERT_EQ(cc.finalize(), asmjit::kErrorOk);
  void* start = nullptr;
  EXPECT_EQ(runtime.add(&start, &code), asmjit::kErrorOk) << describe_asmjit(code).text();
}

TEST(AsmjitRuntime, TakesCompilerFunctionsThatCallEachOtherAndPopArguments) {
  AsmjitRuntime runtime;
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  Compiler cc(&code);
  asmjit::FuncNode* caller = add_func(cc, signature<void>());
  (void)caller;
  const Label callee = new_label(cc);
  asmjit::InvokeNode* call = invoke(cc, callee, IntegerSignature(CallConvId::kCDecl, 8));
  ASSERT_NE(call, nullptr);
  for (std::uint32_t i = 0; i < 8; ++i) call->JITUNWIND_ASMJIT(setArg, set_arg)(i, asmjit::imm(i));
  call->detail()
      .JITUNWIND_ASMJIT(_callConv, _call_conv)
      .JITUNWIND_ASMJIT(addFlags, add_flags)(asmjit::CallConvFlags::kCalleePopsStack);
  end_func(cc);
  cc.bind(callee);
  asmjit::FuncNode* popping = add_func(cc, IntegerSignature(CallConvId::kCDecl, 8));
  popping->frame().JITUNWIND_ASMJIT(_calleeStackCleanup, _callee_stack_cleanup) = 16;
  end_func(cc);
  ASSERT_EQ(cc.finalize(), asmjit::kErrorOk);
  const AsmjitDescription d = describe_asmjit(code);
  ASSERT_TRUE(d.complete()) << d.text();
  ASSERT_EQ(d.procedures.size(), 2u);
  void* start = nullptr;
  ASSERT_EQ(runtime.add(&start, &code), asmjit::kErrorOk);
  callback_at(start)();
}

TEST(AsmjitRuntime, TakesCompilerSwitches) {
  AsmjitRuntime runtime;
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  Compiler cc(&code);
  asmjit::FuncNode* function = add_func(cc, IntegerSignature(CallConvId::kCDecl, 1));
  add_dirty(function->frame(), RegGroup::kGp, 1u << 12);
  const Gp index = new_int64(cc), target = new_int64(cc), offset = new_int64(cc);
  set_arg(*function, 0, index);
  const Label table = new_label(cc), done = new_label(cc);
  const Label cases[] = {new_label(cc), new_label(cc)};
  asmjit::JumpAnnotation* annotation = cc.JITUNWIND_ASMJIT(newJumpAnnotation, new_jump_annotation)();
  for (const Label& c : cases) annotation->JITUNWIND_ASMJIT(addLabel, add_label)(c);
  cc.lea(offset, ptr(table));
  cc.movsxd(target, dword_ptr(offset, index, 2));
  cc.add(target, offset);
  cc.jmp(target, annotation);
  for (const Label& c : cases) {
    cc.bind(c);
    cc.mov(r12d, 5);
    cc.jmp(done);
  }
  cc.bind(done);
  end_func(cc);
  cc.bind(table);
  for (const Label& c : cases) embed_label_delta(cc, c, table, 4);
  ASSERT_EQ(cc.finalize(), asmjit::kErrorOk);
  void (*f)(long) = nullptr;
  ASSERT_EQ(runtime.add(&f, &code), asmjit::kErrorOk) << describe_asmjit(code).text();
  f(0), f(1);
}

}  // namespace
}  // namespace jitunwind::test
