// Calls that are left to the next definition, in a program with a static libgcc, where there is none until libgcc_s is
// loaded. What was told before that nobody else knows, so nobody else is asked to take it back: libgcc aborts then.
#include <dlfcn.h>
#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <cstdio>

#include "tests/listen/throws/thrown_through.h"

namespace {

constexpr std::uint64_t k_page = 4096;
constexpr std::uint64_t k_nowhere = 0x5'0000'0000;  // which nobody executes

/// .eh_frame of an area of a page that catches all, as LuaJIT's: a CIE, "zPR" with absolute addresses, an FDE, an end
/// (LSB 5.0 core, 10.6.1).
struct [[gnu::packed]] Area {
  std::uint32_t cie_length = 28;
  std::uint32_t cie_id = 0;
  std::array<std::uint8_t, 10> cie{1, 'z', 'P', 'R', 0, 1, 0x78, 16, 10, 0};
  std::uint64_t personality = 0x1234;
  std::array<std::uint8_t, 6> cie_rows{0, 0x0c, 7, 8, 0x90, 1};
  std::uint32_t fde_length = 36;
  std::uint32_t cie_distance = 36;
  std::uint64_t begin;
  std::uint64_t size = k_page;
  std::array<std::uint8_t, 16> fde = k_rows;
  std::uint32_t end = 0;
  explicit Area(std::uint64_t code) : begin(code) {}
};

}  // namespace

int main() {
  static const Area early(k_nowhere), late(k_nowhere + k_page);
  __register_frame(&early);
  void* const libgcc = ::dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
  if (libgcc == nullptr) return 2;
  auto* const function_at = reinterpret_cast<void* (*)(void*)>(::dlsym(libgcc, "_Unwind_FindEnclosingFunction"));
  const auto knows = [&](const Area& area) { return function_at(reinterpret_cast<void*>(area.begin + 16)) != nullptr; };
  __register_frame(&late);
  std::printf("early %s, late %s\n", knows(early) ? "known" : "unknown", knows(late) ? "known" : "unknown");
  __deregister_frame(&early);
  __deregister_frame(&late);
  std::printf("late %s\n", knows(late) ? "known" : "gone");
  return 0;
}
