// Unwinders that know nothing of this library, in a process without it: libgcc_s, and nongnu's libunwind. The functions
// are in files that another program published, which this one opens as libraries.
#include <dlfcn.h>
#include <link.h>
#include <unwind.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "bench/peers/backtrace_walker.h"

namespace bench {

namespace {

class FileRegistrar final : public Registrar {
 public:
  const char* name() const override { return "files"; }
  const char* description() const override { return "published"; }
  std::size_t max_functions() const override { return 100'000; }
  bool find(const void*) override { return false; }
  bool can_find() const override { return false; }
  const std::byte* copy_of(std::size_t index) const override { return copies_[index]; }

  void prepare(std::span<const JitFunction> functions) override {
    for (const auto& [path, handle] : open_) ::dlclose(handle);
    open_.clear();
    copies_.clear();
    std::size_t shapes = 1;  // as many as sizes: jit_arena.cpp
    for (const JitFunction& function : functions) shapes = std::max(shapes, function.locals / 16);
    char folder[] = "/dev/shm/bench-published-XXXXXX";
    if (::mkdtemp(folder) == nullptr) std::abort();
    const std::string command = "JITUNWIND_CODE_DIR=" + std::string(folder) + " '" MAKE_PUBLISHED "' " +
                                std::to_string(functions.size()) + " " + std::to_string(shapes);
    FILE* const lines = ::popen(command.c_str(), "r");
    std::vector<std::pair<std::string, std::ptrdiff_t>> places;
    char path[512];
    std::ptrdiff_t offset = 0;
    while (std::fscanf(lines, "%511s %td", path, &offset) == 2) places.push_back({path, offset});
    ::pclose(lines);  // the files are sealed now
    for (const auto& [file, at] : places) copies_.push_back(image_of(file) + at);
    std::filesystem::remove_all(folder);
    if (copies_.size() != functions.size()) std::abort();
  }
  void register_function(std::size_t) override {}
  void cancel_function(std::size_t) override {}

 private:
  const std::byte* image_of(const std::string& path) {
    void*& handle = open_[path];
    if (handle == nullptr) handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) std::abort();
    link_map* map = nullptr;
    if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) std::abort();
    return reinterpret_cast<const std::byte*>(map->l_addr);
  }

  std::map<std::string, void*> open_;
  std::vector<const std::byte*> copies_;
};

std::size_t nongnu_backtrace(std::span<void*> into) {
  using Function = int(void**, int);
  static Function* const function = [] {
    void* const library = ::dlopen(NONGNU_LIBRARY, RTLD_NOW | RTLD_LOCAL);  // its level I names stay its own
    return library == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library, "unw_backtrace"));
  }();
  return function == nullptr ? 0 : static_cast<std::size_t>(function(into.data(), static_cast<int>(into.size())));
}

constexpr Walker k_walkers[]{{"_Unwind_Backtrace", level_one_backtrace, true},
                             {"unw_backtrace of bookworm", nongnu_backtrace, true}};
FileRegistrar registrar;
Registrar* const k_registrars[]{&registrar};

}  // namespace

const char* thrower() { return "libgcc_s"; }
std::span<const Walker> walkers() {
  return std::span(k_walkers).first(std::filesystem::exists(NONGNU_LIBRARY) ? 2 : 1);
}
std::span<Registrar* const> registrars() { return k_registrars; }

}  // namespace bench
