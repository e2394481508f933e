// The memory that walks read without a probe, and the modules that they need not look up.
#include "jitunwind/unwind_core/memory/known_stack_internal.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>

#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/modules/object_list_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/walk/context.h"

namespace jitunwind {
namespace {

Addr address_here() { return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)); }

void expect_readable(AddrRange range) {
  EXPECT_FALSE(range.empty());
  EXPECT_EQ(first_unreadable_page(range.begin, range.end), range.end);
}

TEST(KnownStack, OfTheMainThreadReachesItsCallers) {
  const AddrRange stack = known_stack(address_here());
  EXPECT_TRUE(stack.contains(address_here()));
  EXPECT_TRUE(stack.contains(reinterpret_cast<std::uintptr_t>(environ[0])));
  expect_readable(stack);
}

/// Expects that only the thread's own stack is known, as the C library reports it.
void expect_own_stack() {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
  void* base = nullptr;
  std::size_t size = 0;
  ASSERT_EQ(pthread_attr_getstack(&attributes, &base, &size), 0);
  pthread_attr_destroy(&attributes);
  const AddrRange whole{reinterpret_cast<std::uintptr_t>(base), reinterpret_cast<std::uintptr_t>(base) + size};
  const AddrRange stack = known_stack(address_here());
  EXPECT_TRUE(stack.contains(address_here()));
  EXPECT_GE(stack.begin, whole.begin);
  EXPECT_LE(stack.end, whole.end);
  expect_readable(stack);
}

[[gnu::noinline]] void deeper(int pages) {
  volatile char page[4096];
  page[0] = 0;
  if (pages > 0)
    deeper(pages - 1);
  else
    expect_own_stack();
  (void)page[0];
}

TEST(KnownStack, OfAThreadIsAllItsOwn) {
  std::thread([] {
    expect_own_stack();
    deeper(100);
    expect_own_stack();
  }).join();
}

