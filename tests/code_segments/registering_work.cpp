// Registers and cancels code whose instructions are counted: registering_work WAY ROUNDS, for alone, beside_segments,
// alone_marks and alone_more_marks. Or commits and releases it, for one_size, many_sizes, one_data, many_data,
// one_marks, many_marks, many_more_marks and many_more_rows; or commits it in rooms of rising or falling addresses, for
// rising_rooms and falling_rooms. Data are those of a personality routine. Marks and rows describe code of one size, or
// of many; more of them are more than the shape of registered code has.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "tests/code_segments/committed.h"

int main(int argc, char** argv) {
  using namespace jitunwind;
  if (argc != 3) return 2;
  const std::string_view way = argv[1];
  std::optional<CodeSegments> segments;
  if (!way.starts_with("alone")) segments.emplace();
  if (segments && !segments->allocate(16)) return 1;
  alignas(16) static std::byte code[sizeof test::FrameCode::k_bytes];
  const bool has_data = way.ends_with("data");
  auto described = test::FrameCode::described("registered");
  if (way == "many_more_rows") {
    for (int i = 0; i < 60; ++i) described.allocate({100 + 4 * i, 104 + 4 * i}, 16);
    described.ends_without_return();
  }
  if (has_data) described.personality(reinterpret_cast<std::uintptr_t>(code));
  const Description description = described.build().value();
  const Code place{.start = reinterpret_cast<std::uintptr_t>(code), .size = sizeof code};
  const bool has_marks = way.ends_with("marks"), has_sizes = way.starts_with("many") && !has_data;
  const bool commits = !way.starts_with("alone") && way != "beside_segments";
  const int more_marks = way.ends_with("more_marks") ? 60 : 0;
  test::host::Marks marks;
  std::vector<Addr> rooms;
  for (long rounds = way.ends_with("rooms") ? std::atol(argv[2]) : 0; rounds > 0; --rounds)
    rooms.push_back(segments->allocate(sizeof code).value().start);
  if (way.starts_with("falling")) std::ranges::reverse(rooms);
  for (const Addr room : rooms)
    if (!segments->commit(description, {.start = room, .size = sizeof code})) return 1;
  for (long rounds = rooms.empty() ? std::atol(argv[2]) : 0; rounds > 0; --rounds) {
    if (has_marks) test::FrameCode::record(marks);
    for (int i = 0; i < more_marks; ++i) marks.allocate({-4, 0}, 16);
    if (!commits) {
      if (!(has_marks ? register_code(marks, place) : register_code(description, place))) return 1;
      continue;
    }
    const Addr start = segments->allocate(1024).value().start;
    const std::size_t size = has_sizes ? 600 + static_cast<std::size_t>(rounds * 7 % 75 * 4) : 600;
    const Addr lsda = has_data ? place.start + (way == "many_data" ? static_cast<Addr>(rounds % 7) : 1) : 0;
    const Code code_there{.start = start, .size = size, .lsda = lsda};
    if (!(has_marks ? segments->commit(marks, code_there) : segments->commit(description, code_there))) return 1;
    if (!segments->release(start)) return 1;
  }
  return segments && segments->status().files != 1;
}
