// Asks a FrameHandler about each frame that an exception passes, checks the answer, and lands.
#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "jitunwind/builders/frame_handler.h"
#include "jitunwind/builders/frame_personality_internal.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/rows/apply_row.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"
#include "jitunwind/unwind_core/walk/context.h"
#include "jitunwind/unwind_core/walk/resume.h"

namespace jitunwind {
namespace {

/// Reports the frame, and terminates.
[[noreturn]] void give_up(const PassedFrame& frame, const std::string& what) {
  std::array<char, 200> text;
  ProcedureName name;
  const bool is_named = find_local_name(CodeAddress::interrupted(frame.start()), text, name);
  std::array<char, 1024> line;
  std::snprintf(line.data(), line.size(), "jitunwind: frame handler of %s+0x%" PRIx64 " (pc 0x%" PRIx64 "): %s\n",
                is_named ? text.data() : "a procedure without name", frame.call_offset(), frame.pc(), what.c_str());
  write_to_standard_error(line.data());
  std::terminate();
}

std::string hex(std::uint64_t value) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%" PRIx64, value);
  return text.data();
}

// Itanium C++ ABI, 2.2: __cxa_exception precedes the unwinder's header, and its first member is the type. An exception
// that std::rethrow_exception() threw again (class .. 1) has the address of the original object instead: GNU's library
// has it in the place of the type, LLVM's before the header.
constexpr std::size_t k_type_before_header = 80;
constexpr std::uint64_t k_gnu = 0x474e5543432b2b00;   // "GNUCC++"
constexpr std::uint64_t k_llvm = 0x434c4e47432b2b00;  // "CLNGC++"
constexpr std::uint64_t k_dependent = 1;

template <class Pointer>
Pointer pointer_before(const _Unwind_Exception* header, std::size_t distance) noexcept {
  Pointer out;
  std::memcpy(&out, reinterpret_cast<const char*>(header) - distance, sizeof out);
  return out;
}

bool is_cxx(const _Unwind_Exception& header) noexcept {
  const std::uint64_t library = header.exception_class & ~k_dependent;
  return library == k_gnu || library == k_llvm;
}

}  // namespace

bool PassedFrame::has_reg(RegNum dwarf) noexcept {
  const RegisterInfo* const info = local_space().arch.by_dwarf(dwarf);
  return info != nullptr && info->preserved && dwarf != local_space().arch.sp && info->reg_class == RegClass::general;
}

Addr PassedFrame::sp() const noexcept { return _Unwind_GetCFA(context_); }

std::uint64_t PassedFrame::reg(RegNum dwarf) const {
  if (!has_reg(dwarf)) give_up(*this, "asks for register " + std::to_string(dwarf) + ", which calls do not preserve");
  return _Unwind_GetGR(context_, dwarf);
}

void* PassedFrame::thrown_object() const noexcept {
  if (!is_cxx(*exception_)) return nullptr;
  if ((exception_->exception_class & k_dependent) == 0) return exception_ + 1;
  const bool gnu = exception_->exception_class == (k_gnu | k_dependent);
  return pointer_before<void*>(exception_, gnu ? k_type_before_header : k_type_before_header + sizeof(void*));
}

const std::type_info* PassedFrame::thrown_type() const noexcept {
  const void* const object = thrown_object();
  if (object == nullptr) return nullptr;
  // The header of the original exception.
  return pointer_before<const std::type_info*>(static_cast<const _Unwind_Exception*>(object) - 1, k_type_before_header);
}

/// One call of one handler.
class FramePersonality {
 public:
  FramePersonality(_Unwind_Action actions, _Unwind_Exception* exception, _Unwind_Context* context) noexcept
      : actions_(actions), context_(context) {
    int before_instruction = 0;
    frame_.phase_ = (actions & _UA_SEARCH_PHASE) != 0 ? PassedFrame::Phase::search : PassedFrame::Phase::cleanup;
    frame_.forced_ = (actions & _UA_FORCE_UNWIND) != 0;
    frame_.pc_ = _Unwind_GetIPInfo(context, &before_instruction);
    frame_.start_ = _Unwind_GetRegionStart(context);
    const auto at =
        before_instruction != 0 ? CodeAddress::interrupted(frame_.pc_) : CodeAddress::returned_to(frame_.pc_);
    frame_.call_offset_ = at.lookup() - frame_.start_;
    frame_.exception_ = exception;
    frame_.context_ = context;
  }

  _Unwind_Reason_Code run(const FrameHandler& handler) {
    using Kind = FrameDecision::Kind;
    FrameDecision decision = ask(handler);
    if (decision.kind_ != Kind::pass) check(decision);
    watch(decision);
    if ((actions_ & _UA_SEARCH_PHASE) != 0)
      return decision.kind_ == Kind::catches ? _URC_HANDLER_FOUND : _URC_CONTINUE_UNWIND;
    const bool caught_in_search = (actions_ & _UA_HANDLER_FRAME) != 0;
    if (caught_in_search && decision.kind_ != Kind::catches) give_up(frame_, "passes what it caught in the search");
    if (decision.kind_ == Kind::catches && frame_.forced_) give_up(frame_, "catches what is forced");
    if (decision.kind_ == Kind::catches && !caught_in_search) give_up(frame_, "catches what it passed in the search");
    if (decision.kind_ == Kind::pass) return _URC_CONTINUE_UNWIND;
    return land(std::move(decision));
  }

 private:
  FrameDecision ask(const FrameHandler& handler) const {
    try {
      return handler(frame_);
    } catch (const std::exception& thrown) {
      give_up(frame_, std::string("threw ") + thrown.what());
    } catch (...) {
      give_up(frame_, "threw");
    }
  }

