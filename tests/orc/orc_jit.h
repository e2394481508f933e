// An LLJIT whose code is registered, and programs in LLVM's assembly language for it.
#pragma once

#include <gtest/gtest.h>

#include <jitunwind/llvm_orc.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/orc/linked_by.h"

namespace jitunwind::test {

/// Ends the program with LLVM's message if there is an error.
void or_exit(llvm::Error error);
template <class T>
T or_exit(llvm::Expected<T> value) {
  or_exit(value.takeError());
  return std::move(*value);
}

class OrcJit {
 public:
  using Builder = std::function<void(llvm::orc::LLJITBuilder&)>;
  explicit OrcJit(Linker linker = Linker::jitlink, OrcOptions options = {}, const Builder& change = {});

  llvm::orc::LLJIT& jit() { return *jit_; }
  llvm::orc::JITDylib& dylib(const std::string& name);

  /// The module is linked when one of its symbols is looked up.
  llvm::orc::ResourceTrackerSP add(std::string_view assembly) { return add(jit_->getMainJITDylib(), assembly); }
  llvm::orc::ResourceTrackerSP add(llvm::orc::JITDylib& dylib, std::string_view assembly);
  llvm::orc::ResourceTrackerSP add_object(std::unique_ptr<llvm::MemoryBuffer> object) {
    return add_object(jit_->getMainJITDylib(), std::move(object));
  }
  llvm::orc::ResourceTrackerSP add_object(llvm::orc::JITDylib& dylib, std::unique_ptr<llvm::MemoryBuffer> object);
  /// Returns the error as text; empty: the symbol was found.
  std::string failure_of(const std::string& symbol);

  template <class Function>
  Function find(const std::string& symbol) {
    return find<Function>(jit_->getMainJITDylib(), symbol);
  }
  template <class Function>
  Function find(llvm::orc::JITDylib& dylib, const std::string& symbol) {
    return reinterpret_cast<Function>(address(dylib, symbol));
  }

 private:
  std::uint64_t address(llvm::orc::JITDylib& dylib, const std::string& symbol);
  std::unique_ptr<llvm::orc::LLJIT> jit_;
};

std::unique_ptr<llvm::Module> parse(std::string_view assembly, llvm::LLVMContext& context);
llvm::orc::ThreadSafeModule module_of(std::string_view assembly);

/// Compiles the assembly to an object file.
std::unique_ptr<llvm::MemoryBuffer> compile(std::string_view assembly, const std::string& name = "compiled");

using Native = long (*)(long);
using Calls = long (*)(Native, long);

/// outer(native, x): calls the local function `middle`, which calls native; each adds 1.
inline constexpr std::string_view k_local_functions = R"(
define internal i64 @middle(ptr %native, i64 %x) noinline {
  %r = call i64 %native(i64 %x)
  %s = add i64 %r, 1
  ret i64 %s
}
define i64 @outer(ptr %native, i64 %x) {
  %r = call i64 @middle(ptr %native, i64 %x)
  %s = add i64 %r, 1
  ret i64 %s
}
)";

/// lazy(native, x): outer(native, x) of another module, and adds 1.
inline constexpr std::string_view k_lazy_caller = R"(
declare i64 @outer(ptr, i64)
define i64 @lazy(ptr %native, i64 %x) {
  %r = call i64 @outer(ptr %native, i64 %x)
  %s = add i64 %r, 1
  ret i64 %s
}
)";

/// catches(native, x): native(x), or -1 if it throws.
/// cleans(native, x): native(x); if it throws, native(-x) first.
inline constexpr std::string_view k_landing_pads = R"(
declare i32 @__gxx_personality_v0(...)
declare ptr @__cxa_begin_catch(ptr)
declare void @__cxa_end_catch()
define i64 @catches(ptr %native, i64 %x) personality ptr @__gxx_personality_v0 {
  %r = invoke i64 %native(i64 %x) to label %done unwind label %pad
done:
  ret i64 %r
pad:
  %caught = landingpad { ptr, i32 } catch ptr null
  %exception = extractvalue { ptr, i32 } %caught, 0
  %object = call ptr @__cxa_begin_catch(ptr %exception)
  call void @__cxa_end_catch()
  ret i64 -1
}
define i64 @cleans(ptr %native, i64 %x) personality ptr @__gxx_personality_v0 {
  %r = invoke i64 %native(i64 %x) to label %done unwind label %pad
done:
  ret i64 %r
pad:
  %passing = landingpad { ptr, i32 } cleanup
  %minus = sub i64 0, %x
  %undone = call i64 %native(i64 %minus)
  resume { ptr, i32 } %passing
}
)";

/// Returns the module with another name for each global symbol: "@outer" becomes "@outer_7".
std::string numbered(std::string_view assembly, int number);

/// Throws a std::runtime_error if x > 0; otherwise returns x.
long throws(long x);
/// Returns x and records the name of the JIT function that called it.
long names_caller(long x);
extern std::string innermost_jit_name;

std::size_t registered();

/// Runs tests with each linker; they must leave nothing registered.
class EachLinker : public testing::TestWithParam<Linker> {
 protected:
  ~EachLinker() override { EXPECT_EQ(registered(), 0u); }
};
#define JITUNWIND_EACH_LINKER(Suite)                                                         \
  INSTANTIATE_TEST_SUITE_P(Linkers, Suite, testing::Values(Linker::jitlink, Linker::rtdyld), \
                           [](const auto& linker) { return linker.param == Linker::jitlink ? "jitlink" : "rtdyld"; })

}  // namespace jitunwind::test
