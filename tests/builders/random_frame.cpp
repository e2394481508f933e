#include "tests/builders/random_frame.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace jitunwind::test {
namespace {

using namespace x86_64;
using Kind = Said::Kind;

constexpr std::array k_scratch{rcx, rdx, r8, r9, r10, r11};
constexpr int k_word = 8;

/// An entry that the procedure has put on its stack. Entries are listed from the caller's frame down.
struct Entry {
  enum class Kind : std::uint8_t { saved, value, area } kind;
  Reg reg = rax;  ///< saved
  int bytes = k_word;
  struct Moved {
    Reg reg;
    int offset;  ///< from the area's lowest byte
  };
  std::vector<Moved> moved;
};

struct FrameState {
  std::vector<Entry> entries_;
  std::optional<std::size_t> pointer_;  // rbp is SP as it was with that many entries
  bool sp_known_ = true;
};

class Writer : FrameState {
 public:
  explicit Writer(std::mt19937_64& random) : random_(random) { frame_.helper_pops = one_in(4); }

  RandomFrame write() {
    grow(below(6));
    if (pointer_ && one_in(4)) lose_sp();
    body(2);
    a_.return_value(k_random_result);
    leave_all();
    if (one_in(8)) {
      say(Kind::pop_return_address, rcx, 0, a_.emit({0x59}));
      a_.emit({0xff, 0xe1});
    } else {
      a_.ret();
    }
    frame_.code = a_.code();
    return std::move(frame_);
  }

 private:
  // Random choices.
  bool one_in(unsigned n) { return random_() % n == 0; }
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  template <class List>
  auto any_of(const List& list) {
    return list[static_cast<std::size_t>(below(static_cast<int>(list.size())))];
  }

  void say(Kind kind, Reg reg, std::int64_t number, Instruction at) { frame_.said.push_back({kind, at, reg, number}); }
  void say(Kind kind, std::int64_t number, Instruction at) { say(kind, rax, number, at); }
  /// Returns the bytes that `write` has made the assembler write.
  template <class Write>
  Instruction written(Write write) {
    const std::int64_t begin = a_.here();
    write();
    return {begin, a_.here()};
  }

  bool is_saved(Reg reg) const {
    return std::ranges::any_of(entries_, [&](const Entry& e) {
      return (e.kind == Entry::Kind::saved && e.reg == reg) ||
             std::ranges::count(e.moved, reg, &Entry::Moved::reg) != 0;
    });
  }
  std::vector<Reg> preserved(bool saved) const {
    std::vector<Reg> found;
    for (const Reg reg : k_preserved)
      if (is_saved(reg) == saved) found.push_back(reg);
    return found;
  }
  /// Returns the bytes between SP with `low` entries and SP with `high` entries.
  int bytes_between(std::size_t high, std::size_t low) const {
    int bytes = 0;
    for (std::size_t i = high; i < low; ++i) bytes += entries_[i].bytes;
    return bytes;
  }
  /// Returns the offset of an entry's lowest byte from the frame pointer.
  int from_pointer(std::size_t entry) const { return -bytes_between(*pointer_, entry + 1); }

  void clobber_scratch() { a_.clobber(any_of(k_scratch)); }
  void filler() {
    switch (below(4)) {
      case 0:
        a_.emit({0x90});
        break;
      case 1:
        clobber_scratch();
        break;
      default:
        auto saved = preserved(true);
        if (pointer_) std::erase(saved, rbp);
        if (!saved.empty()) a_.clobber(any_of(saved));
    }
  }

