// libunwind-ptrace.h: a process that the caller traces, as a Target.
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <new>
#include <optional>

#include "jitunwind/sdk/compat/targets/target_answers_p.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

#include <libunwind-ptrace.h>

namespace jitunwind {
inline namespace JITUNWIND_COMPAT {
namespace {

class TracedProcess {
 public:
  explicit TracedProcess(pid_t id) noexcept : id_(id) {}
  pid_t id() const noexcept { return id_; }

  /// The process as a Target, renewed if it has run since. Null: it is gone, or memory is exhausted.
  const Target* now() noexcept try {
    const std::uint64_t switches = times_it_has_run();
    if (switches == 0) return nullptr;
    if (target_ && switches == seen_switches_) return &*target_;
    if (!target_) {
      auto target = Target::of_traced(id_);
      if (!target) return nullptr;
      target_.emplace(std::move(*target));
    } else if (!target_->renew()) {
      return nullptr;
    }
    seen_switches_ = switches;
    return &*target_;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }

 private:
  /// The thread's context switches, proc_pid_status(5): it has to stop before it is read, which counts as one. 0: it is
  /// gone.
  std::uint64_t times_it_has_run() const noexcept {
    std::array<char, 64> path{"/proc/"};
    constexpr std::size_t k_length = std::string_view("/proc/").size();
    const auto end = std::to_chars(path.data() + k_length, path.data() + path.size() - sizeof "/status", id_).ptr;
    std::memcpy(end, "/status", sizeof "/status");
    const ReadableFile file(path.data());
    if (!file.is_open()) return 0;
    constexpr std::string_view k_ending = "voluntary_ctxt_switches:\t";  // "nonvoluntary" ends so, too
    std::uint64_t switches = 0;
    LineReader<4096> lines(file);
    for (std::string_view line; lines.next(line);) {
      const std::size_t at = line.find(k_ending);
      if (at == line.npos) continue;
      std::uint64_t count = 0;
      std::from_chars(line.data() + at + k_ending.size(), line.data() + line.size(), count);
      switches += count;
    }
    return switches;
  }

  pid_t id_;
  std::optional<Target> target_;
  std::uint64_t seen_switches_ = 0;
};

TracedProcess& process_of(void* target) noexcept { return *static_cast<TracedProcess*>(target); }

/// Calls `ask_target` with the present state of the target. A process whose registers differ from this library's UNW_*
/// numbers is refused.
template <class Ask>
int ask(void* target, Ask ask_target) noexcept {
  if (!target) return -UNW_EINVAL;
  const Target* const known = process_of(target).now();
  if (!known) return -UNW_EUNSPEC;
  return known->arch().elf_machine == target_arch().elf_machine ? ask_target(*known) : -UNW_EINVAL;
}

/// The registers of one kind (NT_*), in ptrace(2)'s layout.
class RegisterBlock {
 public:
  RegisterBlock(pid_t thread, int kind) noexcept : thread_(thread), kind_(kind) {}

  bool read() noexcept { return transfer(PTRACE_GETREGSET); }
  /// Whether the block has the length of this library's CPU.
  bool is_of(const Arch& arch) const noexcept {
    return std::ranges::all_of(arch.registers, [&](const RegisterInfo& reg) {
      return reg.reg_class == RegClass::vector || reg.prstatus + arch.word_size <= static_cast<std::ptrdiff_t>(size_);
    });
  }
  bool write() noexcept { return transfer(PTRACE_SETREGSET); }
  /// Empty: there is no such part.
  std::span<std::byte> part(std::int16_t offset, std::size_t size) noexcept {
    const auto begin = static_cast<std::size_t>(offset);
    return offset < 0 || begin + size > size_ ? std::span<std::byte>() : std::span(bytes_).subspan(begin, size);
  }

 private:
  bool transfer(__ptrace_request request) noexcept {
    iovec vector{bytes_.data(), size_};
    if (::ptrace(request, thread_, reinterpret_cast<void*>(static_cast<std::intptr_t>(kind_)), &vector) != 0)
      return false;
    size_ = vector.iov_len;
    return true;
  }

  pid_t thread_;
  int kind_;
  std::array<std::byte, 1024> bytes_;
  std::size_t size_ = bytes_.size();
};

int access_part(void* target, int kind, const RegisterInfo* reg, std::span<std::byte> value, bool write) noexcept {
  if (!target) return -UNW_EINVAL;
  if (!reg) return -UNW_EBADREG;
  RegisterBlock block(process_of(target).id(), kind);
  if (!block.read()) return errno == ESRCH ? -UNW_EUNSPEC : -UNW_EBADREG;
  if (kind == NT_PRSTATUS && !block.is_of(target_arch())) return -UNW_EINVAL;
  const std::span<std::byte> part = block.part(reg->prstatus, value.size());
  if (part.empty()) return -UNW_EBADREG;
  if (!write) {
    std::ranges::copy(part, value.begin());
    return UNW_ESUCCESS;
  }
  std::ranges::copy(value, part.begin());
  return block.write() ? int{UNW_ESUCCESS} : -UNW_EREADONLYREG;
}

}  // namespace
}  // namespace JITUNWIND_COMPAT
}  // namespace jitunwind

