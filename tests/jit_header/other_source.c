/* A second source of one program that has the header. */
#include "announcer.h"

int wanted_in_other_source(void) { return ju_jit_wanted(); }
