// The functions by which JITs announce call frame information to libgcc, or to LLVM's libunwind. These definitions
// precede libgcc_s's in search order, so the program's own calls reach them. Their meaning is libgcc's
// (unwind-dw2-fde.h), unless it is LLVM's: told_frames_p.h. They are weak, so that a static libgcc's own definitions
// take precedence instead of colliding.
#include <dlfcn.h>

#include <cstring>
#include <utility>

#include "jitunwind/adapters/listen/frames/told_frames_p.h"
#include "jitunwind/adapters/listen/listening_p.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {
namespace {

constinit const LocalMemory k_memory;

/// A section without an end is read to the end of its memory, and never further than this.
constexpr std::uint64_t k_longest_section = std::uint64_t{1} << 30;
constexpr std::uint64_t k_longest_procedure = std::uint64_t{1} << 30;

SectionBytes page_around(Addr begin) noexcept {
  const Addr page = page_of(begin);
  return {{reinterpret_cast<const std::byte*>(page), k_page_size}, page};
}

/// An FDE has the distance to its CIE in the place where a CIE has 0 (LSB 5.0 core, 10.6.1), after 4 or 12 bytes of
/// length.
bool begins_with_fde(Addr begin, CfiBytes& bytes) noexcept {
  std::uint32_t word = 0;
  const auto read = [&](Addr at) {
    const auto found = bytes.view(at, sizeof word);
    if (found) std::memcpy(&word, found->data(), sizeof word);
    return bool(found);
  };
  if (!read(begin) || word == 0) return false;
  return read(begin + (word == 0xffffffffu ? 12 : 4)) && word != 0;
}

}  // namespace

bool is_empty_section(const void* begin) noexcept {
  std::uint32_t length = 0;
  if (begin != nullptr) std::memcpy(&length, begin, sizeof length);
  return length == 0;
}

ToldBytes::ToldBytes(Addr begin) noexcept : CfiBytes(page_around(begin)) {}

Result<std::span<const std::byte>> ToldBytes::view_elsewhere(Addr at, std::uint64_t size) noexcept {
  if (size > k_max_cfi_entry) return Error{ErrorCode::truncated, at, "entry longer than any that there is"};
  const auto length = static_cast<std::size_t>(size);
  if (const std::byte* const bytes = k_memory.view(at, length, window_)) return std::span(bytes, length);
  return unreadable(window_, at, "call frame information that was told of");
}

FrameReader::FrameReader(Addr begin, const FrameBases& bases) noexcept
    : begin_(begin),
      context_{.arch = local_space().arch, .text_base = bases.text, .data_base = bases.data},
      bytes_(begin),
      scan_(bytes_, context_, {begin, begin + k_longest_section}),
      is_single_(begins_with_fde(begin, bytes_)) {}

Result<bool> FrameReader::next_entry(Fde& out) noexcept {
  if (!is_single_) return scan_.next(out);
  if (ended_) return false;
  ended_ = true;
  Result<Fde> fde = read_fde(bytes_, context_, begin_);
  if (!fde) return fde.error();
  out = *fde;
  return true;
}

Result<bool> FrameReader::next(Fde& out) noexcept {
  for (;;) {
    const Result<bool> found = next_entry(out);
    if (!found || !*found) return found;
    if (out.range.begin != 0 && !out.range.empty()) return true;
  }
}

std::optional<Error> FrameReader::forbids_reading_again(const Fde& fde) noexcept {
  if (context_.text_base == 0) return std::nullopt;
  const CfiContext without_text{.arch = context_.arch, .data_base = context_.data_base};
  if (read_fde(bytes_, without_text, fde.address)) return std::nullopt;
  return Error{ErrorCode::bad_encoding, fde.address, "FDE with pointers relative to text, of which only the call says"};
}

bool read_usual_section(Addr begin, Fde& out) noexcept {
  const SectionBytes page = page_around(begin);
  return read_lone_fde({page.bytes.subspan(static_cast<std::size_t>(begin - page.address)), begin}, local_space().arch,
                       out);
}

