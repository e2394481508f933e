#include "jitunwind/sdk/jitstack/check/check_output_p.h"

#include <elf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "jitunwind/unwind_core/arch/instruction.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"
#include "jitunwind/unwind_core/memory/process.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/rows/apply_row.h"
#include "jitunwind/unwind_core/walk/context.h"

namespace jitunwind::jitstack {
namespace {

using Effect = MachineInstruction::Effect;
using RunResult = ForcedRun::Result;

struct PathStep {
  Addr at = 0;
  MachineInstruction instruction{};
};

/// Finds paths with few calls, because a call may not return, and few instructions.
class PathSearch {
 public:
  PathSearch(const Arch& arch, const AddrRange& code, std::span<const std::byte> bytes)
      : arch_(arch), code_(code), bytes_(bytes) {}

  /// Appends the steps from `start` to the one before `goal`, at least one. False: no direct branches lead there.
  bool append(Addr start, Addr goal, std::vector<PathStep>& path) {
    reached_.clear();
    waiting_.clear();
    pass(start, 0);
    while (!waiting_.empty() && !reached_.contains(goal)) {
      const auto [cost, at] = *waiting_.begin();
      waiting_.erase(waiting_.begin());
      pass(at, cost);
    }
    if (!reached_.contains(goal)) return false;
    const std::size_t before = path.size();
    for (Addr at = goal; at != start || path.size() == before;) {
      at = reached_[at];
      path.push_back({at, read(at)});
    }
    std::ranges::reverse(path.begin() + static_cast<std::ptrdiff_t>(before), path.end());
    return true;
  }

 private:
  static constexpr std::uint64_t k_call = 1 << 20;  // as many steps are better than one more call

  void pass(Addr at, std::uint64_t cost) {
    const MachineInstruction i = read(at);
    const bool is_call = i.effect == Effect::call;
    if (i.goes_on()) reach(at + i.length, at, cost + (is_call ? k_call : 1));
    if (i.effect == Effect::branch || i.effect == Effect::jump) reach(i.target, at, cost + 1);
  }
  void reach(Addr at, Addr from, std::uint64_t cost) {
    if (code_.contains(at) && reached_.emplace(at, from).second) waiting_.emplace(cost, at);
  }
  MachineInstruction read(Addr at) const {
    return arch_.read_instruction(bytes_.subspan(static_cast<std::size_t>(at - code_.begin)), at);
  }

  const Arch& arch_;
  const AddrRange code_;
  const std::span<const std::byte> bytes_;
  std::map<Addr, Addr> reached_;  // from where
  std::set<std::pair<std::uint64_t, Addr>> waiting_;
};

/// The general registers of a stopped child, as the kernel has them.
class ChildRegisters {
 public:
  ChildRegisters(const Arch& arch, pid_t child) : arch_(arch), child_(child) { read(); }
  void read() {
    iovec where{block_.data(), block_.size()};
    is_valid_ = ::ptrace(PTRACE_GETREGSET, child_, NT_PRSTATUS, &where) == 0;
    size_ = where.iov_len;
  }
  bool write() {
    iovec where{block_.data(), size_};
    return is_valid_ && ::ptrace(PTRACE_SETREGSET, child_, NT_PRSTATUS, &where) == 0;
  }
  Addr get(RegNum reg) const {
    Addr value = 0;
    if (const RegisterInfo* const info = placed(reg)) std::memcpy(&value, &block_[place(*info)], arch_.word_size);
    return value;
  }
  void set(RegNum reg, Addr value) {
    if (const RegisterInfo* const info = placed(reg)) std::memcpy(&block_[place(*info)], &value, arch_.word_size);
  }
  RegisterFile file() const { return *registers_from_prstatus(block_, arch_); }  // the block has room for all
  bool is_valid() const { return is_valid_; }

 private:
  static std::size_t place(const RegisterInfo& info) { return static_cast<std::size_t>(info.prstatus); }
  const RegisterInfo* placed(RegNum reg) const {
    const RegisterInfo* const info = arch_.by_dwarf(reg);
    const bool is_there = info && info->reg_class == RegClass::general && info->column >= 0 && info->prstatus >= 0 &&
                          place(*info) + arch_.word_size <= block_.size();
    return is_there ? info : nullptr;
  }

