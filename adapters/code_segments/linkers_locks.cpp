// The dynamic linker has a lock for loading and one for the list of libraries. A thread that loads a library has the
// first, and takes the second for a moment; callbacks of dl_iterate_phdr() have the second. A callback that opened or
// closed a segment, or started a thread (glibc 2.36), would wait for the first. If another thread loads a library, each
// of the two would wait for the other for ever.
#include <link.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <span>

#include "jitunwind/adapters/code_segments/segments_state_p.h"

namespace jitunwind {
namespace {

using Word = std::uint32_t;

/// The lock's word with the number of the thread that has it. Null: it was not found.
constinit std::atomic<Word*> list_owner{nullptr};

Word this_thread() noexcept { return static_cast<Word>(::syscall(SYS_gettid)); }
bool is_of(Word& word, Word thread) noexcept { return std::atomic_ref(word).load(std::memory_order_relaxed) == thread; }

struct FoundWords {
  const Word thread = this_thread();
  std::array<Word*, 16> words{};
  std::size_t count = 0;
};

/// Finds the words of the dynamic linker's own data that have the number of this thread.
int find_words(dl_phdr_info* info, std::size_t, void* into) noexcept {
  FoundWords& found = *static_cast<FoundWords*>(into);
  if (info->dlpi_addr != ::getauxval(AT_BASE)) return 0;
  for (const ElfW(Phdr) & header : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
    if (header.p_type != PT_LOAD || (header.p_flags & PF_W) == 0 || header.p_memsz < 2 * sizeof(Word)) continue;
    const Addr begin = info->dlpi_addr + header.p_vaddr;
    auto* const words = pointer_to<Word>((begin + 3) & ~Addr{3});
    for (Word& word : std::span(words, header.p_memsz / sizeof(Word) - 1))
      if (is_of(word, found.thread) && found.count != found.words.size()) found.words[found.count++] = &word;
  }
  return 1;
}

}  // namespace

/// The word that has the number of this thread while it lists libraries, and not before or after. Nothing is found if
/// it lists them already.
void CodeSegments::State::find_list_owner() noexcept {
  if (list_owner.load(std::memory_order_relaxed) != nullptr) return;
  FoundWords found;
  (void)::dl_iterate_phdr(&find_words, &found);
  Word* owner = nullptr;
  for (Word* const word : std::span(found.words).first(found.count)) {
    if (is_of(*word, found.thread)) continue;
    if (owner != nullptr) return;
    owner = word;
  }
  list_owner.store(owner, std::memory_order_relaxed);
}

bool CodeSegments::State::lists_libraries() noexcept {
  Word* const owner = list_owner.load(std::memory_order_relaxed);
  return owner != nullptr && is_of(*owner, this_thread());
}

void let_libraries_be_listed() noexcept {
  Word* const owner = list_owner.load(std::memory_order_relaxed);
  constexpr unsigned k_most_waits = 1000;
  for (unsigned waits = 0; owner != nullptr && !is_of(*owner, 0) && waits != k_most_waits; ++waits)
    sleep_for_nanoseconds(1'000'000);
}

}  // namespace jitunwind
