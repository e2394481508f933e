#include "jitunwind/adapters/testing/stepped_child_p.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>

namespace jitunwind::stepping {
namespace {

/// Parent and child alternate strictly; on one CPU a step costs half as much as on two.
cpu_set_t pin_to_one_cpu() {
  cpu_set_t before, one;
  CPU_ZERO(&before);
  sched_getaffinity(0, sizeof before, &before);
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(std::max(sched_getcpu(), 0)), &one);
  sched_setaffinity(0, sizeof one, &one);
  return before;
}

pid_t start(const std::function<int()>& body) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (pid != 0) return pid;
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0 || getppid() != parent) _exit(127);
  raise(SIGSTOP);
  _exit(body());
}

}  // namespace

std::size_t ChildMemory::read_child(Addr at, std::span<std::byte> into) const noexcept {
  iovec local{into.data(), into.size()};
  iovec remote{reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)), into.size()};
  const ssize_t n = process_vm_readv(pid_, &local, 1, &remote, 1, 0);
  return n < 0 ? 0 : static_cast<std::size_t>(n);
}

std::size_t ChildMemory::read(Addr at, std::span<std::byte> into, MemoryWindow&) const noexcept {
  if (at >= kept_at_ && at - kept_at_ <= kept_size_ && into.size() <= kept_size_ - (at - kept_at_)) {
    std::memcpy(into.data(), kept_.data() + (at - kept_at_), into.size());
    return into.size();
  }
  return read_child(at, into);
}

void ChildMemory::reload_around(Addr sp) noexcept {
  kept_at_ = sp - 256;
  kept_size_ = read_child(kept_at_, kept_);
}

SteppedChild::SteppedChild(const std::function<int()>& body) : pid_(-1), memory_(-1), affinity_(pin_to_one_cpu()) {
  try {
    pid_ = start(body);
  } catch (...) {
    sched_setaffinity(0, sizeof affinity_, &affinity_);
    throw;
  }
  memory_ = ChildMemory(pid_);
  int status = 0;
  if (waitpid(pid_, &status, 0) != pid_ || !WIFSTOPPED(status)) {
    sched_setaffinity(0, sizeof affinity_, &affinity_);
    throw std::runtime_error("the child cannot be traced");
  }
  ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_EXITKILL);
}

SteppedChild::~SteppedChild() {
  if (state_ == State::stopped) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  sched_setaffinity(0, sizeof affinity_, &affinity_);
}

SteppedChild::State SteppedChild::end(State state, std::string why) {
  why_ = std::move(why);
  return state_ = state;
}

SteppedChild::State SteppedChild::step() {
  signalled_ = false;
  for (int signal = 0; state_ == State::stopped;) {
    if (ptrace(PTRACE_SINGLESTEP, pid_, nullptr, signal) != 0)
      return end(State::killed, std::string("PTRACE_SINGLESTEP: ") + std::strerror(errno));
    int status = 0;
    if (waitpid(pid_, &status, 0) != pid_) return end(State::killed, std::string("waitpid: ") + std::strerror(errno));
    if (WIFSIGNALED(status)) return end(State::killed, std::string("killed by ") + strsignal(WTERMSIG(status)));
    if (WIFEXITED(status)) {
      exit_status_ = WEXITSTATUS(status);
      return end(State::exited, "");
    }
    signal = WSTOPSIG(status);
    if (signal == SIGTRAP) break;
    signalled_ = true;
  }
  return state_;
}

void SteppedChild::read_registers(const Arch& arch, RegisterFile& out) const {
  user_regs_struct block;
  iovec where{&block, sizeof block};
  if (ptrace(PTRACE_GETREGSET, pid_, NT_PRSTATUS, &where) != 0) throw std::runtime_error("PTRACE_GETREGSET");
  out.clear();
  for (const RegisterInfo& reg : arch.registers) {
    if (reg.column < 0 || reg.prstatus < 0) continue;
    std::uint64_t value = 0;
    std::memcpy(&value, reinterpret_cast<const std::byte*>(&block) + reg.prstatus, arch.word_size);
    out.set_from_register(reg.column, value, reg.dwarf);
  }
}

VectorRegisters SteppedChild::read_vector_registers() const {
  user_fpregs_struct block;
  if (ptrace(PTRACE_GETFPREGS, pid_, nullptr, &block) != 0) throw std::runtime_error("PTRACE_GETFPREGS");
  VectorRegisters out;
  static_assert(sizeof out == sizeof block.xmm_space);
  std::memcpy(&out, block.xmm_space, sizeof out);
  return out;
}

}  // namespace jitunwind::stepping
