#include "jitunwind/sdk/c/answer_internal.h"

#include <jitunwind/version.h>

#include "jitunwind/sdk/c/handles_p.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/page_internal.h"

// The codes of the C interface: those of the library under stable numbers, and the mistakes of C callers; and its
// version.

namespace jitunwind::c {
namespace {

/// The library has the meaning of a code, or this table has it.
struct NamedCode {
  ju_status status;
  char name[22];
  char text[86];
};

constexpr NamedCode k_own[]{
    {JU_OK, "ok", "no error"},
    {JU_END, "end", "the outermost frame"},
    {JU_NULL_POINTER, "null_pointer", "a pointer that must not be null is"},
    {JU_BAD_HANDLE, "bad_handle", "handle of another kind, or none at all"},
    {JU_FREED_HANDLE, "freed_handle",
     "handle that was freed: always noticed by libraries built with JITUNWIND_CHECK_HANDLES"},
    {JU_BAD_STRUCT_SIZE, "bad_struct_size", "struct_size is not that of a structure of this interface"},
    {JU_BAD_VERSION, "bad_version", "the program was compiled with a newer header than this library has"},
    {JU_BAD_STRING, "bad_string", "string without end: no NUL in 65536 bytes, or before memory that cannot be read"},
    {JU_OTHER_CPU, "other_cpu", "register of another CPU than the one that is described"},
    {JU_NO_SUCH_INSTRUCTION, "no_such_instruction", "instruction that this CPU does not have"},
    {JU_BAD_VALUE, "bad_value", "value that the enumeration does not have"},
    {JU_OUT_OF_RANGE, "out_of_range", "number behind the last one there is"},
    {JU_NO_PROCESS, "no_process", "no process has that number"},
    {JU_ZOMBIE, "zombie", "it has ended, or is about to: the kernel has taken its memory"},
    {JU_KERNEL_THREAD, "kernel_thread", "a thread of the kernel's"},
    {JU_THIS_PROCESS, "this_process", "the calling process: walk it as such"},
    {JU_TRACED_BY_ANOTHER, "traced_by_another", "a process has one tracer"},
    {JU_NO_PERMISSION, "no_permission", "the kernel does not let this user trace it"},
    {JU_OTHER_ARCHITECTURE, "other_architecture", "its CPU, or its word size"},
    {JU_NO_SUCH_FILE, "no_such_file", "it cannot be opened or read"},
    {JU_NO_CORE, "no_core", "the file is no core file, or nothing of one is left"},
    {JU_CORE_OF_OTHER_PROGRAM, "core_of_other_program",
     "the program that was given is not the one that the core is of"},
    {JU_NO_SAMPLES, "no_samples", "the file has no samples of stacks, or they cannot be read"},
    {JU_THREAD_GONE, "thread_gone", "this process has no thread of that number"},
    {JU_THREAD_BLOCKS, "thread_blocks", "it blocks all signals, or the one it is asked by"},
    {JU_THREAD_SILENT, "thread_silent", "it does not run: stopped by a debugger, or in an uninterruptible wait"},
    {JU_NO_SIGNAL, "no_signal", "all real-time signals are used for something else, or too many wait to be delivered"},
    {JU_THREADS_BUSY, "threads_busy", "as many threads as there is room for are being asked"},
};

struct LibraryCode {
  ErrorCode code;
  ju_status status;
};

/// The codes of the library, in their order.
constexpr LibraryCode k_codes[]{
#define JITUNWIND_ERROR(name, ju_status, unw_error, text) {ErrorCode::name, ju_status},
#include "jitunwind/unwind_core/error_codes.def"
#undef JITUNWIND_ERROR
};

struct Remedy {
  ju_status status;
  const char* text;
};

constexpr Remedy k_remedies[]{
    {JU_NULL_POINTER, "Check what the function that made it returned."},
    {JU_BAD_HANDLE, "Hand over what the function of that kind of handle made."},
    {JU_FREED_HANDLE, "A handle is void once it was freed, cancelled, retired or handed over."},
    {JU_BAD_STRUCT_SIZE, "Set struct_size to sizeof of the structure, or call its _init() function."},
    {JU_BAD_VERSION, "Install the release of the library that the headers are of, or a newer one."},
    {JU_BAD_STRING, "End strings with a NUL."},
    {JU_OTHER_CPU, "Take the constants of the CPU that ju_describe() was given, or ju_register_number()."},
    {JU_NO_SUCH_INSTRUCTION, "Describe what the instructions of this CPU do."},
    {JU_BAD_VALUE, "Take one of the enumeration."},
    {JU_OUT_OF_RANGE, "Ask for the number of elements first."},
    {JU_OUT_OF_MEMORY, "Free something; nothing was changed."},
    {JU_IN_SIGNAL_HANDLER, "Call it outside of signal handlers, and not from a callback of a walk."},
    {JU_CODE_DISAGREES, "Correct the description at the instruction that the line on standard error names."},
    {JU_ALREADY_REGISTERED, "Cancel it first."},
    {JU_NOT_REGISTERED, "A procedure is cancelled once."},
    {JU_W_UNBALANCED, "Say the missing pop or deallocate, or ju_ends_without_return()."},
    {JU_NO_PERMISSION, "Run as the same user, with CAP_SYS_PTRACE, or lower /proc/sys/kernel/yama/ptrace_scope."},
    {JU_TRACED_BY_ANOTHER, "Detach the debugger or strace first."},
    {JU_THIS_PROCESS, "Use ju_cursor_here() or ju_walk_thread()."},
    {JU_THREAD_BLOCKS, "Walk it from another process, with ju_target_attach()."},
    {JU_THREAD_SILENT, "Ask again, or wait longer."},
    {JU_THREADS_BUSY, "Ask again."},
    {JU_E_RANGE, "Give each instruction its bytes, and the code the size that it has."},
    {JU_E_LABEL, "Call ju_remember() before ju_restore()."},
    {JU_NO_INFO, "Register the code, or build it with unwind information."},
    {JU_BAD_REGISTER, "Take one of the CPU's constants."},
};

const NamedCode* own_code(ju_status status) noexcept {
  for (const NamedCode& code : k_own)
    if (code.status == status) return &code;
  return nullptr;
}

ErrorCode library_code(ju_status status) noexcept {
  for (const LibraryCode& code : k_codes)
    if (code.status == status) return code.code;
  return ErrorCode::unspecified;
}

}  // namespace

ju_status status_of(ErrorCode code) noexcept { return k_codes[static_cast<std::size_t>(code)].status; }

}  // namespace jitunwind::c

