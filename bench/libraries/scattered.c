/* 1400 functions, each in 256 bytes of its own: with those of two other modules more than a megabyte of code. Each
   calls the next of those in the context (bench::Context). */
struct Context;
typedef void (*StackFunction)(struct Context*);
struct Context {
  const StackFunction* next;
};

#define FUNCTION(number)                                                                   \
  static __attribute__((noinline, aligned(256))) void f##number(struct Context* context) { \
    volatile char room[16 + (1##number % 7) * 24];                                         \
    room[0] = 0;                                                                           \
    if (1##number % 2 == 0) __asm__ volatile("" ::: "rbx");                                \
    if (1##number % 3 == 0) __asm__ volatile("" ::: "r12", "r13");                         \
    (*context->next++)(context);                                                           \
    (void)room[0];                                                                         \
  }
#define NAME(number) f##number,

/* Calls of macros without semicolons. */
/* clang-format off */
#define TIMES_10(apply, n) \
  apply(n##0) apply(n##1) apply(n##2) apply(n##3) apply(n##4) apply(n##5) apply(n##6) apply(n##7) apply(n##8) apply(n##9)
#define TIMES_100(apply, n)                                                                      \
  TIMES_10(apply, n##0) TIMES_10(apply, n##1) TIMES_10(apply, n##2) TIMES_10(apply, n##3)         \
  TIMES_10(apply, n##4) TIMES_10(apply, n##5) TIMES_10(apply, n##6) TIMES_10(apply, n##7)         \
  TIMES_10(apply, n##8) TIMES_10(apply, n##9)
#define TIMES_1400(apply)                                                                         \
  TIMES_100(apply, 0) TIMES_100(apply, 1) TIMES_100(apply, 2) TIMES_100(apply, 3)                 \
  TIMES_100(apply, 4) TIMES_100(apply, 5) TIMES_100(apply, 6) TIMES_100(apply, 7)                 \
  TIMES_100(apply, 8) TIMES_100(apply, 9) TIMES_100(apply, 10) TIMES_100(apply, 11)               \
  TIMES_100(apply, 12) TIMES_100(apply, 13)
/* clang-format on */

TIMES_1400(FUNCTION)

extern const StackFunction SCATTERED[1400];
const StackFunction SCATTERED[1400] = {TIMES_1400(NAME)};
