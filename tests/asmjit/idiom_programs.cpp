#include "tests/asmjit/idiom_programs.h"

#include <functional>
#include <stdexcept>

#include "jitunwind/builders/registers_x86_64.h"
#include "tests/asmjit/asmjit_names.h"

namespace jitunwind::test {
namespace {

namespace x86 = asmjit::x86;
using Frame = IdiomWish::Frame;
using Saves = IdiomWish::Saves;
using Memory = IdiomWish::Memory;
using Release = IdiomWish::Release;
using Exit = IdiomWish::Exit;
using Builder = x86_64::Builder;
using Reg = x86_64::Reg;

constexpr std::int32_t k_lea_gap = 24;      // rbp = rsp + 24 after push_lea
constexpr std::int32_t k_large = 3 * 4096;  // of a probed or large frame
constexpr std::int32_t k_copy_of_sp = 64;   // where a realigned frame without frame pointer keeps SP
volatile std::uint8_t g_turn = 0;

struct Saved {
  x86::Gp reg;
  Reg described;
};
const Saved k_all[] = {{x86::rbx, x86_64::rbx},
                       {x86::r12, x86_64::r12},
                       {x86::r13, x86_64::r13},
                       {x86::r14, x86_64::r14},
                       {x86::r15, x86_64::r15}};

class Writer {
 public:
  Writer(AsmjitAssembler& a, const IdiomWish& wish) : a_(a), wish_(wish) {}
  Description write();

 private:
  using Says = std::function<void(Builder&, Instruction)>;
  struct Said {
    Instruction at;
    bool in_last_epilogue;
    Says says;
  };

  bool has_fp() const { return wish_.frame != Frame::none; }
  std::span<const Saved> saved() const {
    if (wish_.saves == Saves::none) return {};
    return wish_.saves == Saves::push_one ? std::span(k_all).first(1) : std::span(k_all);
  }
  /// Writes one instruction and its meaning.
  template <class Write>
  void both(Write write, Says says) {
    const std::size_t begin = a_.offset();
    write();
    said_.push_back({Instruction(begin, a_.offset()), in_last_epilogue_, std::move(says)});
  }

  void build_frame();
  void push_registers();
  void allocate();
  void realign();
  void probe();
  void store_registers();
  void body();
  void call_popping();
  void epilogue();
  void reload_registers();
  void release();
  void leave();