  AddrRange procedure() const noexcept {
    const ProcedureHold hold(frame_.start_ + frame_.call_offset_);
    return hold.info() ? code_of(*hold.info()) : AddrRange{};
  }

  void check(const FrameDecision& decision) const {
    const Arch& arch = local_space().arch;
    const AddrRange range = procedure();
    if (!range.contains(decision.pad_) || (decision.pad_ - range.begin) % arch.unit != 0)
      give_up(frame_, "goes on at " + hex(decision.pad_) + ", which is no instruction of the procedure");
    for (const FrameDecision::Value& value : decision.registers_)
      if (!PassedFrame::has_reg(value.reg) && std::ranges::count(arch.exception_registers, value.reg) == 0)
        give_up(frame_, "sets register " + std::to_string(value.reg) + ", which calls do not preserve");
    if (!decision.sp_) return;
    const Addr lowest = frame_.sp();
    const Addr highest = released_sp();
    if (*decision.sp_ < lowest || *decision.sp_ > highest || *decision.sp_ % arch.sp_granularity != 0)
      give_up(frame_, "goes on with SP " + hex(*decision.sp_) + ", which is not in the frame, " + hex(lowest) + " to " +
                          hex(highest) + ", or not aligned");
  }

  /// Preserved registers and SP during the call.
  RegisterFile registers() const {
    const Arch& arch = local_space().arch;
    RegisterFile out;
    for (const RegisterInfo& info : arch.registers)
      if (PassedFrame::has_reg(info.dwarf)) out.set(info.column, _Unwind_GetGR(context_, info.dwarf));
    out.set(arch.column(arch.sp), frame_.sp());
    return out;
  }

  /// SP after the frame is released, as at the procedure's first instruction.
  Addr released_sp() const {
    const AddressSpace& space = local_space();
    MemoryWindow window;
    Lookup lookup(space, CodeAddress::interrupted(frame_.start_ + frame_.call_offset_), window);
    FrameRow row;
    Caller caller;
    const Found found = space.find_row(lookup, row);
    if (!found || !*found) give_up(frame_, "goes on with another SP in a frame that has no row");
    if (!apply_row(row, registers(), space.arch, space.memory, window, caller))
      give_up(frame_, "goes on with another SP in a frame whose end cannot be found");
    return caller.cfa - static_cast<Addr>(space.arch.entry_cfa);
  }

  /// A cleanup ends in _Unwind_Resume(), which asks about the same frame at its own call. A handler can easily clean up
  /// there for ever, by mistake. Every exception is searched for before it is cleaned up for.
  void watch(const FrameDecision& decision) const {
    struct Cleanup {
      const void* exception;
      Addr sp;
      Addr pc;
      bool operator==(const Cleanup&) const = default;
    };
    static thread_local constinit Cleanup last{};
    const bool cleans_up = decision.kind_ == FrameDecision::Kind::cleans_up;
    Cleanup now{};
    if (cleans_up && frame_.phase_ == PassedFrame::Phase::cleanup) now = {frame_.exception_, frame_.sp(), frame_.pc_};
    if (now.exception != nullptr && now == last) give_up(frame_, "cleans up again at the call of _Unwind_Resume()");
    last = now;
  }

  /// The result of __cxa_begin_catch(): the last member before the header.
  void set_caught_object() const noexcept {
    void* const object = frame_.thrown_object();
    if (object != nullptr)
      std::memcpy(reinterpret_cast<char*>(frame_.exception_) - sizeof object, &object, sizeof object);
  }

  _Unwind_Reason_Code land(FrameDecision decision) const {
    const Arch& arch = local_space().arch;
    const auto exception = reinterpret_cast<std::uintptr_t>(frame_.exception_);
    if (decision.kind_ == FrameDecision::Kind::catches) set_caught_object();
    if (!decision.sp_) {
      _Unwind_SetGR(context_, arch.exception_registers[0], exception);
      _Unwind_SetGR(context_, arch.exception_registers[1], 0);
      for (const FrameDecision::Value& value : decision.registers_)
        _Unwind_SetGR(context_, value.reg, static_cast<_Unwind_Word>(value.value));
      _Unwind_SetIP(context_, static_cast<_Unwind_Ptr>(decision.pad_));
      return _URC_INSTALL_CONTEXT;
    }
    // Unwinders give a frame the SP that it had.
    RegisterFile out = registers();
    out.set(arch.column(arch.exception_registers[0]), exception);
    out.set(arch.column(arch.exception_registers[1]), 0);
    for (const FrameDecision::Value& value : decision.registers_) out.set(arch.column(value.reg), value.value);
    out.set(arch.column(arch.sp), *decision.sp_);
    out.set(arch.column(arch.pc), decision.pad_);
    alignas(16) std::byte context[k_registers_size]{};
    registers_to_ucontext(out, arch, context);
    // No object here is destroyed any more.
    decision = FrameDecision::pass();  // {} would keep the capacity of its registers
    const Error error = go_on_with(local_space(), context, frame_.sp());
    give_up(frame_, std::string("cannot go on: ") + error.what);
  }

  _Unwind_Action actions_;
  _Unwind_Context* context_;
  PassedFrame frame_;
};

}  // namespace jitunwind

_Unwind_Reason_Code jitunwind_frame_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class,
                                                _Unwind_Exception* exception, _Unwind_Context* context) {
  const auto* const handler = reinterpret_cast<const jitunwind::FrameHandler*>(
      reinterpret_cast<std::uintptr_t>(_Unwind_GetLanguageSpecificData(context)));
  if (version != 1 || handler == nullptr || !*handler) return _URC_CONTINUE_UNWIND;
  return jitunwind::FramePersonality(actions, exception, context).run(*handler);
}
