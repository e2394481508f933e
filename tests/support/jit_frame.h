// A procedure made at run time that calls through: void* frame(void* (*f)(void*), void* argument). Saves rbx and rbp,
// loses them for the call, and uses neither as a frame pointer. Registered as long as the object lives.
#pragma once

#include <sys/mman.h>

#include <cstring>
#include <iterator>
#include <stdexcept>

#include "jitunwind/builders/procedure_builder.h"
#include "jitunwind/builders/registers_x86_64.h"
#include "jitunwind/builders/registration.h"

namespace jitunwind::test {

class JitFrame {
 public:
  using Callee = void* (*)(void*);

  /// `personality` and `lsda`: addresses, 0 for none.
  explicit JitFrame(Addr personality = 0, Addr lsda = 0) {
    auto builder = described();
    if (personality != 0) builder.personality(personality);
    if (lsda != 0) builder.lsda(lsda);
    make(builder);
  }
  /// On a page that must be free.
  struct On {
    Addr page;
  };
  explicit JitFrame(On place) { make(described(), place.page); }
  /// With one row for all of it, right or wrong.
  explicit JitFrame(const char* row) {
    auto builder = x86_64::describe("jit_frame");
    builder.row_at(0, row);
    make(builder);
  }
  /// Described with labels for many states of the frame.
  struct ManyStates {};
  explicit JitFrame(ManyStates) {
    using namespace x86_64;
    auto builder = describe("jit_frame");
    builder.region(18).add(0, rsp, -8).spill_sp_rel(0, rbx, 0).add(1, rsp, -8).spill_sp_rel(1, rbp, 0).add(5, rsp, -8);
    for (unw_word_t label = 1; label <= 16; ++label) builder.label_state(6 + static_cast<int>(label) / 2, label);
    builder.region(7).copy_state(9).add(3, rsp, 8).add(4, rsp, 8).add(5, rsp, 8);
    make(builder);
  }
  /// Said to unwind like other code.
  struct AliasOf {
    Addr at;
  };
  explicit JitFrame(AliasOf other) {
    auto builder = x86_64::describe("jit_frame");
    builder.alias(other.at);
    make(builder);
  }
  ~JitFrame() {
    (void)registration_.cancel();
    ::munmap(code_, k_page);
  }
  JitFrame(const JitFrame&) = delete;
  JitFrame& operator=(const JitFrame&) = delete;

  void* operator()(Callee callee, void* argument) const {
    return reinterpret_cast<void* (*)(Callee, void*)>(code_)(callee, argument);
  }
  Addr start() const { return reinterpret_cast<std::uintptr_t>(code_); }
  Addr return_address() const { return start() + k_after_call; }
  std::uint64_t size() const { return sizeof k_bytes; }
  Registration& registration() { return registration_; }

  /// What its own registration says.
  static decltype(x86_64::describe("")) described() {
    using namespace x86_64;
    auto builder = describe("jit_frame");
    builder.push({0, 1}, rbx).push({1, 2}, rbp).allocate({2, 6}, 8);
    builder.deallocate({-7, -3}, 8).pop({-3, -2}, rbp).pop({-2, -1}, rbx);
    return builder;
  }

 private:
  template <class Builder>
  void make(const Builder& builder, Addr page = 0) {
    const int on_that_page = page == 0 ? 0 : MAP_FIXED_NOREPLACE;
    code_ = ::mmap(reinterpret_cast<void*>(static_cast<std::uintptr_t>(page)), k_page, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | on_that_page, -1, 0);
    if (code_ == MAP_FAILED) throw std::runtime_error("the page is not free");
    std::memcpy(code_, k_bytes, sizeof k_bytes);
    ::mprotect(code_, k_page, PROT_READ | PROT_EXEC);
    const auto description = builder.build();
    if (!description) throw std::runtime_error(description.error().text());
    auto registered = register_code(*description, code_, sizeof k_bytes);
    if (!registered) throw std::runtime_error(registered.error().what);
    registration_ = std::move(*registered);
  }

  static constexpr std::size_t k_page = 4096;
  static constexpr std::size_t k_after_call = 18;
  static constexpr unsigned char k_bytes[] = {
      0x53,                    // push rbx
      0x55,                    // push rbp
      0x48, 0x83, 0xec, 0x08,  // sub rsp, 8
      0x48, 0x89, 0xf8,        // mov rax, rdi
      0x48, 0x89, 0xf7,        // mov rdi, rsi
      0x31, 0xdb,              // xor ebx, ebx
      0x31, 0xed,              // xor ebp, ebp
      0xff, 0xd0,              // call rax
      0x48, 0x83, 0xc4, 0x08,  // add rsp, 8
      0x5d,                    // pop rbp
      0x5b,                    // pop rbx
      0xc3,                    // ret
  };
  static_assert(std::size(k_bytes) == 25);

  void* code_ = nullptr;
  Registration registration_;
};

}  // namespace jitunwind::test
