#include <jitunwind/llvm_orc.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>

#include <cstdio>

void innermost();

// main -> "middle", which LLVM makes -> innermost
static llvm::Error run() {
  llvm::orc::LLJITBuilder builder;
#if LLVM_VERSION_MAJOR < 18  // it links by RuntimeDyld unless it is told otherwise
  builder.setObjectLinkingLayerCreator(jitunwind::orc_rtdyld_layer());
#endif
  auto jit = builder.create();
  if (!jit) return jit.takeError();
  if (auto error = jitunwind::attach(**jit)) return error;
  auto context = std::make_unique<llvm::LLVMContext>();
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseAssemblyString("define void @middle(ptr %f) {\n  call void %f()\n  ret void\n}\n",
                                          diagnostic, *context);
  if (auto error = (*jit)->addIRModule({std::move(module), std::move(context)})) return error;
  auto middle = (*jit)->lookup("middle");
  if (!middle) return middle.takeError();
  middle->toPtr<void (*)(void (*)())>()(innermost);
  return llvm::Error::success();
}

int main() {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto error = run();
  if (!error) return 0;
  std::puts(llvm::toString(std::move(error)).c_str());
  return 1;
}
