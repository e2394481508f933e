// Walks of AArch64 targets for programs that have included another header of libunwind.
#pragma once

#include <cstdint>
#include <memory>

namespace jitunwind::test {

class CrossWalk {
 public:
  virtual ~CrossWalk() = default;
  virtual std::uint64_t ip() = 0;
  /// Steps as unw_step does, with its results.
  virtual int step() = 0;
};

/// One address space, walked by any number of threads.
class CrossSpace {
 public:
  virtual ~CrossSpace() = default;
  virtual std::unique_ptr<CrossWalk> walk() = 0;
  virtual void set_policy(int policy) = 0;
  virtual void flush() = 0;
};

inline constexpr std::uint64_t k_cross_frames = 3;
/// IPs of the frames, innermost first.
std::uint64_t cross_ip(std::uint64_t frame);
std::unique_ptr<CrossSpace> make_cross_space(bool big_endian);

}  // namespace jitunwind::test
