// Dies under glog's failure handler, below a procedure that was made at run time. glog's headers are not needed for the
// two functions that programs call.
extern "C" {
#include "tests/drop_in/made_frame.h"
}

namespace google {
void InitGoogleLogging(const char* program);
void InstallFailureSignalHandler();
}  // namespace google

extern "C" {
[[gnu::noinline]] void dies_here() { __builtin_trap(); }
[[gnu::noinline]] void calls_dies() {
  dies_here();
  asm volatile("");
}
}

int main(int, char** argv) {
  make_frame();
  google::InitGoogleLogging(argv[0]);
  google::InstallFailureSignalHandler();
  made(calls_dies);
}
