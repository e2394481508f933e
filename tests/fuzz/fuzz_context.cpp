// A context with any registers over a stack with any contents is walked in every way, and all its frames are queried;
// then addresses are looked up in every way. Input: numbers, each a byte for its kind and perhaps more: pc, SP, frame
// pointer; a byte, the number of words of the stack; these words; then addresses to ask about. Checked: nothing faults,
// walks end, and walks of addresses find what steps find.
#include <jitunwind/jitunwind.h>
#include <libunwind.h>

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "jitunwind/unwind_core/kept/code_changes_internal.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/support/jit_frame.h"

using namespace jitunwind;
using jitunwind::fuzz::check;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t k_page = 4096;
constexpr std::size_t k_stack = 2 * k_page;
constexpr std::size_t k_most_words = 64;
constexpr unsigned k_most_frames = 4096;  // the made stack has room for fewer, and so has what is used of the real one
constexpr unsigned k_questions = 4;

Addr number(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

/// The places that addresses are taken from. They are made once.
struct Places {
  Places() {
    void* const memory =
        ::mmap(nullptr, k_stack + 2 * k_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(memory != MAP_FAILED, "a mapping");
    below = number(memory);
    stack = below + k_page;
    ::mprotect(memory, k_page, PROT_NONE);
    ::mprotect(static_cast<std::byte*>(memory) + k_page + k_stack, k_page, PROT_NONE);
    void* const hole = ::mmap(nullptr, k_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unmapped = number(hole);
    ::munmap(hole, k_page);
  }
  std::span<unw_word_t> stack_words() const {
    return {reinterpret_cast<unw_word_t*>(static_cast<std::uintptr_t>(stack)), k_stack / sizeof(unw_word_t)};
  }

  test::JitFrame frame;
  Addr below = 0, stack = 0, unmapped = 0;
};

class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size, Places& places) : data_(data, size), places_(places) {}

  bool at_end() const { return at_ == data_.size(); }
  unsigned byte() { return at_end() ? 0 : data_[at_++]; }
  Addr word() {
    Addr value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return value;
  }
  /// Returns an address of any kind.
  Addr address() {
    const unsigned kind = byte() % 12;
    switch (kind) {
      case 0:
        return edge();
      case 1:
        return word();
      case 2:
        return places_.stack + offset() % (k_stack + 2 * k_page);
      case 3:
        return places_.below + offset() % k_page;
      case 4:
        return places_.frame.start() + byte() % 32;
      case 5:
        return number(reinterpret_cast<const void*>(&LLVMFuzzerTestOneInput)) + offset() % 1024;
      case 6:
        return table() + byte();
      case 7:
        return library() + offset() % 512;
      case 8:
        return number(__builtin_frame_address(0)) + offset() % k_page;
      case 9:
        return places_.stack + k_stack - byte();
      case 10:
        return places_.unmapped + offset() % k_page;
      default:
        return places_.frame.return_address();
    }
  }

 private:
  Addr offset() { return byte() | byte() << 8; }
  Addr edge() {
    constexpr std::array<Addr, 16> k_edges{0,
                                           1,
                                           7,
                                           8,
                                           0xfff,
                                           0x1000,
                                           0x7ffffffff000,
                                           0x7ffffffffff8,
                                           0x7fffffffffff,
                                           0x800000000000,
                                           0xffff7fffffffffff,
                                           0xffff800000000000,
                                           0xffffffffff600000,
                                           0xfffffffffffff000,
                                           0xfffffffffffffff8,
                                           ~Addr{0}};
    return k_edges[byte() % k_edges.size()];
  }
  /// Returns the address of a structure that the library itself writes.
  Addr table() {
    switch (byte() % 4) {
      case 0:
        return number(procedure_list());
      case 1:
        return number(places_.frame.registration().info());
      case 2:
        return number(unw_local_addr_space);
      default:
        return number(&registration_changes());
    }
  }
  Addr library() {
    switch (byte() % 4) {
      case 0:
        return number(reinterpret_cast<const void*>(&::mmap));
      case 1:
        return number(reinterpret_cast<const void*>(&std::memcpy));
      case 2:
        return number(reinterpret_cast<const void*>(&unw_step));
      default:
        return number(reinterpret_cast<const void*>(&jitunwind_backtrace));
    }
  }

  std::span<const std::uint8_t> data_;
  std::size_t at_ = 0;
  Places& places_;
};

using Addresses = std::array<void*, 64>;

struct Steps {
  std::array<Addr, 64> pcs{};
  std::size_t count = 0;
};

void ask_frame(const Frame& frame) {
  std::array<char, 32> name;
  FrameRow row;
  (void)frame.raw_name(name);
  (void)frame.row(row);
  (void)frame.procedure();
  (void)frame.is_signal_frame();
  (void)frame.offset();
  for (RegNum reg = 0; reg < 20; ++reg) {
    (void)frame.get(reg);
    (void)frame.location(reg);
  }
}

Steps walk(const ucontext_t& context, Cursor::Top top, Guesses guesses) {
  Steps steps;
  Walk walk(cursor_at(&context, top, guesses));
  for (const Frame& frame : walk) {
    check(steps.count < k_most_frames, "a walk ends");
    if (steps.count < steps.pcs.size()) {
      steps.pcs[steps.count] = frame.pc();
      ask_frame(frame);
    }
    ++steps.count;
  }
  check(walk.stop_reason() != StopReason::none, "a walk tells why it ended");
  return steps;
}

Steps walk_as_libunwind(ucontext_t& context, int flag) {
  Steps steps;
  unw_cursor_t cursor;
  check(unw_init_local2(&cursor, &context, flag) == 0, "a cursor");
  do {
    check(steps.count < k_most_frames, "steps end");
    unw_word_t pc = 0, offset = 0;
    unw_proc_info_t info;
    unw_save_loc_t place;
    std::array<char, 32> text;
    check(unw_get_reg(&cursor, UNW_REG_IP, &pc) == 0, "a frame has a pc");
    if (steps.count < steps.pcs.size()) {
      steps.pcs[steps.count] = pc;
      (void)unw_get_proc_info(&cursor, &info);
      (void)unw_get_proc_name(&cursor, text.data(), text.size(), &offset);
      (void)unw_get_elf_filename(&cursor, text.data(), text.size(), &offset);
      (void)unw_is_signal_frame(&cursor);
      (void)unw_is_plt_entry(&cursor);
      for (int reg = 0; reg <= UNW_REG_LAST; ++reg) (void)unw_get_save_loc(&cursor, reg, &place);
    }
    ++steps.count;
  } while (unw_step(&cursor) > 0);
  return steps;
}

void expect_same(const Steps& steps, std::span<void* const> listed, const char* what) {
  check(listed.size() == std::min(steps.count, steps.pcs.size()), what);
  for (std::size_t i = 0; i < listed.size(); ++i) check(number(listed[i]) == steps.pcs[i], what);
}

void walk_in_every_way(ucontext_t& context) {
  for (const bool interrupted : {true, false}) {
    const Cursor::Top top = interrupted ? Cursor::Top::interrupted : Cursor::Top::returned_to;
    const Steps steps = walk(context, top, Guesses::confirmed);
    (void)walk(context, top, Guesses::bold);
    Addresses listed;
    expect_same(steps, std::span(listed).first(backtrace(&context, top, listed)), "backtrace finds what steps find");
    const int flag = interrupted ? UNW_INIT_SIGNAL_FRAME : 0;
    const Steps again = walk_as_libunwind(context, flag);
    check(again.count == steps.count && again.pcs == steps.pcs, "libunwind's steps are the same");
    const int count = unw_backtrace2(listed.data(), static_cast<int>(listed.size()), &context, flag);
    check(count >= 0, "as many as there are");
    expect_same(steps, std::span(listed).first(static_cast<std::size_t>(count)), "unw_backtrace2 finds the same");
  }
}

void ask_address(Addr at, Choices& choices) {
  std::array<char, 64> text;
  unw_word_t offset = 0;
  unw_proc_info_t info;
  ProcedureName name;
  text.fill('?');
  (void)unw_get_proc_name_by_ip(unw_local_addr_space, at, text.data(), 32, &offset, nullptr);
  check(std::memchr(text.data(), '\0', 32) != nullptr && text[32] == '?', "names end in their buffer");
  text.fill('?');
  (void)unw_get_elf_filename_by_ip(unw_local_addr_space, at, text.data(), 32, &offset, nullptr);
  check(std::memchr(text.data(), '\0', 32) != nullptr && text[32] == '?', "paths end in their buffer");
  (void)unw_get_proc_info_by_ip(unw_local_addr_space, at, &info, nullptr);
  for (const CodeAddress address : {CodeAddress::interrupted(at), CodeAddress::returned_to(at)})
    (void)find_local_name(address, std::span(text).first(32), name);
  const bool may_be = may_be_registered(at);
  const ProcedureHold hold(at);
  check(!hold.failed() && (may_be || hold.info() == nullptr), "what may not be registered is not");
  (void)registration_changes().number(at);
  const Addr begin = choices.address(), end = choices.address(), table = choices.address();
  const Addr size = choices.byte() % 2 == 0 ? choices.byte() : choices.address();
  (void)unw_get_proc_info_in_range(begin, end, table, size, 0, 0, unw_local_addr_space, at, &info, 1, nullptr);
  forget_rows(begin, end);
  unw_flush_cache(unw_local_addr_space, begin, end);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Places places;
  Choices choices(data, size, places);
  ucontext_t context;
  check(unw_getcontext(&context) == 0, "a context");
  auto& registers = context.uc_mcontext.gregs;
  registers[REG_RIP] = static_cast<greg_t>(choices.address());
  registers[REG_RSP] = static_cast<greg_t>(choices.address());
  registers[REG_RBP] = static_cast<greg_t>(choices.address());
  registers[REG_RBX] = static_cast<greg_t>(choices.address());
  const auto words = places.stack_words();
  std::fill(words.begin(), words.end(), 0);
  const std::size_t count = choices.byte() % k_most_words;
  for (std::size_t i = 0; i < count; ++i) words[i] = choices.address();
  walk_in_every_way(context);
  for (unsigned i = 0; i < k_questions && !choices.at_end(); ++i) ask_address(choices.address(), choices);
  return 0;
}
