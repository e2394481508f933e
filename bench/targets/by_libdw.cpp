// Looks at a process by elfutils' libdwfl, as eu-stack does.
#include <elfutils/libdwfl.h>

#include <cstdlib>

#include "bench/releases.h"
#include "bench/targets/onlooker.h"

namespace bench {
namespace {

int count_frame(Dwfl_Frame* frame, void* count) {
  Dwarf_Addr pc = 0;
  if (!dwfl_frame_pc(frame, &pc, nullptr)) return DWARF_CB_ABORT;
  ++*static_cast<std::size_t*>(count);
  return DWARF_CB_OK;
}

class Libdw final : public Onlooker {
 public:
  explicit Libdw(Dwfl* dwfl) : dwfl_(dwfl) {}
  ~Libdw() override { dwfl_end(dwfl_); }
  std::size_t walk(pid_t thread) override {
    std::size_t frames = 0;
    (void)dwfl_getthread_frames(dwfl_, thread, count_frame, &frames);
    return frames;
  }

 private:
  Dwfl* dwfl_;
};

std::unique_ptr<Onlooker> look_at(pid_t process) {
  static char* no_path = nullptr;
  static const Dwfl_Callbacks callbacks{dwfl_linux_proc_find_elf, dwfl_standard_find_debuginfo, nullptr, &no_path};
  Dwfl* const dwfl = dwfl_begin(&callbacks);
  if (!dwfl) return nullptr;
  auto made = std::make_unique<Libdw>(dwfl);
  const bool is_attached = dwfl_linux_proc_report(dwfl, process) == 0 && dwfl_report_end(dwfl, nullptr, nullptr) == 0 &&
                           dwfl_linux_proc_attach(dwfl, process, true) == 0;
  if (!is_attached) return nullptr;
  return made;
}

}  // namespace

/// The program belongs to the release whose libraries this one runs with.
Way way() {
  const char* const folder = std::getenv("BENCH_RELEASE");
  const std::string eu_stack =
      folder ? release_in(folder).command(folder + std::string("/usr/bin/eu-stack")) : "eu-stack";
  return {"libdw", look_at, false, "eu-stack", eu_stack + " -p"};
}

void add_own_benchmarks() {}

}  // namespace bench
