#include <jitunwind/jitunwind.h>
#include <jitunwind/system_unwinder.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>

extern "C" int middle(int n);

// Exceptions go by the runtime that was linked, not by libgcc_s.
int main() {
  try {
    if (middle(1) == 2) throw std::runtime_error("thrown");
  } catch (const std::runtime_error& error) {
    const auto status = jitunwind::system_unwinder_status();
    std::printf("%s, %s\n", error.what(), jitunwind::path_name(status.path));
    return status.path == jitunwind::SystemUnwinderPath::own_runtime ? 0 : 1;
  }
  return 1;
}
