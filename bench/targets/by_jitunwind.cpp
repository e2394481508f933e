#include "jitunwind/sdk/target.h"

#include "bench/targets/onlooker.h"

namespace bench {
namespace {

class Jitunwind final : public Onlooker {
 public:
  explicit Jitunwind(jitunwind::Target target) : target_(std::move(target)) {}
  std::size_t walk(pid_t thread) override {
    for (const jitunwind::TargetThread& known : target_.threads()) {
      if (known.id != thread) continue;
      jitunwind::Addr seen = 0;
      std::size_t frames = 0;
      jitunwind::Walk walk = target_.walk(known);
      for (const jitunwind::Frame& frame : walk) {
        seen ^= frame.pc();
        ++frames;
      }
      return walk.stop_reason() == jitunwind::StopReason::outermost && seen != 0 ? frames : 0;
    }
    return 0;
  }

 private:
  jitunwind::Target target_;
};

}  // namespace

std::unique_ptr<Onlooker> onlooker_of_jitunwind(pid_t process) {
  auto target = jitunwind::Target::of_traced(process);
  if (!target) return nullptr;
  return std::make_unique<Jitunwind>(std::move(*target));
}

}  // namespace bench
