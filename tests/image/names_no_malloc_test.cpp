// Names and file sections in a signal handler: no call of malloc or free, little stack, and errno is preserved.
#include <dlfcn.h>
#include <errno.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>

#include <array>
#include <atomic>
#include <cstring>
#include <fstream>
#include <vector>

#include "tests/image/local_names.h"
#include "tests/support/command.h"
#include "tests/support/malloc_calls.h"

namespace jitunwind::test {
namespace {

/// A question in the handler: a name by each way there is, and the file sections of a module.
struct Question {
  std::string what;
  Addr at;
  std::string expected;
};
std::vector<Question> questions;
std::vector<std::string> answers;
int errno_after = 0;
unsigned malloc_calls = 0;
std::atomic<int> debug_frames = 0;

void ask(std::size_t i) {
  static const LocalMemory memory;
  static const std::array<const NameSource*, 1> sources{&elf_name_source()};
  const AddressSpace space{*host_arch(), memory, local_modules(), {}, sources};
  MemoryWindow window;
  Lookup lookup(space, CodeAddress::interrupted(questions[i].at), window);
  ProcedureName name;
  answers[i].resize(400);
  const Found found = space.find_name(lookup, answers[i], name);
  if (!found || !*found) answers[i][0] = '\0';
  // The names are looked up once more, from the kept data, with the module's other sections.
  (void)space.find_name(lookup, answers[i], name);
  const Module* const module = lookup.module_with_file_sections();
  if (module && !module->debug_frame.empty()) debug_frames = debug_frames + 1;
}

void handler(int) {
  errno = 4711;
  const MallocCalls mallocs;
  for (std::size_t i = 0; i < questions.size(); ++i) ask(i);
  malloc_calls = mallocs.count();
  errno_after = errno;
}

/// Returns the bytes of stack that `work` touches on its own thread.
std::size_t stack_used(void* (*work)(void*)) {
  constexpr std::size_t k_size = 1 << 20;
  std::vector<std::byte> stack(k_size, std::byte{0xa5});
  pthread_attr_t attributes;
  EXPECT_EQ(::pthread_attr_init(&attributes), 0);
  EXPECT_EQ(::pthread_attr_setstack(&attributes, stack.data(), stack.size()), 0);
  pthread_t thread;
  EXPECT_EQ(::pthread_create(&thread, &attributes, work, nullptr), 0);
  EXPECT_EQ(::pthread_join(thread, nullptr), 0);
  ::pthread_attr_destroy(&attributes);
  std::size_t untouched = 0;
  while (untouched < k_size && stack[untouched] == std::byte{0xa5}) ++untouched;
  return k_size - untouched;
}

void* nothing(void*) { return nullptr; }
void* ask_all(void*) {
  for (std::size_t i = 0; i < questions.size(); ++i) ask(i);
  return nullptr;
}

extern "C" __attribute__((noinline)) void jitunwind_test_own_function() { __asm__ volatile("nop"); }

class Names : public testing::Test {
 protected:
  // Every library has its own identity, so that nothing is kept of it yet.
  Names() {
    const std::string built = PLUGIN_FOLDER "/plugin_plain.so";
    output_of(
        "cd " + folder_.path() + " && cp " + built + " whole.so && strip -s -o stripped.so " + built + " && cp " +
        built + " deleted.so && objcopy --only-keep-debug --strip-debug " + built +
        " little && xz little && cp stripped.so mini.so && objcopy --add-section .gnu_debugdata=little.xz mini.so" +
        " && objcopy --only-keep-debug --compress-debug-sections=zlib " + built +
        " linked.debug && cp stripped.so linked.so && objcopy --add-gnu-debuglink=linked.debug linked.so");
    questions.clear();
    questions.push_back(
        {"program", addr_of(reinterpret_cast<void*>(&jitunwind_test_own_function)), "jitunwind_test_own_function"});
    add("whole", "plugin_hidden_address", "plugin_hidden");
    add("stripped", "plugin_entry_address", "plugin_entry");
    add("deleted", "plugin_entry_address", "plugin_entry");
    add("mini", "plugin_hidden_address", "plugin_hidden");
    add("linked", "plugin_hidden_address", "plugin_hidden");
    std::filesystem::remove(folder_ / "deleted.so");
    make_library_with_debug_frame();
    add("frames", "f0", "f7");
    void* const vdso = ::dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
    questions.push_back({"vdso", addr_of(::dlvsym(vdso, "__vdso_getcpu", "LINUX_2.6")), "__vdso_getcpu"});
    questions.push_back({"nothing", 0x1000, ""});
    answers.assign(questions.size(), std::string(400, '?'));
  }

  static Addr addr_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

  void expect_answers() {
    EXPECT_GE(debug_frames.exchange(0), 1);
    for (std::size_t i = 0; i < questions.size(); ++i)
      EXPECT_STREQ(answers[i].c_str(), questions[i].expected.c_str()) << questions[i].what;
  }

 private:
  /// Makes a library of 200 functions, so that compression pays.
  void make_library_with_debug_frame() {
    std::ofstream source(folder_ / "frames.c");
    for (int i = 1; i < 200; ++i) source << "int f" << i << "(int (*g)(int)) { return g(" << i << ") * 2; }\n";
    source << "const void* f0(void) { return (const char*)f7 + 1; }\n";
    source.close();
    output_of("cd " + folder_.path() + " && gcc -shared -fPIC -g -O1 -fno-asynchronous-unwind-tables frames.c -o " +
              "frames.so && objcopy --compress-debug-sections=zlib frames.so");
  }

  void add(const std::string& name, const char* address_function, const char* expected) {
    void* const handle = ::dlopen((folder_ / (name + ".so")).c_str(), RTLD_NOW);
    ASSERT_NE(handle, nullptr) << ::dlerror();
    const auto get = reinterpret_cast<const void* (*)()>(::dlsym(handle, address_function));
    questions.push_back({name, addr_of(get()), expected});
  }

  TemporaryFolder folder_;
};

// covers: SF09
TEST_F(Names, CallNoMalloc) {
  // The hook works.
  {
    const MallocCalls mallocs;
    void* volatile memory = std::malloc(10);
    std::free(memory);
    ASSERT_EQ(mallocs.count(), 2u);
  }
  malloc_calls = 1;

  ASSERT_NE(::signal(SIGUSR1, &handler), SIG_ERR);
  ASSERT_EQ(::raise(SIGUSR1), 0);
  EXPECT_EQ(malloc_calls, 0u);
  EXPECT_EQ(errno_after, 4711);
  expect_answers();
}

// covers: SF09
TEST_F(Names, NeedLittleStack) {
  const std::size_t thread = stack_used(&nothing);
  const std::size_t all = stack_used(&ask_all);
  expect_answers();
  RecordProperty("stack_bytes", static_cast<int>(all - thread));
  std::printf("stack: %zu bytes\n", all - thread);
  EXPECT_LT(all - thread, 8u * 1024);
}

}  // namespace
}  // namespace jitunwind::test
