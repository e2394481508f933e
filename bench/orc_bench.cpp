// What registering costs an LLJIT: time to add a module, from intermediate code to code that can be called, and the
// first throw with many modules there. Three ways: this library's plugin, LLVM's own, none.
//
//   add_module/WAY/FUNCTIONS           an item is a module; ways take turns, module by module
//   first_throw_after/WAY/MODULES      an item is the first throw through code of a module that was just added
#include <benchmark/benchmark.h>
#include <jitunwind/llvm_orc.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/ExecutionEngine/Orc/EPCEHFrameRegistrar.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>

#include <time.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace {

namespace orc = llvm::orc;

/// Processor time of this thread, on which everything happens.
double seconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void or_exit(llvm::Error error) {
  if (!error) return;
  std::fprintf(stderr, "%s\n", llvm::toString(std::move(error)).c_str());
  std::exit(1);
}
template <class T>
T or_exit(llvm::Expected<T> value) {
  or_exit(value.takeError());
  return std::move(*value);
}

enum Way { ours, llvms, none };
constexpr std::array<const char*, 3> k_ways{"jitunwind", "EHFrameRegistrationPlugin", "nobody"};

using Calls = void (*)(void (*)());

class Jit {
 public:
  explicit Jit(Way way) : jit_(make(way)) {
    if (way == ours) or_exit(jitunwind::attach(*jit_));
  }

  /// FUNCTIONS functions that call what they are given, the first one "f0".
  static std::string program(int functions) {
    std::string text;
    for (int i = 0; i < functions; ++i) {
      const std::string name = "@f" + std::to_string(i);
      text += "define void " + name + "(ptr %g) {\n  %x = alloca [4 x i64]\n  call void %g()\n";
      text += "  store volatile i64 1, ptr %x\n  call void %g()\n  ret void\n}\n";
    }
    return text;
  }

  orc::ThreadSafeModule parse(const std::string& program) {
    auto context = std::make_unique<llvm::LLVMContext>();
    llvm::SMDiagnostic diagnostic;
    auto module = llvm::parseAssemblyString(program, diagnostic, *context);
    return {std::move(module), std::move(context)};
  }

  double seconds_to_add(const std::string& program) {
    auto module = parse(program);
    const auto tracker = jit_->getMainJITDylib().createResourceTracker();
    const double start = seconds_now();
    or_exit(jit_->addIRModule(tracker, std::move(module)));
    benchmark::DoNotOptimize(or_exit(jit_->lookup("f0")));
    const double took = seconds_now() - start;
    or_exit(tracker->remove());
    return took;
  }

  /// One more module, of one function, in a dylib of its own.
  Calls add(const llvm::MemoryBuffer& object) {
    auto made = jit_->createJITDylib("module " + std::to_string(modules_++));
    or_exit(made.takeError());
    or_exit(jit_->addObjectFile(*made, llvm::MemoryBuffer::getMemBuffer(object.getMemBufferRef(), false)));
    return or_exit(jit_->lookup(*made, "f0")).toPtr<Calls>();
  }

  orc::LLJIT& operator*() { return *jit_; }

 private:
  static std::unique_ptr<orc::LLJIT> make(Way way) {
    orc::LLJITBuilder builder;
    builder.setObjectLinkingLayerCreator(
        [way](orc::ExecutionSession& session,
              const llvm::Triple&) -> llvm::Expected<std::unique_ptr<orc::ObjectLayer>> {
          auto layer = std::make_unique<orc::ObjectLinkingLayer>(session);
          if (way == llvms) {
            auto registrar = or_exit(orc::EPCEHFrameRegistrar::Create(session));
            layer->addPlugin(std::make_unique<orc::EHFrameRegistrationPlugin>(session, std::move(registrar)));
          }
          return layer;
        });
    return or_exit(builder.create());
  }

  std::unique_ptr<orc::LLJIT> jit_;
  int modules_ = 0;
};

/// One JIT a way in the process. Modules are added to all of them in turn, so that what drifts meets them all; the time
/// of the others is left out.
void add_module(benchmark::State& state, Way way, int functions) {
  static std::array<Jit, 3> jits{Jit(ours), Jit(llvms), Jit(none)};
  const std::string program = Jit::program(functions);
  std::size_t turn = 0;
  for (auto _ : state) {
    for (std::size_t i = 0; i < jits.size(); ++i) {
      const std::size_t one = (turn + i) % jits.size();
      const double seconds = jits[one].seconds_to_add(program);
      if (one == way) state.SetIterationTime(seconds);
    }
    ++turn;
  }
  state.SetItemsProcessed(state.iterations());
}

std::unique_ptr<llvm::MemoryBuffer> compile(int functions) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  const auto module = llvm::parseAssemblyString(Jit::program(functions), diagnostic, context);
  const auto machine = or_exit(or_exit(orc::JITTargetMachineBuilder::detectHost()).createTargetMachine());
  return or_exit(orc::SimpleCompiler(*machine)(*module));
}

void throw_it() { throw 1; }

void first_throw_after(benchmark::State& state, Way way, int modules) {
  const auto object = compile(1);
  Jit jit(way);
  for (int i = 0; i < modules; ++i) (void)jit.add(*object);
  for (auto _ : state) {
    const Calls calls = jit.add(*object);
    const double start = seconds_now();
    try {
      calls(throw_it);
    } catch (int) {
    }
    state.SetIterationTime(seconds_now() - start);
  }
  state.SetItemsProcessed(state.iterations());
}

void add_benchmarks(int max_modules) {
  for (const int functions : {1, 100})
    for (const Way way : {ours, llvms, none}) {
      const std::string name = std::string("add_module/") + k_ways[way] + "/" + std::to_string(functions);
      benchmark::RegisterBenchmark(name.c_str(), add_module, way, functions)->UseManualTime();
    }
  for (const int modules : {100, 1000, 10'000}) {
    if (modules > max_modules) continue;
    for (const Way way : {ours, llvms}) {
      const std::string name = std::string("first_throw_after/") + k_ways[way] + "/" + std::to_string(modules);
      benchmark::RegisterBenchmark(name.c_str(), first_throw_after, way, modules)->UseManualTime()->Iterations(5);
    }
  }
}

}  // namespace

/// As the peers' programs.
int main(int argc, char** argv) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  benchmark::Initialize(&argc, argv);
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s orc MAX-MODULES [--benchmark_...]\n", argv[0]);
    return 2;
  }
  add_benchmarks(std::atoi(argv[2]));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
