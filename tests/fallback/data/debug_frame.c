/* Compiled with .debug_frame alone, and without a frame pointer. */
int with_debug_frame(int (*call)(void), int value) {
  volatile int result = call();
  return result + value;
}
