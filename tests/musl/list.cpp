// The list of objects that is kept in place of _dl_find_object, behind its own interface. argv[1] is a library that
// nobody has loaded, argv[2] one that cannot be loaded, argv[3] a folder for copies of the first.
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <sys/time.h>

#include <cstdint>

#include "jitunwind/unwind_core/modules/local_modules_p.h"
#include "tests/musl/walks.h"

namespace {

using Later = int (*)(int (*)(void*), void*);
using jitunwind::dl_find_object;

Later open_later(const char* path) {
  void* const handle = dlopen(path, RTLD_NOW);
  if (handle == nullptr) fail(dlerror());
  return reinterpret_cast<Later>(dlsym(handle, "later"));
}

extern "C" int walk_here(void* names) {
  walk_names(static_cast<Names*>(names));
  return 0;
}

__attribute__((noinline)) void expect_walk_through(Later later) {
  Names names;
  if (later(walk_here, &names) != 1) fail("not called");
  expect_named(&names, "walk_here", "later");
}

dl_find_object found_at(void* at) {
  dl_find_object found{};
  if (jitunwind::_dl_find_object(at, &found) != 0) fail("not found");
  return found;
}

/// Holds the object against what the linker itself says.
void expect_is(const dl_find_object& found, void* at, const char* path) {
  Dl_info info;
  if (dladdr(at, &info) == 0 || info.dli_fbase != found.dlfo_map_start) fail("another begin");
  if (found.dlfo_map_end <= at || strcmp(found.dlfo_link_map->l_name, path) != 0) fail("another object");
  if (found.dlfo_link_map->l_addr != reinterpret_cast<std::uintptr_t>(info.dli_fbase)) fail("another address");
}

/// Returns the copy's path.
const char* copy_file(const char* from, const char* folder, int number) {
  static char path[4096];
  static char bytes[1 << 16];
  snprintf(path, sizeof path, "%s/later%d.so", folder, number);
  FILE* const in = fopen(from, "rb");
  FILE* const out = fopen(path, "wb");
  if (in == nullptr || out == nullptr) fail("no copy");
  const std::size_t size = fread(bytes, 1, sizeof bytes, in);
  if (fwrite(bytes, 1, size, out) != size || fclose(out) != 0 || fclose(in) != 0) fail("no whole copy");
  return path;
}

volatile sig_atomic_t walks = 0, whole = 0;

/// One signal, so that the program goes on however long a handler takes.
void send_alarm() {
  const itimerval once{{0, 0}, {0, 1000}};
  setitimer(ITIMER_REAL, &once, nullptr);
}

void on_alarm(int) {
  Names names;
  walk_names(&names);
  walks = walks + 1;
  if (are_named(&names, "load_all", "main")) whole = whole + 1;
  send_alarm();
}

/// Handlers walk all the time, also within dlopen(), which has the linker's lock.
extern "C" __attribute__((noinline)) void load_all(const char* library, const char* broken, const char* folder) {
  constexpr int k_libraries = 300;
  signal(SIGALRM, on_alarm);
  send_alarm();
  Later last = nullptr;
  for (int i = 0; i < k_libraries; ++i) {
    if (dlopen(broken, RTLD_NOW) != nullptr) fail("it can be loaded");
    last = open_later(copy_file(library, folder, i));
    if (i % 100 == 50) jitunwind::renew_linked_objects();
    expect_walk_through(last);
  }
  signal(SIGALRM, SIG_IGN);
  // There are more than the list has room for.
  jitunwind::renew_linked_objects();
  expect_walk_through(last);
  printf("%d walks, %d of them whole\n", static_cast<int>(walks), static_cast<int>(whole));
  if (walks == 0 || whole == 0) fail("no handler walked");
}

}  // namespace

int main(int, char** argv) {
  dl_find_object none{};
  if (jitunwind::_dl_find_object(&none, &none) == 0) fail("the stack is an object");
  const dl_find_object program = found_at(reinterpret_cast<void*>(&main));
  if (program.dlfo_map_start == nullptr || *program.dlfo_link_map->l_name != '\0') fail("the program has a name");
  (void)found_at(reinterpret_cast<void*>(&dlopen));

  const Later later = open_later(argv[1]);
  void* const at = reinterpret_cast<void*>(later);
  link_map* linked = nullptr;
  if (dlinfo(dlopen(argv[1], RTLD_NOW), RTLD_DI_LINKMAP, &linked) != 0) fail("dlinfo");
  const dl_find_object before = found_at(at);
  expect_is(before, at, argv[1]);
  if (before.dlfo_link_map != linked) fail("the list is renewed by a lookup");
  expect_walk_through(later);

  jitunwind::renew_linked_objects();
  const dl_find_object after = found_at(at);
  expect_is(after, at, argv[1]);
  if (after.dlfo_link_map == linked) fail("the list is not renewed");
  if (after.dlfo_map_start != before.dlfo_map_start || after.dlfo_map_end != before.dlfo_map_end ||
      after.dlfo_eh_frame != before.dlfo_eh_frame)
    fail("another object than before");
  expect_walk_through(later);
  load_all(argv[1], argv[2], argv[3]);
  puts("found all");
  return 0;
}
