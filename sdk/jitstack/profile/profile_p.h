// A profile: stacks that recur, counted in a tree of frames whose root is the outermost frame.
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

/// Identifies a frame in a profile. Addresses do not count.
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
    std::uint64_t count = 0;  ///< stacks that go through it
    std::uint64_t own = 0;    ///< stacks that end here
    std::map<FrameLabel, std::size_t> callees{};
  };

  Profile() : nodes_(1) {}

  /// Adds a stack. `program` is the path of the target's program; its frames are distinguished from those of libraries.
  /// A stack that was cut short gets a frame "[cut short]" below its frames.
  void add(const SeenStack& stack, const std::string& program);

  /// The root comes first, and every other node after its parent.
  std::span<const Node> nodes() const noexcept { return nodes_; }
  std::uint64_t stacks() const noexcept { return nodes_.front().count; }
  std::uint64_t cut_short() const noexcept { return cut_short_; }

  /// Writes a line for each stack, "thread;main;f 12", in the order of the names, as stackcollapse programs do. The
  /// names of code made at run time end with "_[j]". Names are escaped, and ';' in them becomes ':'.
  std::string folded() const;

 private:
  std::size_t callee(std::size_t node, const FrameLabel& label);

  std::vector<Node> nodes_;
  std::uint64_t cut_short_ = 0;
};

}  // namespace jitunwind::jitstack
