#include "tests/orc/orc_jit.h"
#include "tests/support/texts.h"

#include <llvm/AsmParser/Parser.h>
#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>

#include <jitunwind/jitunwind.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

// Suppresses races inside of libLLVM, which is not instrumented. Counting references orders everything before the last
// reference goes, but the sanitizer does not see that inside the library; and the library has its own order of two
// locks.
extern "C" [[gnu::visibility("default")]] const char* __tsan_default_suppressions() {
  return "race:llvm::ThreadSafeRefCountedBase<llvm::orc::ResourceTracker>::Release\n"
         "deadlock:llvm::orc::JITDylib::defineMaterializing\n";
}

namespace jitunwind::test {
namespace {

namespace orc = llvm::orc;

[[maybe_unused]] const bool k_is_ready = [] {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::InitializeNativeTargetAsmParser();
  return true;
}();

}  // namespace

void or_exit(llvm::Error error) {
  if (!error) return;
  std::fprintf(stderr, "orc test: %s\n", llvm::toString(std::move(error)).c_str());
  std::abort();
}

OrcJit::OrcJit(Linker linker, OrcOptions options, const Builder& change) {
  orc::LLJITBuilder builder;
  if (linker == Linker::rtdyld) builder.setObjectLinkingLayerCreator(orc_rtdyld_layer(options));
  if (change) change(builder);
  jit_ = or_exit(builder.create());
  if (linker == Linker::jitlink) or_exit(attach(*jit_, std::move(options)));
}

orc::JITDylib& OrcJit::dylib(const std::string& name) {
  auto made = jit_->createJITDylib(name);
  or_exit(made.takeError());
  return *made;
}

orc::ResourceTrackerSP OrcJit::add(orc::JITDylib& dylib, std::string_view assembly) {
  auto tracker = dylib.createResourceTracker();
  or_exit(jit_->addIRModule(tracker, module_of(assembly)));
  return tracker;
}

orc::ResourceTrackerSP OrcJit::add_object(orc::JITDylib& dylib, std::unique_ptr<llvm::MemoryBuffer> object) {
  auto tracker = dylib.createResourceTracker();
  or_exit(jit_->addObjectFile(tracker, std::move(object)));
  return tracker;
}

std::string OrcJit::failure_of(const std::string& symbol) {
  auto found = jit_->lookup(symbol);
  return found ? std::string() : llvm::toString(found.takeError());
}

std::uint64_t OrcJit::address(orc::JITDylib& dylib, const std::string& symbol) {
  return or_exit(jit_->lookup(dylib, symbol)).getValue();
}

std::unique_ptr<llvm::Module> parse(std::string_view assembly, llvm::LLVMContext& context) {
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseAssemblyString({assembly.data(), assembly.size()}, diagnostic, context);
  if (!module) or_exit(llvm::createStringError(llvm::inconvertibleErrorCode(), diagnostic.getMessage()));
  return module;
}

orc::ThreadSafeModule module_of(std::string_view assembly) {
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = parse(assembly, *context);
  return {std::move(module), std::move(context)};
}

std::unique_ptr<llvm::MemoryBuffer> compile(std::string_view assembly, const std::string& name) {
  llvm::LLVMContext context;
  auto module = parse(assembly, context);
  module->setModuleIdentifier(name);
  auto machine = or_exit(or_exit(orc::JITTargetMachineBuilder::detectHost()).createTargetMachine());
  return or_exit(orc::SimpleCompiler(*machine)(*module));
}

std::string numbered(std::string_view assembly, int number) {
  static const Pattern own("@(outer|middle|lazy|catches|cleans)\\b");
  return replaced(std::string(assembly), own, "@$1_" + std::to_string(number));
}

long throws(long x) {
  if (x > 0) throw std::runtime_error("from below code of a JIT");
  return x;
}

std::string innermost_jit_name;

long names_caller(long x) {
  for (const Frame& frame : walk_here())
    if (frame.origin() == RowOrigin::dyn_table) {
      innermost_jit_name = frame.name();
      break;
    }
  return x;
}

std::size_t registered() { return registry_statistics().registered; }

}  // namespace jitunwind::test

// orc_plugin is this source in a library of its own, with its own copy of jitunwind. Its user finds these functions by
// their names.
namespace {
std::unique_ptr<jitunwind::test::OrcJit> g_plugins_jit;
}

/// Links `assembly` and returns one of its functions; null removes everything.
extern "C" [[gnu::visibility("default")]] void* plugin_link(const char* assembly, const char* symbol) {
  g_plugins_jit.reset();
  if (!assembly) return nullptr;
  g_plugins_jit = std::make_unique<jitunwind::test::OrcJit>();
  g_plugins_jit->add(assembly);
  return g_plugins_jit->find<void*>(symbol);
}

extern "C" [[gnu::visibility("default")]] std::size_t plugin_registered() { return jitunwind::test::registered(); }

/// Returns the name of this copy's procedure that called it.
extern "C" [[gnu::visibility("default")]] const char* plugin_caller() {
  return jitunwind::test::innermost_jit_name.c_str();
}
extern "C" [[gnu::visibility("default")]] long plugin_names_caller(long x) { return jitunwind::test::names_caller(x); }
