/* Compiled without any unwind information: with a frame pointer, and kept calling by a volatile result. */
int framed_without_tables(int (*call)(void), int value) {
  volatile int result = call();
  return result + value;
}
