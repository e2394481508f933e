/* The C interface: everything a program needs to describe, register and walk code made at run time. C99. docs/c.md. */
#ifndef JITUNWIND_C_H
#define JITUNWIND_C_H

#include "jitunwind/sdk/c/base.h"
#include "jitunwind/sdk/c/code_segments.h"
#include "jitunwind/sdk/c/describe.h"
#include "jitunwind/sdk/c/handlers.h"
#include "jitunwind/sdk/c/process.h"
#include "jitunwind/sdk/c/register.h"
#include "jitunwind/sdk/c/registers.h"
#include "jitunwind/sdk/c/target.h"
#include "jitunwind/sdk/c/walk.h"

#endif
