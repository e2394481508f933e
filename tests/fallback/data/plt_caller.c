/* Calls through stubs of the procedure linkage table. The address of the third is taken as well: GNU ld then calls it
 * through .plt.got. */
long plt_callee_a(long), plt_callee_b(long), plt_callee_c(long);

long (*plt_taken(void))(long) { return &plt_callee_c; }

long plt_call_all(long n) { return plt_callee_a(n) + plt_callee_b(n) + plt_callee_c(n); }
