// Code of a library without unwind tables, whose only call frame information is .debug_frame.
int debug_frame_leaf(int a) { return a + 1; }

int debug_frame_calls(int (*f)(int), int a) {
  volatile int room[40];
  room[a & 31] = f(a);
  return room[a & 31] + f(a + 1);
}

int debug_frame_grows(int (*f)(int*), int n) {
  int room[n + 1];
  room[n] = n;
  return f(room) + room[n];
}
