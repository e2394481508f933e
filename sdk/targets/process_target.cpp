#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "jitunwind/sdk/targets/target_impl_p.h"
#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/arch/arch_internal.h"
#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

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

namespace {

/// Returns a thread that still runs if the process's first thread has ended, because the kernel shows no memory of an
/// ended thread. Otherwise returns the process's own number.
pid_t thread_that_lives(pid_t process) {
  const ProcessFolder folder(process);
  for (const pid_t thread : folder.threads())
    if (!folder.has_ended(thread)) return thread;
  return process;
}

}  // namespace

Result<Target, TargetError> Target::Process::make(pid_t process, bool attach, Hold hold) {
  auto made = std::make_unique<Process>(process, attach, hold);
  auto failed = made->begin();
  if (failed && failed->reason == TargetError::Reason::zombie) {
    made = std::make_unique<Process>(thread_that_lives(process), attach, hold);
    failed = made->begin();
  }
  if (failed) return std::move(*failed);
  if (attach && hold == Hold::to_copy) made->let_go();
  return Target(std::move(made));
}

std::optional<TargetError> Target::Process::look() {
  const auto status = folder_.is_open() ? folder_.status() : std::nullopt;
  if (!status) return no_such_process(folder_.process());
  status_ = *status;
  process_ = status->group;
  own_number_ = status->own_number != 0 ? status->own_number : process_;
  return attaches_ && !traced_.is_attached() ? why_not_attached(folder_, *status) : std::nullopt;
}

std::optional<TargetError> Target::Process::stop() {
  if (!attaches_) {
    traced_.take_stopped();
    return std::nullopt;
  }
  if (traced_.is_attached()) return std::nullopt;
  is_overdue_ = false;
  const int failure = traced_.stop_all(longest_ns_);
  return failure == 0 ? std::nullopt : std::optional(refused_attach(folder_, status_, failure));
}

std::optional<TargetError> Target::Process::begin() {
  if (auto failed = look()) return failed;
  if (attaches_)
    if (auto failed = look_ahead()) return failed;
  if (auto failed = stop()) return failed;
  if (auto failed = take_mappings()) return failed;
  take_threads();
  return std::nullopt;
}

/// Ignores files that cannot be read: stop() and take_mappings() report them.
std::optional<TargetError> Target::Process::look_ahead() {
  auto text = folder_.read("maps");
  if (!text || text->empty()) return std::nullopt;
  auto mappings = parse_mappings(*text);
  if (!mappings) return mappings.error();
  maps_ = std::move(*text);
  make_space(std::move(*mappings));
  space_->look_ahead();
  return std::nullopt;
}

void Target::Process::make_space(Mappings mappings) {
  mem_ = folder_.open_memory();
  memory_.emplace(folder_.process(), mem_.number());
  const Arch arch = arch_ == host_arch() ? arch_of_this_machine() : *arch_;
  space_.emplace(arch, *memory_, std::move(mappings), TargetFiles::of_process(folder_));
  space_->set_process("/tmp/perf-" + std::to_string(own_number_) + ".map", status_.file_user);
  if (attaches_) (void)space_->files().root();  // while it is there: it may end when it is let go
}

/// Tries to read the memory file that was opened before. An open /proc/PID/mem shows the memory that the process had
/// when it was opened, and is empty once that memory is gone (proc_pid_mem(5)). The mappings' addresses do not suffice:
/// without randomisation the kernel chooses the same again.
bool Target::Process::runs_what_it_ran() const noexcept {
  const auto& all = space_->mappings().all();
  const auto kernels = std::ranges::find(all, "[vdso]", &Mapping::path);
  if (!mem_.is_open() || kernels == all.end()) return true;
  std::byte byte{};
  return read_at(mem_.number(), &byte, 1, kernels->range.begin) == 1;
}

std::optional<TargetError> Target::Process::take_mappings() {
  auto text = folder_.read("maps");
  if (!text || text->empty()) return refused_attach(folder_, status_, EACCES);
  const bool is_known = space_ && runs_what_it_ran();
  if (is_known && *text == maps_) {
    space_->renew();
    return std::nullopt;
  }
  const Arch* const arch_before = arch_;
  auto mappings = parse_mappings(*text);
  if (!mappings) return mappings.error();
  maps_ = std::move(*text);
  if (is_known && arch_ == arch_before)
    space_->renew(std::move(*mappings));
  else
    make_space(std::move(*mappings));
  return std::nullopt;
}

/// The program's CPU must be one that this machine's kernel runs; otherwise there are no registers to read.
Result<Mappings, TargetError> Target::Process::parse_mappings(const std::string& text) {
  if (const auto head = folder_.read("exe", sizeof(Elf64_Ehdr)))
    if (const auto image = ElfImage::parse(std::as_bytes(std::span(*head)))) {
      const Arch* const host = host_arch();
      const Arch* const arch = image->is_of(*host) ? host : also_runs(*host);
      if (!arch || !image->is_of(*arch))
        return other_architecture("Process " + std::to_string(folder_.process()), image->machine(), image->is_64());
      arch_ = arch;
    }
  return Mappings::parse(text);
}

void Target::Process::take_threads() {
  forget_threads();
  registers_.clear();
  for (const TracedThread& traced : traced_.all()) {
    if (traced.is_gone) continue;
    add({traced.id, traced.name, traced.signal, traced.is_stopped, std::nullopt});
    const auto registers = traced.registers_of(space_->arch());
    registers_.push_back(registers ? std::optional(*registers) : std::nullopt);
  }
}

Result<RegisterFile> Target::Process::registers(const TargetThread& thread) const noexcept {
  const auto number = number_of(thread.id);
  if (number && *number < registers_.size() && registers_[*number]) return *registers_[*number];
  return Error{ErrorCode::io, static_cast<Addr>(thread.id),
               is_overdue_ ? "stack of a process that did not let itself be copied in time"
                           : "registers of a thread that did not stop in time"};
}

void Target::Process::let_go() noexcept {
  if (traced_.all().empty()) return;
  keep_stacks();
  space_->let_run();
  is_overdue_ = !traced_.let_go();
  if (is_overdue_) registers_.clear();
}

void Target::Process::keep_stacks() noexcept {
  constexpr std::uint64_t k_most = std::uint64_t{1} << 20;  // of one thread
  constexpr Addr k_list_head = 16;                          // docs/registry.md "Finding the list"
  const AddressSpace& space = space_->space();
  for (const auto& registers : registers_) {
    if (!registers) continue;
    const Addr sp = registers->get(space.arch.column(space.arch.sp)).value_or(0);
    const Mapping* const stack = space_->mappings().find(sp);
    if (!stack) continue;
    const Addr begin = page_of(std::max(sp - std::min<Addr>(space.arch.red_zone, sp), stack->range.begin));
    space_->keep({begin, std::min(stack->range.end, begin + k_most)});
  }
  MemoryWindow window;
  for (std::size_t number = 0; number < ListHead::k_most; ++number) {
    const auto head = space_->heads().list_head(number, window);
    if (!head || *head == 0) break;
    space_->keep({page_of(*head), page_of(*head + k_list_head - 1) + k_page_size});
  }
}

std::optional<TargetError> Target::Process::renew() {
  if (auto failed = look()) return failed;
  if (auto failed = stop()) return failed;
  if (auto failed = take_mappings()) return failed;
  take_threads();
  return std::nullopt;
}

}  // namespace jitunwind
