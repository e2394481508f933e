// Registers and throws while it is being loaded, in another thread, for which the loading one waits. The first
// backtrace() of a process would wait for the loading thread, as it loads libgcc_s.
#include <thread>

#include "tests/exceptions/links/run_through.h"

namespace {

[[gnu::constructor]] void run_at_load() {
  std::thread([] {
    char name[] = "constructor", word[] = "without-backtrace";
    char* words[]{name, word};
    if (run_through(2, words) != 0) __builtin_abort();
  }).join();
}

}  // namespace
