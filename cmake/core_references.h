// Included in front of each source of libjitunwind-core, which does not need the C++ run-time library.
//
// Tables of virtual functions refer to one of that library's. The reference is weak: nobody calls it. So are those of
// type information, which only builds with sanitizers have.
__asm__(".weak __cxa_pure_virtual");
#ifdef __cpp_rtti
__asm__(
    ".weak _ZTVN10__cxxabiv117__class_type_infoE\n\t"
    ".weak _ZTVN10__cxxabiv120__si_class_type_infoE\n\t"
    ".weak _ZTVN10__cxxabiv121__vmi_class_type_infoE");
#endif

// std::string_view::substr() checks its first argument, and calls this function of the run-time library for a wrong
// one. The core has another function in its place, under a name that no program has (unwind_core/error.cpp). The
// headers of the standard library are therefore read with that name.
#ifdef __cplusplus
#define __throw_out_of_range_fmt jitunwind_out_of_range
#endif

// Assertions of the standard library call a function of the run-time library. Distributions turn them on for all
// packages, and gcc 15 and newer do in builds without optimisation.
#undef _GLIBCXX_ASSERTIONS
#define _GLIBCXX_NO_ASSERTIONS 1