extern "C" {

void* _UPT_create(pid_t process) {
  return process > 0 ? new (std::nothrow) jitunwind::TracedProcess(process) : nullptr;
}

void _UPT_destroy(void* target) { delete static_cast<jitunwind::TracedProcess*>(target); }

int _UPT_find_proc_info(unw_addr_space_t, unw_word_t ip, unw_proc_info_t* info, int need_unwind_info, void* target) {
  return jitunwind::ask(target, [&](const jitunwind::Target& known) {
    return jitunwind::find_proc_info(known, ip, *info, need_unwind_info != 0);
  });
}

void _UPT_put_unwind_info(unw_addr_space_t, unw_proc_info_t* info, void*) { jitunwind::give_back(*info); }

int _UPT_get_dyn_info_list_addr(unw_addr_space_t, unw_word_t* address, void* target) {
  return jitunwind::ask(target, [&](const jitunwind::Target& known) { return jitunwind::find_list(known, *address); });
}

int _UPT_access_mem(unw_addr_space_t, unw_word_t address, unw_word_t* value, int write, void* target) {
  if (!target) return -UNW_EINVAL;
  const pid_t process = jitunwind::process_of(target).id();
  auto* const at = reinterpret_cast<void*>(address);
  if (write) return ::ptrace(PTRACE_POKEDATA, process, at, *value) == 0 ? int{UNW_ESUCCESS} : -UNW_EINVAL;
  errno = 0;
  const long word = ::ptrace(PTRACE_PEEKDATA, process, at, nullptr);
  if (errno != 0) return errno == ESRCH ? -UNW_EUNSPEC : -UNW_EINVAL;
  *value = static_cast<unw_word_t>(word);
  return UNW_ESUCCESS;
}

int _UPT_access_reg(unw_addr_space_t, unw_regnum_t number, unw_word_t* value, int write, void* target) {
  const auto* const reg = jitunwind::general_register(jitunwind::target_arch(), number);
  return jitunwind::access_part(target, NT_PRSTATUS, reg, std::as_writable_bytes(std::span(value, 1)), write != 0);
}

int _UPT_access_fpreg(unw_addr_space_t, unw_regnum_t number, unw_fpreg_t* value, int write, void* target) {
  const auto* const reg = jitunwind::fp_register(jitunwind::target_arch(), number);
  return jitunwind::access_part(target, NT_PRFPREG, reg, std::as_writable_bytes(std::span(value, 1)), write != 0);
}

int _UPT_get_proc_name(unw_addr_space_t, unw_word_t address, char* buffer, size_t size, unw_word_t* offset,
                       void* target) {
  return jitunwind::ask(target, [&](const jitunwind::Target& known) {
    return jitunwind::find_proc_name(known, address, {buffer, size}, offset);
  });
}

int _UPT_get_elf_filename(unw_addr_space_t, unw_word_t address, char* buffer, size_t size, unw_word_t* offset,
                          void* target) {
  return jitunwind::ask(target, [&](const jitunwind::Target& known) {
    return jitunwind::find_file(known, address, {buffer, size}, offset);
  });
}

int _UPT_get_proc_ip_range(unw_addr_space_t, unw_word_t ip, unw_word_t* start, unw_word_t* end, void* target) {
  return jitunwind::ask(target,
                        [&](const jitunwind::Target& known) { return jitunwind::find_range(known, ip, *start, *end); });
}

int _UPT_resume(unw_addr_space_t, unw_cursor_t*, void* target) {
  if (!target) return -UNW_EINVAL;
  return ::ptrace(PTRACE_CONT, jitunwind::process_of(target).id(), nullptr, nullptr) == 0 ? int{UNW_ESUCCESS}
                                                                                          : -UNW_EUNSPEC;
}

unw_word_t _UPT_ptrauth_insn_mask(unw_addr_space_t, void*) {
  return ~unw_word_t{jitunwind::target_arch().address_mask};
}

unw_accessors_t _UPT_accessors = {
    _UPT_find_proc_info,
    _UPT_put_unwind_info,
    _UPT_get_dyn_info_list_addr,
    _UPT_access_mem,
    _UPT_access_reg,
    _UPT_access_fpreg,
    _UPT_resume,
    _UPT_get_proc_name,
    _UPT_get_elf_filename,
    _UPT_get_proc_ip_range,
    _UPT_ptrauth_insn_mask,
};
}
