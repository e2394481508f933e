// Reports a wrong language in one line; the compiler would otherwise report hundreds of errors in the headers.
#pragma once

#ifndef __cplusplus
#error "jitunwind's own interface is C++20; C programs include <jitunwind/c.h> or <libunwind.h>"
#elif __cplusplus < 202002L
#error "jitunwind needs C++20: -std=c++20, or target_compile_features(program PRIVATE cxx_std_20)"
#endif