  const Arch& arch_;
  pid_t child_;
  alignas(8) std::array<std::byte, 1024> block_{};
  std::size_t size_ = 0;
  bool is_valid_ = false;
};

/// Runs in the child, which can make no system call any more.
void give_up_system_calls() {
  sock_filter refuse = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1);
  const sock_fprog filter{1, &refuse};
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0 || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) ::_exit(1);
  ::raise(SIGSTOP);
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) ::_exit(1);
  __builtin_trap();
}

class PathRun {
 public:
  PathRun(const Arch& arch, const AddrRange& code, std::span<const std::byte> bytes) : arch_(arch), code_(code) {
    const std::size_t before = static_cast<std::size_t>(code.begin - page_of(code.begin));
    text_ = Block::whole(before + bytes.size() + k_page_size);
    stack_ = Block::whole(k_stack);
    if (text_.empty() || stack_.empty()) return;
    std::ranges::copy(bytes, text_.bytes().begin() + static_cast<std::ptrdiff_t>(before));
    moved_ = reinterpret_cast<std::uintptr_t>(text_.bytes().data()) + before - code.begin;
    if (::mprotect(text_.bytes().data(), text_.bytes().size(), PROT_READ | PROT_EXEC) != 0) return;
    child_ = ::fork();
    if (child_ == 0) give_up_system_calls();
  }
  ~PathRun() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  PathRun(const PathRun&) = delete;
  PathRun& operator=(const PathRun&) = delete;

  ForcedRun run(const std::vector<PathStep>& path, Addr goal, const FrameRow& row) {
    if (child_ <= 0 || !is_stopped_by(SIGSTOP) || ::ptrace(PTRACE_CONT, child_, nullptr, 0) != 0 ||
        !is_stopped_by(SIGILL) || !enter())
      return {RunResult::not_run, "no child can be traced here"};
    for (std::size_t i = 0; i < path.size(); ++i)
      if (!step(path[i], i + 1 < path.size() ? path[i + 1].at : goal))
        return {RunResult::not_run, "the path cannot be executed"};
    return judge(row);
  }

 private:
  static constexpr std::size_t k_stack = std::size_t{32} << 20;
  static constexpr int k_most_steps = 4096;  // of one instruction: those that repeat

  bool is_stopped_by(int signal) const {
    int status = 0;
    return ::waitpid(child_, &status, 0) == child_ && WIFSTOPPED(status) && WSTOPSIG(status) == signal;
  }

  /// The registers and the stack of a call.
  bool enter() {
    ChildRegisters registers(arch_, child_);
    Addr value = 0x5eed'0000'0000'0000;
    for (const RegisterInfo& reg : arch_.registers) {
      if (reg.reg_class != RegClass::general || reg.dwarf == arch_.pc) continue;
      registers.set(reg.dwarf, reg.preserved ? value += 0x1000 : k_small);
    }
    const Addr top = reinterpret_cast<std::uintptr_t>(stack_.bytes().data()) + k_stack - (k_stack >> 3);
    sp_ = top - static_cast<Addr>(arch_.entry_cfa);
    registers.set(arch_.sp, sp_);
    if (!arch_.ra_in_memory) registers.set(arch_.ra, k_return);
    registers.set(arch_.pc, code_.begin + moved_);
    entry_ = registers.file();
    if (!registers.write()) return false;
    const Addr place = top + static_cast<Addr>(static_cast<std::int64_t>(arch_.entry_ra));
    return !arch_.ra_in_memory || ::ptrace(PTRACE_POKEDATA, child_, pointer_to(place), pointer_to(k_return)) == 0;
  }

  bool step(const PathStep& from, Addr next) {
    const MachineInstruction& i = from.instruction;
    ChildRegisters registers(arch_, child_);
    if (!registers.is_valid()) return false;
    if (i.effect == Effect::call) {
      for (const RegisterInfo& reg : arch_.registers)
        if (reg.reg_class == RegClass::general && !reg.preserved && reg.dwarf != arch_.sp && reg.dwarf != arch_.pc)
          registers.set(reg.dwarf, k_small);
      if (!arch_.ra_in_memory) registers.set(arch_.ra, next + moved_);
    } else {
      const int signal = execute(from.at);
      if (signal == 0) return false;
      registers.read();
      if (signal != SIGTRAP && !skip(i, registers)) return false;
    }
    registers.set(arch_.pc, next + moved_);
    return registers.write();
  }

