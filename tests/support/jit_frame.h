// A procedure made at run time that calls through: this CPU's FrameCode. It is registered as long as the object lives.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <iterator>
#include <stdexcept>

#include "frame_code.h"
#include "jitunwind/builders/procedure_builder.h"
#include "jitunwind/builders/registration.h"
#include "tests/support/host_row.h"

namespace jitunwind::test {

class JitFrame {
 public:
  using Callee = void* (*)(void*);

  /// `personality` and `lsda` are addresses; 0: none.
  explicit JitFrame(Addr personality = 0, Addr lsda = 0) {
    auto builder = described();
    if (personality != 0) builder.personality(personality);
    if (lsda != 0) builder.lsda(lsda);
    make(builder);
  }
  /// The page for the code, which must be free.
  struct On {
    Addr page;
  };
  explicit JitFrame(On place) { make(described(), place.page); }
  /// Describes all of the code by one row, right or wrong: host_row().
  explicit JitFrame(const char* row) {
    auto builder = host::describe("jit_frame");
    builder.row_at(0, host_row(row));
    make(builder);
  }
  explicit JitFrame(const host::Builder& description) { make(description); }
  /// Chooses the description with labels for many states of the frame.
  struct ManyStates {};
  explicit JitFrame(ManyStates) { make(FrameCode::with_many_states("jit_frame")); }
  /// Describes the code as an alias of other code.
  struct AliasOf {
    Addr at;
  };
  explicit JitFrame(AliasOf other) {
    auto builder = host::describe("jit_frame");
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
  Addr return_address() const { return start() + FrameCode::k_after_call; }
  std::uint64_t size() const { return sizeof FrameCode::k_bytes; }
  Registration& registration() { return registration_; }

  /// The description that the frame is registered with by default.
  static host::Builder described() { return FrameCode::described("jit_frame"); }

 private:
  template <class Builder>
  void make(const Builder& builder, Addr page = 0) {
    const int on_that_page = page == 0 ? 0 : MAP_FIXED_NOREPLACE;
    code_ = ::mmap(reinterpret_cast<void*>(static_cast<std::uintptr_t>(page)), k_page, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | on_that_page, -1, 0);
    if (code_ == MAP_FAILED) throw std::runtime_error("the page is not free");
    std::memcpy(code_, FrameCode::k_bytes, sizeof FrameCode::k_bytes);
    __builtin___clear_cache(static_cast<char*>(code_), static_cast<char*>(code_) + k_page);
    ::mprotect(code_, k_page, PROT_READ | PROT_EXEC);
    const auto description = builder.build();
    if (!description) throw std::runtime_error(description.error().text());
    auto registered = register_code(*description, code_, sizeof FrameCode::k_bytes);
    if (!registered) throw std::runtime_error(registered.error().what);
    registration_ = std::move(*registered);
  }

  static constexpr std::size_t k_page = 4096;
  void* code_ = nullptr;
  Registration registration_;
};

}  // namespace jitunwind::test
