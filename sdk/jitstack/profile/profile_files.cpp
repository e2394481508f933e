#include "jitunwind/sdk/jitstack/profile/profile_files_p.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "jitunwind/sdk/jitstack/escaped_p.h"
#include "jitunwind/sdk/jitstack/profile/flame_graph_p.h"

namespace jitunwind::jitstack {
namespace {

/// Removes the file that has the name and creates a new one. A link that somebody else has put there, to a file of this
/// user's, is therefore not followed.
bool write_file(const std::string& path, const std::string& text) {
  const bool is_free = ::unlink(path.c_str()) == 0 || errno == ENOENT;
  FILE* const file = is_free ? std::fopen(path.c_str(), "wx") : nullptr;
  const bool is_written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool is_closed = file && std::fclose(file) == 0;
  if (is_written && is_closed) return true;
  std::fprintf(stderr, "jitstack: cannot write '%s': %s\n", escaped(path).c_str(), std::strerror(errno));
  return false;
}

}  // namespace

ExitStatus write_profile(const Profile& profile, const std::string& name, const std::string& title,
                         const std::string& said) {
  if (!write_file(name + ".folded", profile.folded()) || !write_file(name + ".svg", flame_graph(profile, title, said)))
    return ExitStatus::not_written;
  std::printf("%s\n%s.folded\n%s.svg\n", said.c_str(), escaped(name).c_str(), escaped(name).c_str());
  if (std::fflush(stdout) != 0) return ExitStatus::not_written;
  return profile.cut_short() == 0 ? ExitStatus::whole : ExitStatus::cut_short;
}

}  // namespace jitunwind::jitstack
