// Each case is a mistake that the compiler must refuse. If no case is chosen, the program is right and compiles.
#include <utility>

#include "jitunwind/builders/registers_aarch64.h"
#include "jitunwind/builders/registers_x86_64.h"
#include "jitunwind/builders/registration.h"

namespace jitunwind {

void right() {
  x86_64::describe().push({0, 1}, x86_64::rbp).set_frame_pointer({1, 4}, x86_64::rbp);
  aarch64::describe().store_pair_pre({0, 4}, aarch64::x29, aarch64::x30, -16);
  Registration a, b = std::move(a);
  (void)(x86_64::rbp == x86_64::rbp);
}

void wrong() {
#if CASE == 1  // another CPU's register
  x86_64::describe().push({0, 1}, aarch64::x29);
#elif CASE == 2  // in a directive
  aarch64::describe().region(1).save_reg(0, aarch64::sp, x86_64::rbp);
#elif CASE == 3  // an instruction that the CPU does not have
  aarch64::describe().push({0, 4}, aarch64::x29);
#elif CASE == 4
  x86_64::describe().store_pair({0, 4}, x86_64::rbx, x86_64::rbp, 0);
#elif CASE == 5
  x86_64::describe().sign_return_address({0, 4});
#elif CASE == 6  // a number for a register
  x86_64::describe().push({0, 1}, 3);
#elif CASE == 7  // registers of two CPUs
  (void)(x86_64::rbp == aarch64::x29);
#elif CASE == 8  // two owners
  Registration a, b = a;
#elif CASE == 9  // a registration that nobody keeps cancels at once
  register_code(*x86_64::describe().build(), Code{});
#endif
}

}  // namespace jitunwind
