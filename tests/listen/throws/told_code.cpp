// A JIT that does not know this library: it reports code to the unwinder and throws through it. If it is compiled with
// TELLS_STATUS, for programs that link the listening library, it also prints what was heard.
#include <sys/mman.h>
#include <unwind.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "tests/listen/throws/thrown_through.h"

#ifdef TELLS_STATUS
#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/adapters/system_unwinder/system_unwinder.h"
#endif

namespace {

/// .eh_frame of it: a CIE, "zR" with absolute addresses, an FDE, an end (LSB 5.0 core, 10.6.1).
struct [[gnu::packed]] Frames {
  std::uint32_t cie_length = 20;
  std::uint32_t cie_id = 0;
  std::array<std::uint8_t, 9> cie{
      1, 'z', 'R', 0, Code::k_code_alignment, Code::k_data_alignment, Code::k_return_address, 1, 0};
  std::array<std::uint8_t, 5> cie_rows = Code::k_entry;
  std::uint16_t padding = 0;
  std::uint32_t fde_length = 40;
  std::uint32_t cie_distance = 28;
  std::uint64_t begin = 0;
  std::uint64_t size = Code::k_bytes.size();
  std::array<std::uint8_t, 20> fde = Code::k_fde_data;
  std::uint32_t end = 0;
};

}  // namespace

int run_through(int, char**) {
  auto* const memory = static_cast<std::byte*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) return 2;
  copy_code(memory);
  Frames frames;
  frames.begin = reinterpret_cast<std::uintptr_t>(memory);
  std::byte* const section = memory + 64;
  std::memcpy(section, &frames, sizeof frames);
  __register_frame(section);
  const int caught = count_thrown_through(memory);
  std::printf("caught %d\n", caught);
#ifdef TELLS_STATUS
  std::printf("heard %lu; path: %s\n", jitunwind::listen_status().told,
              jitunwind::path_name(jitunwind::system_unwinder_status().path));
#endif
  __deregister_frame(section);
#ifdef TELLS_STATUS
  std::printf("then %s\n", _Unwind_FindEnclosingFunction(memory + 4) == nullptr ? "gone" : "known");
#endif
  return caught == 3 ? 0 : 1;
}
