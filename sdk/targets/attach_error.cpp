#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "jitunwind/sdk/targets/target_impl_p.h"
#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind {
namespace {

using Reason = TargetError::Reason;

std::string process_text(const ProcessFolder& folder, const ProcessStatus& status) {
  return "Process " + std::to_string(folder.process()) + " (" + status.name + ")";
}

std::string name_of_process(pid_t process) {
  const ProcessFolder folder(process);
  const auto status = folder.is_open() ? folder.status() : std::nullopt;
  return status ? " (" + status->name + ")" : "";
}

/// Reads Yama's setting (Documentation/admin-guide/LSM/Yama.rst); 0 where the kernel has no Yama.
int ptrace_scope() {
  const ReadableFile file("/proc/sys/kernel/yama/ptrace_scope");
  char digit = '0';
  return file.is_open() && file.read(&digit, 1) == 1 && digit >= '0' && digit <= '3' ? digit - '0' : 0;
}

/// Names the CPU as its table does. An ABI whose pointer size differs from the table's has the same ELF machine.
std::string machine_name(unsigned machine, bool is_64) {
  const Arch* arch = find_arch(machine, false);
  if (!arch) arch = find_arch(machine, true);
  if (!arch) return "the machine with the ELF number " + std::to_string(machine);
  const bool is_the_tables = (arch->word_size == 8) == is_64;
  return arch->name + std::string(is_the_tables ? ""
                                  : is_64       ? " with pointers of 64 bits"
                                                : " with pointers of 32 bits");
}

std::string bits_text(const Arch& arch) { return std::to_string(8 * arch.word_size) + " bits"; }

}  // namespace

TargetError no_such_process(pid_t process) {
  return {Reason::no_process, "No process has the number " + std::to_string(process) + ".",
          "It may have ended; in another PID namespace it has another number."};
}

std::optional<TargetError> why_not_attached(const ProcessFolder& folder, const ProcessStatus& status) {
  const std::string process = process_text(folder, status);
  const bool has_ended = status.state == 'Z' || status.state == 'X';
  if (has_ended || (!status.has_memory && !status.is_of_kernel))
    return TargetError{Reason::zombie,
                       process + (has_ended ? " has ended and waits for its parent to ask for its status."
                                            : " is about to end: the kernel has taken its memory."),
                       "Its stacks are gone; a core file has those of the next time (ulimit -c unlimited)."};
  if (status.is_of_kernel)
    return TargetError{Reason::kernel_thread, process + " is a thread of the kernel's.",
                       "The kernel shows its stack in /proc/" + std::to_string(folder.process()) + "/stack, to root."};
  if (status.group == ::getpid())
    return TargetError{Reason::this_process, process + " is this process, which cannot trace itself.",
                       "walk_here() walks the calling thread, walk_thread() another one."};
  if (status.tracer != 0)
    return TargetError{Reason::traced_by_another,
                       process + " is traced by process " + std::to_string(status.tracer) +
                           name_of_process(status.tracer) + ", and has one tracer at a time.",
                       "End that one, or have it detach."};
  return std::nullopt;
}

TargetError refused_attach(const ProcessFolder& folder, const ProcessStatus& status, int failure) {
  if (failure == ESRCH) return no_such_process(folder.process());
  // Since the first look the process may have begun to end, or it or one of its threads may have got a tracer.
  if (auto now = folder.status()) {
    for (const pid_t thread : folder.threads())
      if (const auto status = ProcessFolder(thread).status(); status && status->tracer != 0)
        now->tracer = status->tracer;
    if (auto reason = why_not_attached(folder, *now)) return std::move(*reason);
  }
  const std::string process = process_text(folder, status);
  TargetError error{Reason::no_permission, process + " may not be traced by this one: " + std::strerror(failure) + ".",
                    ""};
  const uid_t user = ::geteuid();
  if (user != 0 && status.user != user) {
    error.what =
        process + " is user " + std::to_string(status.user) + "'s, this one user " + std::to_string(user) + "'s.";
    error.remedy = "Run this as that user, or as root (sudo).";
    return error;
  }
  const int scope = ptrace_scope();
  if (user == 0 && scope < 3) {
    error.remedy =
        "This one is root's already, and has no CAP_SYS_PTRACE over it: a container may have taken that (docker run "
        "--cap-add=SYS_PTRACE), the process may be outside of this one's user namespace, or a security module forbids "
        "it.";
    return error;
  }
  switch (scope) {
    case 0:
      error.remedy =
          "Root may trace it, unless a container or a security module forbids ptrace (docker run "
          "--cap-add=SYS_PTRACE).";
      return error;
    case 1:
      error.remedy =
          "Yama lets only ancestors trace (kernel.yama.ptrace_scope=1): run this as root, or set it to 0 with sysctl, "
          "or have "
          "the process call prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY).";
      return error;
    case 2:
      error.remedy = "Yama lets only root trace (kernel.yama.ptrace_scope=2): run this as root.";
      return error;
    default:
      error.remedy = "Yama forbids ptrace until the next boot (kernel.yama.ptrace_scope=3): take a core file instead.";
      return error;
  }
}

TargetError other_architecture(const std::string& whose, unsigned machine, bool is_64) {
  return {
      Reason::other_architecture, whose + " is of another architecture: " + machine_name(machine, is_64) + ".",
      "A live process is walked by a program of its own architecture; gcore makes a core file of it, which is walked "
      "anywhere."};
}

TargetError no_table(const std::string& whose, unsigned machine, bool is_64) {
  TargetError error = other_architecture(whose, machine, is_64);
  error.remedy = "Known are";
  for (const Arch* arch : all_arches())
    error.remedy += std::string(arch == all_arches().front() ? " " : ", ") + arch->name + " (" + bits_text(*arch) + ")";
  error.remedy += ".";
  return error;
}

}  // namespace jitunwind
