// Ordinary functions, compiled once with each set of options: JUDGED_VARIANT names the section that holds all of them,
// and the entry point.
#include <alloca.h>

#include <cstdarg>
#include <cstdint>
#include <initializer_list>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)
#define JUDGED [[gnu::noinline, gnu::section(TEXT(JUDGED_VARIANT))]]

namespace {

using Helper = std::int64_t (*)(std::int64_t);

JUDGED std::int64_t leaf(std::int64_t a, std::int64_t b) { return a * 7 + (b ^ a); }

JUDGED std::int64_t early(std::int64_t a, std::int64_t b, Helper helper) {
  if (a < 0) return -1;
  const std::int64_t once = helper(a);
  if (once == b) return b;
  for (std::int64_t i = 0; i < a; ++i) {
    b += helper(once + i);
    if (b > 40) return a + b;
  }
  return b - once;
}

JUDGED std::int64_t variable(std::size_t n, Helper helper) {
  auto* bytes = static_cast<volatile std::uint8_t*>(alloca(n));
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::uint8_t>(i);
  return helper(bytes[n / 2]) + bytes[n - 1];
}

JUDGED std::int64_t realigned(std::int64_t a, Helper helper) {
  alignas(64) volatile std::int64_t line[8];
  for (int i = 0; i < 8; ++i) line[i] = a + i;
  return helper(line[3]) + static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(line) % 64) + line[7];
}

JUDGED std::int64_t realigned_and_variable(std::size_t n, Helper helper) {
  alignas(128) volatile std::int64_t line[16];
  auto* words = static_cast<volatile std::int64_t*>(alloca(n * 8));
  for (std::size_t i = 0; i < n; ++i) {
    line[i % 16] = static_cast<std::int64_t>(i);
    words[i] = line[i % 16];
  }
  return helper(words[n - 1]) + line[1];
}

JUDGED std::int64_t large(std::int64_t a, Helper helper) {
  volatile std::uint8_t block[9000];
  block[0] = static_cast<std::uint8_t>(a);
  block[8999] = block[0];
  return helper(block[8999]);
}

JUDGED std::int64_t many(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d, std::int64_t e, std::int64_t f,
                         std::int64_t g, std::int64_t h, Helper helper) {
  return a + helper(b) * c - d + helper(e + f) * g + h;
}

JUDGED std::int64_t passes_many(std::int64_t a, Helper helper) {
  return many(a, a + 1, a + 2, a + 3, a + 4, a + 5, a + 6, a + 7, helper) + a;
}

JUDGED std::int64_t fibonacci(std::int64_t n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

JUDGED std::int64_t pressure(std::int64_t a, std::int64_t b, Helper helper) {
  std::int64_t c = a + b, d = a - b, e = a * b, f = a ^ b, g = a | b, h = a & b, i = a << 1, j = b << 1;
  const std::int64_t once = helper(a);
  c += once, d -= once, e ^= once, f += c, g -= d, h ^= e, i += f, j -= g;
  return helper(c) + d * e + f * g + h * i + j;
}

JUDGED std::int64_t chooses(int which, Helper helper) {
  switch (which) {
    case 0:
      return helper(3);
    case 1:
      return helper(5) + 1;
    case 2:
      return helper(7) * helper(2);
    case 3:
      return 11;
    case 4:
      return helper(13) - 4;
    case 5:
      return helper(helper(17));
    default:
      return -1;
  }
}

struct Big {
  std::int64_t values[9];
};

JUDGED Big by_value(Big in, Helper helper) {
  for (std::int64_t& v : in.values) v = helper(v) + 1;
  return in;
}

JUDGED std::int64_t variadic(int n, ...) {
  std::va_list list;
  va_start(list, n);
  std::int64_t sum = 0;
  for (int i = 0; i < n; ++i) sum += va_arg(list, std::int64_t);
  va_end(list);
  return sum;
}

JUDGED double floats(double a, double b, Helper helper) {
  const double c = a * b + 1.5;
  return c + static_cast<double>(helper(static_cast<std::int64_t>(c))) * a;
}

JUDGED std::int64_t forwards(std::int64_t a, Helper helper) { return helper(a + 1); }

}  // namespace

extern "C" std::int64_t JOIN(run_, JUDGED_VARIANT)(Helper helper) {
  std::int64_t sum = leaf(3, 4);
  for (const std::int64_t a : {-1, 0, 2, 6}) sum += early(a, 5, helper);
  sum += variable(33, helper) + variable(700, helper) + realigned(9, helper) + realigned_and_variable(20, helper);
  sum += large(200, helper) + passes_many(2, helper) + fibonacci(5) + pressure(12, 5, helper) + forwards(1, helper);
  for (int which = -1; which <= 6; ++which) sum += chooses(which, helper);
  sum += by_value({{1, 2, 3, 4, 5, 6, 7, 8, 9}}, helper).values[8] + variadic(3, INT64_C(1), INT64_C(2), INT64_C(3));
  return sum + static_cast<std::int64_t>(floats(2.5, 4.0, helper));
}
