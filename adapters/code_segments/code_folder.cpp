#include "jitunwind/adapters/code_segments/code_folder_p.h"

#include <limits.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "jitunwind/unwind_core/environment.h"
#include "jitunwind/unwind_core/targets/process_folder_internal.h"

namespace jitunwind {
namespace {

/// "NAMESPACE-", or "" without /proc.
std::string own_namespace() {
  const std::string link = link_target(AT_FDCWD, "/proc/self/ns/pid");  // "pid:[4026531836]"
  const std::size_t from = link.find('[') + 1, to = link.find(']');
  return to == link.npos ? "0-" : link.substr(from, to - from) + "-";
}

std::string name_of(pid_t process) { return std::to_string(process) + "-" + ProcessFolder(process).start_time(); }

/// Behind a process's name: what tells apart the programs that it executes one after the other (getauxval(3)).
std::string own_program() {
  std::uint64_t random = 0;
  if (const auto* const bytes = reinterpret_cast<const void*>(::getauxval(AT_RANDOM)))
    std::memcpy(&random, bytes, sizeof random);
  return "." + std::to_string(random);
}

/// Whether a folder's process is gone. `name`: behind the prefix. That of a process with another namespace's number is
/// not known. Processes that could not read their start time (a filter of system calls) have a name that ends with "-";
/// their number alone decides. This process may have executed another program than that of the folder.
bool is_gone(std::string_view name, const std::string& own) {
  if (name.substr(0, own.size()) != own) return false;
  name.remove_prefix(own.size());
  pid_t process = 0;
  const auto end = std::from_chars(name.data(), name.data() + name.size(), process);
  if (end.ec != std::errc() || process <= 0) return false;
  if (::kill(process, 0) != 0 && errno == ESRCH) return true;
  const std::string now = name_of(process);
  const std::string_view then = name.substr(0, name.find('.'));
  if (now.back() == '-' || then.back() == '-') return false;
  return now != then || (process == ::getpid() && name != now + own_program());
}

bool is_own_folder(int folder) noexcept {
  struct stat status;
  return ::fstat(folder, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
         (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

/// Others who may rename what is in a folder could put their own code there. The sticky bit keeps them from doing so.
bool is_safe(int place, uid_t root) noexcept {
  struct stat status;
  if (::fstat(place, &status) != 0) return false;
  const bool is_known_owner = status.st_uid == 0 || status.st_uid == ::geteuid() || status.st_uid == root;
  return is_known_owner && ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0 || (status.st_mode & S_ISVTX) != 0);
}

/// Opens a folder that nobody else may replace, nor one above it, by its path without links. The owner of "/" may
/// replace the C library. A user namespace that lacks root shows root's folders as those of a user like that one.
Result<ReadableFile> open_safe(const std::string& path) {
  struct stat root {};
  (void)::stat("/", &root);
  ReadableFile folder;
  for (std::size_t end = 0; end != path.size();) {
    end = std::min(path.find('/', end + 1), path.size());  // what is in front of it is safe: its path leads there
    folder = ReadableFile(path.substr(0, end).c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW);
    if (!folder.is_open()) return not_published("the folder cannot be opened");
    if (!is_safe(folder.number(), root.st_uid))
      return not_published(end == path.size() ? "others may replace what is in the folder"
                                              : "others may replace a folder above the folder");
  }
  return folder;
}

void remove_gone(const ReadableFile& place) {
  const std::string own = own_namespace();
  each_entry(ReadableFile(place.number(), ".", O_DIRECTORY), [&](const char* name) {
    const std::string_view text(name);
    if (!text.starts_with(k_code_folder_prefix) || !is_gone(text.substr(k_code_folder_prefix.size()), own)) return;
    const ReadableFile folder(place.number(), name, O_DIRECTORY | O_NOFOLLOW);
    if (!folder.is_open() || !is_own_folder(folder.number())) return;
    each_entry(folder, [&](const char* file) { (void)::unlinkat(folder.number(), file, 0); });
    (void)::unlinkat(place.number(), name, AT_REMOVEDIR);
  });
}

}  // namespace

Status may_publish() noexcept {
  if (::getauxval(AT_SECURE) == 0) return Done{};
  return not_published("the program changed its identity when it was executed");
}

/// ReadableFile makes files that nobody may open again.
ReadableFile new_file(int folder, const char* name) noexcept {
  ReadableFile file(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
  if (file.is_open()) (void)::fchmod(file.number(), S_IRUSR | S_IWUSR);
  return file;
}

bool write_whole(int file, std::span<const std::byte> bytes, std::size_t at) noexcept {
  for (std::size_t done = 0; done < bytes.size();) {
    const long written = write_at(file, bytes.data() + done, bytes.size() - done, at + done);
    if (written <= 0 && errno != EINTR) return false;
    if (written > 0) done += static_cast<std::size_t>(written);
  }
  return true;
}

CodePlaces CodePlaces::of_environment() {
  CodePlaces places;
  for (const char* const variable : {"JITUNWIND_CODE_DIR", "XDG_RUNTIME_DIR"})
    if (const char* const place = ::secure_getenv(variable)) places.paths.emplace_back(place);
  places.paths.insert(places.paths.end(), {"/dev/shm", "/tmp"});
  static constexpr std::string_view k_keep[] = {"keep"};
  if (environment_words("JITUNWIND_CODE_FILES", k_keep) != 0) places.files = FilesAtEnd::kept;
  return places;
}

Result<CodeFolder> CodeFolder::open(const std::string& place, FilesAtEnd files) {
  // The dynamic linker's name of a library must lead others to it.
  if (!place.starts_with('/')) return not_published("the folder's path is not absolute");
  std::array<char, PATH_MAX> path;
  if (::realpath(place.c_str(), path.data()) == nullptr) return not_published("the folder cannot be opened");
  const Result<ReadableFile> outer = open_safe(path.data());
  if (!outer) return outer.error();
  const std::string name = std::string(k_code_folder_prefix) + own_namespace() + name_of(::getpid()) + own_program();
  ReadableFile inner;
  for (unsigned tries = 0; !inner.is_open() && tries != k_most_tries; ++tries) {
    if (::mkdirat(outer->number(), name.c_str(), S_IRWXU) == 0) {
      if (files == FilesAtEnd::removed) remove_gone(*outer);
    } else if (errno != EEXIST) {
      return not_published("no folder can be made in the folder");
    }
    inner = ReadableFile(outer->number(), name.c_str(), O_DIRECTORY | O_NOFOLLOW);
  }
  if (!inner.is_open() || !is_own_folder(inner.number()))
    return not_published("the process's folder is somebody else's");
  return CodeFolder{std::string(path.data()) + "/" + name, std::move(inner)};
}

}  // namespace jitunwind
