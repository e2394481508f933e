// Functions in code segments: this CPU's FrameCode, which saves all frame pointers' register and overwrites it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

#include "frame_code.h"
#include "jitunwind/adapters/code_segments/code_segments.h"

namespace jitunwind::test {

using Callee = void* (*)(void*);

inline void* call(Addr start, Callee callee, void* argument) {
  return reinterpret_cast<void* (*)(Callee, void*)>(static_cast<std::uintptr_t>(start))(callee, argument);
}

inline Description frame_description(std::string_view name) {
  auto description = FrameCode::described(name).build();
  if (!description) throw std::runtime_error(description.error().text());
  return *std::move(description);
}

/// Allocates, writes and commits; returns the start. Throws if one of these fails.
inline Addr commit_frame(CodeSegments& segments, std::string_view name, std::size_t room_bytes = 0) {
  const auto room = segments.allocate(std::max(room_bytes, sizeof FrameCode::k_bytes));
  if (!room) throw std::runtime_error(room.error().text());
  std::memcpy(room->writable.data(), FrameCode::k_bytes, sizeof FrameCode::k_bytes);
  static const Description description = frame_description("unnamed");
  const Status committed =
      segments.commit(description, {.start = room->start, .size = sizeof FrameCode::k_bytes, .name = name});
  if (!committed) throw std::runtime_error(committed.error().text());
  return room->start;
}

}  // namespace jitunwind::test
