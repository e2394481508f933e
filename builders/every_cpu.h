// The named registers of every CPU of unwind_core/arch/arch_list.def.
#pragma once

#include "jitunwind/builders/other_cpus/registers_arm.h"
#include "jitunwind/builders/other_cpus/registers_mips.h"
#include "jitunwind/builders/other_cpus/registers_ppc64.h"
#include "jitunwind/builders/other_cpus/registers_riscv.h"
#include "jitunwind/builders/other_cpus/registers_s390x.h"
#include "jitunwind/builders/other_cpus/registers_x86.h"
#include "jitunwind/builders/registers_aarch64.h"
#include "jitunwind/builders/registers_x86_64.h"
