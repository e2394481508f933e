// One program for two runtimes: runs a scenario of the exception ABI and writes down what personality routines, stop
// functions and callbacks see. Names and distances instead of addresses, so that two logs can be compared.
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <unwind.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>

extern "C" {
void* logged_frame_A(void* (*f)(void*), void* argument);
void* logged_frame_B(void* (*f)(void*), void* argument);
void* logged_frame_C(void* (*f)(void*), void* argument);
void* logged_frame_D(void* (*f)(void*), void* argument);
void* plain_frame(void* (*f)(void*), void* argument);
void* remembering_frame(void* (*f)(void*), void* argument);
}

// Logs have numbers: the compiler's header has those of the ABI.
static_assert(_URC_NO_REASON == 0 && _URC_FOREIGN_EXCEPTION_CAUGHT == 1 && _URC_FATAL_PHASE2_ERROR == 2 &&
              _URC_FATAL_PHASE1_ERROR == 3 && _URC_NORMAL_STOP == 4 && _URC_END_OF_STACK == 5 &&
              _URC_HANDLER_FOUND == 6 && _URC_INSTALL_CONTEXT == 7 && _URC_CONTINUE_UNWIND == 8);
static_assert(_UA_SEARCH_PHASE == 1 && _UA_CLEANUP_PHASE == 2 && _UA_HANDLER_FRAME == 4 && _UA_FORCE_UNWIND == 8 &&
              _UA_END_OF_STACK == 16);

namespace {

using Frame = void* (*)(void* (*)(void*), void*);

/// The answers of a frame's personality routine. A recursive frame answers for one of its activations, counted from the
/// innermost.
struct Answers {
  int in_search = _URC_CONTINUE_UNWIND;
  int in_cleanup = _URC_CONTINUE_UNWIND;
  int in_handler = _URC_INSTALL_CONTEXT;
  bool resumes = true;   // behind its landing pad
  int handles_nth = -1;  // activation that in_search is for
  int seen = 0;
};
Answers answers[4];
Answers& of(std::uint64_t letter) { return answers[(letter - 'A') % 4]; }

const char* stack_anchor;
bool shows_cfa = true;  // the kernel aligns its frames as it likes
struct {
  unsigned char before[64];
  _Unwind_Exception exception;
  unsigned char behind[64];
} place;
_Unwind_Exception& exception = place.exception;
constexpr unsigned char k_not_its_own = 0xa5;

long distance(std::uint64_t address) {
  return static_cast<long>(reinterpret_cast<std::uintptr_t>(stack_anchor) - address);
}

/// "function+12" or "library+0x1234". Distances within the program are those from this function, since its place
/// differs with the libraries that the program is linked with.
void print_code(const char* what, std::uint64_t pc) {
  Dl_info info;
  if (pc == 0 || !::dladdr(reinterpret_cast<void*>(pc), &info)) {
    std::printf(" %s=%s", what, pc == 0 ? "0" : "?");
    return;
  }
  const bool own = std::strstr(info.dli_fname, "level_one") != nullptr;
  const bool named = own && info.dli_sname;
  const char* const slash = std::strrchr(info.dli_fname, '/');
  const char* const name = named ? info.dli_sname : own ? "program" : slash ? slash + 1 : info.dli_fname;
  const void* const begin = own ? reinterpret_cast<void*>(&print_code) : info.dli_fbase;
  const auto start = reinterpret_cast<std::uintptr_t>(named ? info.dli_saddr : begin);
  std::printf(" %s=%s+%#lx", what, name, static_cast<unsigned long>(pc - start));
}

void print_context(_Unwind_Context* context) {
  int before = -1;
  const auto pc = _Unwind_GetIPInfo(context, &before);
  print_code("ip", pc);
  std::printf(" before=%d same=%d", before, pc == _Unwind_GetIP(context));
  if (shows_cfa) std::printf(" cfa=%ld", distance(_Unwind_GetCFA(context)));
  // Behind the end the context still has the values of the frame before.
  if (pc != 0) print_code("region", _Unwind_GetRegionStart(context));
  if (pc != 0)
    std::printf(" lsda=%d data=%#lx text=%#lx", _Unwind_GetLanguageSpecificData(context) != nullptr,
                static_cast<unsigned long>(_Unwind_GetDataRelBase(context)),
                static_cast<unsigned long>(_Unwind_GetTextRelBase(context)));
}

}  // namespace

