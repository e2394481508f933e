#include "jitunwind/adapters/listen/maps/map_follower_p.h"

#include <unistd.h>

#include <string>

#include "jitunwind/adapters/listen/names/heard_names_p.h"

namespace jitunwind {

MapFollower::MapFollower() : file_("/tmp/perf-" + std::to_string(::getpid()) + ".map") {}

/// Another user may have created the file before this process got its number.
void MapFollower::look(uid_t owner) {
  const auto take = [this](std::span<const std::byte> piece) {
    reader_.read({reinterpret_cast<const char*>(piece.data()), piece.size()},
                 [](const NamedCode& said) { name_code(said.code, said.name); });
  };
  (void)file_.read(~std::uint64_t{0}, owner, take, [this] { reader_.restart(); });
}

}  // namespace jitunwind
