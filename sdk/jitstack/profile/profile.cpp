#include "jitunwind/sdk/jitstack/profile/profile_p.h"

#include <algorithm>

#include "jitunwind/sdk/jitstack/escaped_p.h"

namespace jitunwind::jitstack {
namespace {

FrameLabel label_of(const SeenFrame& frame, const std::string& program) {
  FrameLabel label{.name = frame.name, .module = short_module(frame)};
  if (label.name.empty()) label.name = "[" + label.module + "]";
  label.kind = frame.is_jit              ? FrameKind::jit
               : is_guess(frame.origin)  ? FrameKind::guess
               : frame.module == program ? FrameKind::program
                                         : FrameKind::library;
  return label;
}

std::string folded_name(const FrameLabel& label) {
  std::string name = escaped(label.name);
  std::ranges::replace(name, ';', ':');
  return label.kind == FrameKind::jit ? name + "_[j]" : name;
}

}  // namespace

std::size_t Profile::callee(std::size_t node, const FrameLabel& label) {
  const auto [at, is_new] = nodes_[node].callees.try_emplace(label, nodes_.size());
  const std::size_t index = at->second;
  if (is_new) nodes_.push_back({.label = label, .parent = node});
  ++nodes_[index].count;
  return index;
}

void Profile::add(const SeenStack& stack, const std::string& program) {
  ++nodes_.front().count;
  std::size_t node = callee(0, {FrameKind::thread, stack.thread.name, ""});
  if (!stack.is_whole()) {
    ++cut_short_;
    node = callee(node, {FrameKind::cut_short, "[cut short]", ""});
  }
  for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame)
    node = callee(node, label_of(*frame, program));
  ++nodes_[node].own;
}

std::string Profile::folded() const {
  std::vector<std::string> lines;
  for (const Node& last : nodes_) {
    if (last.own == 0) continue;
    std::vector<std::string> names;
    for (const Node* node = &last; node != &nodes_.front(); node = &nodes_[node->parent])
      names.push_back(folded_name(node->label));
    std::string line;
    for (auto name = names.rbegin(); name != names.rend(); ++name) line += (line.empty() ? "" : ";") + *name;
    lines.push_back(line + " " + std::to_string(last.own) + "\n");
  }
  std::ranges::sort(lines);
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

}  // namespace jitunwind::jitstack