extern "C" {

[[gnu::used]] _Unwind_Reason_Code logging_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class cls,
                                                      _Unwind_Exception* exc, _Unwind_Context* context) {
  const auto* const lsda = static_cast<const std::int64_t*>(_Unwind_GetLanguageSpecificData(context));
  const auto letter = static_cast<std::uint64_t>(lsda[0]);
  std::printf("personality %c version=%d actions=%d class=%#lx own=%d rbx=%c", static_cast<int>(letter), version,
              actions, static_cast<unsigned long>(cls), exc == &exception, static_cast<int>(_Unwind_GetGR(context, 3)));
  print_context(context);
  std::puts("");
  Answers& answer = of(letter);
  if (actions & _UA_SEARCH_PHASE) {
    const bool mine = answer.handles_nth < 0 || answer.handles_nth == answer.seen++;
    return static_cast<_Unwind_Reason_Code>(mine ? answer.in_search : _URC_CONTINUE_UNWIND);
  }
  const auto landing_pad = reinterpret_cast<std::uintptr_t>(lsda) + static_cast<std::uint64_t>(lsda[1]);
  const bool cleaned_up = _Unwind_GetIP(context) > landing_pad;  // the call of _Unwind_Resume behind it
  const int wanted = actions & _UA_HANDLER_FRAME ? answer.in_handler : answer.in_cleanup;
  const int code = cleaned_up ? int{_URC_CONTINUE_UNWIND} : wanted;
  if (code == _URC_INSTALL_CONTEXT) {
    _Unwind_SetGR(context, 0, reinterpret_cast<std::uintptr_t>(exc));
    _Unwind_SetGR(context, 1, letter);
    _Unwind_SetIP(context, landing_pad);
    std::printf("set rax=%d rdx=%d\n", _Unwind_GetGR(context, 0) == reinterpret_cast<std::uintptr_t>(exc),
                _Unwind_GetGR(context, 1) == letter);
  }
  return static_cast<_Unwind_Reason_Code>(code);
}

[[gnu::used]] int landed(_Unwind_Exception* exc, std::uint64_t letter, std::uint64_t sp, std::uint64_t rbx) {
  std::printf("landed %c own=%d sp=%ld rbx=%c\n", static_cast<int>(letter), exc == &exception, distance(sp),
              static_cast<int>(rbx));
  return of(letter).resumes;
}
}

