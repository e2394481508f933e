// A page of the thread's own stack, with frames that will still be returned to, is unmapped after walks have read it.
// Walks by cursors end there with an error; walks of addresses do once it was noticed or reported.
#include <libunwind.h>

#include <alloca.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace {

using jitunwind::Addr;
using jitunwind::k_page_size;
using jitunwind::page_of;

constexpr int k_depth = 8;  // functions, each with some pages of its own

struct Steps {
  std::size_t frames = 0;  ///< that the cursor was at
  int end = 1;             ///< what the last unw_step returned
  std::array<unw_word_t, 256> sp{};
  std::array<unw_word_t, 256> return_address_at{};  ///< of the frame before that one, by which the cursor came there
};

/// Returns the place of the return address by which a cursor came to its frame.
unw_word_t place_of_ip(unw_cursor_t& cursor) {
  unw_save_loc_t place{};
  unw_get_save_loc(&cursor, UNW_REG_IP, &place);
  return place.type == UNW_SLT_MEMORY ? place.u.addr : 0;
}

[[gnu::noinline]] void step_through(unw_context_t& context, Steps& out) {
  unw_cursor_t cursor;
  out.frames = 0;
  unw_init_local(&cursor, &context);
  do {
    unw_get_reg(&cursor, UNW_REG_SP, &out.sp[out.frames]);
    out.return_address_at[out.frames++] = place_of_ip(cursor);
    out.end = unw_step(&cursor);
  } while (out.end > 0 && out.frames < out.sp.size());
}

[[gnu::noinline]] void step_from_here(Steps& out) {
  unw_context_t context;
  unw_getcontext(&context);
  step_through(context, out);
}

[[gnu::noinline]] std::size_t list_from_here() {
  std::array<void*, 256> addresses;
  return static_cast<std::size_t>(unw_backtrace(addresses.data(), static_cast<int>(addresses.size())));
}

/// The C library's wrappers are not used, because sanitizers replace them by functions that look at the stack.
void protect(Addr page, int protection) {
  ASSERT_EQ(::mprotect(reinterpret_cast<void*>(static_cast<std::uintptr_t>(page)), k_page_size, protection), 0);
}
void take(Addr page) { protect(page, PROT_NONE); }
void give_back(Addr page) { protect(page, PROT_READ | PROT_WRITE); }

/// Returns the `number`-th frame that has pages of its own, so that no other function runs on its upper end.
std::size_t large_frame(const Steps& steps, int number) {
  std::size_t frame = 0;
  while (frame + 2 < steps.frames && (steps.sp[frame + 1] - steps.sp[frame] < 2 * k_page_size || --number > 0)) ++frame;
  return frame;
}

/// Returns the page of that frame's return address.
Addr page_of_return_address(const Steps& steps, std::size_t frame) {
  return page_of(steps.return_address_at[frame + 1]);
}

/// Calls `work` below functions that have pages between them. clang keeps only the used bytes of a variable whose
/// address does not escape.
[[gnu::noinline]] void below(int depth, const std::function<void()>& work) {
  std::array<char, 3 * k_page_size> room;
  asm volatile("" : : "r"(room.data()) : "memory");
  if (depth > 0)
    below(depth - 1, work);
  else
    work();
  asm volatile("" : : "r"(room.data()) : "memory");
}

void below(const std::function<void()>& work) { below(k_depth, work); }

// Results are judged after the missing page is back, because the judging code may need it.

/// Precondition: all of them were walked from the same function.
struct Walks {
  Steps whole, broken, again;
  std::size_t taken = 0;
  std::size_t listed = 0, listed_broken = 0, listed_again = 0;
};

constexpr int k_taken = 3;  // of the functions with pages of their own

void walk_around_taking(Walks& seen) {
  step_from_here(seen.whole);
  for (int i = 0; i < 4; ++i) seen.listed = list_from_here();
  seen.taken = large_frame(seen.whole, k_taken);
  const Addr page = page_of_return_address(seen.whole, seen.taken);
  take(page);
  step_from_here(seen.broken);
  seen.listed_broken = list_from_here();
  give_back(page);
  step_from_here(seen.again);
  seen.listed_again = list_from_here();
}

