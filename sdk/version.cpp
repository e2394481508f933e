#include <jitunwind/version.h>

unsigned jitunwind_version(void) { return JITUNWIND_VERSION; }