  // Instructions that build the frame.
  void grow(int count) {
    for (int i = 0; i < count; ++i) {
      grow_once();
      if (one_in(3)) filler();
    }
  }
  void grow_once() {
    const auto unsaved = preserved(false);
    switch (below(6)) {
      case 0:
        return push_value();
      case 1:
        return allocate();
      case 2:
        return save_by_move(unsaved);
      case 3:
        if (!is_saved(rbp) && !pointer_) return set_pointer();
        [[fallthrough]];
      default:
        if (unsaved.empty()) return push_value();
        const Reg reg = any_of(unsaved);
        say(Kind::push, reg, 0, written([&] { a_.push(reg); }));
        entries_.push_back({Entry::Kind::saved, reg, k_word, {}});
    }
  }
  void push_value() {
    entries_.push_back({Entry::Kind::value, rax, k_word, {}});
    if (one_in(3)) return say(Kind::push, rsp, 0, written([&] { a_.push(rsp); }));
    say(Kind::push_value, 0, written([&] { a_.push_argument(below(100)); }));
  }
  void allocate() {
    const int bytes = k_word * (1 + below(one_in(8) ? 600 : 6));
    say(Kind::allocate, bytes, written([&] { a_.allocate(bytes); }));
    entries_.push_back({Entry::Kind::area, rax, bytes, {}});
    if (one_in(3)) save_by_move(preserved(false));
  }
  void set_pointer() {
    frame_.has_pointer = true;
    if (one_in(3)) {
      const int bytes = 16 * below(4);
      say(Kind::enter, bytes, written([&] { a_.enter(bytes); }));
      entries_.push_back({Entry::Kind::saved, rbp, k_word, {}});
      pointer_ = entries_.size();
      if (bytes != 0) entries_.push_back({Entry::Kind::area, rax, bytes, {}});
      return;
    }
    say(Kind::push, rbp, 0, written([&] { a_.push(rbp); }));
    entries_.push_back({Entry::Kind::saved, rbp, k_word, {}});
    if (one_in(3)) clobber_scratch();
    say(Kind::set_frame_pointer, rbp, 0, written([&] { a_.set_frame_pointer(); }));
    pointer_ = entries_.size();
  }
  /// Saves registers into the memory below everything else, if there is room.
  void save_by_move(const std::vector<Reg>& unsaved) {
    if (unsaved.empty() || entries_.empty() || entries_.back().kind != Entry::Kind::area) return push_value();
    Entry& area = entries_.back();
    const int offset = k_word * below(area.bytes / k_word);
    const Reg reg = any_of(unsaved);
    if (std::ranges::count(area.moved, offset, &Entry::Moved::offset) != 0) return push_value();
    const bool can_use_pointer = pointer_ && *pointer_ < entries_.size();
    if (can_use_pointer && one_in(2)) {
      const int place = from_pointer(entries_.size() - 1) + offset;
      say(Kind::save_at_fp, reg, place, written([&] { a_.save_at_fp(reg, place); }));
    } else {
      say(Kind::save_at_sp, reg, offset, written([&] { a_.save_at_sp(reg, offset); }));
    }
    area.moved.push_back({reg, offset});
    if (one_in(2)) save_by_move(preserved(false));
  }
  void lose_sp() {
    if (one_in(2)) {
      say(Kind::realign, 0, written([&] { a_.realign(); }));
    } else {
      a_.set(rdx, 16 * (1 + below(8)));
      say(Kind::allocate_variable, 0, a_.emit({0x48, 0x29, 0xd4}));  // sub rsp,rdx
    }
    sp_known_ = false;
  }

  // Instructions that use the frame.
  void body(int depth) {
    for (int i = below(5); i >= 0; --i) {
      switch (below(6)) {
        case 0:
          call();
          break;
        case 1:
          if (depth > 0 && sp_known_) wrapped(depth);
          break;
        case 2:
          early_returns();
          break;
        default:
          filler();
      }
    }
  }
  void call() {
    if (!frame_.helper_pops && one_in(2)) return a_.call_rdi();
    say(Kind::push_value, 0, written([&] { a_.push_argument(1); }));
    say(Kind::push_value, 0, written([&] { a_.push_argument(2); }));
    if (frame_.helper_pops) return say(Kind::callee_pops, 16, written([&] { a_.call_rdi_which_pops(16); }));
    a_.call_rdi();
    say(Kind::deallocate, 16, written([&] { a_.deallocate(16); }));
  }
  /// Wraps a part of the procedure in something that only this part needs.
  void wrapped(int depth) {
    const std::size_t before = entries_.size();
    grow(1 + below(3));
    body(depth - 1);
    shrink_to(before);
  }
  void early_returns() {
    frame_.said.push_back({Kind::remember});
    for (int i = below(2); i >= 0; --i) {
      a_.emit({0x48, 0x83, 0xee, 0x01});  // sub rsi,1
      a_.emit({0x0f, 0x85}, 0, 4);        // jne over
      const std::size_t jump = a_.code().size();
      ++frame_.early_returns;
      const FrameState body = *this;
      a_.return_value(k_random_result);
      leave_all();
      say(Kind::restore, 0, a_.ret());
      static_cast<FrameState&>(*this) = body;
      a_.land(jump);
    }
  }

