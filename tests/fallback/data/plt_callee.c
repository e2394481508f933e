/* The functions that the libraries of plt_caller.c call. */
long plt_callee_a(long n) { return n + 1; }
long plt_callee_b(long n) { return n * 2; }
long plt_callee_c(long n) { return n - 3; }