namespace {

constexpr std::uint64_t k_class = 0x4a554e57'54455354;

void on_delete(_Unwind_Reason_Code code, _Unwind_Exception* exc) {
  std::printf("deleted code=%d own=%d\n", code, exc == &exception);
}

void begin(std::uint64_t cls) {
  std::memset(&place, k_not_its_own, sizeof place);
  std::memset(&exception, 0, sizeof exception);
  exception.exception_class = cls;
  exception.exception_cleanup = on_delete;
}

/// An exception has 32 bytes, aligned to 16, of which the last two words are the unwinder's.
void print_exception(std::uint64_t cls) {
  bool untouched = true;
  for (const unsigned char byte : place.before) untouched &= byte == k_not_its_own;
  for (const unsigned char byte : place.behind) untouched &= byte == k_not_its_own;
  std::uint64_t words[4];
  static_assert(sizeof words == sizeof exception && alignof(_Unwind_Exception) == 16);
  std::memcpy(words, &exception, sizeof words);
  std::printf("untouched=%d class=%d cleanup=%d used=%d\n", untouched, words[0] == cls,
              words[1] == reinterpret_cast<std::uintptr_t>(&on_delete), (words[2] | words[3]) != 0);
}

void* raise_it(void*) {
  begin(k_class);
  std::printf("raised: %d\n", _Unwind_RaiseException(&exception));
  return nullptr;
}
void* raise_again(void*) {
  std::printf("rethrown: %d\n", _Unwind_Resume_or_Rethrow(&exception));
  return nullptr;
}

/// Calls through `frames`, a string of letters, outermost first; '-' is a frame without personality.
struct Path {
  const char* frames;
  void* (*innermost)(void*);
};
void* call_next(void* argument) {
  auto* path = static_cast<Path*>(argument);
  constexpr Frame k_frames[] = {logged_frame_A, logged_frame_B, logged_frame_C, logged_frame_D};
  const char letter = *path->frames++;
  if (letter == '\0') return path->innermost(nullptr);
  if (letter == '-') return plain_frame(call_next, path);
  if (letter == '+') return remembering_frame(call_next, path);
  return k_frames[letter - 'A'](call_next, path);
}
void run(const char* frames, void* (*innermost)(void*)) {
  Path path{frames, innermost};
  std::printf("result %p\n", call_next(&path));
}

jmp_buf after_end;
int stop_after = -1;
bool jumps_at_end = false;

_Unwind_Reason_Code stop(int version, _Unwind_Action actions, _Unwind_Exception_Class cls, _Unwind_Exception* exc,
                         _Unwind_Context* context, void* argument) {
  std::printf("stop version=%d actions=%d class=%d own=%d argument=%d", version, actions,
              cls == exception.exception_class, exc == &exception, argument == &after_end);
  print_context(context);
  std::puts("");
  if (stop_after-- == 0) return _URC_NORMAL_STOP;
  if ((actions & _UA_END_OF_STACK) && jumps_at_end) longjmp(after_end, 1);
  return _URC_NO_REASON;
}
void* force_it(void*) {
  begin(0x666f726365640000);
  std::printf("forced: %d\n", _Unwind_ForcedUnwind(&exception, stop, &after_end));
  return nullptr;
}

int trace_count, trace_most;
_Unwind_Reason_Code trace(_Unwind_Context* context, void* argument) {
  std::printf("trace argument=%d", argument == &trace_count);
  print_context(context);
  std::puts("");
  return ++trace_count == trace_most ? _URC_NORMAL_STOP : _URC_NO_REASON;
}
void* trace_it(void*) {
  trace_count = 0;
  std::printf("traced: %d", _Unwind_Backtrace(trace, &trace_count));
  std::printf(" frames=%d\n", trace_count);
  return nullptr;
}
void on_signal(int) { trace_it(nullptr); }
void* raise_signal(void*) {
  ::signal(SIGUSR1, on_signal);
  ::raise(SIGUSR1);
  return nullptr;
}

void caught() {
  of('A').in_search = _URC_HANDLER_FOUND;
  of('A').resumes = false;
}

struct Scenario {
  const char* name;
  void (*run)();
};
const Scenario scenarios[] = {
    {"caught", [] { caught(), run("A-B--C", raise_it), print_exception(k_class); }},
    {"caught_behind_cleanups",
     [] {
       caught();
       of('B').in_cleanup = of('C').in_cleanup = _URC_INSTALL_CONTEXT;
       run("AB-C-D", raise_it);
     }},
    {"caught_at_once", [] { caught(), run("BA", raise_it); }},
    {"caught_behind_many_states", [] { caught(), run("A+B+C", raise_it); }},
    {"caught_in_one_of_many", [] { caught(), of('A').handles_nth = 2, run("AAAAA", raise_it); }},
    {"not_caught", [] { run("A-BC", raise_it); }},
    {"nonsense_in_search", [] { of('B').in_search = _URC_NO_REASON, run("ABC", raise_it); }},
    {"nonsense_in_cleanup", [] { caught(), of('B').in_cleanup = _URC_END_OF_STACK, run("ABC", raise_it); }},
    {"forced",
     [] {
       of('B').in_cleanup = _URC_INSTALL_CONTEXT;
       jumps_at_end = true;
       if (setjmp(after_end) == 0) run("A-B-C", force_it);
       std::puts("left");
     }},
    {"forced_to_the_end", [] { run("A-C", force_it); }},
    {"forced_stops", [] { stop_after = 2, run("A-C", force_it); }},
    {"forced_nonsense", [] { of('A').in_cleanup = _URC_HANDLER_FOUND, run("A-C", force_it); }},
    {"rethrown", [] { caught(), run("AB", raise_it), std::puts("again"), run("A-CB", raise_again); }},
    {"rethrown_uncaught", [] { caught(), run("A", raise_it), std::puts("again"), run("B", raise_again); }},
    {"rethrown_forced",
     [] {
       // A cleanup that rethrows instead of resuming.
       of('C').in_cleanup = _URC_INSTALL_CONTEXT;
       of('C').resumes = false;
       jumps_at_end = true;
       if (setjmp(after_end) == 0) run("A-C", force_it), run("B", raise_again);
       std::puts("left");
     }},
    {"deleted",
     [] {
       begin(1);
       _Unwind_DeleteException(&exception);
       exception.exception_cleanup = nullptr;
       _Unwind_DeleteException(&exception);
     }},
    {"traced", [] { run("A-B", trace_it); }},
    {"traced_in_part", [] { trace_most = 3, run("A-B", trace_it); }},
    {"traced_through_a_signal", [] { shows_cfa = false, run("A-B", raise_signal); }},
    {"enclosing",
     [] {
       for (const auto offset : {0, 1, 2, 20})
         print_code("f", reinterpret_cast<std::uintptr_t>(
                             _Unwind_FindEnclosingFunction(reinterpret_cast<char*>(&logged_frame_C) + offset)));
       print_code("data", reinterpret_cast<std::uintptr_t>(_Unwind_FindEnclosingFunction(&trace_count)));
       std::puts("");
     }},
};

}  // namespace

int main(int, char** argv) {
  stack_anchor = static_cast<const char*>(__builtin_frame_address(0));
  Dl_info info;
  ::dladdr(reinterpret_cast<void*>(&_Unwind_GetCFA), &info);  // of what is not intercepted by sanitizers
  if (argv[1] && std::strcmp(argv[1], "--runtime") == 0) return std::puts(info.dli_fname), 0;
  if (!argv[1]) {
    for (const Scenario& s : scenarios) std::puts(s.name);
    return 0;
  }
  for (const Scenario& s : scenarios)
    if (std::strcmp(s.name, argv[1]) == 0) return s.run(), 0;
  return 2;
}
