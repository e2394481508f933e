// Input: a byte, the event, then all existing memory, from 0x1000 on; it begins with the event's data.
#include "jitunwind/sdk/dialects/itt_event.h"
#include "tests/fuzz/fuzz_check.h"

using namespace jitunwind;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  constexpr Addr k_begin = 0x1000;
  const fuzz::InputMemory memory({reinterpret_cast<const std::byte*>(data + 1), size - 1}, k_begin);
  const auto event = read_itt_event(data[0], k_begin, memory);
  if (!event) {
    fuzz::check(*event.error().what != 0, "an error says what");
    return 0;
  }
  if (event->kind == IttEvent::Kind::loaded) fuzz::check(event->code.begin < event->code.end, "there is code");
  fuzz::check(event->name.size() <= 4096 + 64, "names are cut");
  fuzz::check(event->name.find('\0') == std::string::npos, "names end");
  return 0;
}
