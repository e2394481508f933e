// Makes the code by LLVM's ORC; the description is LLVM's call frame information.
#include <llvm-c/Disassembler.h>
#include <llvm-c/Target.h>
#include <llvm/ExecutionEngine/Orc/Debugging/DebuggerSupport.h>
#include <llvm/TargetParser/Host.h>

#include <array>
#include <stdexcept>

#include "jitunwind/dyn_info/registry/registry.h"
#include "tests/debuggers/jit_code.h"
#include "tests/orc/orc_jit.h"

namespace debuggers_test {
namespace {

class WithOrc final : public JitCode::Impl {
 public:
  WithOrc(const std::string& shape, const std::string& name, void (*callee)()) {
    const bool frame_pointer = shape != "orc_registers";
    jitunwind::test::OrcJit& made_by = jit(shape == "orc_listener");
    const std::string saved = frame_pointer ? R"("xorl %ebx, %ebx", "~{rbx},~{flags}")"
                                            : R"("xorl %ebx, %ebx; xorl %ebp, %ebp", "~{rbx},~{rbp},~{flags}")";
    const auto address = std::to_string(reinterpret_cast<std::uintptr_t>(callee));
    tracker_ = made_by.add("define void @" + name + "() noinline uwtable \"frame-pointer\"=\"" +
                           (frame_pointer ? "all" : "none") + "\" {\n  call void asm sideeffect " + saved +
                           "()\n  notail call void inttoptr (i64 " + address + " to ptr)()\n  ret void\n}\n");
    start_ = reinterpret_cast<std::uintptr_t>(made_by.find<void (*)()>(name));
  }
  ~WithOrc() override { jitunwind::test::or_exit(tracker_->remove()); }
  jitunwind::Addr start() const override { return start_; }
  /// Returns the instructions as LLVM disassembles them.
  std::vector<unsigned> instructions() const override {
    LLVMInitializeNativeDisassembler();
    const auto reader = LLVMCreateDisasm(llvm::sys::getDefaultTargetTriple().c_str(), nullptr, 0, nullptr, nullptr);
    const jitunwind::ProcedureHold procedure(start_);
    const jitunwind::Addr end = procedure.info() ? procedure.info()->end_ip : start_;
    std::vector<unsigned> offsets;
    for (jitunwind::Addr at = start_; at < end;) {
      std::array<char, 128> text;
      const std::size_t size =
          LLVMDisasmInstruction(reader, reinterpret_cast<std::uint8_t*>(at), end - at, at, text.data(), text.size());
      if (size == 0) throw std::runtime_error("not an instruction");
      offsets.push_back(static_cast<unsigned>(at - start_));
      at += size;
    }
    LLVMDisasmDispose(reader);
    return offsets;
  }

 private:
  static jitunwind::test::OrcJit& jit(bool with_llvms_listener) {
    static jitunwind::test::OrcJit plain;
    if (!with_llvms_listener) return plain;
    static jitunwind::test::OrcJit listened_to;
    static const bool listens = (jitunwind::test::or_exit(llvm::orc::enableDebuggerSupport(listened_to.jit())), true);
    (void)listens;
    return listened_to;
  }
  llvm::orc::ResourceTrackerSP tracker_;
  jitunwind::Addr start_ = 0;
};

}  // namespace

std::unique_ptr<JitCode::Impl> make_orc_code(const std::string& shape, const std::string& name, void (*callee)()) {
  return std::make_unique<WithOrc>(shape, name, callee);
}

}  // namespace debuggers_test
