// A library whose constructor calls the function at this address. The dynamic linker's lock is taken meanwhile.
#include <cstdlib>

[[gnu::constructor]] static void call_the_test() {
  if (const char* const address = std::getenv("CALLED_IN_CONSTRUCTOR"))
    reinterpret_cast<void (*)()>(std::strtoull(address, nullptr, 16))();
}
