// A process that others look into: it registers procedures, prints the list's address, and waits for the end of its
// input.
#include <cstdio>

#include "jitunwind/dyn_info/registry/registry.h"

namespace {

unw_dyn_info_t infos[3];

/// Cancels when the process exits, after main and possibly after other static objects of the library's users.
struct CancelsAtExit {
  unw_dyn_info_t info{};
  ~CancelsAtExit() {
    const bool cancelled = jitunwind::cancel_procedure(&info).has_value();
    const jitunwind::ProcedureHold hold(info.start_ip);
    std::printf("exit %d %d\n", cancelled, hold.info() == nullptr);
    std::fflush(stdout);
  }
} cancels_at_exit;

/// This registers before main.
const bool registered_early = [] {
  cancels_at_exit.info.start_ip = 0x9000;
  cancels_at_exit.info.end_ip = 0x9010;
  return jitunwind::register_procedure(&cancels_at_exit.info).has_value();
}();

}  // namespace

int main() {
  for (unsigned i = 0; i < 3; ++i) {
    infos[i].start_ip = 0x10000 * (i + 1);
    infos[i].end_ip = infos[i].start_ip + 16;
    if (!registered_early || !jitunwind::register_procedure(&infos[i])) return 1;
  }
  std::printf("%llx\n", static_cast<unsigned long long>(reinterpret_cast<unsigned long>(jitunwind::procedure_list())));
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
