// Everything a program needs to describe, register and walk code made at run time. Other threads and other processes
// have the header <jitunwind/target.h>; the C++ run-time's unwinder, <jitunwind/system_unwinder.h>.
#pragma once

#include "jitunwind/sdk/language.h"
#include "jitunwind/version.h"

#if __cplusplus >= 202002L
#include "jitunwind/builders/procedure_builder.h"
#include "jitunwind/builders/registers_aarch64.h"
#include "jitunwind/builders/registers_x86_64.h"
#include "jitunwind/builders/registration.h"
#include "jitunwind/sdk/dump.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/statistics.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/walk/resume.h"
#endif
