#include "jitunwind/sdk/jitstack/output_p.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace jitunwind::jitstack {
namespace {

std::string folded_name(const std::string& name) {
  std::string text = escaped(name);
  std::ranges::replace(text, ';', ':');
  return text;
}

std::string folded_name(const SeenFrame& frame) {
  const std::string name = folded_name(frame.name.empty() ? "[" + short_module(frame) + "]" : frame.name);
  return frame.is_jit ? name + "_[j]" : name;
}

/// Writes a new file, which gets the name when it is whole. A link that somebody else has put there, to a file of this
/// user's, is therefore not followed.
bool write_file(const std::string& path, const std::string& text) {
  const std::string unfinished = path + ".part";
  const bool is_free = ::unlink(unfinished.c_str()) == 0 || errno == ENOENT;
  FILE* const file = is_free ? std::fopen(unfinished.c_str(), "wx") : nullptr;
  const bool is_written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool is_closed = file && std::fclose(file) == 0;
  if (is_written && is_closed && std::rename(unfinished.c_str(), path.c_str()) == 0) return true;
  std::fprintf(stderr, "jitstack: cannot write '%s': %s\n", escaped(path).c_str(), std::strerror(errno));
  if (file) ::unlink(unfinished.c_str());
  return false;
}

}  // namespace

void Profile::add(const SeenStack& stack) {
  ++stacks_;
  std::string line = folded_name(stack.thread.name);
  if (!stack.is_whole()) {
    ++cut_short_;
    line += ";[cut short]";
  }
  for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame) line += ";" + folded_name(*frame);
  ++counts_[line];
}

std::string Profile::folded() const {
  std::string text;
  for (const auto& [line, count] : counts_) text += line + " " + std::to_string(count) + "\n";
  return text;
}

ExitStatus Profile::write(const std::string& name, const std::string& said) const {
  if (!write_file(name + ".folded", folded())) return ExitStatus::not_written;
  std::printf("%s\n%s.folded\n", said.c_str(), escaped(name).c_str());
  if (std::fflush(stdout) != 0) return ExitStatus::not_written;
  return cut_short_ == 0 ? ExitStatus::whole : ExitStatus::cut_short;
}

}  // namespace jitunwind::jitstack