void expect_right(const Walks& seen) {
  EXPECT_GT(seen.whole.frames, seen.taken + 2);
  EXPECT_LE(seen.whole.end, 0);
  EXPECT_EQ(seen.broken.end, -UNW_EBADFRAME);
  // The frames go up to the one that cannot be left.
  EXPECT_EQ(seen.broken.frames, seen.taken + 1);
  for (std::size_t i = 0; i < seen.broken.frames; ++i) EXPECT_EQ(seen.broken.sp[i], seen.whole.sp[i]) << i;
  // Both have the same functions, except for the frame of step_from_here() or of list_from_here().
  EXPECT_EQ(seen.listed, seen.whole.frames);
  EXPECT_EQ(seen.listed_broken, seen.broken.frames);
  EXPECT_EQ(seen.again.frames, seen.whole.frames);
  EXPECT_EQ(seen.again.end, seen.whole.end);
  EXPECT_EQ(seen.listed_again, seen.listed);
}

TEST(TakenStack, OfTheMainThreadEndsTheWalkUntilItIsGivenBack) {
  static Walks seen;
  below([] { walk_around_taking(seen); });
  expect_right(seen);
}

TEST(TakenStack, OfAThreadEndsTheWalkUntilItIsGivenBack) {
  static Walks seen;
  std::thread([] { below([] { walk_around_taking(seen); }); }).join();
  expect_right(seen);
}

/// Each page may be missing, the first or the second of those that are probed together.
TEST(TakenStack, EndsTheWalkWhereverItIs) {
  static Steps whole;
  static std::array<Steps, k_depth> broken;
  static int first;
  below([] {
    step_from_here(whole);
    // If return addresses are at the lower end of frames, the first one is on the page where functions run now.
    first = page_of_return_address(whole, large_frame(whole, 1)) < whole.sp[0] + 2 * k_page_size ? 1 : 0;
    for (int i = first; i < k_depth; ++i) {
      const Addr page = page_of_return_address(whole, large_frame(whole, i + 1));
      take(page);
      step_from_here(broken[static_cast<std::size_t>(i)]);
      give_back(page);
    }
  });
  for (int i = first; i < k_depth; ++i) {
    const Steps& steps = broken[static_cast<std::size_t>(i)];
    EXPECT_EQ(steps.end, -UNW_EBADFRAME) << i;
    EXPECT_EQ(steps.frames, large_frame(whole, i + 1) + 1);
  }
}

TEST(TakenStack, EndsAWalkInCpp) {
  static Steps whole;
  static std::size_t frames;
  static jitunwind::StopReason reason;
  static jitunwind::Error error;
  static Addr page;
  frames = 0;
  below([] {
    step_from_here(whole);
    page = page_of_return_address(whole, large_frame(whole, k_taken));
    take(page);
    jitunwind::Walk walk = jitunwind::walk_here();
    for (auto at = walk.begin(); at != walk.end(); ++at) ++frames;
    reason = walk.stop_reason();
    error = walk.stop_error();
    give_back(page);
  });
  EXPECT_EQ(frames, large_frame(whole, k_taken));  // without step_from_here()
  EXPECT_EQ(reason, jitunwind::StopReason::broken);
  EXPECT_EQ(error.code, jitunwind::ErrorCode::unreadable_memory);
  EXPECT_EQ(page_of(error.at), page);
}

/// No cursor has stepped there since, so a walk of addresses must be told.
TEST(TakenStack, IsNoticedByAFlush) {
  static Steps whole;
  static std::size_t listed, listed_again;
  below([] {
    step_from_here(whole);
    for (int i = 0; i < 4; ++i) (void)list_from_here();
    const Addr page = page_of_return_address(whole, large_frame(whole, k_taken));
    take(page);
    unw_flush_cache(unw_local_addr_space, 0, 0);
    listed = list_from_here();
    give_back(page);
    unw_flush_cache(unw_local_addr_space, 0, 0);
    listed_again = list_from_here();
  });
  EXPECT_EQ(listed, large_frame(whole, k_taken) + 1);
  EXPECT_EQ(listed_again, whole.frames);
}

/// Any thread may flush for any other thread.
TEST(TakenStack, IsNoticedByAFlushOfAnotherThread) {
  static Steps whole;
  static std::size_t listed;
  below([] {
    step_from_here(whole);
    for (int i = 0; i < 4; ++i) (void)list_from_here();
    const Addr page = page_of_return_address(whole, large_frame(whole, k_taken));
    std::thread other([page] {
      take(page);
      unw_flush_cache(unw_local_addr_space, 0, 0);
    });
    other.join();
    listed = list_from_here();
    give_back(page);
    unw_flush_cache(unw_local_addr_space, 0, 0);  // or this thread takes the page for a gap in tests to come
  });
  EXPECT_EQ(listed, large_frame(whole, k_taken) + 1);
}

