/* A call that is inlined twice, with debug information. The called function walks. */
typedef int hook_t(void*);

int jitunwind_test_through_inlined(hook_t* hook, void* argument);

static inline __attribute__((always_inline)) int jitunwind_test_inner(hook_t* hook, void* argument) {
  const int result = hook(argument); /* inner calls */
  __asm__ volatile("");
  return result + 1;
}

static inline __attribute__((always_inline)) int jitunwind_test_middle(hook_t* hook, void* argument) {
  const int result = jitunwind_test_inner(hook, argument); /* middle calls */
  __asm__ volatile("");
  return result + 2;
}

int jitunwind_test_through_inlined(hook_t* hook, void* argument) {
  return jitunwind_test_middle(hook, argument) + 4; /* outer calls */
}
