#include "tests/debuggers/jit_code.h"

#include <sys/mman.h>

#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#if defined(JITUNWIND_TEST_ASMJIT)
#include <asmjit/x86.h>

#include "jitunwind/adapters/asmjit/asmjit_assembler.h"
#include "jitunwind/adapters/asmjit/asmjit_runtime.h"
#endif
#include "jitunwind/builders/procedure_builder.h"
#include "jitunwind/builders/registers_x86_64.h"
#include "jitunwind/builders/registration.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/rows/row_text.h"

// Code with the layout of "registers"; its callee and its call do not matter.
asm(R"(
        .text
        .type debuggers_alias_model, @function
debuggers_alias_model:
        .cfi_startproc
        push %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_offset %rbx, -16
        push %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_offset %rbp, -24
        sub $8, %rsp
        .cfi_adjust_cfa_offset 8
        .skip 16, 0x90
        add $8, %rsp
        .cfi_adjust_cfa_offset -8
        pop %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbp
        pop %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        ret
        .cfi_endproc
        .size debuggers_alias_model, . - debuggers_alias_model
)");
extern "C" [[gnu::visibility("hidden")]] void debuggers_alias_model();

namespace debuggers_test {

using namespace jitunwind;

namespace {

/// Bytes on their own page, described by hand.
class HandWritten final : public JitCode::Impl {
 public:
  HandWritten(const std::string& shape, const std::string& name, void (*callee)(), void* page) : page_(page) {
    using namespace x86_64;
    auto builder = describe(name);
    if (shape == "trap") {
      // The row at the trap differs from that of the instruction before it.
      op({0x53}), op({0x0f, 0x0b}), op({0x5b}), op({0xc3});  // push rbx; ud2; pop rbx; ret
      builder.push({0, 1}, rbx).pop({3, 4}, rbx);
    } else if (shape == "rows") {
      op({0x55}), op({0x48, 0x89, 0xe5}), op({0x53}), op({0x50});  // as "frame_pointer", in table format
      builder.row_at(0, "cfa=rsp+8 ra=[cfa-8]").row_at(1, "cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]");
      builder.row_at(4, "cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]");
      builder.row_at(5, "cfa=rbp+16 rbx=[rbp-8] rbp=[cfa-16] ra=[cfa-8]");
      call(callee);
      op({0x59}), op({0x5b}), op({0x5d}), op({0xc3});
      const auto size = static_cast<std::int64_t>(bytes_.size());
      builder.row_at(size - 2, "cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]").row_at(size - 1, "cfa=rsp+8 ra=[cfa-8]");
    } else if (shape == "registers" || shape == "alias") {
      op({0x53}), op({0x55}), op({0x48, 0x83, 0xec, 0x08});  // push rbx; push rbp; sub rsp, 8
      if (shape == "registers") builder.push({0, 1}, rbx).push({1, 2}, rbp).allocate({2, 6}, 8);
      call(callee);
      op({0x48, 0x83, 0xc4, 0x08}), op({0x5d}), op({0x5b}), op({0xc3});  // add rsp, 8; pop rbp; pop rbx; ret
      if (shape == "registers") builder.deallocate({-7, -3}, 8).pop({-3, -2}, rbp).pop({-2, -1}, rbx);
      if (shape == "alias") builder.alias(std::bit_cast<Addr>(&debuggers_alias_model)).size(bytes_.size());
    } else {
      op({0x55}), op({0x48, 0x89, 0xe5}), op({0x53}), op({0x50});  // push rbp; mov rbp, rsp; push rbx; push rax
      builder.push({0, 1}, rbp).set_frame_pointer({1, 4}, rbp).push({4, 5}, rbx).allocate({5, 6}, 8);
      call(callee);
      op({0x59}), op({0x5b}), op({0x5d}), op({0xc3});  // pop rcx; pop rbx; pop rbp; ret
      builder.deallocate({-4, -3}, 8).pop({-3, -2}, rbx).pop({-2, -1}, rbp);
    }
    if (page_ == nullptr) page_ = ::mmap(nullptr, k_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ::mprotect(page_, k_page, PROT_READ | PROT_WRITE);
    std::memcpy(page_, bytes_.data(), bytes_.size());
    ::mprotect(page_, k_page, PROT_READ | PROT_EXEC);
    const auto description = builder.build();
    if (!description) throw std::runtime_error(description.error().text());
    auto registered = register_code(*description, page_, bytes_.size());
    if (!registered) throw std::runtime_error(registered.error().what);
    registration_ = std::move(*registered);
  }
  ~HandWritten() override {
    (void)registration_.cancel();
    if (page_ != nullptr) ::munmap(page_, k_page);
  }
  Addr start() const override { return std::bit_cast<std::uintptr_t>(page_); }
  std::vector<unsigned> instructions() const override { return instructions_; }
  /// Returns the page when nothing describes it any more.
  void* release() {
    (void)registration_.cancel();
    return std::exchange(page_, nullptr);
  }

 private:
  static constexpr std::size_t k_page = 4096;

  void op(std::initializer_list<unsigned char> bytes) {
    instructions_.push_back(static_cast<unsigned>(bytes_.size()));
    bytes_.insert(bytes_.end(), bytes);
  }
  void call(void (*callee)()) {
    op({0x48, 0xb8});  // mov rax, callee
    const auto address = std::bit_cast<std::array<unsigned char, 8>>(callee);
    bytes_.insert(bytes_.end(), address.begin(), address.end());
    op({0x31, 0xdb});                         // xor ebx, ebx
    if (bytes_[1] == 0x55) op({0x31, 0xed});  // xor ebp, ebp
    op({0xff, 0xd0});                         // call rax
  }

  std::vector<unsigned char> bytes_;
  std::vector<unsigned> instructions_;
  void* page_;
  Registration registration_;
};

#if defined(JITUNWIND_TEST_ASMJIT)
/// Makes the code by the asmjit adapter, which derives the description.
class WithAsmjit final : public JitCode::Impl {
 public:
  WithAsmjit(bool frame_pointer, const std::string& name, void (*callee)()) {
    using namespace asmjit::x86;
    asmjit::CodeHolder code;
    code.init(runtime().environment());
    AsmjitAssembler a(&code);
    const auto mark = [&] { instructions_.push_back(static_cast<unsigned>(a.offset())); };
    mark(), a.push(rbp);
    if (frame_pointer) mark(), a.mov(rbp, rsp);
    mark(), a.push(rbx);
    mark(), a.sub(rsp, 8);
    mark(), a.xor_(ebx, ebx);
    if (!frame_pointer) mark(), a.xor_(ebp, ebp);
    mark(), a.mov(rax, asmjit::imm(std::bit_cast<std::uintptr_t>(callee)));
    mark(), a.call(rax);
    mark(), a.add(rsp, 8);
    mark(), a.pop(rbx);
    mark(), a.pop(rbp);
    mark(), a.ret();
    if (runtime().add(&function_, &code, name.c_str()) != asmjit::kErrorOk) throw std::runtime_error("asmjit");
  }
  ~WithAsmjit() override { runtime().release(function_); }
  Addr start() const override { return std::bit_cast<std::uintptr_t>(function_); }
  std::vector<unsigned> instructions() const override { return instructions_; }