std::optional<Error> disbelief(const Fde& fde) noexcept {
  const AddrRange& code = fde.range;
  if (code.end < code.begin || code.size() > k_longest_procedure)
    return Error{ErrorCode::e_range, fde.address, "FDE that claims more than a procedure can be"};
  const bool ends_a_page = code.size() >= k_page_size && code.end % k_page_size == 0;
  if (fde.cie.personality.value != 0 && fde.lsda.value == 0 && ends_a_page)
    return Error{ErrorCode::e_range, fde.address, "FDE that catches all up to the end of a page: no procedure"};
  return std::nullopt;
}

}  // namespace jitunwind

// A static program has none of these, and no next functions.
#pragma weak dlsym
#pragma weak dlopen

namespace jitunwind {
namespace {

/// The __register_frame family that would be called without this library: that of libgcc_s, or of LLVM's libunwind.
struct NextFrameFunctions {
  void (*register_frame)(const void* begin) = nullptr;
  void (*register_info)(const void* begin, void* object) = nullptr;
  void (*register_info_bases)(const void* begin, void* object, void* text, void* data) = nullptr;
  void (*register_table)(void* begin) = nullptr;
  void (*register_info_table)(void* begin, void* object) = nullptr;
  void (*register_info_table_bases)(void* begin, void* object, void* text, void* data) = nullptr;
  void (*deregister_frame)(const void* begin) = nullptr;
  void* (*deregister_info)(const void* begin) = nullptr;
  void* (*deregister_info_bases)(const void* begin) = nullptr;
};

template <class Function>
void find(Function*& function, const char* name, void* run_time) noexcept {
  void* found = dlsym(RTLD_NEXT, name);
  if (found == nullptr && run_time != nullptr) found = dlsym(run_time, name);
  function = reinterpret_cast<Function*>(found);
}

/// Functions that follow this library in search order, else those of libgcc_s if it is loaded. Missing members are
/// null. Each call looks them up: not signal-safe, takes locks of the dynamic linker.
NextFrameFunctions next_frame_functions() noexcept {
  NextFrameFunctions next;
  if (&dlsym == nullptr || &dlopen == nullptr) return next;
  const ErrnoKeeper keep_errno;
  void* const run_time = dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_NOLOAD);
  find(next.register_frame, "__register_frame", run_time);
  find(next.register_info, "__register_frame_info", run_time);
  find(next.register_info_bases, "__register_frame_info_bases", run_time);
  find(next.register_table, "__register_frame_table", run_time);
  find(next.register_info_table, "__register_frame_info_table", run_time);
  find(next.register_info_table_bases, "__register_frame_info_table_bases", run_time);
  find(next.deregister_frame, "__deregister_frame", run_time);
  find(next.deregister_info, "__deregister_frame_info", run_time);
  find(next.deregister_info_bases, "__deregister_frame_info_bases", run_time);
  if (run_time != nullptr) dlclose(run_time);
  return next;
}

/// The target of a call of __register_frame by a library that was loaded with the program; null: there is none, or the
/// program is static. Not signal-safe.
void* first_register_frame() noexcept {
  const ErrnoKeeper keep_errno;
  return &dlsym == nullptr ? nullptr : dlsym(RTLD_DEFAULT, "__register_frame");
}

/// libgcc's functions call each other by their names, which lead here: each such call is passed on to the function of
/// the same name.
constinit thread_local bool hands_on = false;

Answer hear(const ToldSections& told) noexcept {
  if (hands_on) return Answer::next;
  const bool listens = listens_to(Dialect::frames);
  const Answer answer = listens ? note_told(told) : note_handed_on(told.begin);
  if (answer == Answer::next) count_heard(Heard::handed_on);
  if (listens) note_engine();
  return answer;
}

Answer hear_section(const void* begin, void* object, const FrameBases& bases = {}) noexcept {
  return is_empty_section(begin) ? Answer::ours : hear({begin, nullptr, object, bases});
}

Answer hear_table(void* begin, void* object, const FrameBases& bases = {}) noexcept {
  return begin == nullptr ? Answer::ours : hear({begin, static_cast<const void* const*>(begin), object, bases});
}

TakenBack hear_taken_back(const void* begin) noexcept {
  if (hands_on) return {Answer::next, nullptr};
  return take_back(begin);
}

template <class Result, class... Parameters>
Result call(Result (*next)(Parameters...), Parameters... arguments) noexcept {
  const bool before = std::exchange(hands_on, true);
  struct Restored {
    bool before;
    ~Restored() { hands_on = before; }
  } const restored{before};
  return next(arguments...);
}

/// There may be a next definition when the call is taken back, and libgcc aborts for a call that it never got.
template <class Begin, class... Others>
void tell_next(void (*NextFrameFunctions::*which)(Begin, Others...), Begin begin, Others... others) noexcept {
  auto* const next = next_frame_functions().*which;
  return next == nullptr ? note_nobody_told(begin) : call(next, begin, others...);
}

template <class Result>
Result take_back_from_next(Result (*NextFrameFunctions::*which)(const void*), const void* begin) noexcept {
  auto* const next = next_frame_functions().*which;
  return next == nullptr ? Result() : call(next, begin);
}

}  // namespace
}  // namespace jitunwind

