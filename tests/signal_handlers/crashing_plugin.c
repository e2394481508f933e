/* Faults while it is loaded. */
#include <stddef.h>

static int* volatile nowhere = NULL;
__attribute__((constructor)) static void fault(void) { *nowhere = 1; }
