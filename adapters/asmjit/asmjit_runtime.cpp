#include "jitunwind/adapters/asmjit/asmjit_runtime.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <new>

#include "jitunwind/adapters/asmjit/asmjit_version_p.h"
#include "jitunwind/adapters/asmjit/known_frames/marked_procedures_p.h"

namespace jitunwind {

namespace v = asmjit_version;

const int adapter_was_built_for_another_asmjit::ASMJIT_ABI_NAMESPACE = 0;

AsmjitRuntime::AsmjitRuntime(AsmjitRuntimeOptions options) noexcept
    : asmjit::JitRuntime(options.allocator), options_(std::move(options)) {}

AsmjitRuntime::~AsmjitRuntime() noexcept { release_all(); }

std::size_t AsmjitRuntime::registered() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const auto& [start, procedures] : added_) count += procedures.size();
  return count;
}

void AsmjitRuntime::release_all() noexcept {
  const std::lock_guard lock(mutex_);
  for (auto& [start, procedures] : added_)
    if (procedures.cancel() && options_.segments != nullptr) (void)take_away(start);
  added_.clear();
}

void AsmjitRuntime::reset(asmjit::ResetPolicy policy) noexcept {
  release_all();
  // A soft reset of an allocator without memory reads a null pointer in asmjit 1.9.
  asmjit::JitRuntime::reset(options_.segments == nullptr ? policy : asmjit::ResetPolicy::kHard);
}

asmjit::Error AsmjitRuntime::_add(void** out, asmjit::CodeHolder* code) noexcept { return add_named(out, code, {}); }

asmjit::Error AsmjitRuntime::add_named(void** out, asmjit::CodeHolder* code, std::string_view name) noexcept {
  *out = nullptr;
  try {
    return describe_and_add(out, *code, name);
  } catch (const std::bad_alloc&) {
    return v::k_out_of_memory;
  }
}

namespace {

/// A program without an error handler gets the reason for kErrorInvalidState by this line only.
void remark_once(const AsmjitRefusal& refusal) {
  static std::atomic<bool> remarked = false;
  if (remarked.exchange(true)) return;
  std::fprintf(stderr,
               "jitunwind: AsmjitRuntime::add() refuses code: %s (said once; on_refusal or an ErrorHandler hears of "
               "all)\n",
               refusal.text().c_str());
}

/// The place of a procedure in code from `start` on.
AddrRange range_of(const auto& procedure, void* start) {
  const auto base = reinterpret_cast<std::uintptr_t>(start);
  return {base + procedure.begin, base + procedure.end};
}

/// `name` is for the first one.
Code code_of(const auto& procedure, void* start, std::string_view name) {
  const AddrRange range = range_of(procedure, start);
  Code code{.start = range.begin, .size = range.size(), .name = procedure.name};
  if (procedure.begin == 0 && procedure.name.empty()) code.name = name;
  return code;
}

Result<Registration> register_one(const AsmjitProcedure& procedure, const Code& code) {
  return register_code(procedure.description, code);
}

Result<Registration> register_one(derivation::MarkedProcedure& procedure, const Code& code) {
  return register_marks(procedure.marks, code);
}

}  // namespace

Status AsmjitRuntime::Procedures::cancel() noexcept {
  const Status cancelled = first.cancel();
  return cancelled ? others.cancel() : cancelled;
}

/// Registers all of them or none: what `out` has is cancelled with it.
template <class Described>
Status AsmjitRuntime::register_all(void* start, Described& described, std::string_view name, Procedures& out) {
  for (auto& procedure : described) {
    auto registered = register_one(procedure, code_of(procedure, start, name));
    if (!registered) return registered.error();
    if (!out.first)
      out.first = std::move(*registered);
    else if (const Status kept = out.others.add(std::move(*registered)); !kept)
      return kept;
  }
  return Done{};
}

void AsmjitRuntime::report(const AsmjitDescription& description, asmjit::CodeHolder& code) const {
  if (options_.on_refusal)
    for (const AsmjitRefusal& refusal : description.refusals) options_.on_refusal(refusal);
  asmjit::BaseEmitter* first = nullptr;
  v::visit_emitters(code, [&first](asmjit::BaseEmitter& emitter) { first = first ? first : &emitter; });
  const bool is_heard = first && v::has_error_handler(*first);
  if (!is_heard && !options_.on_refusal) remark_once(description.refusals.front());
  if (!first) return;
  try {
    (void)v::report_error(*first, v::k_invalid_state, description.text());
  } catch (...) {
    // Handlers may throw, but add() must not; its caller gets the error as a value.
  }
}

