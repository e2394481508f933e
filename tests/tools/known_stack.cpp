#include "tests/tools/known_stack.h"

#include <jitunwind/code_segments.h>
#include <jitunwind/jitunwind.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#ifdef HAS_ASMJIT
#include <jitunwind/asmjit.h>
#endif

namespace {

/// Describes either frame, for builders and for marks.
template <class Frame>
void describe_frame(Frame& frame, bool is_held) {
  using namespace jitunwind::x86_64;
  if (is_held)
    frame.push({0, 1}, rbp).set_frame_pointer({1, 4}, rbp).pop({-2, -1}, rbp);
  else
    frame.push({0, 1}, rbx)
        .push({1, 2}, rbp)
        .allocate({2, 6}, 8)
        .deallocate({18, 22}, 8)
        .pop({22, 23}, rbp)
        .pop({23, 24}, rbx);
}

template <class Error>
void* failed(const Error& error) {
  return std::fprintf(stderr, "%s\n", error.text().c_str()), nullptr;
}

jitunwind::CodeSegments& code_segments() {
  static auto& segments = *new jitunwind::CodeSegments;  // code runs until the program ends
  return segments;
}

/// `frame`: a description, or marks.
template <class Frame>
void* place(Frame&& frame, const char* name, const known_code& code, bool is_published) {
  jitunwind::Code where{.size = code.size, .name = name};
  if (!is_published) {
    where.start = reinterpret_cast<std::uintptr_t>(plain_memory(&code));
    static std::vector<jitunwind::Registration>& live = *new std::vector<jitunwind::Registration>;
    auto registered = jitunwind::register_code(frame, where);
    if (!registered) return failed(registered.error());
    live.push_back(*std::move(registered));
  } else {
    const auto room = code_segments().allocate(code.size);
    if (!room) return failed(room.error());
    std::memcpy(room->writable.data(), code.bytes, code.size);
    where.start = room->start;
    if (const jitunwind::Status committed = code_segments().commit(frame, where); !committed)
      return failed(committed.error());
  }
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(where.start));
}

void* compile_described(const char* name, int is_held, int is_published) {
  auto builder = jitunwind::x86_64::describe(name);
  describe_frame(builder, is_held != 0);
  const auto built = builder.build();
  if (!built) return failed(built.error());
  return place(*built, name, is_held ? k_held : k_overwritten, is_published != 0);
}

void* compile_marked(const char* name, int is_held, int is_published) {
  jitunwind::x86_64::Marks marks;
  describe_frame(marks, is_held != 0);
  return place(marks, name, is_held ? k_held : k_overwritten, is_published != 0);
}

#ifdef HAS_ASMJIT
void* compile_by_asmjit(const char* name, int is_held, int is_published) {
  using namespace asmjit::x86;
  static auto& runtime = *new jitunwind::AsmjitRuntime({.segments = is_published ? &code_segments() : nullptr});
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  Builder a(&code);
  is_held ? a.push(rbp), a.mov(rbp, rsp) : (a.push(rbx), a.push(rbp), a.sub(rsp, 8));
  a.mov(rax, rdi), a.mov(rdi, rsi);
  if (!is_held) a.xor_(ebx, ebx), a.xor_(ebp, ebp);
  a.call(rax);
  is_held ? a.pop(rbp) : (a.add(rsp, 8), a.pop(rbp), a.pop(rbx));
  a.ret();
  a.finalize();
  void* start = nullptr;
  if (const asmjit::Error error = runtime.add(&start, &code, name))
    std::fprintf(stderr, "%s\n", asmjit::DebugUtils::errorAsString(error));
  return start;
}
#endif

struct Way {
  std::string_view name;
  compile_function* compile;
};
constexpr Way k_ways[] = {
#ifdef HAS_ASMJIT
    {"asmjit", compile_by_asmjit},
#endif
    {"c", compile_in_c},
    {"described", compile_described},
#ifdef HAS_ORC
    {"orc", compile_by_orc},
#endif
    {"marked", compile_marked}};

using Frame = void* (*)(void* (*)(void*), void*);
Frame outer, inner;

}  // namespace

const known_code k_held = {{0x55,              // push rbp
                            0x48, 0x89, 0xe5,  // mov rbp,rsp
                            0x48, 0x89, 0xf8,  // mov rax,rdi
                            0x48, 0x89, 0xf7,  // mov rdi,rsi
                            0xff, 0xd0,        // call rax
                            0x5d,              // pop rbp
                            0xc3},             // ret
                           14};
const known_code k_overwritten = {{0x53,                    // push rbx
                                   0x55,                    // push rbp
                                   0x48, 0x83, 0xec, 0x08,  // sub rsp,8
                                   0x48, 0x89, 0xf8,        // mov rax,rdi
                                   0x48, 0x89, 0xf7,        // mov rdi,rsi
                                   0x31, 0xdb,              // xor ebx,ebx
                                   0x31, 0xed,              // xor ebp,ebp
                                   0xff, 0xd0,              // call rax
                                   0x48, 0x83, 0xc4, 0x08,  // add rsp,8
                                   0x5d,                    // pop rbp
                                   0x5b,                    // pop rbx
                                   0xc3},                   // ret
                                  25};

void* plain_memory(const known_code* code) {
  void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  std::memcpy(memory, code->bytes, code->size);
  return ::mprotect(memory, 4096, PROT_READ | PROT_EXEC) == 0 ? memory : nullptr;
}

extern "C" [[gnu::noinline]] void* go_on(void* argument) {
  void* const result = inner(look, argument);
  asm volatile("");  // this frame stays
  return result;
}

extern "C" [[gnu::noinline]] void* enter(void* argument) {
  void* const result = outer(go_on, argument);
  asm volatile("");
  return result;
}

void* make_known_stack(const char* const words[3], void* argument) {
  const std::string_view frame = words[1], place = words[2];
  for (const Way& way : k_ways) {
    if (way.name != words[0]) continue;
    // The first one opens the file; the others are appended to an open one.
    for (const char* const name : {"jit_first", "jit_outer", "jit_inner"}) {
      void* const code = way.compile(name, frame == "held", place != "registered");
      if (code == nullptr) return nullptr;
      outer = inner;
      inner = reinterpret_cast<Frame>(code);
    }
    if (place == "sealed")
      if (const jitunwind::Status sealed = code_segments().seal(); !sealed) return failed(sealed.error());
    return enter(argument);
  }
  return std::fprintf(stderr, "no code is made in this way: %s\n", words[0]), nullptr;
}
