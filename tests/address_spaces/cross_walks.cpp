#include "tests/address_spaces/cross_walks.h"

#include <libunwind-aarch64.h>

#include <endian.h>

#include "tests/address_spaces/cross_stack.h"

namespace jitunwind::test {
namespace {

/// The target does not change, so threads need not wait for each other in its callbacks.
unw_accessors_t accessors_of_stack() {
  unw_accessors_t a{};
  a.find_proc_info = [](unw_addr_space_t, unw_word_t ip, unw_proc_info_t* info, int, void* stack) {
    return static_cast<CrossStack*>(stack)->find(ip, info);
  };
  a.access_mem = [](unw_addr_space_t, unw_word_t at, unw_word_t* value, int write, void* stack) {
    const auto& memory = static_cast<const CrossStack*>(stack)->memory;
    const auto found = memory.find(at);
    if (write != 0 || found == memory.end()) return -UNW_EINVAL;
    *value = found->second;
    return 0;
  };
  a.access_reg = [](unw_addr_space_t, unw_regnum_t reg, unw_word_t* value, int write, void* stack) {
    const auto& registers = static_cast<const CrossStack*>(stack)->registers;
    const auto found = registers.find(reg);
    if (write != 0 || found == registers.end()) return -UNW_EBADREG;
    *value = found->second;
    return 0;
  };
  return a;
}

class Walk final : public CrossWalk {
 public:
  Walk(unw_addr_space_t space, CrossStack& stack) { started_ = unw_init_remote(&cursor_, space, &stack); }
  std::uint64_t ip() override {
    unw_word_t value = 0;
    return started_ == 0 && unw_get_reg(&cursor_, UNW_REG_IP, &value) == 0 ? value : 0;
  }
  int step() override { return started_ == 0 ? unw_step(&cursor_) : started_; }

 private:
  int started_;
  unw_cursor_t cursor_;
};

class Space final : public CrossSpace {
 public:
  explicit Space(bool big_endian) : stack_(big_endian) {
    unw_accessors_t accessors = accessors_of_stack();
    space_ = unw_create_addr_space(&accessors, big_endian ? __BIG_ENDIAN : __LITTLE_ENDIAN);
  }
  ~Space() override { unw_destroy_addr_space(space_); }
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;
  std::unique_ptr<CrossWalk> walk() override { return std::make_unique<Walk>(space_, stack_); }
  void set_policy(int policy) override {
    (void)unw_set_caching_policy(space_, static_cast<unw_caching_policy_t>(policy));
  }
  void flush() override { unw_flush_cache(space_, 0, 0); }

 private:
  CrossStack stack_;
  unw_addr_space_t space_;
};

}  // namespace

std::uint64_t cross_ip(std::uint64_t frame) { return CrossStack::ip_of(frame); }
std::unique_ptr<CrossSpace> make_cross_space(bool big_endian) { return std::make_unique<Space>(big_endian); }

}  // namespace jitunwind::test
