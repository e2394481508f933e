// The core files of other CPUs in cores/, which cores/record has had qemu-user write.
#pragma once

#include <ostream>
#include <string>

#include "jitunwind/sdk/target.h"
#include "tests/support/command.h"

namespace jitunwind::test {

struct Recorded {
  const char* name;
  const char* cpu;
  bool big_endian;
};
inline void PrintTo(const Recorded& recorded, std::ostream* out) { *out << recorded.name; }

inline constexpr Recorded k_recorded[] = {
    {"x86", "x86", false},         {"arm", "arm", false},           {"armeb", "arm", true},
    {"aarch64", "aarch64", false}, {"aarch64_be", "aarch64", true}, {"mips64", "mips64", true},
    {"mips64el", "mips64", false}, {"ppc64", "ppc64", true},        {"ppc64le", "ppc64", false},
    {"s390x", "s390x", true},
};

/// A core file and its program, unpacked.
class Unpacked {
 public:
  explicit Unpacked(const std::string& name) {
    for (const std::string& file : {name, name + ".core"})
      output_of("xz -dc '" CORES "/" + file + ".xz' > '" + (folder_ / file) + "'");
    core = folder_ / (name + ".core");
    program = folder_ / name;
  }
  Result<Target, TargetError> open() const { return Target::open_core(core, {.root = "", .program = program}); }

  std::string core;
  std::string program;

 private:
  TemporaryFolder folder_;
};

}  // namespace jitunwind::test
