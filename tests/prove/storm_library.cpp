#include "tests/prove/storm_library.h"

#include <dlfcn.h>
#include <time.h>

#include <array>
#include <stdexcept>

#include "tests/prove/storm_threads.h"

namespace jitunwind::storm {
namespace {

constexpr Addr k_page = 4096;

void stay_for_a_while(Thread& self) {
  const timespec time{0, static_cast<long>(self.random() % 2'000'000)};
  ::nanosleep(&time, nullptr);
}

}  // namespace

void Library::be_loaded(Thread& self) {
  self.begin("dlopen");
  void* const handle =
      ::dlopen(self.random() % 2 == 0 ? STORM_SMALL_PLUGIN : STORM_LARGE_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw std::runtime_error(::dlerror());
  void* const function = ::dlsym(handle, "storm_plugin_call");
  dl_find_object object;
  if (function == nullptr || ::_dl_find_object(function, &object) != 0) throw std::runtime_error("the plugin");
  begin_ = reinterpret_cast<std::uintptr_t>(object.dlfo_map_start);
  end_ = (reinterpret_cast<std::uintptr_t>(object.dlfo_map_end) + k_page - 1) & ~(k_page - 1);
  ++counters().loads;
  counters().loads_where_code_was += code_at_ >= begin_ && code_at_ < end_;
  last_begin_ = begin_;
  call_ = reinterpret_cast<Through>(function);
  is_loaded_ = true;
  gate_.open();
  stay_for_a_while(self);
  gate_.close();
  self.begin("dlclose");
  ::dlclose(handle);
}

void Library::be_code(Thread& self) {
  self.begin("code where a library was");
  const Addr page = begin_ + k_page * (self.random() % ((end_ - begin_) / k_page));
  void* const code = map_code(reinterpret_cast<void*>(static_cast<std::uintptr_t>(page)), k_page);
  if (code == nullptr) return;
  code_at_ = page;
  ++counters().code_where_library_was;
  slot_.set_code(static_cast<std::byte*>(code) + self.random() % (k_page / k_slot_size) * k_slot_size);
  slot_.fill(self.random);
  call_ = slot_.code();
  is_loaded_ = false;
  gate_.open();
  stay_for_a_while(self);
  gate_.close();
  slot_.empty(self.random);
  unmap_code(code, k_page);
}

void Library::come_and_go(Thread& self) {
  be_loaded(self);
  be_code(self);
}

}  // namespace jitunwind::storm