 private:
  static AsmjitRuntime& runtime() {
    static AsmjitRuntime runtime;
    return runtime;
  }
  void (*function_)() = nullptr;
  std::vector<unsigned> instructions_;
};
#endif

std::unique_ptr<JitCode::Impl> make(const std::string& shape, const std::string& name, void (*callee)(),
                                    void* page = nullptr) {
#if defined(JITUNWIND_TEST_ASMJIT)
  if (shape.rfind("asmjit_", 0) == 0)
    return std::make_unique<WithAsmjit>(shape == "asmjit_frame_pointer", name, callee);
#endif
#if defined(JITUNWIND_TEST_ORC)
  if (shape.rfind("orc_", 0) == 0) return make_orc_code(shape, name, callee);
#endif
  return std::make_unique<HandWritten>(shape, name, callee, page);
}

}  // namespace

JitCode::JitCode(const std::string& shape, const std::string& name, void (*callee)())
    : impl_(make(shape, name, callee)) {}
JitCode::~JitCode() = default;

Addr JitCode::start() const { return impl_->start(); }
void (*JitCode::entry() const)() { return std::bit_cast<void (*)()>(impl_->start()); }

std::string JitCode::rows() const {
  std::string text;
  for (const unsigned offset : impl_->instructions()) {
    MemoryWindow window;
    Lookup lookup(local_space(), CodeAddress::interrupted(start() + offset), window);
    FrameRow row;
    const Found found = dyn_row_source().find_row(lookup, row);
    if (!found || !*found) throw std::runtime_error("no row");
    text += "row " + to_text(offset, row, local_space().arch) + "\n";
  }
  return text;
}

void JitCode::cancel() { impl_.reset(); }

void JitCode::replace(const std::string& shape, const std::string& name, void (*callee)()) {
  auto* const by_hand = dynamic_cast<HandWritten*>(impl_.get());
  void* const page = by_hand != nullptr ? by_hand->release() : nullptr;
  impl_.reset();
  impl_ = make(shape, name, callee, page);
}

}  // namespace debuggers_test
