/* Compiled without any unwind information: with a frame pointer, and kept calling by a volatile result. */
int leaf_without_tables(const int* value);
int frameless_without_tables(int (*call)(void), int value);

int framed_without_tables(int (*call)(void), int value) {
  volatile int result = call();
  return result + value;
}

int framed_calls_leaf(const int* value) {
  volatile int result = leaf_without_tables(value);
  return result;
}

int framed_calls_frameless(int (*call)(void), int value) {
  volatile int result = frameless_without_tables(call, value);
  return result;
}
