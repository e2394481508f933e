// The part of program.c that throws, and that catches behind the code of the JIT.
#include <stdexcept>
#include <string>

extern "C" void throw_it() { throw std::runtime_error("no such file"); }

extern "C" int catches(void (*call_it)(void (*)())) {
  try {
    call_it(throw_it);
  } catch (const std::runtime_error& error) {
    return error.what() == std::string("no such file");
  }
  return 0;
}