/// Most code is marked, which takes less time than asmjit takes to write it. The other code is described.
asmjit::Error AsmjitRuntime::describe_and_add(void** out, asmjit::CodeHolder& code, std::string_view name) {
  derivation::CodeWriters writers(code);
  auto marked = derivation::mark_procedures(writers.only_record());
  if (!marked.empty()) return add_registered(out, code, marked, name);
  if (const asmjit::Error error = code.flatten(); error != asmjit::kErrorOk) return error;
  AsmjitDescription description = derivation::describe_written(code, writers);
  for (AsmjitRefusal& refusal : description.refusals)
    if (refusal.procedure.empty()) refusal.procedure = name;
  if (!description.complete()) {
    report(description, code);
    if (options_.undescribed == Undescribed::refuse) return v::k_invalid_state;
  }
  return add_registered(out, code, description.procedures, name);
}

/// Does what JitRuntime's function does, in a segment.
asmjit::Error AsmjitRuntime::place_in_segments(void** out, asmjit::CodeHolder& code,
                                               std::size_t more_functions) noexcept {
  if (const asmjit::Error error = v::link_sections(code); error != asmjit::kErrorOk) return error;
  const std::size_t size = v::code_size(code);
  if (size == 0) return v::k_no_code;
  const auto room = options_.segments->allocate(size, more_functions, v::k_code_alignment);
  if (!room) return v::k_out_of_memory;
  *out = reinterpret_cast<void*>(static_cast<std::uintptr_t>(room->start));
  const asmjit::Error error = v::relocate_into(code, room->start, room->writable);
  if (error != asmjit::kErrorOk) (void)options_.segments->release(room->start);
  return error;
}

asmjit::Error AsmjitRuntime::place(void** out, asmjit::CodeHolder& code, std::size_t more_functions) noexcept {
  return options_.segments == nullptr ? asmjit::JitRuntime::_add(out, &code)
                                      : place_in_segments(out, code, more_functions);
}

asmjit::Error AsmjitRuntime::take_away(void* start) noexcept {
  if (options_.segments == nullptr) return asmjit::JitRuntime::_release(start);
  return options_.segments->release(reinterpret_cast<std::uintptr_t>(start)) ? asmjit::kErrorOk : v::k_invalid_state;
}

/// Adds the code, and registers its procedures; neither after an error.
template <class Described>
asmjit::Error AsmjitRuntime::add_registered(void** out, asmjit::CodeHolder& code, Described& procedures,
                                            std::string_view name) {
  const auto more = std::count_if(procedures.begin(), procedures.end(), [](const auto& p) { return p.begin != 0; });
  void* start = nullptr;
  const asmjit::Error error = place(&start, code, static_cast<std::size_t>(more));
  if (error != asmjit::kErrorOk) return error;
  try {
    Procedures all;
    const Status registered = register_all(start, procedures, name, all);
    if (registered) {
      if (options_.segments != nullptr)
        for (const auto& p : procedures) (void)options_.segments->publish(range_of(p, start));
      const std::lock_guard lock(mutex_);
      added_.insert_or_assign(start, std::move(all));
      *out = start;
      return asmjit::kErrorOk;
    }
    (void)take_away(start);
    return registered.error().code == ErrorCode::out_of_memory ? v::k_out_of_memory : v::k_invalid_state;
  } catch (const std::bad_alloc&) {
    (void)take_away(start);
    return v::k_out_of_memory;
  }
}

asmjit::Error AsmjitRuntime::_release(void* start) noexcept {
  std::map<void*, Procedures>::node_type added;
  {
    const std::lock_guard lock(mutex_);
    added = added_.extract(start);
  }
  if (added.empty()) return v::k_invalid_argument;
  // The cancellation waits for readers and therefore runs without the lock.
  if (added.mapped().cancel()) return take_away(start);
  const std::lock_guard lock(mutex_);
  added_.insert(std::move(added));
  return v::k_invalid_state;
}

}  // namespace jitunwind
