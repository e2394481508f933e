// The same by LLVM's ORC; the description is LLVM's call frame information.
#include "tests/debuggers/jit_code.h"
#include "tests/orc/orc_jit.h"

namespace debuggers_test {
namespace {

class WithOrc final : public JitCode::Impl {
 public:
  WithOrc(bool frame_pointer, const std::string& name, void (*callee)()) {
    const std::string saved = frame_pointer ? R"("xorl %ebx, %ebx", "~{rbx},~{flags}")"
                                            : R"("xorl %ebx, %ebx; xorl %ebp, %ebp", "~{rbx},~{rbp},~{flags}")";
    const auto address = std::to_string(reinterpret_cast<std::uintptr_t>(callee));
    tracker_ = jit().add("define void @" + name + "() noinline uwtable \"frame-pointer\"=\"" +
                         (frame_pointer ? "all" : "none") + "\" {\n  call void asm sideeffect " + saved +
                         "()\n  notail call void inttoptr (i64 " + address + " to ptr)()\n  ret void\n}\n");
    start_ = reinterpret_cast<std::uintptr_t>(jit().find<void (*)()>(name));
  }
  ~WithOrc() override { jitunwind::test::or_exit(tracker_->remove()); }
  jitunwind::Addr start() const override { return start_; }
  std::vector<unsigned> instructions() const override { return {}; }

 private:
  static jitunwind::test::OrcJit& jit() {
    static jitunwind::test::OrcJit jit;
    return jit;
  }
  llvm::orc::ResourceTrackerSP tracker_;
  jitunwind::Addr start_ = 0;
};

}  // namespace

std::unique_ptr<JitCode::Impl> make_orc_code(bool frame_pointer, const std::string& name, void (*callee)()) {
  return std::make_unique<WithOrc>(frame_pointer, name, callee);
}

}  // namespace debuggers_test