  AsmjitAssembler& a_;
  const IdiomWish wish_;
  std::vector<Said> said_;
  bool in_last_epilogue_ = false;
  std::int32_t below_fp_ = 0;   // rbp - SP, as long as it is known
  std::int32_t pushed_ = 0;     // bytes of saved registers below rbp's slot
  std::int32_t allocated_ = 0;  // bytes below them
};

void Writer::build_frame() {
  const auto push_rbp = [this] {
    both([this] { a_.push(x86::rbp); }, [](Builder& b, Instruction at) { b.push(at, x86_64::rbp); });
  };
  switch (wish_.frame) {
    case Frame::none:
      break;
    case Frame::push_mov:
      push_rbp();
      both([this] { a_.mov(x86::rbp, x86::rsp); },
           [](Builder& b, Instruction at) { b.set_frame_pointer(at, x86_64::rbp); });
      break;
    case Frame::push_lea:
      push_rbp();
      both([this] { a_.sub(x86::rsp, k_lea_gap); }, [](Builder& b, Instruction at) { b.allocate(at, k_lea_gap); });
      both([this] { a_.lea(x86::rbp, x86::ptr(x86::rsp, k_lea_gap)); },
           [](Builder& b, Instruction at) { b.set_frame_pointer(at, x86_64::rbp, k_lea_gap); });
      below_fp_ = k_lea_gap;
      break;
    case Frame::enter:
      both([this] { a_.enter(k_lea_gap, 0); }, [](Builder& b, Instruction at) { b.enter(at, k_lea_gap); });
      below_fp_ = k_lea_gap;
      break;
  }
}

void Writer::push_registers() {
  if (wish_.saves != Saves::push_one && wish_.saves != Saves::push_all) return;
  for (const Saved& s : saved()) {
    both([&] { a_.push(s.reg); }, [s](Builder& b, Instruction at) { b.push(at, s.described); });
    pushed_ += 8;
  }
  // The value is no saved register.
  both([this] { a_.push(x86::rdi); }, [](Builder& b, Instruction at) { b.push(at); });
  pushed_ += 8;
}

void Writer::realign() {
  if (!has_fp()) {
    both([this] { a_.mov(x86::rax, x86::rsp); },
         [](Builder& b, Instruction at) { b.set_frame_pointer(at, x86_64::rax); });
  }
  both([this] { a_.and_(x86::rsp, -64); }, [](Builder& b, Instruction at) { b.realign(at); });
  both([this] { a_.sub(x86::rsp, 128); }, [](Builder& b, Instruction at) { b.allocate(at, 128); });
  if (has_fp()) return;
  both([this] { a_.mov(x86::ptr(x86::rsp, k_copy_of_sp), x86::rax); },
       [](Builder& b, Instruction at) { b.store_sp(at, k_copy_of_sp); });
}

void Writer::probe() {
  const std::size_t bound = a_.offset();
  a_.lea(x86::r11, x86::ptr(x86::rsp, -k_large));
  const std::size_t first = a_.offset();
  const asmjit::Label again = new_label(a_);
  a_.bind(again);
  a_.sub(x86::rsp, 4096);
  const std::size_t touch = a_.offset();
  a_.mov(x86::qword_ptr(x86::rsp), 0);
  a_.cmp(x86::rsp, x86::r11);
  const std::size_t back = a_.offset();
  a_.jne(again);
  const ProbeLoop loop{Instruction(bound, first), Instruction(first, touch), Instruction(back, a_.offset()), k_large};
  if (!has_fp()) {
    said_.push_back({loop.bound, false, [loop](Builder& b, Instruction) { b.probe_loop(loop, x86_64::r11); }});
    return;
  }
  // There is a frame pointer already. It serves during the loop; behind the loop SP is known by it.
  const std::int32_t sp = -below_fp_ - pushed_ - k_large;
  said_.push_back({loop.first_step, false, [](Builder& b, Instruction at) { b.allocate_variable(at); }});
  said_.push_back({loop.back, false, [sp](Builder& b, Instruction at) { b.restore_sp(at, x86_64::rbp, sp); }});
}

void Writer::allocate() {
  const auto fixed = [this](std::int32_t bytes) {
    both([&] { a_.sub(x86::rsp, bytes); }, [bytes](Builder& b, Instruction at) { b.allocate(at, bytes); });
    allocated_ = bytes;
  };
  switch (wish_.memory) {
    case Memory::none:
      break;
    case Memory::small:
      fixed(72);
      break;
    case Memory::large:
      fixed(k_large);
      break;
    case Memory::realigned:
      realign();
      break;
    case Memory::variable:
      a_.mov(x86::eax, 48);
      both([this] { a_.sub(x86::rsp, x86::rax); }, [](Builder& b, Instruction at) { b.allocate_variable(at); });
      break;
    case Memory::probed:
      probe();
      allocated_ = k_large;
      break;
  }
}

void Writer::store_registers() {
  std::int32_t offset = 8;
  const x86::Gp scratch[] = {x86::r8, x86::r9, x86::r10, x86::rcx, x86::rdx};
  const Reg described_scratch[] = {x86_64::r8, x86_64::r9, x86_64::r10, x86_64::rcx, x86_64::rdx};
  std::size_t next = 0;
  for (const Saved& s : saved()) {
    switch (wish_.saves) {
      case Saves::store_at_sp:
        both([&] { a_.mov(x86::ptr(x86::rsp, offset), s.reg); },
             [s, offset](Builder& b, Instruction at) { b.save_at_sp(at, s.described, offset); });
        break;
      case Saves::red_zone:
        both([&] { a_.mov(x86::ptr(x86::rsp, -offset), s.reg); },
             [s, offset](Builder& b, Instruction at) { b.save_at_sp(at, s.described, -offset); });
        break;
      case Saves::store_at_fp: {
        const std::int32_t at_fp = -below_fp_ - offset;
        both([&] { a_.mov(x86::ptr(x86::rbp, at_fp), s.reg); },
             [s, at_fp](Builder& b, Instruction at) { b.save_at_fp(at, s.described, at_fp); });
        break;
      }
      case Saves::move: {
        const Reg to = described_scratch[next];
        both([&] { a_.mov(scratch[next], s.reg); },
             [s, to](Builder& b, Instruction at) { b.move_to(at, s.described, to); });
        ++next;
        break;
      }
      default:
        return;
    }
    offset += 8;
  }
}

/// A procedure of our own, behind this one, that takes its two arguments off the stack.
void Writer::call_popping() {
  both([this] { a_.push(x86::rsi); }, [](Builder& b, Instruction at) { b.push(at); });
  both([this] { a_.push(x86::rsi); }, [](Builder& b, Instruction at) { b.push(at); });
  const asmjit::Label callee = new_named_label(a_, "callee");
  both([&] { a_.call(callee); }, [](Builder& b, Instruction at) { b.callee_pops(at, 16); });
}

void Writer::body() {
  if (wish_.calls) call_popping();
  for (const Saved& s : saved()) a_.mov(s.reg, 0x600d);
  if (!has_fp() && wish_.memory == Memory::realigned) a_.mov(x86::rax, 0);
}

void Writer::reload_registers() {
  std::int32_t offset = 8;
  const x86::Gp scratch[] = {x86::r8, x86::r9, x86::r10, x86::rcx, x86::rdx};
  std::size_t next = 0;
  for (const Saved& s : saved()) {
    const auto reload = [s](Builder& b, Instruction at) { b.reload(at, s.described); };
    if (wish_.saves == Saves::store_at_sp) both([&] { a_.mov(s.reg, x86::ptr(x86::rsp, offset)); }, reload);
    if (wish_.saves == Saves::red_zone) both([&] { a_.mov(s.reg, x86::ptr(x86::rsp, -offset)); }, reload);
    if (wish_.saves == Saves::store_at_fp)
      both([&] { a_.mov(s.reg, x86::ptr(x86::rbp, -below_fp_ - offset)); }, reload);
    if (wish_.saves == Saves::move) both([&] { a_.mov(s.reg, scratch[next++]); }, reload);
    offset += 8;
  }
}

/// Restores SP to the pushed registers, or to rbp's slot if there are none.
void Writer::release() {
  const std::int32_t above = below_fp_ + pushed_;
  switch (wish_.release) {
    case Release::add:
      if (allocated_ != 0)
        both([this] { a_.add(x86::rsp, allocated_); },
             [bytes = allocated_](Builder& b, Instruction at) { b.deallocate(at, bytes); });
      break;
    case Release::lea:
      both([&] { a_.lea(x86::rsp, x86::ptr(x86::rbp, -above)); },
           [above](Builder& b, Instruction at) { b.restore_sp(at, x86_64::rbp, -above); });
      break;
    case Release::mov:
      both([this] { a_.mov(x86::rsp, x86::rbp); }, [](Builder& b, Instruction at) { b.restore_sp(at, x86_64::rbp); });
      return;
    case Release::leave:
      return;
    case Release::reload_sp:
      both([this] { a_.mov(x86::rsp, x86::ptr(x86::rsp, k_copy_of_sp)); },
           [](Builder& b, Instruction at) { b.reload_sp(at); });
      break;
  }
  if (pushed_ != 0) {
    both([this] { a_.pop(x86::rdi); }, [](Builder& b, Instruction at) { b.pop(at); });
    for (auto s = saved().rbegin(); s != saved().rend(); ++s)
      both([&] { a_.pop(s->reg); }, [r = *s](Builder& b, Instruction at) { b.pop(at, r.described); });
  }
  if (below_fp_ != 0)
    both([this] { a_.add(x86::rsp, below_fp_); },
         [bytes = below_fp_](Builder& b, Instruction at) { b.deallocate(at, bytes); });
}

void Writer::leave() {
  switch (wish_.exit) {
    case Exit::ret:
      a_.ret();
      break;
    case Exit::ret_popping:
      a_.ret(24);
      break;
    case Exit::jump_to_popped:
      both([this] { a_.pop(x86::rcx); }, [](Builder& b, Instruction at) { b.pop_return_address(at, x86_64::rcx); });
      a_.jmp(x86::rcx);
      break;
  }
}

void Writer::epilogue() {
  reload_registers();
  release();
  if (wish_.release == Release::leave)
    both([this] { a_.leave(); }, [](Builder& b, Instruction at) { b.leave(at); });
  else if (has_fp())
    both([this] { a_.pop(x86::rbp); }, [](Builder& b, Instruction at) { b.pop(at, x86_64::rbp); });
  const std::size_t begin = a_.offset();
  leave();
  if (!wish_.early_return || in_last_epilogue_) return;
  const Instruction last(wish_.exit == Exit::jump_to_popped ? a_.offset() - 2 : begin, a_.offset());
  said_.push_back({last, false, [](Builder& b, Instruction at) { b.restore(at); }});
}

Description Writer::write() {
  build_frame();
  push_registers();
  allocate();
  store_registers();
  body();
  if (wish_.early_return) {
    const asmjit::Label other = new_label(a_);
    a_.mov(x86::rsi, reinterpret_cast<std::uintptr_t>(&g_turn));
    a_.xor_(x86::byte_ptr(x86::rsi), 1);
    a_.jz(other);
    said_.push_back({Instruction(0, 0), false, [](Builder& b, Instruction) { b.remember(); }});
    epilogue();
    a_.bind(other);
    for (const Saved& s : saved()) a_.mov(s.reg, 0xbad);
  }
  in_last_epilogue_ = true;
  epilogue();

  const auto size = static_cast<std::int64_t>(a_.offset());
  Builder builder = x86_64::describe("idioms");
  if (!wish_.from_end) builder.size(static_cast<std::uint64_t>(size));
  for (const Said& s : said_) {
    const bool from_end = wish_.from_end && s.in_last_epilogue;
    s.says(builder, from_end ? Instruction(s.at.begin - size, s.at.end - size) : s.at);
  }
  auto built = builder.build();
  if (!built) throw std::runtime_error(built.error().text());
  return std::move(*built);
}

/// Returns whether the hardware and the semantics allow these choices together.
bool makes_sense(const IdiomWish& w) {
  const bool fp = w.frame != Frame::none;
  const bool sp_known = w.memory != Memory::realigned && w.memory != Memory::variable;
  const bool pushes = w.saves == Saves::push_one || w.saves == Saves::push_all;
  const bool room = w.memory != Memory::none;
  if (!fp && (w.memory == Memory::variable || w.saves == Saves::store_at_fp)) return false;
  if (w.saves == Saves::red_zone && (room || w.calls)) return false;
  if ((w.saves == Saves::store_at_sp || w.saves == Saves::store_at_fp) && !room) return false;
  // The slots at rbp are inside the memory only if that is at a known distance.
  if (w.saves == Saves::store_at_fp && !sp_known) return false;
  if (w.saves == Saves::move && (w.calls || w.memory == Memory::realigned)) return false;
  // A frame pointer in a scratch register does not survive what the body does with it.
  switch (w.release) {
    case Release::add:
      if (!sp_known) return false;
      break;
    case Release::lea:
      if (!fp || !room || w.saves == Saves::red_zone) return false;
      break;
    case Release::mov:
    case Release::leave:
      if (!fp || pushes || w.saves == Saves::red_zone) return false;
      break;
    case Release::reload_sp:
      if (fp || w.memory != Memory::realigned) return false;
      break;
  }
  return !(w.from_end && w.early_return);
}

}  // namespace

std::string IdiomWish::text() const {
  const auto number = [](auto value) { return std::to_string(static_cast<int>(value)); };
  return "frame " + number(frame) + " saves " + number(saves) + " memory " + number(memory) + " release " +
         number(release) + " exit " + number(exit) + (early_return ? " early" : "") + (calls ? " calls" : "") +
         (from_end ? " from_end" : "");
}

std::vector<IdiomWish> all_idiom_wishes() {
  std::vector<IdiomWish> all;
  for (int frame = 0; frame < 4; ++frame)
    for (int saves = 0; saves < 7; ++saves)
      for (int memory = 0; memory < 6; ++memory)
        for (int release = 0; release < 5; ++release)
          for (int exit = 0; exit < 3; ++exit)
            for (int flags = 0; flags < 8; ++flags) {
              const IdiomWish wish{static_cast<Frame>(frame),
                                   static_cast<Saves>(saves),
                                   static_cast<Memory>(memory),
                                   static_cast<Release>(release),
                                   static_cast<Exit>(exit),
                                   (flags & 1) != 0,
                                   (flags & 2) != 0,
                                   (flags & 4) != 0};
              if (makes_sense(wish)) all.push_back(wish);
            }
  return all;
}

IdiomProgram write_idioms(AsmjitAssembler& a, const IdiomWish& wish) {
  Description description = Writer(a, wish).write();
  const std::size_t size = a.offset();
  if (wish.calls) {
    a.align(asmjit::AlignMode::kCode, 16);
    a.bind(a.JITUNWIND_ASMJIT(labelByName, label_by_name)("callee"));
    a.ret(16);
  }
  return {wish, std::move(description), size};
}

}  // namespace jitunwind::test
