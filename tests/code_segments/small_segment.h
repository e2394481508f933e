// A segment of few functions, whose functions the registry does not know.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "jitunwind/adapters/code_segments/segment_p.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/emit/eh_frame.h"
#include "tests/code_segments/committed.h"
#include "tests/support/command.h"

namespace jitunwind::test {

struct SmallSegment {
  explicit SmallSegment(std::size_t functions = 16) : layout(local_space().arch, 4096, functions) {
    auto memory = SegmentMemory::publish(folder.path(), FilesAtEnd::removed, layout, local_space().arch);
    if (!memory) throw std::runtime_error(memory.error().text());
    segment.emplace(std::move(*memory), layout);
  }

  /// Appends and publishes a function that the registry does not know.
  Segment::Index add(std::string_view name) {
    const auto index = *segment->append({sizeof FrameCode::k_bytes});
    write(index, name);
    return index;
  }
  void write(Segment::Index index, std::string_view name) {
    Segment::Function& function = (*segment)[index];
    std::memcpy(segment->writable(function).data(), FrameCode::k_bytes, sizeof FrameCode::k_bytes);
    const Addr start = segment->start(function);
    __builtin___clear_cache(reinterpret_cast<char*>(start), reinterpret_cast<char*>(start) + function.size);
    const std::vector<std::byte> frames = frames_of(start);
    EXPECT_TRUE(segment->publish(index, sizeof FrameCode::k_bytes, frames, name));
  }
  std::vector<std::byte> frames_of(Addr start, Addr personality = 0, Addr lsda = 0,
                                   const Description* its_own = nullptr) const {
    static const Description common = frame_description("any");
    const Description& description = its_own == nullptr ? common : *its_own;
    std::vector<std::byte> bytes(1024);
    EhFrameWriter writer(local_space().arch, bytes, segment->next_frame());
    writer.begin_cie({.personality = personality, .has_lsda = lsda != 0});
    writer.begin_fde({start, start + sizeof FrameCode::k_bytes}, lsda);
    for (std::size_t at = 0; at < sizeof FrameCode::k_bytes; at += local_space().arch.unit)
      EXPECT_TRUE(writer.row(at, *description.row(at, sizeof FrameCode::k_bytes)));
    writer.end_fde();
    EXPECT_TRUE(writer.fits());
    bytes.resize(writer.size());
    return bytes;
  }

  TemporaryFolder folder;
  SegmentLayout layout;
  std::optional<Segment> segment;
};

}  // namespace jitunwind::test