  // Instructions that release the frame.
  void leave_all() {
    if (pointer_ && (!sp_known_ || one_in(2))) leave_by_pointer();
    shrink_to(0);
  }
  void leave_by_pointer() {
    const std::size_t left =
        *pointer_ + static_cast<std::size_t>(below(static_cast<int>(entries_.size() - *pointer_) + 1));
    for (std::size_t i = entries_.size(); i-- > left;) {
      const int place = from_pointer(i);
      const auto reload = [&](Reg reg, int at) {
        say(Kind::reload, reg, 0, written([&] { a_.reload_at_fp(reg, at); }));
      };
      if (entries_[i].kind == Entry::Kind::saved) reload(entries_[i].reg, place);
      for (const Entry::Moved& moved : entries_[i].moved) reload(moved.reg, place + moved.offset);
    }
    const int above = bytes_between(*pointer_, left);
    entries_.resize(left);
    sp_known_ = true;
    if (above == 0 && one_in(2)) {
      say(Kind::leave, 0, written([&] { a_.leave(); }));
      entries_.pop_back();
      pointer_.reset();
    } else {
      say(Kind::restore_sp, rbp, -above, written([&] { above == 0 ? a_.restore_sp() : a_.restore_sp(-above); }));
    }
  }
  void shrink_to(std::size_t size) {
    while (entries_.size() > size) {
      if (pop_lowest()) continue;
      int bytes = 0;
      do bytes += reload_lowest(bytes);
      while (entries_.size() > size && one_in(2));
      say(Kind::deallocate, bytes, written([&] { a_.deallocate(bytes); }));
    }
  }
  /// Returns false if the lowest entry cannot be popped.
  bool pop_lowest() {
    const Entry::Kind kind = entries_.back().kind;
    if (kind == Entry::Kind::area || one_in(4)) return false;
    const Reg reg = kind == Entry::Kind::saved ? entries_.back().reg : any_of(k_scratch);
    say(Kind::pop, reg, 0, written([&] { a_.pop(reg); }));
    forget_lowest();
    return true;
  }
  /// Returns the bytes of the entry, which are `above` SP.
  int reload_lowest(int above) {
    const Entry entry = entries_.back();
    const auto reload = [&](Reg reg, int offset) {
      say(Kind::reload, reg, 0, written([&] { a_.reload_at_sp(reg, offset); }));
    };
    for (const Entry::Moved& moved : entry.moved) reload(moved.reg, above + moved.offset);
    if (entry.kind == Entry::Kind::saved) reload(entry.reg, above);
    forget_lowest();
    return entry.bytes;
  }
  void forget_lowest() {
    if (pointer_ == entries_.size()) pointer_.reset();
    entries_.pop_back();
  }

  std::mt19937_64& random_;
  DescribingAssembler a_;
  RandomFrame frame_;
};

template <class Recorder>
void say_to(Recorder& b, const Said& s) {
  switch (s.kind) {
    case Kind::push:
      b.push(s.at, s.reg);
      break;
    case Kind::push_value:
      b.push(s.at);
      break;
    case Kind::enter:
      b.enter(s.at, s.number);
      break;
    case Kind::allocate:
      b.allocate(s.at, s.number);
      break;
    case Kind::allocate_variable:
      b.allocate_variable(s.at);
      break;
    case Kind::realign:
      b.realign(s.at);
      break;
    case Kind::set_frame_pointer:
      b.set_frame_pointer(s.at, s.reg);
      break;
    case Kind::save_at_sp:
      b.save_at_sp(s.at, s.reg, s.number);
      break;
    case Kind::save_at_fp:
      b.save_at_fp(s.at, s.reg, s.number);
      break;
    case Kind::pop:
      b.pop(s.at, s.reg);
      break;
    case Kind::deallocate:
      b.deallocate(s.at, s.number);
      break;
    case Kind::restore_sp:
      b.restore_sp(s.at, s.reg, s.number);
      break;
    case Kind::leave:
      b.leave(s.at);
      break;
    case Kind::reload:
      b.reload(s.at, s.reg);
      break;
    case Kind::pop_return_address:
      b.pop_return_address(s.at, s.reg);
      break;
    case Kind::callee_pops:
      b.callee_pops(s.at, s.number);
      break;
    case Kind::remember:
      b.remember();
      break;
    case Kind::restore:
      b.restore(s.at);
      break;
  }
}

}  // namespace

Result<Description, BuildError> described(const std::vector<Said>& said, std::uint64_t size) {
  Builder builder = describe("random").size(size);
  for (const Said& s : said) say_to(builder, s);
  return builder.build();
}

void mark(x86_64::Marks& marks, const std::vector<Said>& said) {
  for (const Said& s : said) say_to(marks, s);
}

RandomFrame random_frame(std::mt19937_64& random) { return Writer(random).write(); }

}  // namespace jitunwind::test
