// The C library prints a stack with a function that xbyak has made. xbyak writes where its code runs, so a code segment
// lends it pages, and gets what was written when the code is ready.
#include <execinfo.h>
#include <jitunwind/code_segments.h>
#include <jitunwind/xbyak.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstring>

namespace {

void show_stack() {
  void* stack[16];
  std::fflush(stdout);
  ::backtrace_symbols_fd(stack, ::backtrace(stack, 16), 1);
}

/// Pages of a segment, which are written to where their code runs: in copies of the file's pages.
class Pages {
 public:
  Pages(jitunwind::CodeSegments& segments, std::size_t pages)
      : segments_(segments), room_(segments.allocate(4096 * pages, 15, 4096)) {  // for 16 procedures
    if (!room_ || ::mprotect(memory(), 4096 * pages, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  }
  ~Pages() { finish(0), (void)segments_.release(room_->start); }
  void* memory() const { return reinterpret_cast<void*>(room_->start); }
  /// The file gets what was written, and the copies go.
  void finish(std::size_t size) {
    std::memcpy(room_->writable.data(), memory(), size);
    (void)::madvise(memory(), room_->writable.size(), MADV_DONTNEED);
    (void)::mprotect(memory(), room_->writable.size(), PROT_READ | PROT_EXEC);
  }
  jitunwind::Status publish(std::size_t size) { return segments_.publish({room_->start, room_->start + size}); }

 private:
  jitunwind::CodeSegments& segments_;
  jitunwind::Result<jitunwind::CodeRoom> room_;
};

struct Code : Pages, jitunwind::xbyak::CodeGenerator {
  explicit Code(jitunwind::CodeSegments& segments) : Pages(segments, 1), CodeGenerator(4096, memory()) {
    Xbyak::Label callee;
    push(rbp);
    mov(rbp, 42);  // no frame pointer: rbp holds anything
    call(ptr[rip + callee]);
    pop(rbp);
    ret();
    align(8);
    L(callee);
    dq(reinterpret_cast<std::uintptr_t>(&show_stack));
    finish(getSize());
  }
};

}  // namespace

int main() {
  jitunwind::CodeSegments segments;
  Code code(segments);
  if (!code.register_code("my_kernel") || !code.publish(code.getSize())) return 1;
  code.getCode<void (*)()>()();
}
