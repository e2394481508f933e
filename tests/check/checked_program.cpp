// Registers code with a right description and code with a wrong one, in each way in which registrations come, and
// prints what it was told. The code never runs.
#include <jitunwind/jitunwind.h>

#include <array>
#include <cstdio>

#include "tests/builders/placed_eh_frame.h"

extern "C" void __register_frame(const void*);

namespace {

using namespace jitunwind;
using namespace jitunwind::x86_64;

// push rbx; mov ebx,1; pop rbx; ret
constexpr std::array<unsigned char, 8> k_bytes{0x53, 0xbb, 1, 0, 0, 0, 0x5b, 0xc3};
constexpr std::array<std::array<unsigned char, 8>, 3> k_code{k_bytes, k_bytes, k_bytes};
// push rbx; push rbp; xor eax,eax; pop rbp; pop rbx; nop; ret
constexpr std::array<unsigned char, 8> k_pushes{0x53, 0x55, 0x31, 0xc0, 0x5d, 0x5b, 0x90, 0xc3};

// push rbx; jmp +10; behind padding: pop rbx; ret
constexpr std::array<unsigned char, 18> k_parts{0x53, 0xe9, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x5b, 0xc3};

/// Keeps the registration until the end, as a program does.
void put(const char* what, const Description& description, const void* code) {
  auto registration = register_code(description, code, k_bytes.size());
  std::printf("%s: %s\n", what, registration ? "registered" : registration.error().text().c_str());
  if (registration) (void)registration->release();
}

}  // namespace

int main() {
  put("right", *describe("right").push({0, 1}, rbx).pop({-2, -1}, rbx).build(), &k_code[0]);
  const auto wrong = describe("wrong").push({0, 1}, rbp).pop({-2, -1}, rbp).build();
  put("wrong", *wrong, &k_code[1]);
  put("wrong again", *wrong, &k_code[2]);
  put("unsaid", *describe("unsaid").build(), &k_pushes);

  static test::EhFrame frames;
  (void)frames.fde(reinterpret_cast<std::uintptr_t>(&k_code[0]), k_bytes.size());
  frames.section.terminator();
  __register_frame(reinterpret_cast<const void*>(frames.placed().begin));
  std::puts("told");

  // The second part begins with cfa=rsp+24.
  static test::EhFrame parts;
  const auto first = reinterpret_cast<std::uintptr_t>(&k_parts[0]);
  (void)parts.fde(first, 6);
  (void)parts.section.fde(parts.cie(), first + 16, 2, test::Bytes{0x0e, 24, 0x83, 2, 0x41, 0x0e, 8, 0xc3});
  parts.section.terminator();
  __register_frame(reinterpret_cast<const void*>(parts.placed().begin));
  std::puts("told in parts");
}
