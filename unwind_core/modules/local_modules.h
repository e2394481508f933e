// The modules of this process.
#pragma once

#include <cstddef>

#include "jitunwind/unwind_core/module.h"

struct dl_phdr_info;

#pragma GCC visibility push(default)
namespace jitunwind {

/// The modules of code on live stacks. Asks _dl_find_object (glibc 2.35), or what is in its place for musl, without a
/// lock. An older glibc has dl_iterate_phdr only: a walk in a signal handler that interrupted dlopen may deadlock.
/// Constant-initialised, never destroyed.
const ModuleFinder& local_modules() noexcept;

/// The modules of code that need not be on a stack, which another thread may unload at any moment. No byte of a module
/// that may go is looked at in place: see Module::memory. Each answer takes some system calls more.
const ModuleFinder& modules_of_addresses() noexcept;

/// The version of the module that covers `at`. It differs from that of any other module that was there before, by its
/// build id and by what the dynamic linker says of it. False: there is none. Version 0 where that cannot be told: an
/// object that may be unloaded and has no build id, or no _dl_find_object. Signal-safe.
bool find_module_version(Addr at, ModuleVersion& out) noexcept;

/// A function as dl_iterate_phdr().
using PhdrIteration = int (*)(int (*callback)(dl_phdr_info*, std::size_t, void*), void* argument);

/// The modules that such a function lists, asked each time: dl_iterate_phdr itself, or what list_modules_by() has set
/// in its place.
const ModuleFinder& listed_modules() noexcept;
const ModuleFinder& listed_modules_of_addresses() noexcept;
/// Null: dl_iterate_phdr. Thread-safe, signal-safe.
void list_modules_by(PhdrIteration function) noexcept;
/// Whether another function was set.
bool has_listed_modules() noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
