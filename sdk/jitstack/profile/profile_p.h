// Stacks that were seen again and again, counted: a tree of frames, the outermost first.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/sdk/jitstack/stacks_p.h"

namespace jitunwind::jitstack {

enum class FrameKind : std::uint8_t { root, thread, program, library, jit, guess, cut_short };

/// What frames of a profile are told apart by: not by address.
struct FrameLabel {
  FrameKind kind = FrameKind::root;
  std::string name{};    ///< "[libc.so.6]" where there is none
  std::string module{};  ///< "JIT", "libc.so.6"
  auto operator<=>(const FrameLabel&) const = default;
};

class Profile {
 public:
  struct Node {
    FrameLabel label{};
    std::size_t parent = 0;
    std::uint64_t count = 0;  ///< of stacks that go through it
    std::uint64_t own = 0;    ///< of stacks that end here
    std::map<FrameLabel, std::size_t> callees{};
  };

  Profile() : nodes_(1) {}

  /// `program`: the path of the target's program, whose frames are told from those of libraries. A stack that was cut
  /// short has a frame of that name below its frames.
  void add(const SeenStack& stack, const std::string& program);

  /// The root is the first; every other one stands behind its parent.
  std::span<const Node> nodes() const noexcept { return nodes_; }
  std::uint64_t stacks() const noexcept { return nodes_.front().count; }
  std::uint64_t cut_short() const noexcept { return cut_short_; }

  /// A line for each stack, "thread;main;f 12", in the order of the names: as stackcollapse programs write it, code
  /// made at run time with "_[j]" behind it. Names are escaped, ';' in them is ':'.
  std::string folded() const;

 private:
  std::size_t callee(std::size_t node, const FrameLabel& label);

  std::vector<Node> nodes_;
  std::uint64_t cut_short_ = 0;
};

}  // namespace jitunwind::jitstack
