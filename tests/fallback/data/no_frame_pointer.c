/* Compiled without any unwind information, and without a frame pointer. */
int leaf_without_tables(const int* value) { return *value; }

/* rbp stays the caller's. */
int frameless_without_tables(int (*call)(void), int value) {
  volatile int result = call();
  return result + value;
}

/* rbp holds a number. */
int frameless_with_other_rbp(int (*call)(void), int value) {
  __asm__ volatile("movl $1, %%ebp" ::: "rbp");
  volatile int result = call();
  return result + value;
}
