#include "jitunwind/unwind_core/targets/tracer_internal.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <span>
#include <string_view>

#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

/// Reads as much as fits; empty: the file cannot be read.
std::string_view read_file(const char* path, std::span<char> into) noexcept {
  const ReadableFile file(path);
  const long size = file.is_open() ? file.read(into.data(), into.size()) : -1;
  return size <= 0 ? std::string_view() : std::string_view(into.data(), static_cast<std::size_t>(size));
}

}  // namespace

TracerKind find_tracer() noexcept {
  const ErrnoKeeper keep_errno;
  std::array<char, 4096> text;
  const std::string_view status = read_file("/proc/self/status", text);
  constexpr std::string_view k_key = "\nTracerPid:\t";
  const std::size_t at = status.find(k_key);
  if (at == std::string_view::npos) return TracerKind::none;
  int pid = 0;
  std::from_chars(status.data() + at + k_key.size(), status.data() + status.size(), pid);
  if (pid == 0) return TracerKind::none;
  std::array<char, 32> path;
  std::snprintf(path.data(), path.size(), "/proc/%d/comm", pid);
  // gdb, gdb-multiarch, gdbserver.
  return read_file(path.data(), text).substr(0, 3) == "gdb" ? TracerKind::gdb : TracerKind::other;
}

}  // namespace jitunwind
