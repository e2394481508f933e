// A generator of xbyak whose procedures are registered with what they do to the frame, read from what it has written.
#pragma once

#include <xbyak/xbyak.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jitunwind/adapters/xbyak/frame_reader.h"
#include "jitunwind/builders/registration.h"

#ifndef XBYAK64
#error "jitunwind/xbyak.h describes 64-bit code"
#endif

#pragma GCC visibility push(default)
namespace jitunwind::xbyak {

/// The instructions that are read when code is registered.
enum class Reading {
  noted,  ///< those that this generator's own functions have written: push(), ret(), jumps and others
  every,  ///< all that control reaches, whoever has written them. Takes longer than to write them
};

// A function of the base class, with all of its forms.
#define JITUNWIND_NOTED(name)                                          \
  template <class... Arguments>                                        \
  void name(Arguments&&... arguments) {                                \
    noted([&] { Base::name(std::forward<Arguments>(arguments)...); }); \
  }

/// Xbyak::CodeGenerator that notes where it writes instructions that concern the frame, which costs a comparison for
/// each. Its registrations end when it is reset or destroyed, before the memory of the code is freed. One thread at a
/// time; not signal-safe.
///
/// Described are: push and pop, rsp moved by a known amount, a frame pointer in rbp, and with it any other change of
/// rsp; preserved registers that are saved by push or by mov to rsp or rbp with an offset; any number of returns; jumps
/// to labels, and through tables to code that has the frame of the jump. Anything else is refused by register_code(),
/// if it was noted.
class CodeGenerator : public Xbyak::CodeGenerator {
  using Base = Xbyak::CodeGenerator;
  using Operand = Xbyak::Operand;

 public:
  using Base::Base;

  /// A procedure begins here; without a call, one begins at the first byte. The name is shown in walks.
  void procedure(std::string_view name) { procedures_.push_back({getSize(), std::string(name)}); }
  /// Control does not reach this place: a call in front of it does not return.
  void unreachable() { spans_.push_back({getSize(), getSize()}); }

  /// Registers all procedures, or none, in place of those of the last call. The code must be final: behind ready(), if
  /// it grows by itself. `name` is that of the procedure at the first byte, if procedure() has said none.
  ///
  /// Errors: invalid_argument, with the offset in the generator's code and the reason why the frame is not known there;
  /// those of jitunwind::register_code().
  Status register_code(std::string_view name = {}, Reading reading = Reading::noted);
  /// The registered procedures.
  RegistrationBatch& registrations() noexcept { return registrations_; }

  /// Ends the registrations, then calls Xbyak::CodeGenerator::reset().
  void reset() {
    (void)registrations_.cancel();
    spans_.clear();
    procedures_.clear();
    Base::reset();
  }
  /// Says that the bytes from `begin` to here may concern the frame. They are instructions.
  void note(std::size_t begin) {
    const bool starts_procedure = !procedures_.empty() && procedures_.back().begin == begin;
    if (!starts_procedure && !spans_.empty() && spans_.back().end == begin && spans_.back().begin != begin)
      spans_.back().end = getSize();
    else
      spans_.push_back({begin, getSize()});
  }

