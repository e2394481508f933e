#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "jitunwind/unwind_core/targets/process_folder_internal.h"

namespace jitunwind {
namespace {

template <class Number>
Number number_in(std::string_view text, int base = 10) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, base);
  return number;
}

std::string_view last_word(std::string_view text) { return text.substr(text.find_last_of(" \t") + 1); }

void take_line(std::string_view line, ProcessStatus& out) {
  const std::string_view name = line.substr(0, line.find(':'));
  std::string_view value = line.substr(std::min(name.size() + 1, line.size()));
  value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
  if (name == "Name") out.name = value;
  if (name == "State" && !value.empty()) out.state = value.front();
  if (name == "Tgid") out.group = number_in<pid_t>(value);
  if (name == "PPid") out.parent = number_in<pid_t>(value);
  if (name == "TracerPid") out.tracer = number_in<pid_t>(value);
  if (name == "Uid") out.user = number_in<uid_t>(value), out.file_user = number_in<uid_t>(last_word(value));
  if (name == "SigBlk") out.blocked = number_in<std::uint64_t>(value, 16);
  if (name == "NStgid") out.own_number = number_in<pid_t>(last_word(value));
  if (name == "VmSize") out.has_memory = true;
}

/// A field of proc_pid_stat(5) and its successors, from the third one on: the second is a name in parentheses, with any
/// content.
std::string_view fields_from(std::string_view stat, int wanted) {
  stat.remove_prefix(std::min(stat.rfind(')'), stat.size()));
  for (int field = 2; field < wanted; ++field) stat.remove_prefix(std::min(stat.find(' '), stat.size() - 1) + 1);
  return stat;
}

/// The flags tell it: older kernels have no line for it in the status.
bool is_of_kernel(std::string_view stat) {
  constexpr unsigned long k_kernel_thread = 0x0020'0000;  // PF_KTHREAD of include/linux/sched.h
  return (number_in<unsigned long>(fields_from(stat, 9)) & k_kernel_thread) != 0;
}

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

}  // namespace

ProcessFolder::ProcessFolder(pid_t process) noexcept
    // "/proc/-1" does not exist.
    : ProcessFolder(process, ("/proc/" + std::to_string(process)).c_str()) {}

std::optional<std::string> ProcessFolder::read(const std::string& name, std::size_t most) const {
  const ReadableFile file(folder_.number(), name.c_str());
  return file.is_open() ? read_whole(file, most) : std::nullopt;
}

Mappings ProcessFolder::mappings() const { return Mappings::parse(read("maps").value_or("")); }

std::optional<ProcessStatus> ProcessFolder::status() const {
  const auto text = read("status");
  if (!text) return std::nullopt;
  ProcessStatus status;
  for (std::string_view rest = *text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    take_line(line, status);
  }
  if (!status.has_memory) status.is_of_kernel = is_of_kernel(read("stat").value_or(""));
  return status;
}

/// The number of links tells how many threads the kernel counts (proc_task_getattr() of fs/proc/base.c).
std::vector<pid_t> ProcessFolder::threads(bool* is_whole) const {
  std::vector<pid_t> threads;
  const ReadableFile folder(folder_.number(), "task", O_DIRECTORY);
  each_entry(folder, [&](const char* name) {
    if (const auto thread = number_in<pid_t>(name); thread > 0) threads.push_back(thread);
  });
  std::ranges::sort(threads);
  struct statx counted;
  const bool is_counted = is_whole && ::statx(folder.number(), "", AT_EMPTY_PATH, STATX_NLINK, &counted) == 0;
  if (is_whole) *is_whole = !is_counted || counted.stx_nlink <= threads.size() + 2;
  return threads;
}

bool ProcessFolder::has_ended(pid_t thread) const {
  const auto stat = read("task/" + std::to_string(thread) + "/stat");
  const std::string_view state = fields_from(stat ? std::string_view(*stat) : ") X", 3);
  return state.starts_with('Z') || state.starts_with('X');
}

std::string ProcessFolder::name_of_thread(pid_t thread) const {
  std::string name = read("task/" + std::to_string(thread) + "/comm").value_or("");
  if (name.ends_with('\n')) name.pop_back();
  return name;
}

std::string ProcessFolder::start_time() const {
  const std::optional<std::string> stat = read("stat");
  return stat ? std::to_string(number_in<std::uint64_t>(fields_from(*stat, 22))) : std::string();
}

ReadableFile ProcessFolder::open_memory() const noexcept {
  ReadableFile writable(folder_.number(), "mem", O_RDWR);
  return writable.is_open() ? std::move(writable) : ReadableFile(folder_.number(), "mem");
}

std::string ProcessFolder::root() const {
  struct stat own_root, root, own_mounts, mounts;
  const bool are_ours = ::stat("/", &own_root) == 0 && ::fstatat(folder_.number(), "root", &root, 0) == 0 &&
                        ::stat("/proc/self/ns/mnt", &own_mounts) == 0 &&
                        ::fstatat(folder_.number(), "ns/mnt", &mounts, 0) == 0 && same_file(own_root, root) &&
                        same_file(own_mounts, mounts);
  return are_ours ? std::string() : path() + "/root";
}

}  // namespace jitunwind
