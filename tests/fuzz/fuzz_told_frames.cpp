// Input: the argument of a JIT's __register_frame, at the end of the existing memory: a section, or one FDE and the
// bytes before it. The first byte tells where the argument begins in the rest.
#include <sys/mman.h>

#include <span>

#include "jitunwind/adapters/listen/frames/told_frames_p.h"
#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "tests/builders/registered_code.h"
#include "tests/fuzz/fuzz_check.h"

using namespace jitunwind;

namespace {

constexpr std::size_t k_room = 1u << 16;

/// Distances of 32 bits reach so far. Sanitizers have memory elsewhere, and forbid reading it.
constexpr std::size_t k_reach = sizeof(void*) == 8 ? std::size_t{1} << 31 : k_room;

/// The memory around the room cannot be read.
std::byte* end_of_memory() {
  static std::byte* const end = [] {
    void* const memory =
        ::mmap(nullptr, k_reach + k_room + k_reach, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    fuzz::check(memory != MAP_FAILED, "there is memory");
    auto* const room = static_cast<std::byte*>(memory) + k_reach;
    fuzz::check(::mprotect(room, k_room, PROT_READ | PROT_WRITE) == 0, "there is room");
    return room + k_room;
  }();
  return end;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 6 || size > k_room || data[0] > size - 5) return 0;
  std::byte* const bytes = end_of_memory() - (size - 1);
  std::memcpy(bytes, data + 1, size - 1);
  const void* const begin = bytes + data[0];
  const std::uint64_t refused = listen_status().refused;
  int object = 0;
  const Answer answer = note_told({begin, nullptr, &object, {}});
  const ListenStatus status = listen_status();
  fuzz::check(status.procedures == registry_statistics().registered, "all that was heard is registered");
  fuzz::check(answer == Answer::ours || status.refused > refused, "what is handed on is refused for a reason");
  if (status.refused != refused) fuzz::check(*status.latest_refusal.what != 0, "a refusal says what");
  const test::RegisteredCode known;
  for (const unw_dyn_info_t* info = procedure_list()->first; info != nullptr; info = info->next) {
    fuzz::check(info->start_ip < info->end_ip, "a procedure has code");
    (void)known.row_at(info->start_ip);
    (void)known.row_at(info->end_ip - 1);
  }
  const TakenBack back = take_back(begin);
  fuzz::check(back.object == &object && back.answer == answer, "what was told is taken back");
  fuzz::check(registry_statistics().registered == 0, "nothing stays");
  return 0;
}
