/* Functions that a JIT of another CPU reports to GDB. They have prologues and epilogues, and need no library of that
   CPU. */
int other(int);

int inner(int n) { return other(n) + 1; }

int middle(int n) {
  volatile int kept[64];
  kept[n & 63] = inner(n);
  return kept[n & 63] + inner(n - 1);
}

int outer(int n, int m) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += middle(i) * m;
  return sum;
}
