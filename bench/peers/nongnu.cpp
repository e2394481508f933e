// nongnu libunwind: descriptors with a table each, in a list that is searched linearly; it does not execute directives.
// It needs its own headers, because its descriptor has one word more than ours.
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <vector>

#include "bench/peers/step_walker.h"

namespace bench {

namespace {

std::size_t backtrace(std::span<void*> into) {
  return static_cast<std::size_t>(unw_backtrace(into.data(), static_cast<int>(into.size())));
}

/// An entry of a binary search table. Its members are relative to the descriptor's segbase, here the function's code.
struct TableEntry {
  std::int32_t start;
  std::int32_t fde;
};
static_assert(sizeof(TableEntry) == sizeof(unw_word_t));

class DynRegistrar final : public Registrar {
 public:
  const char* name() const override { return "_U_dyn_register"; }
  std::size_t max_functions() const override { return 100'000; }

  void prepare(std::span<const JitFunction> functions) override {
    descriptors_.assign(functions.size(), {});
    for (std::size_t i = 0; i < functions.size(); ++i) describe(functions[i], descriptors_[i]);
  }
  void register_function(std::size_t index) override { _U_dyn_register(&descriptors_[index].info); }
  void cancel_function(std::size_t index) override { _U_dyn_cancel(&descriptors_[index].info); }
  bool find(const void* pc) override {
    unw_proc_info_t info;
    return unw_get_proc_info_by_ip(unw_local_addr_space, reinterpret_cast<unw_word_t>(pc), &info, nullptr) == 0;
  }

 private:
  struct Described {
    unw_dyn_info_t info;
    TableEntry entry;
  };

  static void describe(const JitFunction& function, Described& one) {
    one.entry = {0, static_cast<std::int32_t>(function.fde - function.code)};
    one.info.start_ip = reinterpret_cast<unw_word_t>(function.code);
    one.info.end_ip = one.info.start_ip + function.size;
    one.info.format = UNW_INFO_FORMAT_REMOTE_TABLE;
    one.info.u.rti.segbase = one.info.start_ip;
    one.info.u.rti.table_len = sizeof(TableEntry) / sizeof(unw_word_t);
    one.info.u.rti.table_data = reinterpret_cast<unw_word_t>(&one.entry);
  }

  std::vector<Described> descriptors_;
};

constexpr Walker k_walkers[]{{"unw_step", unw_step_walk, true}, {"unw_backtrace", backtrace, true}};
DynRegistrar registrar;
Registrar* const k_registrars[]{&registrar};

}  // namespace

const char* thrower() { return "libgcc_s"; }
std::span<const Walker> walkers() { return k_walkers; }
std::span<Registrar* const> registrars() { return k_registrars; }

}  // namespace bench
