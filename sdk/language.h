// Says what is missing in one line, where the headers themselves would say it in hundreds.
#pragma once

#ifndef __cplusplus
#error "jitunwind's own interface is C++20; C programs include <libunwind.h>"
#elif __cplusplus < 202002L
#error "jitunwind needs C++20: -std=c++20, or target_compile_features(program PRIVATE cxx_std_20)"
#endif
