#include "jitunwind/adapters/asmjit/asmjit_runtime.h"

#include <atomic>
#include <cstdio>
#include <new>
#include <vector>

#include "jitunwind/adapters/asmjit/asmjit_version_p.h"
#include "jitunwind/adapters/asmjit/known_frames/marked_procedures_p.h"

namespace jitunwind {

namespace v = asmjit_version;

const int adapter_was_built_for_another_asmjit::ASMJIT_ABI_NAMESPACE = 0;

AsmjitRuntime::AsmjitRuntime(AsmjitRuntimeOptions options) noexcept
    : asmjit::JitRuntime(options.allocator), options_(std::move(options)) {}

AsmjitRuntime::~AsmjitRuntime() noexcept = default;

std::size_t AsmjitRuntime::registered() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const auto& [start, procedures] : added_) count += procedures.size();
  return count;
}

void AsmjitRuntime::reset(asmjit::ResetPolicy policy) noexcept {
  {
    const std::lock_guard lock(mutex_);
    added_.clear();
  }
  asmjit::JitRuntime::reset(policy);
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

/// The place of a procedure in code from `start` on. `name` is for the first one.
Code code_of(const auto& procedure, void* start, std::string_view name) {
  Code code{.start = reinterpret_cast<std::uintptr_t>(start) + procedure.begin,
            .size = procedure.end - procedure.begin,
            .name = procedure.name};
  if (procedure.begin == 0 && procedure.name.empty()) code.name = name;
  return code;
}

Status register_procedures(void* start, const std::vector<AsmjitProcedure>& procedures, std::string_view name,
                           RegistrationBatch& batch) {
  std::vector<RegistrationBatch::Item> items;
  for (const AsmjitProcedure& p : procedures) items.push_back({&p.description, code_of(p, start, name)});
  return batch.register_code(items);
}

Status register_procedures(void* start, std::list<derivation::MarkedProcedure>& procedures, std::string_view name,
                           RegistrationBatch& batch) {
  for (derivation::MarkedProcedure& p : procedures) {
    auto registered = register_marks(p.marks, code_of(p, start, name));
    if (!registered) return registered.error();
    if (const Status kept = batch.add(std::move(*registered)); !kept) return kept;
  }
  return Done{};
}

}  // namespace

void AsmjitRuntime::report(const AsmjitDescription& description, asmjit::CodeHolder& code) const {
  if (options_.on_refusal)
    for (const AsmjitRefusal& refusal : description.refusals) options_.on_refusal(refusal);
  const std::vector<asmjit::BaseEmitter*> emitters = v::attached_emitters(code);
  const bool is_heard = !emitters.empty() && v::has_error_handler(*emitters.front());
  if (!is_heard && !options_.on_refusal) remark_once(description.refusals.front());
  if (emitters.empty()) return;
  try {
    (void)v::report_error(*emitters.front(), v::k_invalid_state, description.text());
  } catch (...) {
    // Handlers may throw, but add() must not; its caller gets the error as a value.
  }
}

/// Most code is marked, which takes less time than asmjit takes to write it. The other code is described.
asmjit::Error AsmjitRuntime::describe_and_add(void** out, asmjit::CodeHolder& code, std::string_view name) {
  if (const asmjit::Error error = code.flatten(); error != asmjit::kErrorOk) return error;
  auto marked = derivation::mark_procedures(code);
  if (!marked.empty())
    return add_registered(out, code, [&](void* start, RegistrationBatch& batch) {
      return register_procedures(start, marked, name, batch);
    });
  AsmjitDescription description = describe_asmjit(code);
  for (AsmjitRefusal& refusal : description.refusals)
    if (refusal.procedure.empty()) refusal.procedure = name;
  if (!description.complete()) {
    report(description, code);
    if (options_.undescribed == Undescribed::refuse) return v::k_invalid_state;
  }
  return add_registered(out, code, [&](void* start, RegistrationBatch& batch) {
    return register_procedures(start, description.procedures, name, batch);
  });
}

/// Adds the code, and its procedures by `register_all`; neither after an error.
template <class Register>
asmjit::Error AsmjitRuntime::add_registered(void** out, asmjit::CodeHolder& code, Register register_all) {
  void* start = nullptr;
  if (const asmjit::Error error = asmjit::JitRuntime::_add(&start, &code); error != asmjit::kErrorOk) return error;
  try {
    RegistrationBatch batch;
    const Status registered = register_all(start, batch);
    if (registered) {
      const std::lock_guard lock(mutex_);
      added_.insert_or_assign(start, std::move(batch));
      *out = start;
      return asmjit::kErrorOk;
    }
    (void)asmjit::JitRuntime::_release(start);
    return registered.error().code == ErrorCode::out_of_memory ? v::k_out_of_memory : v::k_invalid_state;
  } catch (const std::bad_alloc&) {
    (void)asmjit::JitRuntime::_release(start);
    return v::k_out_of_memory;
  }
}

asmjit::Error AsmjitRuntime::_release(void* start) noexcept {
  std::map<void*, RegistrationBatch>::node_type added;
  {
    const std::lock_guard lock(mutex_);
    added = added_.extract(start);
  }
  if (added.empty()) return v::k_invalid_argument;
  // The cancellation waits for readers and therefore runs without the lock.
  if (added.mapped().cancel()) return asmjit::JitRuntime::_release(start);
  const std::lock_guard lock(mutex_);
  added_.insert(std::move(added));
  return v::k_invalid_state;
}

}  // namespace jitunwind
