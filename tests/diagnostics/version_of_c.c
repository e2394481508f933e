/* The header is C's, too. */
#include <jitunwind/version.h>

unsigned version_of_c(void);
const char* version_text_of_c(void);

unsigned version_of_c(void) { return jitunwind_version(); }
const char* version_text_of_c(void) { return JITUNWIND_VERSION_TEXT; }