const char* ju_status_name(ju_status status) {
  const auto* const own = jitunwind::c::own_code(status);
  return own ? own->name : jitunwind::error_name(jitunwind::c::library_code(status));
}

const char* ju_status_text(ju_status status) {
  const auto* const own = jitunwind::c::own_code(status);
  return own ? own->text : jitunwind::error_text(jitunwind::c::library_code(status));
}

const char* ju_status_remedy(ju_status status) {
  for (const auto& remedy : jitunwind::c::k_remedies)
    if (remedy.status == status) return remedy.text;
  return "";
}

unsigned jitunwind_version(void) { return JITUNWIND_VERSION; }

extern "C" [[gnu::weak]] void __lsan_ignore_object(const void* block);

namespace jitunwind::c {
namespace {

template <std::size_t N>
void copy_cut(std::string_view text, char (&into)[N]) noexcept {
  (void)write_text(text, into, N, nullptr);
}

bool is_readable(const char* at, MemoryWindow window) noexcept {
  std::array<std::byte, 1> byte;
  return local_space().memory.read(reinterpret_cast<std::uintptr_t>(at), byte, window) == byte.size();
}

/// A system call takes longer than registering. So only memory that cannot be read is probed by two, of which the first
/// checks that the second one is reliable.
bool is_readable(const char* at) noexcept {
  MemoryWindow trusting;
  trusting.has_tried_mask = true;
  return is_readable(at, trusting) || is_readable(at, {});
}

}  // namespace

ju_status tell(ju_error* into, ju_status status, std::uint64_t at, std::string_view place,
               std::string_view text) noexcept {
  if (into == nullptr || !has_size(*into)) return status;
  into->code = status;
  into->at = at;
  into->remedy = ju_status_remedy(status);
  copy_cut(place, into->place);
  copy_cut(text, into->text);
  return status;
}

ju_status tell(ju_error* into, ju_status status, const char* place, std::uint64_t at) noexcept {
  return tell(into, status, at, place, ju_status_text(status));
}

ju_status tell(ju_error* into, const Error& error, const char* place) noexcept {
  const char* const text = error.what[0] != '\0' ? error.what : error_text(error.code);
  return tell(into, status_of(error.code), error.at, place, text);
}

ju_status write_text(std::string_view text, char* into, std::size_t room, std::size_t* length) noexcept {
  if (length) *length = text.size();
  if (room == 0) return JU_OK;
  if (!into) return JU_NULL_POINTER;
  const std::size_t size = std::min(text.size(), room - 1);
  if (size != 0) std::memcpy(into, text.data(), size);
  into[size] = '\0';
  return JU_OK;
}

ju_status refuse_handle(const void* handle, const char* place, ju_error* error) noexcept {
  if (!handle) return tell(error, JU_NULL_POINTER, place);
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(handle) % alignof(std::uint64_t) == 0;
  return tell(error, is_aligned && kind_of(handle) == Kind::freed ? JU_FREED_HANDLE : JU_BAD_HANDLE, place);
}

void free_memory(void* handle, void (*release)(void*) noexcept) noexcept {
  const Kind freed = Kind::freed;
  std::memcpy(handle, &freed, sizeof freed);
  asm volatile("" : : "r"(handle) : "memory");  // the store is not optimised away, although the memory is freed
  if constexpr (!k_checks_handles)
    release(handle);
  else if (__lsan_ignore_object)
    __lsan_ignore_object(handle);
}

bool read_string(const char* of_caller, std::string_view& out, std::size_t longest) noexcept {
  out = {};
  if (!of_caller) return true;
  std::size_t size = 0;
  while (size < longest) {
    const char* const at = of_caller + size;
    if (!is_readable(at)) return false;
    const std::size_t left_of_page = k_page_size - reinterpret_cast<std::uintptr_t>(at) % k_page_size;
    const std::size_t most = std::min(left_of_page, longest - size);
    if (const void* const end = std::memchr(at, '\0', most)) {
      out = {of_caller, static_cast<std::size_t>(static_cast<const char*>(end) - of_caller)};
      return true;
    }
    size += most;
  }
  return false;
}

}  // namespace jitunwind::c

unsigned ju_version(void) { return jitunwind_version(); }

ju_status ju_check_version(unsigned compiled_with, ju_error* error) {
  constexpr unsigned k_major = 10000;
  if (compiled_with / k_major == jitunwind_version() / k_major && compiled_with <= jitunwind_version()) return JU_OK;
  return jitunwind::c::tell(error, JU_BAD_VERSION, "compiled_with", compiled_with);
}