  /// Writes what the function of Xbyak::CodeGenerator writes, and notes it.
  JITUNWIND_NOTED(pop);
  JITUNWIND_NOTED(pushf);
  JITUNWIND_NOTED(pushfq);
  JITUNWIND_NOTED(popf);
  JITUNWIND_NOTED(popfq);
  JITUNWIND_NOTED(leave);
  JITUNWIND_NOTED(jmp);
  JITUNWIND_NOTED(ja);
  JITUNWIND_NOTED(jae);
  JITUNWIND_NOTED(jb);
  JITUNWIND_NOTED(jbe);
  JITUNWIND_NOTED(jc);
  JITUNWIND_NOTED(je);
  JITUNWIND_NOTED(jg);
  JITUNWIND_NOTED(jge);
  JITUNWIND_NOTED(jl);
  JITUNWIND_NOTED(jle);
  JITUNWIND_NOTED(jna);
  JITUNWIND_NOTED(jnae);
  JITUNWIND_NOTED(jnb);
  JITUNWIND_NOTED(jnbe);
  JITUNWIND_NOTED(jnc);
  JITUNWIND_NOTED(jne);
  JITUNWIND_NOTED(jng);
  JITUNWIND_NOTED(jnge);
  JITUNWIND_NOTED(jnl);
  JITUNWIND_NOTED(jnle);
  JITUNWIND_NOTED(jno);
  JITUNWIND_NOTED(jnp);
  JITUNWIND_NOTED(jns);
  JITUNWIND_NOTED(jnz);
  JITUNWIND_NOTED(jo);
  JITUNWIND_NOTED(jp);
  JITUNWIND_NOTED(jpe);
  JITUNWIND_NOTED(jpo);
  JITUNWIND_NOTED(js);
  JITUNWIND_NOTED(jz);
  JITUNWIND_NOTED(jecxz);
  JITUNWIND_NOTED(jrcxz);
  JITUNWIND_NOTED(loop);
  JITUNWIND_NOTED(loope);
  JITUNWIND_NOTED(loopne);
  JITUNWIND_NOTED(ud2);
  JITUNWIND_NOTED(int3);
  JITUNWIND_NOTED(hlt);
  void push(const Operand& op) {
    noted([&] { Base::push(op); });
  }
  void push(const Xbyak::AddressFrame& size, uint32_t value) {
    noted([&] { Base::push(size, value); });
  }
  void push(uint32_t value) {
    noted([&] { Base::push(value); });
  }
  void push(const Xbyak::Segment& segment) {
    noted([&] { Base::push(segment); });
  }
  void ret(int popped = 0) {
    noted([&] { Base::ret(popped); });
  }
  void retf(int popped = 0) {
    noted([&] { Base::retf(popped); });
  }
  void enter(uint16_t bytes, uint8_t level) {
    noted([&] { Base::enter(bytes, level); });
  }

  /// APX has these, and nothing here reads them.
  void push2(const Xbyak::Reg64&, const Xbyak::Reg64&) = delete;
  void push2p(const Xbyak::Reg64&, const Xbyak::Reg64&) = delete;
  void pop2(const Xbyak::Reg64&, const Xbyak::Reg64&) = delete;
  void pop2p(const Xbyak::Reg64&, const Xbyak::Reg64&) = delete;

  using Base::add;
  using Base::and_;
  using Base::mov;
  using Base::sub;
  /// Writes what the function of Xbyak::CodeGenerator writes, and notes it if it names rsp or rbp, or a slot.
  void add(const Operand& to, uint32_t value) {
    noted_if(is_frame(to), [&] { Base::add(to, value); });
  }
  void add(const Operand& to, const Operand& from) {
    noted_if(is_frame(to), [&] { Base::add(to, from); });
  }
  void sub(const Operand& to, uint32_t value) {
    noted_if(is_frame(to), [&] { Base::sub(to, value); });
  }
  void sub(const Operand& to, const Operand& from) {
    noted_if(is_frame(to), [&] { Base::sub(to, from); });
  }
  void and_(const Operand& to, uint32_t value) {
    noted_if(is_frame(to), [&] { Base::and_(to, value); });
  }
  void and_(const Operand& to, const Operand& from) {
    noted_if(is_frame(to), [&] { Base::and_(to, from); });
  }
  void mov(const Operand& to, const Operand& from) {
    noted_if(is_frame(to) || is_slot(to, from) || is_slot(from, to), [&] { Base::mov(to, from); });
  }
  void mov(const Operand& to, uint64_t value) {
    noted_if(is_frame(to), [&] { Base::mov(to, value); });
  }
  void lea(const Xbyak::Reg& to, const Xbyak::Address& from) {
    noted_if(is_frame(to), [&] { Base::lea(to, from); });
  }
  void xchg(const Operand& a, const Operand& b) {
    noted_if(is_frame(a) || is_frame(b), [&] { Base::xchg(a, b); });
  }
#ifndef XBYAK_NO_OP_NAMES
  /// Other names of and_().
  void and (const Operand& to, uint32_t value) { and_(to, value); }
  void and (const Operand& to, const Operand& from) { and_(to, from); }
#endif

