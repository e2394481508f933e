// A C++ exception that ends in code made at run time: caught by its type, at a landing pad that the description names.
#include <jitunwind/jitunwind.h>

#include <sys/mman.h>

#include <cxxabi.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>

static void native() { throw std::runtime_error("no such file"); }

static void report(void* exception) {
  const auto* const error = static_cast<const std::exception*>(abi::__cxa_begin_catch(exception));
  std::printf("caught at run time: %s\n", error->what());
  abi::__cxa_end_catch();
}

int main() {
  // void try_it(void (*native)(), void (*report)(void*))
  const unsigned char bytes[] = {
      0x53,              //  0  push rbx
      0x48, 0x89, 0xf3,  //  1  mov rbx,rsi
      0xff, 0xd7,        //  4  call rdi
      0x5b,              //  6  pop rbx
      0xc3,              //  7  ret
      0x48, 0x89, 0xc7,  //  8  mov rdi,rax       the landing pad: rax has the exception, rbx what it had
      0xff, 0xd3,        // 11  call rbx
      0x5b,              // 13  pop rbx
      0xc3,              // 14  ret
  };
  void* const code = mmap(nullptr, sizeof bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  std::memcpy(code, bytes, sizeof bytes);
  if (mprotect(code, sizeof bytes, PROT_READ | PROT_EXEC) != 0) return 1;

  using namespace jitunwind::x86_64;
  const auto description = describe("try_it")
                               .push({0, 1}, rbx)
                               .remember()
                               .pop({6, 7}, rbx)
                               .restore({7, 8})
                               .call_site({4, 6}, 8)
                               .catches(typeid(std::exception))
                               .pop({13, 14}, rbx)
                               .size(sizeof bytes)
                               .build();
  if (!description) return std::puts(description.error().text().c_str()), 1;

  const auto registration = jitunwind::register_code(*description, code, sizeof bytes);
  if (!registration) return std::puts(registration.error().what), 1;
  reinterpret_cast<void (*)(void (*)(), void (*)(void*))>(code)(native, report);
}
