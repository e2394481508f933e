// The cost of registration in an LLJIT: the time to add a module, from intermediate code to callable code, and the
// first throw with many modules there. There are three ways: this library's plugin, LLVM's own, none.
//
//   PROGRAM orc MAX-MODULES [--benchmark_...]
//   PROGRAM count [NAME TIMES]
//
//   add_module/WAY/FUNCTIONS           an item is a module; ways take turns, module by module
//   add_module_part/WAY/FUNCTIONS      of such a module: all of it, and what plugins take themselves
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

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/timed_plugin.h"

namespace {

namespace orc = llvm::orc;

/// The processor time of this thread, on which everything happens.
struct ThreadClock {
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<ThreadClock, duration>;
  static time_point now() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
  }
};

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

constexpr std::array<int, 2> k_functions{1, 100};

/// The parts of adding a module: the time of this library's plugin, that of LLVM's plugin, and the whole time with this
/// library's.
constexpr std::array<const char*, 3> k_parts{"jitunwind", "EHFrameRegistrationPlugin", "all"};

using Calls = void (*)(void (*)());

class Jit {
 public:
  /// LLJIT's own layer has LLVM's plugin. When this library is attached, LLVM's plugin finds nothing to register.
  explicit Jit(Way way) : jit_(way == none ? without_plugins() : or_exit(orc::LLJITBuilder().create())) {
    if (way == ours) or_exit(jitunwind::attach(*jit_));
  }

  /// Makes a JIT that has only the plugin, whose time is measured.
  static std::pair<Jit, std::shared_ptr<bench::TimedPlugin>> timed(Way way) {
    Jit jit(none);
    orc::ExecutionSession& session = jit.jit_->getExecutionSession();
    std::shared_ptr<orc::ObjectLinkingLayer::Plugin> plugin = std::make_shared<jitunwind::OrcPlugin>();
    if (way == llvms)
      plugin =
          std::make_shared<orc::EHFrameRegistrationPlugin>(session, or_exit(orc::EPCEHFrameRegistrar::Create(session)));
    const auto timed = std::make_shared<bench::TimedPlugin>(std::move(plugin));
    llvm::cast<orc::ObjectLinkingLayer>(jit.jit_->getObjLinkingLayer()).addPlugin(timed);
    return {std::move(jit), timed};
  }

  /// Returns a program of so many functions that call their argument; the first one is "f0".
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

  /// Adds the program, removes it again, and returns the time of adding.
  double seconds_to_add(const std::string& program) {
    auto module = parse(program);
    const auto tracker = jit_->getMainJITDylib().createResourceTracker();
    const auto start = ThreadClock::now();
    add(tracker, std::move(module));
    const auto took = ThreadClock::now() - start;
    or_exit(tracker->remove());
    return std::chrono::duration<double>(took).count();
  }

  void add(const orc::ResourceTrackerSP& tracker, orc::ThreadSafeModule module) {
    or_exit(jit_->addIRModule(tracker, std::move(module)));
    benchmark::DoNotOptimize(or_exit(jit_->lookup(tracker->getJITDylib(), "f0")));
  }

  /// Adds one more module, of one function, in a dylib of its own.
  Calls add(const llvm::MemoryBuffer& object) {
    orc::JITDylib& dylib = new_dylib();
    or_exit(jit_->addObjectFile(dylib, llvm::MemoryBuffer::getMemBuffer(object.getMemBufferRef(), false)));
    return or_exit(jit_->lookup(dylib, "f0")).toPtr<Calls>();
  }

  orc::JITDylib& new_dylib() {
    auto made = jit_->createJITDylib("module " + std::to_string(modules_++));
    or_exit(made.takeError());
    return *made;
  }

 private:
  static std::unique_ptr<orc::LLJIT> without_plugins() {
    orc::LLJITBuilder builder;
    builder.setObjectLinkingLayerCreator(
        [](orc::ExecutionSession& session, const llvm::Triple&) -> llvm::Expected<std::unique_ptr<orc::ObjectLayer>> {
          return std::make_unique<orc::ObjectLinkingLayer>(session);
        });
    return or_exit(builder.create());
  }

  std::unique_ptr<orc::LLJIT> jit_;
  int modules_ = 0;
};

/// The process has one JIT for each way. Modules are added to all of them in turn, so that a drift of the machine
/// affects all; the time of the others is left out.
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

/// Measures the time of a plugin while a module is added, or for `none` the whole time with this library's plugin. The
/// median of elapsed times is taken, since an interrupted run takes many times as long.
void add_module_part(benchmark::State& state, Way way, int functions) {
  auto [jit, plugin] = Jit::timed(way == llvms ? llvms : ours);
  const std::string program = Jit::program(functions);
  std::vector<double> seconds(functions == 1 ? 151 : 15);
  for (auto _ : state) {
    for (double& one : seconds) {
      (void)plugin->take_seconds();
      const double all = jit.seconds_to_add(program);
      one = way == none ? all : plugin->take_seconds();
    }
    std::sort(seconds.begin(), seconds.end());
    state.SetIterationTime(seconds[seconds.size() / 2]);
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
    const auto start = ThreadClock::now();
    try {
      calls(throw_it);
    } catch (int) {
    }
    state.SetIterationTime(std::chrono::duration<double>(ThreadClock::now() - start).count());
  }
  state.SetItemsProcessed(state.iterations());
}

/// Adds a module to each of `times` dylibs for callgrind, and ends without removing any.
int count(const std::string& name, int times) {
  for (const Way way : {ours, llvms, none})
    for (const int functions : k_functions) {
      const std::string each = std::string("instructions/") + k_ways[way] + "/add_module/" + std::to_string(functions);
      if (name.empty()) std::printf("1 %s\n", each.c_str());
      if (name != each) continue;
      Jit jit(way);
      const std::string program = Jit::program(functions);
      for (int i = 0; i < times; ++i) jit.add(jit.new_dylib().createResourceTracker(), jit.parse(program));
      std::_Exit(0);
    }
  return name.empty() ? 0 : 2;
}

void add_benchmarks(int max_modules) {
  for (const int functions : k_functions)
    for (const Way way : {ours, llvms, none}) {
      const std::string name = std::string("add_module/") + k_ways[way] + "/" + std::to_string(functions);
      benchmark::RegisterBenchmark(name.c_str(), add_module, way, functions)->UseManualTime();
      const std::string part = std::string("add_module_part/") + k_parts[way] + "/" + std::to_string(functions);
      benchmark::RegisterBenchmark(part.c_str(), add_module_part, way, functions)->UseManualTime()->Iterations(1);
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

/// Has the command line of the peers' programs.
int main(int argc, char** argv) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  if (argc >= 2 && std::string(argv[1]) == "count")
    return argc == 4 ? count(argv[2], std::atoi(argv[3])) : count("", 0);
  benchmark::Initialize(&argc, argv);
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s orc MAX-MODULES [--benchmark_...]\n", argv[0]);
    return 2;
  }
  add_benchmarks(std::atoi(argv[2]));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