 private:
  struct Procedure {
    std::size_t begin;
    std::string name;
  };

  template <class Write>
  void noted(const Write& write) {
    const std::size_t begin = getSize();
    write();
    note(begin);
  }
  template <class Write>
  void noted_if(bool is_wanted, const Write& write) {
    is_wanted ? noted(write) : write();
  }
  /// rsp or rbp, of any width.
  static bool is_frame(const Operand& op) {
    return op.isREG() && (op.getIdx() == Operand::RSP || op.getIdx() == Operand::RBP);
  }
  /// Memory from rsp or rbp on that a preserved register is saved in.
  static bool is_slot(const Operand& memory, const Operand& reg) {
    if (!memory.isMEM() || !reg.isREG(64)) return false;
    const int n = reg.getIdx();
    if (n != Operand::RBX && n != Operand::RBP && n < Operand::R12) return false;
    const Xbyak::Reg base = memory.getAddress().getRegExp().getBase();
    return base.isREG(64) && is_frame(base);
  }
  std::vector<WrittenSpan> spans_;
  std::vector<Procedure> procedures_;
  RegistrationBatch registrations_;
};

#undef JITUNWIND_NOTED

/// Registers the bytes from `begin` to `end` of a generator's code as one procedure. Errors: those of
/// CodeGenerator::register_code().
inline Result<Registration> register_procedure(const Xbyak::CodeGenerator& code, WrittenSpan procedure,
                                               std::span<const WrittenSpan> noted, std::string_view name,
                                               Reading reading) {
  const auto in_code = [&](Error e) { return e.at += procedure.begin, e; };
  const auto* const bytes = reinterpret_cast<const std::byte*>(code.getCode()) + procedure.begin;
  const std::size_t size = procedure.end - procedure.begin;
  FrameReader reader({bytes, size});
  x86_64::Marks marks;
  std::vector<WrittenSpan> spans(noted.begin(), noted.end());
  for (WrittenSpan& span : spans) span = {span.begin - procedure.begin, span.end - procedure.begin};
  if (Status s = reading == Reading::every ? reader.read_all(spans) : reader.read(spans); !s) return in_code(s.error());
  if (Status s = reader.record(marks); !s) return in_code(s.error());
  const Code place{.start = reinterpret_cast<std::uintptr_t>(bytes), .size = reader.end(), .name = name};
  return jitunwind::register_code(marks, place);
}

/// Registers the code of any other generator as one procedure, with Reading::every; jumps through tables are refused.
/// The registration must end before the generator is reset or destroyed. Errors: those of
/// CodeGenerator::register_code().
inline Result<Registration> register_code(const Xbyak::CodeGenerator& code, std::string_view name = {}) {
  return register_procedure(code, {0, code.getSize()}, {}, name, Reading::every);
}

inline Status CodeGenerator::register_code(std::string_view name, Reading reading) {
  if (hasUndefinedLabel()) return Error{ErrorCode::invalid_argument, 0, "a label is bound nowhere"};
  if (isAutoGrow() && !isCalledCalcJmpAddress())
    return Error{ErrorCode::invalid_argument, 0, "code that grows by itself is not final before ready()"};
  if (Status s = registrations_.cancel(); !s) return s;
  std::vector<Procedure> procedures = procedures_;
  if (procedures.empty() || procedures[0].begin != 0) procedures.insert(procedures.begin(), {0, std::string(name)});
  RegistrationBatch registered;
  std::size_t next = 0;
  for (std::size_t n = 0; n < procedures.size(); ++n) {
    const std::size_t end = n + 1 < procedures.size() ? procedures[n + 1].begin : getSize();
    const std::size_t first = next;
    while (next < spans_.size() && spans_[next].end <= end) ++next;
    auto one = register_procedure(*this, {procedures[n].begin, end}, std::span(spans_).subspan(first, next - first),
                                  procedures[n].name, reading);
    if (!one) return one.error();
    if (Status s = registered.add(std::move(*one)); !s) return s;
  }
  registrations_ = std::move(registered);
  return Done{};
}

}  // namespace jitunwind::xbyak
#pragma GCC visibility pop
