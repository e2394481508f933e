// The adapter on another version of LLVM than the rest was built with: in a program of its own, since versions of LLVM
// do not share a process well. Walks, throws, and leaves nothing, with JITLink and with RuntimeDyld.
#include <jitunwind/jitunwind.h>
#include <jitunwind/llvm_orc.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "examples/orc_versions.h"

namespace orc = llvm::orc;

static void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("LLVM %d: does not hold: %s\n", LLVM_VERSION_MAJOR, what);
  std::exit(1);
}

static void or_exit(llvm::Error error) {
  if (!error) return;
  std::printf("LLVM %d: %s\n", LLVM_VERSION_MAJOR, llvm::toString(std::move(error)).c_str());
  std::exit(1);
}
template <class T>
static T or_exit(llvm::Expected<T> value) {
  or_exit(value.takeError());
  return std::move(*value);
}

// The pointers have types, because versions before 17 read them.
static const char* const k_program = R"(
define internal i64 @middle(i64 (i64)* %native, i64 %x) noinline {
  %r = call i64 %native(i64 %x)
  %s = add i64 %r, 1
  ret i64 %s
}
define i64 @outer(i64 (i64)* %native, i64 %x) {
  %r = call i64 @middle(i64 (i64)* %native, i64 %x)
  %s = add i64 %r, 1
  ret i64 %s
}
)";

static orc::ThreadSafeModule program() {
  auto context = std::make_unique<llvm::LLVMContext>();
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseAssemblyString(k_program, diagnostic, *context);
  check(module != nullptr, "the program is read");
  return {std::move(module), std::move(context)};
}

using Native = long (*)(long);

static std::string g_names;
static long walks_or_throws(long x) {
  if (x == 0) throw std::runtime_error("from below");
  g_names.clear();
  for (const jitunwind::Frame& frame : jitunwind::walk_here())
    if (frame.origin() == jitunwind::RowOrigin::dyn_table) g_names += frame.name() + ' ';
  return x;
}

static void run(orc::LLJIT& jit) {
  const auto tracker = jit.getMainJITDylib().createResourceTracker();
  or_exit(jit.addIRModule(tracker, program()));
  const auto outer = orc_versions::function_at<long(Native, long)>(or_exit(jit.lookup("outer")));
  check(outer(walks_or_throws, 1) == 3, "the result is right");
  check(g_names == "middle outer ", "both functions are walked and named");
  bool caught = false;
  try {
    outer(walks_or_throws, 0);
  } catch (const std::runtime_error&) {
    caught = true;
  }
  check(caught, "an exception passes");
  check(jitunwind::registry_statistics().registered == 2, "both functions are registered");
  or_exit(tracker->remove());
  check(jitunwind::registry_statistics().registered == 0, "nothing stays");
}

int main() {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  {
    const auto jit = or_exit(orc_versions::create_jit());
    or_exit(jitunwind::attach(*jit));
    run(*jit);
  }
  const auto jit = or_exit(orc::LLJITBuilder().setObjectLinkingLayerCreator(jitunwind::orc_rtdyld_layer()).create());
  run(*jit);
  std::printf("LLVM %d: all right\n", LLVM_VERSION_MAJOR);
  return 0;
}
