// A JIT that reports the same code twice: to libgcc with call frame information that has a personality routine, and to
// GDB, in its list, with call frame information without one. Exceptions through the code must call the personality
// routine, whichever report was heard.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "jitunwind/adapters/listen/listen.h"
#include "tests/listen/gdb_list.h"
#include "tests/listen/throws/thrown_through.h"
#include "tests/support/elf_builder.h"

extern "C" [[gnu::visibility("default")]] jitunwind::test::ListDescriptor __jit_debug_descriptor;
jitunwind::test::ListDescriptor __jit_debug_descriptor;

namespace {

int asked = 0;

/// The frame catches nothing, and prints a line each time that its routine is called.
_Unwind_Reason_Code personality(int, _Unwind_Action, _Unwind_Exception_Class, _Unwind_Exception*, _Unwind_Context*) {
  ++asked;
  return _URC_CONTINUE_UNWIND;
}

/// The frames that PHP writes for GDB: "zR", relative to the code.
struct [[gnu::packed]] ListedFrames {
  std::uint32_t cie_length = 20;
  std::uint32_t cie_id = 0;
  std::array<std::uint8_t, 9> cie{
      1, 'z', 'R', 0, Code::k_code_alignment, Code::k_data_alignment, Code::k_return_address, 1, 0x23};
  std::array<std::uint8_t, 5> cie_rows = Code::k_entry;
  std::uint16_t padding = 0;
  std::uint32_t fde_length = 32;
  std::uint32_t cie_distance = 28;
  std::uint32_t begin = 0;
  std::uint32_t size = Code::k_bytes.size();
  std::array<std::uint8_t, 20> fde = Code::k_fde_data;
  std::uint32_t end = 0;
};

std::vector<std::byte> listed_file(std::uint64_t code) {
  using jitunwind::test::ElfBuilder;
  ElfBuilder elf(true, false);
  elf.type = ET_REL;
  elf.machine = Code::k_machine;
  const ListedFrames frames;
  const auto* const bytes = reinterpret_cast<const std::byte*>(&frames);
  elf.sections = {{".text", SHT_NOBITS, {}, code, SHF_ALLOC | SHF_EXECINSTR, 0, 0, 16, Code::k_bytes.size()},
                  {".eh_frame", SHT_PROGBITS, {bytes, bytes + sizeof frames}, 0, SHF_ALLOC}};
  return elf.build();
}

/// Waits up to a minute until the preloaded or linked library has heard of the list's file.
bool is_list_heard() {
  auto* const status =
      reinterpret_cast<decltype(&jitunwind::listen_status)>(::dlsym(RTLD_DEFAULT, "_ZN9jitunwind13listen_statusEv"));
  for (int i = 0; status != nullptr && i < 6000; ++i) {
    if (status().files == 1) return true;
    ::usleep(10'000);
  }
  return false;
}

/// Rules of the frame that walks keep must not hide the routine from exceptions.
void walk() {
  auto* const backtrace = reinterpret_cast<int (*)(void**, int)>(::dlsym(RTLD_DEFAULT, "ju_backtrace"));
  std::array<void*, 16> addresses;
  if (backtrace != nullptr) (void)backtrace(addresses.data(), static_cast<int>(addresses.size()));
  passages = passages + 1;
}

}  // namespace

int run_through(int, char**) {
  auto* const memory = static_cast<std::byte*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) return 2;
  copy_code(memory);
  const auto code = reinterpret_cast<std::uintptr_t>(memory);
  const ToldFrames frames(reinterpret_cast<std::uintptr_t>(&personality), code, Code::k_bytes.size());
  std::byte* const section = memory + 64;
  std::memcpy(section, &frames, sizeof frames);
  __register_frame(section);
  const std::vector<std::byte> file = listed_file(code);
  const jitunwind::test::ListEntry entry{nullptr, nullptr, reinterpret_cast<std::uintptr_t>(file.data()), file.size()};
  __jit_debug_descriptor.relevant = __jit_debug_descriptor.first = &entry;
  std::printf("list %s\n", is_list_heard() ? "heard" : "not heard");
  for (int i = 0; i < 3; ++i) reinterpret_cast<void (*)(void (*)())>(code)(walk);
  const int caught = count_thrown_through(memory);
  std::printf("caught %d, asked %d\n", caught, asked);
  std::fflush(stdout);
  __jit_debug_descriptor.first = nullptr;
  __deregister_frame(section);
  return caught == 3 ? 0 : 1;
}
