// A program that derives from public classes of the core and of libjitunwind, and asks for the types of its own classes
// if it is compiled with RTTI, which the core is not. CORE_ALONE: libjitunwind is not linked, and there is no RTTI.
#include <jitunwind/unwind_core/address_space.h>
#include <jitunwind/unwind_core/no_modules.h>
#ifndef CORE_ALONE
#include <jitunwind/dyn_info/registry/observers.h>
#endif

#include <array>
#include <cstdio>
#include <cstring>
#ifdef __cpp_rtti
#include <typeinfo>
#endif

namespace {

using namespace jitunwind;

struct NoMemory final : Memory {
  std::size_t read(Addr, std::span<std::byte>, MemoryWindow&) const noexcept override { return 0; }
};

struct OneModule final : ModuleFinder {
  bool find(Addr at, Module& out) const noexcept override {
    out.range = {0x1000, 0x2000};
    out.path = "module";
    return out.range.contains(at);
  }
};

struct OneName final : RowSource, NameSource {
  Found find_row(Lookup&, FrameRow&) const noexcept override { return false; }
  Found find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept override {
    write_name("function", into, out);
    return lookup.at.lookup() == 0x1000;
  }
};

int fail(const char* what) { return std::puts(what), 1; }

// Not folded by compilers: they do not see which class it is.
template <class T>
[[gnu::noinline]] const T& opaque(const T& object) {
  const T* pointer = &object;
  __asm__("" : "+r"(pointer));
  return *pointer;
}

#ifdef __cpp_rtti
int check_types(const RowSource& source, const ModuleFinder& finder) {
  if (typeid(source) != typeid(OneName) || typeid(source) == typeid(NoModules)) return fail("typeid of a source");
  if (!dynamic_cast<const OneName*>(&source)) return fail("the source's class");
  if (!dynamic_cast<const NameSource*>(&source)) return fail("the source's other base");
  if (dynamic_cast<const NoModules*>(&finder)) return fail("a class that the finder has not");
  if (!dynamic_cast<const OneModule*>(&finder)) return fail("the finder's class");
  if (std::strcmp(typeid(RowSource).name(), "N9jitunwind9RowSourceE") != 0) return fail("typeid of the base");
  return 0;
}
#endif

#ifndef CORE_ALONE
struct Observer final : RegistryObserver {
  void registered(std::span<const RegisteredProcedure>) noexcept override {}
  void cancelled(std::span<unw_dyn_info_t* const>) noexcept override {}
  void retired() noexcept override {}
};

int observe() {
  Observer observer;
  return attach_observer(observer) && detach_observer(observer) ? 0 : fail("observer");
}
#else
int observe() { return 0; }
#endif

}  // namespace

int main() {
  const NoMemory memory;
  const OneModule modules;
  const OneName source;
  const std::array<const RowSource*, 1> rows{&opaque<RowSource>(source)};
  const std::array<const NameSource*, 1> names{&source};
  const AddressSpace space{*host_arch(), memory, opaque<ModuleFinder>(modules), rows, names};
  MemoryWindow window;
  Lookup lookup(space, CodeAddress::interrupted(0x1000), window);
  std::array<char, 16> text{};
  ProcedureName name;
  const Found found = space.find_name(lookup, text, name);
  if (!found || !*found || std::strcmp(text.data(), "function") != 0) return fail("name");
  FrameRow row;
  const Found no_row = space.find_row(lookup, row);
  if (!no_row || *no_row) return fail("row");
  if (!lookup.module() || space.modules.copy_path(*lookup.module(), text) != 6) return fail("path");
#ifdef __cpp_rtti
  if (check_types(opaque<RowSource>(source), opaque<ModuleFinder>(modules)) != 0) return 1;
#endif
  return observe() == 0 ? (std::puts("derived"), 0) : 1;
}
