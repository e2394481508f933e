// The measurements that every peer's program makes.
#pragma once

#include <cstddef>
#include <string>

namespace bench {

/// An item is a frame.
///   walk/WALKER/static|jit/DEPTH     the same stack over and over
///   unlike/WALKER/static|jit/DEPTH   another stack of the same functions each time
void add_walk_benchmarks();

///   contention/WALKER/other_pages|neighbours   of 50 frames, every fourth made at run time, while another thread
///                                 registers and cancels far away, or next to the functions on the stack
///   contention/WALKER, nothing changes/...     while it only computes
void add_contention_benchmarks();

/// A process can be cold only once, so a run makes one of these. An item is a frame.
///   first_walk/WALKER/DEPTH      the first walk in the process
///   new_functions/WALKER/DEPTH   after walks of other functions of the same program
void add_cold_benchmarks();

/// These measure cold walks in code that is scattered over a megabyte, in three modules. An item is a frame;
/// NAME_faults counts the page faults of a whole walk.
///   scattered_first/WALKER/DEPTH    the first walk in the process
///   scattered_second/WALKER/DEPTH   the second walk, of the same stack
///   scattered_new/WALKER/DEPTH      after a walk of other functions of the same modules
void add_scattered_benchmarks();

///   scattered_throw/THROWER/DEPTH   the first throw in the process, through the same code
///   cleaning_throw/THROWER/DEPTH    the same through functions with destructors, which are not scattered
void add_first_throw_benchmarks();

/// These run in a process with 499 libraries, each frame in another one. A run makes one of them. An item is a frame.
///   first_walk_libraries/WALKER/DEPTH   the first walk in the process
///   walk_libraries/WALKER/DEPTH
///   walk_while_loading/WALKER/DEPTH     while another thread loads and unloads one more
void add_library_benchmarks();

/// An item is a procedure or a lookup; N procedures, at most max_functions, are registered one by one:
///   register/REGISTRAR/sequential|random|alone/N   cancel/REGISTRAR/sequential|random|alone/N
///   first_lookup/REGISTRAR/N                 the first lookup after the last registration
///   lookup_jit/REGISTRAR/N                   of 64 procedures, over and over
///   lookup_static/REGISTRAR/N                of this program's own code
void add_registration_benchmarks(std::size_t max_functions);

/// An item is a throw, by libgcc_s as it is, without this library or with it, or by the exception runtime.
///   throw/THROWER/static|destructors|jit/DEPTH/N   through C++ functions, or every fourth of the first registrar's;
///                                       N other functions are registered
///   first_throw/THROWER/N              through one function, with N others registered just before
///   throw_beside/THROWER[, other computes]/DEPTH   of one of the first registrar's, in elapsed time, while another
///                                       thread throws likewise
void add_throw_benchmarks(std::size_t max_functions);

/// An item is a throw or a walk through one function made at run time. The N functions were registered just before.
/// They are alike and 32 bytes apart, or as the name says: they have 30 shapes, each has its own, or they lie on pages
/// of their own.
///   through_new/WAY/DESCRIPTION/N[/KIND]     through each for the first time
///   through_again/WAY/DESCRIPTION/N[/KIND]   through each once more
void add_through_walk_benchmarks(std::size_t max_functions);
void add_through_throw_benchmarks(std::size_t max_functions);

/// Does one thing `times` times, for callgrind instead of Google Benchmark. An empty name lists what there is, a line
/// each: number of items, name. Returns the program's status.
///   instructions/WAY/walk/a frame, register/and cancel, throw/through a frame
int count(const std::string& name, std::size_t times);

}  // namespace bench
