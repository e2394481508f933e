// One walk through a chain of functions none of which was walked before: of this program, or made at run time. Its test
// counts the instructions of walk(). Arguments: the functions' kind, how many shapes they have, how many are called.
#include <jitunwind/jitunwind.h>
#include <sys/mman.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/builders/describing_assembler.h"

namespace {

using namespace jitunwind;
using namespace jitunwind::x86_64;

std::array<void*, 4096> found;
std::size_t frames = 0;

}  // namespace

/// The name is the argument of --toggle-collect.
extern "C" [[gnu::noinline]] long walk() {
  frames = backtrace(found);
  return 0;
}

namespace {

constexpr std::size_t k_functions = 400;
using Function = long (*)(long, long);

/// Functions of compilers, which save two registers and call the next one.
template <std::size_t k_index>
[[gnu::noinline]] long call_next(long a, long b) {
  if constexpr (k_index + 1 == k_functions) {
    return walk() + a * b;
  } else {
    return call_next<k_index + 1>(a + 1, b ^ static_cast<long>(k_index)) + a * b;
  }
}
template <std::size_t... k_indices>
constexpr std::array<Function, k_functions> all_of(std::index_sequence<k_indices...>) {
  return {call_next<k_indices>...};
}
constexpr auto k_of_compilers = all_of(std::make_index_sequence<k_functions>());

/// Functions made at run time, each of which calls the next one by its address.
class MadeFunctions {
 public:
  MadeFunctions(bool in_tables, std::size_t shapes, std::size_t count) : count_(count) {
    void* const memory =
        mmap(nullptr, count * k_distance, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    code_ = memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
    for (std::size_t i = 0; code_ && i < count; ++i) add(i, in_tables, static_cast<int>(i % shapes));
  }
  MadeFunctions(const MadeFunctions&) = delete;
  ~MadeFunctions() {
    registered_.clear();
    if (code_) munmap(code_, count_ * k_distance);
  }
  bool are_made() const { return registered_.size() == count_; }
  void call() const { reinterpret_cast<long (*)()>(code_)(); }

 private:
  static constexpr std::size_t k_distance = 128;
  static constexpr std::array<Reg, 5> k_saved{rbp, rbx, r12, r13, r14};

  void add(std::size_t i, bool in_tables, int shape) {
    test::DescribingAssembler a;
    const int locals = 16 + 16 * shape;
    Builder rows = describe();
    for (std::size_t n = 0; n < k_saved.size(); ++n) a.push(k_saved[n]), say(rows, a.here(), n + 1, 0);
    a.allocate(locals), say(rows, a.here(), k_saved.size(), locals);
    const std::byte* const next = code_ + (i + 1) * k_distance;
    a.emit({0x48, 0xb8},
           i + 1 < count_ ? reinterpret_cast<std::intptr_t>(next) : reinterpret_cast<std::intptr_t>(&walk), 8);
    a.emit({0xff, 0xd0});
    a.deallocate(locals), say(rows, a.here(), k_saved.size(), 0);
    for (std::size_t n = k_saved.size(); n-- > 0;) a.pop(k_saved[n]), say(rows, a.here(), n, 0);
    a.ret();
    std::memcpy(code_ + i * k_distance, a.code().data(), a.code().size());
    const auto description = in_tables ? rows.size(a.code().size()).build() : a.description();
    if (!description) return;
    if (auto made = register_code(*description, code_ + i * k_distance, a.code().size()))
      registered_.push_back(std::move(*made));
  }
  static void say(Builder& rows, std::int64_t at, std::size_t saved, int locals) {
    constexpr std::array<const char*, 5> k_texts{" rbp=[cfa-16]", " rbx=[cfa-24]", " r12=[cfa-32]", " r13=[cfa-40]",
                                                 " r14=[cfa-48]"};
    std::string row = "cfa=rsp+" + std::to_string(8 + 8 * static_cast<int>(saved) + locals);
    // Registers are in the order of their numbers.
    for (const std::size_t n : {1u, 0u, 2u, 3u, 4u})
      if (n < saved) row += k_texts[n];
    rows.row_at(at, row + " ra=[cfa-8]");
  }

  std::size_t count_;
  std::byte* code_ = nullptr;
  std::vector<Registration> registered_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string kind = argv[1];
  const std::size_t shapes = std::strtoul(argv[2], nullptr, 10), count = std::strtoul(argv[3], nullptr, 10);
  for (int i = 0; i < 3; ++i) walk();
  if (kind == "compiled") {
    k_of_compilers[k_functions - count](1, 2);
  } else {
    const MadeFunctions functions(kind == "tables", shapes, count);
    if (!functions.are_made()) return 1;
    functions.call();
  }
  return frames < count ? 1 : 0;
}
