// Copies of a target's memory, by pages and by entries of .eh_frame. They equal the memory, whatever part of it can be
// read, and take few reads.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "jitunwind/unwind_core/memory/kept_pages_internal.h"
#include "jitunwind/unwind_core/memory/own/spare_blocks_internal.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"
#include "jitunwind/unwind_core/targets/mapped_object_internal.h"
#include "tests/support/emulated.h"

namespace jitunwind::test {
namespace {

constexpr Addr k_begin = 0x7000'0000;

/// Pages with random bytes, some of which are missing; only a part of the last one may exist.
class PagedMemory final : public Memory {
 public:
  explicit PagedMemory(std::size_t pages)
      : bytes(pages * std::size_t{k_page_size}), is_there(pages, true), end(bytes.size()) {
    std::mt19937 random(20261124);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  }
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow&) const noexcept override {
    ++reads;
    std::size_t done = 0;
    for (; done < into.size(); ++done) {
      const auto offset = static_cast<std::size_t>(at + done - k_begin);
      if (offset >= end || !is_there[offset / k_page_size]) break;
      into[done] = bytes[offset];
    }
    return done;
  }

  std::vector<std::byte> bytes;
  std::vector<bool> is_there;
  std::size_t end;
  mutable std::size_t reads = 0;
};

/// Reads from both memories and compares.
void expect_same(const Memory& kept, const PagedMemory& memory, Addr at, std::size_t size) {
  MemoryWindow window;
  std::vector<std::byte> is(size), wanted(size);
  const std::size_t got = kept.read(at, is, window);
  ASSERT_EQ(got, memory.read(at, wanted, window)) << std::hex << at << " " << size;
  ASSERT_TRUE(std::equal(is.begin(), is.begin() + static_cast<std::ptrdiff_t>(got), wanted.begin())) << std::hex << at;
}

TEST(KeptPages, SayWhatTheMemorySays) {
  std::mt19937 random(1);
  for (std::size_t round = 0; round < repetitions(20); ++round) {
    PagedMemory memory(80);
    for (int i = 0; i < 6; ++i) memory.is_there[random() % 80] = false;
    memory.end -= static_cast<std::size_t>(random() % (3 * k_page_size));
    const KeptPages kept(memory);
    for (int i = 0; i < 300; ++i)
      expect_same(kept, memory, k_begin - k_page_size + random() % (82 * k_page_size),
                  static_cast<std::size_t>(random() % (6 * k_page_size)));
    memory.bytes[5] = ~memory.bytes[5];
    kept.forget();
    expect_same(kept, memory, k_begin, 16);
  }
}

TEST(KeptPages, SayWhatIsAtTheEndsOfTheAddressSpace) {
  const PagedMemory memory(1);
  const KeptPages kept(memory);
  for (const Addr at : {Addr{0}, Addr{0} - k_page_size, Addr{0} - 1, k_page_size}) expect_same(kept, memory, at, 64);
}

std::size_t reads_of_walk(Addr from, std::ptrdiff_t step, std::size_t steps) {
  const PagedMemory memory(200);
  const KeptPages kept(memory);
  MemoryWindow window;
  std::array<std::byte, 80> piece;
  for (std::size_t i = 0; i < steps; ++i) {
    EXPECT_EQ(kept.read(from, piece, window), piece.size());
    from += static_cast<Addr>(step);
  }
  return memory.reads;
}

/// A stack is read upwards, a list whose newest member is first mostly downwards: 200 pages each.
TEST(KeptPages, TakeFewReadsInEitherDirection) {
  EXPECT_LE(reads_of_walk(k_begin, 512, 1599), 16u);
  EXPECT_LE(reads_of_walk(k_begin + 200 * k_page_size - 128, -512, 1599), 30u);
  EXPECT_EQ(reads_of_walk(k_begin + 5 * k_page_size, 80, 40), 1u);
}

TEST(KeptPages, AreReadAtOnceWhereThatIsAskedFor) {
  const PagedMemory memory(200);
  const KeptPages kept(memory);
  MemoryWindow window;
  kept.keep(k_begin, 200, window);
  const std::size_t reads = memory.reads;
  EXPECT_LE(reads, 8u);
  std::array<std::byte, 80> piece;
  for (std::size_t page = 0; page < 200; ++page)
    ASSERT_EQ(kept.read(k_begin + page * k_page_size, piece, window), piece.size());
  EXPECT_EQ(memory.reads, reads);
}

/// New memory costs a page fault for each page.
template <class Work>
long page_faults_of(Work work) {
  rusage before{}, after{};
  ::getrusage(RUSAGE_THREAD, &before);
  work();
  ::getrusage(RUSAGE_THREAD, &after);
  return after.ru_minflt - before.ru_minflt;
}

TEST(KeptPages, BeginInTheMemoryOfThoseThatWereThereBefore) {
  const PagedMemory memory(32);
  const auto read_it = [&] {
    const KeptPages kept(memory);
    expect_same(kept, memory, k_begin + 8 * k_page_size, 200);
  };
  read_it();
  EXPECT_LT(page_faults_of([&] {
              for (int i = 0; i < 20; ++i) read_it();
            }),
            20 * 16);
}

/// .eh_frame: a CIE, then FDEs of 32 bytes that refer to it.
struct Entries {
  static constexpr Addr k_section = k_begin + 3000;
  static constexpr std::size_t k_pages = 40;

