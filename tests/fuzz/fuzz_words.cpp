// Input: a list of words, as a variable of the environment has it.
#include <algorithm>
#include <array>
#include <string>

#include "jitunwind/unwind_core/environment.h"
#include "tests/fuzz/fuzz_check.h"

using namespace jitunwind;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::array<std::string_view, 3> k_known{"walk", "rows", "registry"};
  const std::string_view list(reinterpret_cast<const char*>(data), size);
  UnknownWords unknown;
  const std::uint32_t bits = bits_of_words(list, k_known, unknown);
  fuzz::check(bits < 8, "a bit for each known word");
  std::string again;
  for (std::size_t i = 0; i < k_known.size(); ++i) {
    if ((bits >> i & 1) == 0) continue;
    fuzz::check(list.find(k_known[i]) != list.npos, "what is found is there");
    (again += k_known[i]) += ',';
  }
  for (const std::string_view word : unknown.words()) {
    fuzz::check(!word.empty() && word.find(',') == word.npos, "a word is no list");
    fuzz::check(std::ranges::find(k_known, word) == k_known.end(), "what is unknown is not known");
    fuzz::check(std::ranges::count(unknown.words(), word) == 1, "each is named once");
    (again += word) += ',';
  }
  UnknownWords unknown_again;
  fuzz::check(bits_of_words(again, k_known, unknown_again) == bits, "the words that are known make the same bits");
  fuzz::check(std::ranges::equal(unknown_again.words(), unknown.words()), "and so do those that are not");
  return 0;
}