  /// Passes over an instruction that faulted, because arguments and data are missing. The registers that it would have
  /// changed are changed. Returns false if these are not known.
  bool skip(const MachineInstruction& i, ChildRegisters& registers) const {
    const auto overwrite = [&](RegNum reg) {
      if (reg != k_no_reg) registers.set(reg, k_unknown);
    };
    switch (i.effect) {
      case Effect::none:
      case Effect::store:
        break;
      case Effect::load:
        overwrite(i.reg);
        overwrite(i.second);
        break;
      case Effect::push:
      case Effect::pop:
        if (i.reg != k_no_reg) return false;  // it faults on the stack
        registers.set(arch_.sp,
                      registers.get(arch_.sp) + static_cast<Addr>(i.effect == Effect::push ? -i.amount : i.amount));
        break;
      default:
        return false;
    }
    for (const RegisterInfo& reg : arch_.registers)
      if (reg.reg_class == RegClass::general && reg.preserved && (i.written >> place_of(reg.dwarf) & 1) != 0)
        overwrite(reg.dwarf);
    return i.step == 0;
  }

  /// Returns the signal that ended the instruction, SIGTRAP if it is done; 0: the child is gone.
  int execute(Addr at) {
    for (int step = 0; step < k_most_steps; ++step) {
      int status = 0;
      if (::ptrace(PTRACE_SINGLESTEP, child_, nullptr, 0) != 0 || ::waitpid(child_, &status, 0) != child_ ||
          !WIFSTOPPED(status))
        return 0;
      if (WSTOPSIG(status) != SIGTRAP || ChildRegisters(arch_, child_).get(arch_.pc) != at + moved_)
        return WSTOPSIG(status);
    }
    return SIGTRAP;
  }

  ForcedRun judge(const FrameRow& row) {
    const ProcessMemory memory(child_);
    MemoryWindow window;
    Caller caller;
    const RegisterFile frame = ChildRegisters(arch_, child_).file();
    if (const Status applied = apply_row(row, frame, arch_, memory, window, caller); !applied)
      return {RunResult::wrong, std::string("the row cannot be applied: ") + applied.error().what};
    std::string wrong;
    if (caller.outermost || caller.pc != k_return) wrong += " ra";
    if (caller.cfa != sp_ + static_cast<Addr>(arch_.entry_cfa)) wrong += " cfa";
    for (const RegisterInfo& reg : arch_.registers) {
      if (!reg.preserved || reg.reg_class != RegClass::general || reg.dwarf == arch_.sp || !entry_.known(reg.column))
        continue;
      if (caller.registers.get(reg.column) != entry_.get(reg.column)) wrong += std::string(" ") + reg.name;
    }
    if (wrong.empty()) return {RunResult::right, ""};
    return {RunResult::wrong, "not the caller's:" + wrong};
  }

  static constexpr Addr k_return = 0x5eed'4711, k_unknown = 0x0bad'0bad'0000;
  /// The value of registers that calls do not preserve. Its sum with another register is another value, and a stack
  /// that grows by it has room. No memory is there.
  static constexpr Addr k_small = 0x40;
  const Arch& arch_;
  const AddrRange code_;
  Block text_, stack_;
  Addr moved_ = 0;  // how far the copy is from the original
  Addr sp_ = 0;
  RegisterFile entry_;
  pid_t child_ = -1;
};

}  // namespace

ForcedRun run_to(const Arch& arch, const AddrRange& code, std::span<const std::byte> bytes, std::optional<Addr> cause,
                 Addr at, const FrameRow& row) {
  const Addr first = cause.value_or(at);
  const Arch* const host = host_arch();
  if (!host || host->elf_machine != arch.elf_machine || host->big_endian != arch.big_endian)
    return {RunResult::not_run, "it is code of another CPU"};
  if (!arch.read_instruction || bytes.size() != code.size() || !code.contains(at))
    return {RunResult::not_run, "its instructions cannot be read"};
  PathSearch search(arch, code, bytes);
  std::vector<PathStep> path;
  const bool is_reached = (first == code.begin || search.append(code.begin, first, path)) &&
                          ((!cause && first == at) || search.append(first, at, path));
  if (!is_reached) return {RunResult::not_run, "no direct branches lead there"};
  return PathRun(arch, code, bytes).run(path, at, row);
}

}  // namespace jitunwind::jitstack