  Entries() {
    put(k_section, 20, 0);
    for (Addr at = k_section + 24; at + 32 <= k_section + size; at += 32)
      put(at, 28, static_cast<std::uint32_t>(at + 4 - k_section));
  }
  void put(Addr at, std::uint32_t length, std::uint32_t second) {
    std::memcpy(&memory.bytes[place_of(at)], &length, 4);
    std::memcpy(&memory.bytes[place_of(at + 4)], &second, 4);
  }
  static std::size_t place_of(Addr at) { return static_cast<std::size_t>(at - k_begin); }
  Addr fde(std::size_t number) const { return k_section + 24 + 32 * number; }
  std::size_t number_at(std::size_t page) const { return (page * std::size_t{k_page_size} - 3000) / 32 + 2; }
  /// Returns whether the copied bytes equal the memory.
  bool has(const CopiedEntries& entries, Addr at, std::size_t count) const {
    const SectionBytes section = entries.section();
    return std::memcmp(&section.bytes[static_cast<std::size_t>(at - section.address)], &memory.bytes[place_of(at)],
                       count) == 0;
  }

  PagedMemory memory{k_pages};
  const std::size_t size = k_pages * std::size_t{k_page_size} - 3000 - 100;
  const AddrRange section{k_section, k_section + size};
};

TEST(CopiedEntries, HaveTheEntriesThatWereAskedFor) {
  const Entries of;
  CopiedEntries entries;
  EXPECT_TRUE(entries.section().empty());
  ASSERT_TRUE(entries.make(of.memory, of.section));
  EXPECT_EQ(entries.section().address, of.section.begin);
  EXPECT_EQ(entries.section().bytes.size(), of.size);
  const std::size_t last = of.size / 32 - 2;
  for (const std::size_t number : {of.number_at(20), of.number_at(20) + 1, std::size_t{0}, last}) {
    ASSERT_TRUE(entries.copy_fde(of.fde(number), false));
    EXPECT_TRUE(of.has(entries, of.fde(number), 32)) << number;
    EXPECT_TRUE(of.has(entries, Entries::k_section, 24));
  }
  EXPECT_LE(of.memory.reads, 4u) << "the page of the CIE is that of the first FDE";
}

TEST(CopiedEntries, AreThoseThatCanBeRead) {
  Entries of;
  of.memory.is_there[20] = false;
  CopiedEntries entries;
  ASSERT_TRUE(entries.make(of.memory, of.section));
  EXPECT_FALSE(entries.copy_fde(of.fde(of.number_at(20)), false));
  // This entry ends on the missing page.
  EXPECT_FALSE(entries.copy_fde(of.fde(of.number_at(20) - 2), false));
  for (const std::size_t page : {19u, 21u}) {
    ASSERT_TRUE(entries.copy_fde(of.fde(of.number_at(page)), false)) << page;
    EXPECT_TRUE(of.has(entries, of.fde(of.number_at(page)), 32));
  }
  // The memory ends in the middle of a page.
  of.memory.end = Entries::place_of(of.fde(of.number_at(30)) + 32);
  ASSERT_TRUE(entries.copy_fde(of.fde(of.number_at(30)), false));
  EXPECT_TRUE(of.has(entries, of.fde(of.number_at(30)), 32));
  EXPECT_FALSE(entries.copy_fde(of.fde(of.number_at(30) + 1), false));
  // There is no row if the CIE is missing.
  Entries without;
  without.memory.is_there[0] = false;
  CopiedEntries others;
  ASSERT_TRUE(others.make(without.memory, without.section));
  EXPECT_FALSE(others.copy_fde(without.fde(without.number_at(20)), false));
}

TEST(CopiedEntries, LieWithinTheSectionWhateverTheirLengthsSay) {
  std::mt19937 random(2);
  for (const std::uint32_t length : {0u, 1u, 31u, 5000u, 0x7fff'ffffu, 0xffff'ffefu, 0xffff'fff0u, 0xffff'ffffu}) {
    for (const std::size_t page : {3u, 20u, 39u}) {
      Entries of;
      of.put(of.fde(of.number_at(page)), length, static_cast<std::uint32_t>(random()));
      CopiedEntries entries;
      ASSERT_TRUE(entries.make(of.memory, of.section));
      EXPECT_TRUE(entries.copy_fde(of.fde(of.number_at(page)), false));
      const Addr at = of.fde(of.number_at(page));
      EXPECT_TRUE(
          of.has(entries, at, static_cast<std::size_t>(std::min(4 + std::uint64_t{length}, of.section.end - at))));
    }
  }
  const Entries of;
  CopiedEntries entries;
  ASSERT_TRUE(entries.make(of.memory, of.section));
  for (Addr at = of.section.end - 12; at < of.section.end; ++at) EXPECT_TRUE(entries.copy_fde(at, false));
  for (const Addr outside : {Addr{0}, of.section.begin - 1, of.section.end, ~Addr{0}})
    EXPECT_TRUE(entries.copy_fde(outside, false)) << "is read elsewhere";
}

/// A section, and an entry in it, may claim to be far longer than the memory.
TEST(CopiedEntries, TakeNoMemoryForWhatCannotBeRead) {
  constexpr std::size_t k_claimed = std::size_t{256} << 20;
  Entries of;
  of.put(of.fde(0), 0xffff'ffff, 0);
  EXPECT_LT(page_faults_of([&] {
              CopiedEntries entries;
              ASSERT_TRUE(entries.make(of.memory, {of.section.begin, of.section.begin + k_claimed}));
              EXPECT_FALSE(entries.copy_fde(of.fde(0), false));
              EXPECT_TRUE(of.has(entries, of.section.begin, 24));
            }),
            1000);
}

/// All of it can be read, and each entry in it claims to be longer than 32 bits can say.
class EndlessMemory final : public Memory {
 public:
  std::size_t read(Addr, std::span<std::byte> into, MemoryWindow&) const noexcept override {
    std::memset(into.data(), 0xff, into.size());
    return into.size();
  }
};

TEST(CopiedEntries, AreNoLongerThanReadersTakeAndHaveALimitTogether) {
  constexpr std::size_t k_claimed = std::size_t{256} << 20;
  Entries of;
  const EndlessMemory endless;
  const long faults = page_faults_of([&] {
    CopiedEntries entries;
    ASSERT_TRUE(entries.make(endless, {of.section.begin, of.section.begin + k_claimed}));
    EXPECT_TRUE(entries.copy_fde(of.fde(0), false));
  });
#ifdef __SANITIZE_THREAD__
  constexpr long k_pages_of_page = 9;  // ThreadSanitizer's own ones, too
#else
  constexpr long k_pages_of_page = 1;
#endif
  EXPECT_LT(faults, static_cast<long>(2 * k_max_cfi_entry / k_page_size) * k_pages_of_page);
  CopiedEntries entries;
  ASSERT_TRUE(entries.make(of.memory, of.section));
  {
    const KeptBlock others{Block(KeptBlock::k_most_bytes)};
    EXPECT_FALSE(entries.copy_fde(of.fde(1), false));
  }
  EXPECT_TRUE(entries.copy_fde(of.fde(1), false));
}

TEST(CopiedBytes, CountAsLongAsTheyAreThere) {
  constexpr std::size_t k_size = std::size_t{1} << 20;
  const KeptBlock others{Block(KeptBlock::k_most_bytes - k_size)};
  for (int i = 0; i < 2; ++i) {
    CopiedBytes copied = CopiedBytes::room_for(k_size);
    ASSERT_EQ(copied.bytes().size(), k_size);
    EXPECT_TRUE(CopiedBytes::room_for(k_size).bytes().empty());
    ASSERT_TRUE(copied.keep_first(k_page_size));
    EXPECT_FALSE(CopiedBytes::room_for(k_size).bytes().empty());
  }
}

Block block_of(std::size_t pages, std::byte first) {
  Block block(pages * k_page_size);
  block.bytes()[0] = first;
  return block;
}

/// The four largest blocks below the limit are kept, each as it was given.
TEST(SpareBlocks, AreThoseThatWereGiven) {
  SpareBlocks spare;
  EXPECT_TRUE(spare.take(1).empty());
  constexpr std::size_t k_most = SpareBlocks::k_largest / k_page_size;
  for (const std::size_t pages : {3u, 1u, 4u, 2u, 5u}) spare.give(block_of(pages, static_cast<std::byte>(pages)));
  spare.give(Block());
  spare.give(block_of(k_most + 1, std::byte{1}));
  spare.give(Block(k_page_size / 2));
  EXPECT_TRUE(spare.take(5 * k_page_size + 1).empty());
  for (const std::size_t pages : {5u, 4u, 3u}) {
    const Block block = spare.take(pages * k_page_size);
    ASSERT_GE(block.bytes().size(), pages * k_page_size);
    EXPECT_EQ(block.bytes()[0], static_cast<std::byte>(block.bytes().size() / k_page_size));
    std::memset(block.bytes().data(), 1, block.bytes().size());  // it is there, all of it
  }
  EXPECT_FALSE(spare.take(1).empty());
  EXPECT_TRUE(spare.take(1).empty()) << "the smallest of five has made room";
  spare.give(block_of(k_most, std::byte{7}));
  EXPECT_EQ(spare.take(SpareBlocks::k_largest).bytes().size(), SpareBlocks::k_largest);
}

/// A block belongs to one thread at a time.
TEST(SpareBlocks, AreOfOneThreadAtATime) {
  SpareBlocks spare;
  const auto work = [&](std::uint64_t own) {
    for (int i = 0; i < 20'000; ++i) {
      Block block = spare.take(2 * k_page_size);
      if (block.empty()) block = Block((2 + own) * k_page_size);
      std::uint64_t seen = own;
      std::memcpy(block.bytes().data(), &own, sizeof own);
      if (i % 16 == 0) std::this_thread::yield();
      std::memcpy(&seen, block.bytes().data(), sizeof seen);
      ASSERT_EQ(seen, own);
      spare.give(std::move(block));
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t own = 1; own <= 6; ++own) threads.emplace_back(work, own);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace jitunwind::test
