#include <jitunwind/jitunwind.h>
#include <jitunwind/listen.h>

#include <cstdio>

extern "C" int middle(int n);
extern "C" void __register_frame(const void* begin);
extern "C" void __deregister_frame(const void* begin);

// A CIE, an FDE for 16 bytes of code at 0x5000, an end.
alignas(8) static const unsigned char section[] = {
    0x14, 0, 0, 0, 0, 0,    0, 0, 1, 'z', 'R', 0, 1,  0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1, 0, 0, 0x18, 0, 0, 0,
    0x1c, 0, 0, 0, 0, 0x50, 0, 0, 0, 0,   0,   0, 16, 0,    0,  0, 0, 0,    0, 0, 0,    0, 0, 0, 0,    0, 0, 0};

// The frames that a JIT reports to libgcc are heard.
int main() {
  jitunwind::listen();
  __register_frame(section);
  const bool heard = jitunwind::registry_statistics().registered == 1;
  __deregister_frame(section);
  const auto status = jitunwind::listen_status();
  if (!heard || status.told != 1 || status.taken_back != 1 || status.procedures != 0) return 1;
  return middle(1) == 2 ? 0 : 1;
}