using jitunwind::address_of;
using jitunwind::Answer;
using Next = jitunwind::NextFrameFunctions;

#define JITUNWIND_HEARD extern "C" [[gnu::visibility("default"), gnu::weak]]

// The exported name may be bound to another definition, also within this library.
extern "C" {
[[gnu::visibility("hidden")]] void jitunwind_register_frame(const void* begin) noexcept {
  if (jitunwind::hear_section(begin, nullptr) == Answer::next) jitunwind::tell_next(&Next::register_frame, begin);
}
[[gnu::visibility("default"), gnu::weak, gnu::alias("jitunwind_register_frame")]] void __register_frame(
    const void* begin) noexcept;
}

bool jitunwind::are_frames_told_here() noexcept {
  return first_register_frame() == reinterpret_cast<void*>(&jitunwind_register_frame);
}

JITUNWIND_HEARD void __register_frame_info(const void* begin, void* object) {
  if (jitunwind::hear_section(begin, object) == Answer::next) jitunwind::tell_next(&Next::register_info, begin, object);
}

JITUNWIND_HEARD void __register_frame_info_bases(const void* begin, void* object, void* text, void* data) {
  if (jitunwind::hear_section(begin, object, {address_of(text), address_of(data)}) == Answer::next)
    jitunwind::tell_next(&Next::register_info_bases, begin, object, text, data);
}

JITUNWIND_HEARD void __register_frame_table(void* begin) {
  if (jitunwind::hear_table(begin, nullptr) == Answer::next) jitunwind::tell_next(&Next::register_table, begin);
}

JITUNWIND_HEARD void __register_frame_info_table(void* begin, void* object) {
  if (jitunwind::hear_table(begin, object) == Answer::next)
    jitunwind::tell_next(&Next::register_info_table, begin, object);
}

JITUNWIND_HEARD void __register_frame_info_table_bases(void* begin, void* object, void* text, void* data) {
  if (jitunwind::hear_table(begin, object, {address_of(text), address_of(data)}) == Answer::next)
    jitunwind::tell_next(&Next::register_info_table_bases, begin, object, text, data);
}

JITUNWIND_HEARD void __deregister_frame(const void* begin) {
  if (jitunwind::hear_taken_back(begin).answer == Answer::next)
    jitunwind::take_back_from_next(&Next::deregister_frame, begin);
}

JITUNWIND_HEARD void* __deregister_frame_info(const void* begin) {
  const jitunwind::TakenBack back = jitunwind::hear_taken_back(begin);
  return back.answer == Answer::next ? jitunwind::take_back_from_next(&Next::deregister_info, begin) : back.object;
}

JITUNWIND_HEARD void* __deregister_frame_info_bases(const void* begin) {
  const jitunwind::TakenBack back = jitunwind::hear_taken_back(begin);
  return back.answer == Answer::next ? jitunwind::take_back_from_next(&Next::deregister_info_bases, begin)
                                     : back.object;
}