/// A stack in memory that may be unmapped is never known, nor is the memory between it and the thread's own.
TEST(KnownStack, ForgetsOtherStacks) {
  std::thread([] {
    constexpr std::size_t k_size = 256 << 10;
    void* const memory = ::mmap(nullptr, k_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    static ucontext_t back, other;
    static AddrRange known;
    ASSERT_EQ(getcontext(&other), 0);
    other.uc_stack.ss_sp = memory;
    other.uc_stack.ss_size = k_size;
    other.uc_link = &back;
    makecontext(
        &other, +[] { known = known_stack(address_here()); }, 0);
    ASSERT_EQ(swapcontext(&back, &other), 0);
    EXPECT_FALSE(known.contains(reinterpret_cast<std::uintptr_t>(memory) + k_size - 64));
    ::munmap(memory, k_size);
    expect_own_stack();
  }).join();
}

/// A thread learns a forgotten range again from its pages; so do other threads.
TEST(KnownStack, IsLearnedAgainWhenItWasForgotten) {
  const AddrRange before = known_stack(address_here());
  forget_known_stacks();
  EXPECT_TRUE(thread_stack.range().empty());
  EXPECT_EQ(known_stack(address_here()).end, before.end);
  std::thread([] {
    expect_own_stack();
    forget_known_stacks();
    EXPECT_TRUE(thread_stack.range().empty());
    expect_own_stack();
  }).join();
  EXPECT_TRUE(thread_stack.range().empty());
  expect_readable(known_stack(address_here()));
}

/// A handler that interrupts learning neither learns nor disturbs.
TEST(KnownStack, IsNotLearnedWhileItIsBeingLearned) {
  std::thread([] {
    thread_stack.is_learning.store(true);
    EXPECT_TRUE(known_stack(address_here()).empty());
    EXPECT_TRUE(thread_stack.is_learning.load());
    thread_stack.is_learning.store(false);
    expect_own_stack();
    EXPECT_FALSE(thread_stack.is_learning.load());
  }).join();
}

/// The page in use is that on which functions run, on this stack alone.
TEST(KnownStack, InUseIsThePageOfTheFunctionsThatRun) {
  const Addr here = address_here();
  const AddrRange used = stack_in_use(here);
  EXPECT_EQ(used.end - used.begin, k_page_size);
  EXPECT_LE(used.begin, here);
  EXPECT_LT(here - used.begin, 2 * k_page_size);
  EXPECT_TRUE(stack_in_use(here + 2 * k_page_size).empty());
  EXPECT_TRUE(stack_in_use(here - 2 * k_page_size).empty());
}

/// Two threads whose stacks are next to each other without a guard page.
struct Neighbours {
  static constexpr std::size_t k_size = 2 << 20;
  std::byte* const memory =
      static_cast<std::byte*>(::mmap(nullptr, 2 * k_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  alignas(16) std::byte context[k_context_size];  ///< of the lower one
  std::atomic<bool> is_captured{false}, is_walked{false};
  std::size_t while_it_was_there = 0, when_it_was_gone = 0;

  std::size_t list() {
    std::array<void*, 32> addresses;
    return backtrace(context, Cursor::Top::returned_to, addresses);
  }
};

pthread_t start_on(std::byte* stack, void* (*body)(void*), Neighbours& both) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, Neighbours::k_size);
  pthread_t thread{};
  EXPECT_EQ(pthread_create(&thread, &attributes, body, &both), 0);
  pthread_attr_destroy(&attributes);
  return thread;
}

void* be_walked(void* argument) {
  auto& both = *static_cast<Neighbours*>(argument);
  jitunwind_capture_context(both.context);
  both.is_captured = true;
  while (!both.is_walked) ::sched_yield();
  return nullptr;
}

void* walk_lower(void* argument) {
  auto& both = *static_cast<Neighbours*>(argument);
  const pthread_t lower = start_on(both.memory, &be_walked, both);
  while (!both.is_captured) ::sched_yield();
  both.while_it_was_there = both.list();
  both.is_walked = true;
  pthread_join(lower, nullptr);
  ::munmap(both.memory, Neighbours::k_size);
  both.when_it_was_gone = both.list();
  expect_own_stack();
  return nullptr;
}

/// Nothing of that stack is expected to stay: only the pc of a context on it is used.
TEST(KnownStack, IsNotTheOneBelowOfAnotherThread) {
  Neighbours both;
  pthread_join(start_on(both.memory + Neighbours::k_size, &walk_lower, both), nullptr);
  EXPECT_GE(both.while_it_was_there, 2u);
  EXPECT_EQ(both.when_it_was_gone, 1u);
}

TEST(KnownStack, EndsWhereMemoryEnds) {
  constexpr std::size_t k_pages = 5;
  auto* const memory = static_cast<std::byte*>(
      ::mmap(nullptr, k_pages * k_page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(::mprotect(memory + 3 * k_page_size, k_page_size, PROT_NONE), 0);
  const Addr begin = reinterpret_cast<std::uintptr_t>(memory);
  for (Addr from = 0; from <= 3; ++from)
    for (Addr end = from; end <= k_pages; ++end)
      EXPECT_EQ(first_unreadable_page(begin + from * k_page_size, begin + end * k_page_size),
                begin + std::min<Addr>(end, 3) * k_page_size)
          << from << " " << end;
  ::munmap(memory, k_pages * k_page_size);
}

TEST(LastingModules, AreTheProgramAndWhatItNeeds) {
  const auto module_of = [](const void* p) { return find_lasting_module(reinterpret_cast<std::uintptr_t>(p)); };
  EXPECT_NE(module_of(reinterpret_cast<const void*>(&address_here)), nullptr);
  EXPECT_NE(module_of(::dlsym(RTLD_DEFAULT, "printf")), nullptr);
  EXPECT_NE(module_of(::dlsym(RTLD_DEFAULT, "__cxa_throw")), nullptr);
  for (const void* const p :
       {reinterpret_cast<const void*>(&address_here), const_cast<const void*>(::dlsym(RTLD_DEFAULT, "printf"))}) {
    const Addr at = reinterpret_cast<std::uintptr_t>(p);
    Module found;
    ASSERT_TRUE(local_modules().find(at, found));
    const Module* const lasting = local_modules().find_lasting(at);
    ASSERT_NE(lasting, nullptr);
    EXPECT_EQ(lasting->range, found.range);
    EXPECT_EQ(lasting->text, found.text);
    EXPECT_EQ(lasting->load_bias, found.load_bias);
    EXPECT_STREQ(lasting->path, found.path);
    EXPECT_EQ(lasting->eh_frame_hdr.address, found.eh_frame_hdr.address);
    EXPECT_EQ(lasting->eh_segment.bytes.size(), found.eh_segment.bytes.size());
  }
  EXPECT_EQ(local_modules().find_lasting(module_of(reinterpret_cast<const void*>(&address_here))->range.begin), nullptr)
      << "no code";
  EXPECT_EQ(module_of(nullptr), nullptr);
  EXPECT_EQ(module_of(std::make_unique<int>().get()), nullptr);
  void* const handle = ::dlopen(PLUGIN_FOLDER "/plugin_bfd.so", RTLD_NOW);
  ASSERT_NE(handle, nullptr) << ::dlerror();
  void* const inside = ::dlsym(handle, "plugin_entry_address");
  EXPECT_EQ(module_of(inside), nullptr);
  ModuleVersion version;
  EXPECT_TRUE(find_module_version(reinterpret_cast<std::uintptr_t>(inside), version));
  EXPECT_FALSE(version.is_lasting);
  ::dlclose(handle);
}

}  // namespace
}  // namespace jitunwind
