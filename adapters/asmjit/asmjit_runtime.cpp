#include "jitunwind/adapters/asmjit/asmjit_runtime.h"

#include <atomic>
#include <cstdio>
#include <new>
#include <vector>

#include "jitunwind/adapters/asmjit/asmjit_version_p.h"

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

asmjit::Error AsmjitRuntime::describe_and_add(void** out, asmjit::CodeHolder& code, std::string_view name) {
  if (const asmjit::Error error = code.flatten(); error != asmjit::kErrorOk) return error;
  AsmjitDescription description = describe_asmjit(code);
  for (AsmjitRefusal& refusal : description.refusals)
    if (refusal.procedure.empty()) refusal.procedure = name;
  if (!description.complete()) {
    report(description, code);
    if (options_.undescribed == Undescribed::refuse) return v::k_invalid_state;
  }
  void* start = nullptr;
  if (const asmjit::Error error = asmjit::JitRuntime::_add(&start, &code); error != asmjit::kErrorOk) return error;
  asmjit::Error error = v::k_out_of_memory;
  try {
    error = register_procedures(start, description, name);
  } catch (const std::bad_alloc&) {
  }
  if (error == asmjit::kErrorOk)
    *out = start;
  else
    (void)asmjit::JitRuntime::_release(start);
  return error;
}

/// Registers all procedures or none.
asmjit::Error AsmjitRuntime::register_procedures(void* start, const AsmjitDescription& description,
                                                 std::string_view name) {
  std::vector<RegistrationBatch::Item> items;
  for (const AsmjitProcedure& p : description.procedures) {
    Code code{.start = reinterpret_cast<std::uintptr_t>(start) + p.begin, .size = p.end - p.begin};
    if (p.begin == 0 && p.name.empty()) code.name = name;
    items.push_back({&p.description, code});
  }
  RegistrationBatch batch;
  if (const Status registered = batch.register_code(items); !registered)
    return registered.error().code == ErrorCode::out_of_memory ? v::k_out_of_memory : v::k_invalid_state;
  const std::lock_guard lock(mutex_);
  added_.insert_or_assign(start, std::move(batch));
  return asmjit::kErrorOk;
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
