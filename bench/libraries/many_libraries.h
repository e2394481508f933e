// Libraries of which a process loads many. Each holds one function for a stack.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/stack.h"

namespace bench {

/// One of the MANY_LIBRARIES_COUNT libraries, which were made from one object. It is loaded as long as this object
/// lives.
class LoadedLibrary {
 public:
  explicit LoadedLibrary(std::size_t number)
      : handle_(::dlopen((MANY_LIBRARIES "/" + std::to_string(number) + ".so").c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!handle_) throw std::runtime_error(::dlerror());
  }
  ~LoadedLibrary() {
    if (handle_) ::dlclose(handle_);
  }
  LoadedLibrary(LoadedLibrary&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  LoadedLibrary& operator=(LoadedLibrary&&) = delete;

  StackFunction function() const { return reinterpret_cast<StackFunction>(::dlsym(handle_, "library_frame")); }

 private:
  void* handle_;
};

/// Loads the first `count` libraries.
inline std::vector<LoadedLibrary> load_libraries(std::size_t count) {
  std::vector<LoadedLibrary> all;
  for (std::size_t i = 0; i < count; ++i) all.emplace_back(i);
  return all;
}

}  // namespace bench
