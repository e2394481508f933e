// All of it on one screen: functions that LLVM's LLJIT compiles, on a stack that is walked to the end.
#include <jitunwind/jitunwind.h>
#include <jitunwind/llvm_orc.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Support/TargetSelect.h>

#include <cstdio>

#include "examples/orc_versions.h"

static void show_stack() {
  jitunwind::Walk walk = jitunwind::walk_here();
  for (const jitunwind::Frame& frame : walk)
    std::printf("%-14s %s\n", jitunwind::origin_name(frame.origin()), frame.name().c_str());
  std::printf("%s\n", walk.why().c_str());
}

/// A function that calls `callee`, which is a symbol or an address.
static llvm::Function* add_caller(llvm::Module& module, const char* name, llvm::Value* callee,
                                  llvm::GlobalValue::LinkageTypes linkage) {
  llvm::LLVMContext& context = module.getContext();
  auto* const type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), false);
  auto* const function = llvm::Function::Create(type, linkage, name, module);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", function));
  builder.CreateCall(type, callee);
  builder.CreateRetVoid();
  return function;
}

static llvm::orc::ThreadSafeModule make_module() {
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = std::make_unique<llvm::Module>("example", *context);
  const auto native = reinterpret_cast<std::uintptr_t>(&show_stack);
  auto* const type = llvm::FunctionType::get(llvm::Type::getVoidTy(*context), false);
  auto* const address = llvm::ConstantExpr::getIntToPtr(
      llvm::ConstantInt::get(llvm::Type::getInt64Ty(*context), native), orc_versions::pointer_to(type));
  auto* const local = add_caller(*module, "local_function", address, llvm::GlobalValue::InternalLinkage);
  add_caller(*module, "my_jit_function", local, llvm::GlobalValue::ExternalLinkage);
  return {std::move(module), std::move(context)};
}

static llvm::Error run() {
  auto jit = orc_versions::create_jit();
  if (!jit) return jit.takeError();
  if (llvm::Error error = jitunwind::attach(**jit)) return error;

  if (llvm::Error error = (*jit)->addIRModule(make_module())) return error;
  auto function = (*jit)->lookup("my_jit_function");
  if (!function) return function.takeError();
  orc_versions::function_at<void()> (*function)();
  return llvm::Error::success();
}

int main() {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::Error error = run();
  if (!error) return 0;
  std::fprintf(stderr, "%s\n", llvm::toString(std::move(error)).c_str());
  return 1;
}
