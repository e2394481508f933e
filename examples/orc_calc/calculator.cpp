#include "examples/orc_calc/calculator.h"

#include <jitunwind/llvm_orc.h>
#include <llvm/Support/TargetSelect.h>

#include <cstdio>
#include <utility>

#include "examples/orc_calc/code_generator.h"
#include "examples/orc_versions.h"

namespace calc {
namespace {

namespace orc = llvm::orc;

void or_throw(llvm::Error error) {
  if (error) throw std::runtime_error(llvm::toString(std::move(error)));
}
template <class T>
T or_throw(llvm::Expected<T> value) {
  or_throw(value.takeError());
  return std::move(*value);
}

llvm::Error define_natives(orc::LLJIT& jit, Calculator::Linkage linkage) {
  orc::SymbolMap symbols;
  const auto define = [&](const char* name, std::uint64_t address) {
    symbols[jit.mangleAndIntern(name)] = orc_versions::native_symbol(address);
  };
  for (const Native& native : natives()) define(native.name, linkage(native));
  define(k_stack_is_full, reinterpret_cast<std::uintptr_t>(&stack_is_full));
  return jit.getMainJITDylib().define(orc::absoluteSymbols(std::move(symbols)));
}

}  // namespace

llvm::Expected<std::unique_ptr<Calculator>> Calculator::create(Linkage linkage) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto jit = orc_versions::create_jit();
  if (!jit) return jit.takeError();
  if (llvm::Error error = jitunwind::attach(**jit)) return error;
  if (llvm::Error error = define_natives(**jit, linkage)) return error;
  std::unique_ptr<Calculator> made(new Calculator(std::move(*jit)));
  for (const Native& native : natives()) made->functions_.emplace(native.name, native.parameters);
  return made;
}

void Calculator::run(std::string_view program) {
  const std::vector<Item> items = parse(program);
  auto functions = functions_;
  for (const Item& item : items)
    if (!item.function.empty() &&
        !functions.emplace(item.function, static_cast<unsigned>(item.parameters.size())).second)
      throw SyntaxError(item.at, "'" + item.function + "' is defined already");
  // Errors are found before anything is added.
  std::vector<orc::ThreadSafeModule> definitions;
  for (const Item& item : items) {
    orc::ThreadSafeModule module = generate(item, functions, item.function);
    if (!item.function.empty()) definitions.push_back(std::move(module));
  }
  functions_ = std::move(functions);
  for (orc::ThreadSafeModule& module : definitions) or_throw(jit_->addIRModule(std::move(module)));
  for (const Item& item : items)
    if (item.function.empty()) std::printf("= %g\n", evaluate(item));
}

/// Its code goes with it, whether it returns or throws.
double Calculator::evaluate(const Item& item) {
  const std::string symbol = "line " + std::to_string(item.at.line);
  const auto tracker = jit_->getMainJITDylib().createResourceTracker();
  struct Remove {
    orc::ResourceTracker& tracker;
    ~Remove() { llvm::consumeError(tracker.remove()); }
  } const remove{*tracker};
  or_throw(jit_->addIRModule(tracker, generate(item, functions_, symbol)));
  return orc_versions::function_at<double()>(or_throw(jit_->lookup(symbol)))();
}

}  // namespace calc
