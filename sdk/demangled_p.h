// Names as people read them.
#pragma once

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

namespace jitunwind {

/// Demangles the names of C++ functions only (Itanium C++ ABI, 5.1.2): to __cxa_demangle() "f" is a type, float.
inline std::string demangled(const char* name) {
  struct Free {
    void operator()(char* p) const noexcept { std::free(p); }
  };
  if (!std::string_view(name).starts_with("_Z")) return name;
  int status = -1;
  const std::unique_ptr<char, Free> text(abi::__cxa_demangle(name, nullptr, nullptr, &status));
  return status == 0 && text ? text.get() : name;
}

/// The name that `ask(into)` finds, demangled, however long it is; "" if it finds none.
template <class Ask>
std::string whole_name(Ask ask) {
  std::string name(256, '\0');
  auto found = ask(name);
  if (found && found->truncated) {
    name.resize(found->length + 1);
    found = ask(name);
  }
  return found ? demangled(name.c_str()) : std::string();
}

}  // namespace jitunwind
