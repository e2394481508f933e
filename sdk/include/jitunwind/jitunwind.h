// Everything a program needs to describe, register and walk code made at run time.
#pragma once

#include "sdk/language.h"

#if __cplusplus >= 202002L
#include "builders/procedure_builder.h"
#include "builders/registers_aarch64.h"
#include "builders/registers_x86_64.h"
#include "builders/registration.h"
#include "sdk/local_space.h"
#include "sdk/walk.h"
#include "unwind_core/resume.h"
#endif
