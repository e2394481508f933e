// Loads and unloads plugins with copies of this library while others use libgcc_s and its jump slot. Does what its
// arguments say, one after the other:
//   open=FILE           dlopen, RTLD_LOCAL
//   run=FILE,WORD...    run_through() of it, with these words
//   close=FILE          dlclose; it must be gone
//   leave=FILE          dlclose
//   stress=FILE,N       opens it, throws once through its code, closes it, N times
//   busy=N              N threads throw and trace without pause, from now on
//   patch, deaf         somebody else takes the slot: and asks what stood there, or libgcc_s's own function
//   unpatch             and puts back what stood there
//   asked               that somebody has been asked since the last such step
//   sealed, no-code     mprotect does not let the slot be written, or a single page be executed
//   original            in the slot stands what stood there at the beginning, when it was resolved
//   read-only           the slot's page is not writable
//   load=FILE, space=FILE  another unwinder, or one in a namespace of its own; run with the word frames=other walks by
//   it
#include <dlfcn.h>
#include <execinfo.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/exceptions/links/slot_patcher.h"

namespace {

std::uintptr_t* g_slot;
bool g_sealed = false;
bool g_no_code = false;

// Another owner of the slot.
std::atomic<FindFde*> g_stood_there{nullptr};
std::atomic<bool> g_deaf{false};
std::atomic<int> g_asked{0};
const void* stranger(void* pc, void* bases) {
  ++g_asked;
  return (g_deaf ? find_definition() : g_stood_there.load())(pc, bases);
}

void throw_once(int depth) {
  if (depth > 0) return throw_once(depth - 1);
  std::array<void*, 64> trace;
  if (backtrace(trace.data(), 64) < 5) throw std::runtime_error("the trace is short");
  throw depth;
}

bool throws() {
  try {
    throw_once(5);
  } catch (int) {
    return true;
  }
  return false;
}

class Busy {
 public:
  void start(int count) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        while (!over_) wrong_ += !throws(), ++thrown_;
      });
    }
  }
  bool finish() {
    over_ = true;
    const bool any = !threads_.empty();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    std::printf("%d throws beside, %d wrong\n", thrown_.load(), wrong_.load());
    return wrong_ == 0 && (thrown_ > 0 || !any);
  }

 private:
  std::vector<std::thread> threads_;
  std::atomic<bool> over_{false};
  std::atomic<int> wrong_{0};
  std::atomic<int> thrown_{0};
};

// Another unwinder.
using Backtrace = _Unwind_Reason_Code(_Unwind_Trace_Fn, void*);
Backtrace* g_other;
int count_frames_by_other() {
  int count = 0;
  g_other(
      [](_Unwind_Context*, void* into) {
        ++*static_cast<int*>(into);
        return _URC_NO_REASON;
      },
      &count);
  return count;
}

bool use_other(void* loaded) {
  g_other = loaded != nullptr ? reinterpret_cast<Backtrace*>(dlsym(loaded, "_Unwind_Backtrace")) : nullptr;
  return g_other != nullptr;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

std::map<std::string, void*> g_open;

bool open_plugin(const std::string& file) {
  g_open[file] = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (g_open[file] == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  return g_open[file] != nullptr;
}

bool run_plugin(const std::vector<std::string>& parts) {
  std::vector<std::string> words = parts;
  std::ostringstream address;
  address << "frames=" << std::hex << reinterpret_cast<std::uintptr_t>(&count_frames_by_other);
  std::vector<char*> pointers;
  for (std::string& word : words) {
    if (word == "frames=other") word = address.str();
    pointers.push_back(word.data());
  }
  const auto run = reinterpret_cast<int (*)(int, char**)>(dlsym(g_open[parts[0]], "run_through"));
  return run != nullptr && run(static_cast<int>(pointers.size()), pointers.data()) == 0;
}

bool close_plugin(const std::string& file) {
  dlclose(g_open[file]);
  g_open.erase(file);
  return dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD) == nullptr;
}

bool stress(const std::string& file, int times) {
  std::printf("%d times\n", times);
  for (int i = 0; i < times; ++i) {
    if (!open_plugin(file) || !run_plugin({file, "short", "path=jump slot"}) || !close_plugin(file)) return false;
  }
  return true;
}

bool patch(bool deaf) {
  g_deaf = deaf;
  g_stood_there = reinterpret_cast<FindFde*>(__atomic_load_n(g_slot, __ATOMIC_SEQ_CST));
  store(g_slot, reinterpret_cast<std::uintptr_t>(&stranger));
  return true;
}

bool is_original(std::uintptr_t original) { return __atomic_load_n(g_slot, __ATOMIC_SEQ_CST) == original; }

}  // namespace

/// Replaces the C library's function.
extern "C" int mprotect(void* at, std::size_t size, int rights) noexcept {
  const auto slot = reinterpret_cast<std::uintptr_t>(g_slot), begin = reinterpret_cast<std::uintptr_t>(at);
  const bool refused =
      (g_sealed && slot >= begin && slot < begin + size) || (g_no_code && size == 4096 && (rights & PROT_EXEC) != 0);
  if (refused) return errno = EACCES, -1;
  return static_cast<int>(syscall(SYS_mprotect, at, size, rights));
}

int main(int argc, char** argv) {
  const bool resolved = throws();  // binds the slot
  g_slot = find_slot();
  const std::uintptr_t original = g_slot != nullptr ? *g_slot : 0;
  Busy busy;
  const std::map<std::string, std::function<bool(const std::vector<std::string>&)>> steps{
      {"open", [](const auto& a) { return open_plugin(a[0]); }},
      {"run", [](const auto& a) { return run_plugin(a); }},
      {"close", [](const auto& a) { return close_plugin(a[0]); }},
      {"leave", [](const auto& a) { return dlclose(g_open[a[0]]) == 0; }},
      {"stress", [](const auto& a) { return stress(a[0], std::stoi(a[1])); }},
      {"busy", [&](const auto& a) { return busy.start(std::stoi(a[0])), true; }},
      {"patch", [](const auto&) { return patch(false); }},
      {"deaf", [](const auto&) { return patch(true); }},
      {"unpatch",
       [](const auto&) { return store(g_slot, reinterpret_cast<std::uintptr_t>(g_stood_there.load())), true; }},
      {"asked", [](const auto&) { return g_asked.exchange(0) > 0; }},
      {"sealed", [](const auto&) { return g_sealed = true; }},
      {"no-code", [](const auto&) { return g_no_code = true; }},
      {"original", [&](const auto&) { return is_original(original); }},
      {"read-only", [](const auto&) { return !is_writable(g_slot); }},
      {"load", [](const auto& a) { return use_other(dlopen(a[0].c_str(), RTLD_NOW | RTLD_LOCAL)); }},
      {"space", [](const auto& a) { return use_other(dlmopen(LM_ID_NEWLM, a[0].c_str(), RTLD_NOW)); }},
  };
  bool right = resolved;
  for (int i = 1; i < argc && right; ++i) {
    const std::string step = argv[i];
    const std::size_t equals = std::min(step.find('='), step.size());
    const auto found = steps.find(step.substr(0, equals));
    right = found != steps.end() && found->second(split(step.substr(std::min(equals + 1, step.size())))) && throws();
    if (!right) std::printf("WRONG: %s\n", step.c_str());
  }
  right = busy.finish() && right;
  if (right) std::puts("every step right");
  return right ? 0 : 1;
}
