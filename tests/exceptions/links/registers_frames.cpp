// A program that itself uses __register_frame, so that a static libgcc's object with that name is linked.
#include "tests/exceptions/links/run_through.h"

extern "C" void __register_frame(void*);
extern "C" void __deregister_frame(void*);

int main(int argc, char** argv) {
  static int nothing = 0;  // an empty section
  __register_frame(&nothing);
  __deregister_frame(&nothing);
  return run_through(argc, argv);
}