/// Any read of the page is an error, not only that of a walk.
TEST(TakenStack, IsAnErrorToWhoReadsIt) {
  static Steps whole;
  static int read_before, read, read_after;
  below([] {
    step_from_here(whole);
    const unw_word_t at = whole.return_address_at[large_frame(whole, k_taken) + 1];
    unw_accessors_t* const accessors = unw_get_accessors(unw_local_addr_space);
    unw_word_t word = 0;
    read_before = accessors->access_mem(unw_local_addr_space, at, &word, 0, nullptr);
    take(page_of(at));
    read = accessors->access_mem(unw_local_addr_space, at, &word, 0, nullptr);
    give_back(page_of(at));
    read_after = accessors->access_mem(unw_local_addr_space, at, &word, 0, nullptr);
  });
  EXPECT_EQ(read_before, UNW_ESUCCESS);
  EXPECT_LT(read, 0);
  EXPECT_EQ(read_after, UNW_ESUCCESS);
}

/// A thread's knowledge of its stack is valid again once the gap is closed and a cursor has stepped across it.
TEST(TakenStack, IsKnownAgainWhenItWasGivenBack) {
  static Steps whole, broken, again;
  static jitunwind::AddrRange before, meanwhile, after;
  below([] {
    step_from_here(whole);
    before = jitunwind::expect_walk_from(whole.sp[0]);
    const Addr page = page_of_return_address(whole, large_frame(whole, k_taken));
    take(page);
    step_from_here(broken);
    meanwhile = jitunwind::expect_walk_from(whole.sp[0]);
    give_back(page);
    step_from_here(again);
    after = jitunwind::expect_walk_from(whole.sp[0]);
  });
  EXPECT_TRUE(before.contains(whole.sp[large_frame(whole, k_taken)]));
  EXPECT_TRUE(meanwhile.empty());
  EXPECT_EQ(after.end, before.end);
  EXPECT_TRUE(after.contains(whole.sp[0]));
}

// The page where the walk begins: only the page on which functions run at that moment needs no probe.

struct Begin {
  unw_context_t context;
  Addr page = 0;
  int end = 1;
  bool was_taken = false;
};
Begin g_begin;

[[gnu::noinline]] void init_below_a_taken_page() {
  const Addr own = reinterpret_cast<std::uintptr_t>(__builtin_dwarf_cfa());
  if (own >= g_begin.page) return;
  g_begin.was_taken = true;
  unw_cursor_t cursor;
  take(g_begin.page);
  unw_init_local(&cursor, &g_begin.context);
  g_begin.end = unw_step(&cursor);
  give_back(g_begin.page);
}

[[gnu::noinline]] void go_below(std::size_t size) {
  volatile char* const room = static_cast<volatile char*>(alloca(size));
  room[0] = 0;
  init_below_a_taken_page();
  (void)room[0];
}

[[gnu::noinline]] int step_from_a_taken_page(std::size_t size) {
  unw_getcontext(&g_begin.context);
  unw_cursor_t cursor;
  unw_init_local(&cursor, &g_begin.context);
  g_begin.page = unw_step(&cursor) > 0 ? page_of(place_of_ip(cursor)) : 0;
  g_begin.end = 1;
  g_begin.was_taken = false;
  go_below(size);
  return g_begin.end;
}

/// The place is far below the beginning of the stack, whose first page holds the auxiliary vector, which the C library
/// itself reads.
TEST(TakenStack, MayBeWhereTheWalkBegins) {
  static int taken;
  static std::array<int, 3 * k_page_size / 256> ends;
  taken = 0;
  below([] {
    for (std::size_t size = 256; size < 3 * k_page_size; size += 256) {
      const int end = step_from_a_taken_page(size);
      if (g_begin.was_taken) ends[static_cast<std::size_t>(taken++)] = end;
    }
  });
  EXPECT_GT(taken, 16);
  for (int i = 0; i < taken; ++i) EXPECT_EQ(ends[static_cast<std::size_t>(i)], -UNW_EBADFRAME) << i;
}

}  // namespace
