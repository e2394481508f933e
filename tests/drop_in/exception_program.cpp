// Throws and looks at its stack by libunwind's own names of the exception ABI.
#include <unwind.h>

#include <cstdio>

extern "C" {
decltype(_Unwind_RaiseException) __libunwind_Unwind_RaiseException;
decltype(_Unwind_Backtrace) __libunwind_Unwind_Backtrace;
decltype(_Unwind_GetRegionStart) __libunwind_Unwind_GetRegionStart;
decltype(_Unwind_GetIP) __libunwind_Unwind_GetIP;
decltype(_Unwind_FindEnclosingFunction) __libunwind_Unwind_FindEnclosingFunction;
unsigned long __libunwind_Unwind_GetBSP(_Unwind_Context* context);
}
int main();

namespace {

struct Said {
  const char* what;
  ~Said() { std::printf("%s\n", what); }
};

[[gnu::noinline]] void raises() {
  const Said said{"destructor"};
  static _Unwind_Exception exception{};
  exception.exception_cleanup = [](_Unwind_Reason_Code, _Unwind_Exception*) { std::printf("cleaned up\n"); };
  std::printf("returned %d\n", __libunwind_Unwind_RaiseException(&exception));
}

_Unwind_Reason_Code look(_Unwind_Context* context, void* found) {
  const auto pc = static_cast<unsigned long>(__libunwind_Unwind_GetIP(context));
  const auto start = static_cast<unsigned long>(__libunwind_Unwind_GetRegionStart(context));
  const bool is_main = start == reinterpret_cast<unsigned long>(&main);
  const bool agrees = __libunwind_Unwind_FindEnclosingFunction(reinterpret_cast<void*>(pc - 1)) == &main;
  if (is_main && agrees && __libunwind_Unwind_GetBSP(context) == 0) *static_cast<bool*>(found) = true;
  return _URC_NO_REASON;
}

}  // namespace

int main() {
  bool found = false;
  std::printf("walked %d\n", __libunwind_Unwind_Backtrace(look, &found));
  std::printf(found ? "main\n" : "no main\n");
  try {
    raises();
  } catch (...) {
    std::printf("caught\n");
  }
}
