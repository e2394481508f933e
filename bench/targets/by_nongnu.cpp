// Looks at a process by nongnu libunwind's helper for ptrace.
#include <libunwind-ptrace.h>

#include "bench/targets/onlooker.h"

namespace bench {
namespace {

class Nongnu final : public Onlooker {
 public:
  Nongnu() { unw_set_caching_policy(space_, UNW_CACHE_GLOBAL); }
  ~Nongnu() override {
    if (info_) _UPT_destroy(info_);
    unw_destroy_addr_space(space_);
  }
  Nongnu(const Nongnu&) = delete;
  std::size_t walk(pid_t thread) override {
    if (!info_) info_ = _UPT_create(thread);
    unw_cursor_t cursor;
    if (unw_init_remote(&cursor, space_, info_) < 0) return 0;
    std::size_t frames = 0;
    int stepped = 1;
    for (; stepped > 0; stepped = unw_step(&cursor)) {
      unw_word_t pc = 0;
      if (unw_get_reg(&cursor, UNW_REG_IP, &pc) < 0) return 0;
      ++frames;
    }
    return frames;
  }

 private:
  unw_addr_space_t space_ = unw_create_addr_space(&_UPT_accessors, 0);
  void* info_ = nullptr;
};

std::unique_ptr<Onlooker> look_at(pid_t) { return std::make_unique<Nongnu>(); }

}  // namespace

Way way() { return {"ptrace", look_at}; }
void add_own_benchmarks() {}

}  // namespace bench
