/* Compiled as C and as C++. */
#include <libunwind.h>

int middle(int n);

int main(void) { return middle(1) == 2 && unw_strerror(-UNW_EBADREG) ? 0 : 1; }
