#include "jitunwind/builders/registration.h"

#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "jitunwind/builders/released_registration_internal.h"
#include "jitunwind/dyn_info/registry/locking/forkable_lock_internal.h"
#include "jitunwind/sdk/c/describing/builder_p.h"
#include "jitunwind/sdk/c/handles_p.h"

using jitunwind::Registration;
using jitunwind::c::answer;
using jitunwind::c::check;
using jitunwind::c::check_kind;
using jitunwind::c::Kind;
using jitunwind::c::tell;

struct ju_batch {
  static constexpr Kind k_kind = Kind::batch;
  Kind kind = k_kind;
  jitunwind::RegistrationBatch batch{};
};

namespace jitunwind::c {
namespace {

/// The handles of registrations are the descriptors themselves, because a second allocation would be a tenth of the
/// cost of registering. They have no word for their kind, so that the registry is searched. Libraries that check
/// handles also record the void ones.
class VoidRegistrations {
 public:
  static void add([[maybe_unused]] const void* handle) {
    if constexpr (k_checks_handles) {
      const std::lock_guard guard(lock_);
      if (handles_ == nullptr) handles_ = new Handles;
      handles_->insert(handle);
    }
  }
  static void remove([[maybe_unused]] const void* handle) {
    if constexpr (k_checks_handles) {
      const std::lock_guard guard(lock_);
      if (handles_ != nullptr) handles_->erase(handle);
    }
  }
  static bool has([[maybe_unused]] const void* handle) {
    if constexpr (k_checks_handles) {
      const std::lock_guard guard(lock_);
      return handles_ != nullptr && handles_->count(handle) != 0;
    }
    return false;
  }
  static void keep_in_forks() noexcept {
    if constexpr (k_checks_handles) keep_whole_in_forks<lock_>();
  }

 private:
  using Handles = std::unordered_set<const void*>;
  [[maybe_unused]] static constinit inline ForkableLock lock_;
  [[maybe_unused]] static constinit inline Handles* handles_ = nullptr;  // never destroyed, like the registry
};

[[gnu::constructor]] void keep_void_registrations_in_forks() { VoidRegistrations::keep_in_forks(); }

/// Chooses the error. Precondition: the registration is bad.
[[gnu::cold]] ju_status refuse_registration(const ju_registration* registration, ju_error* error) {
  constexpr const char* k_place = "registration";
  if (!registration) return tell(error, JU_NULL_POINTER, k_place);
  if (VoidRegistrations::has(registration)) return tell(error, JU_FREED_HANDLE, k_place);
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(registration) % alignof(unw_dyn_info_t) == 0;
  if (!is_aligned || is_kind(kind_of(registration))) return refuse_handle(registration, k_place, error);
  return tell(error, JU_BAD_HANDLE, reinterpret_cast<std::uintptr_t>(registration), k_place,
              "nothing that is registered: never, or cancelled, retired or handed over before");
}

ju_status check_registration(const ju_registration* registration, ju_error* error) {
  const bool is_registered = is_released_registration(info_of(registration));
  if (is_registered && !VoidRegistrations::has(registration)) [[likely]]
    return JU_OK;
  return refuse_registration(registration, error);
}

/// Borrows the registration for one call; the handle keeps it.
template <class Ask>
auto ask(const ju_registration* registration, Ask question) {
  Registration looked_at = Registration::adopt(info_of(registration));
  const auto answer = question(looked_at);
  (void)looked_at.release();
  return answer;
}

/// `What`: a description, or marks.
template <class What, class Handle>
ju_status register_code(Handle* handle, const ju_code* code, ju_registration** registration, ju_error* error) {
  return answer(error, [&] {
    What* what = nullptr;
    Code place;
    if (const ju_status bad = read_handle(handle, what, error)) return bad;
    if (!registration) return tell(error, JU_NULL_POINTER, "registration");
    if (const ju_status bad = read_code(code, place, error)) return bad;
    auto registered = jitunwind::register_code(*what, place);
    if (!registered) return tell(error, registered.error(), "code");
    return hand_out(registered->release(), registration, error);
  });
}

ju_ticket ticket_of(const RetireTicket& ticket) noexcept { return {ticket.serial, ticket.batch, ticket.skipped}; }

template <class Owner>
ju_status retire(Owner& owner, ju_ticket* ticket, ju_error* error) noexcept {
  const auto retired = owner.retire();
  if (!retired) return tell(error, retired.error());
  if (ticket) *ticket = ticket_of(*retired);
  return JU_OK;
}

}  // namespace

ju_status read_handle(const ju_description* of_caller, const Description*& out, ju_error* error) noexcept {
  if (const ju_status bad = check(of_caller, "description", error)) return bad;
  out = &of_caller->description;
  return JU_OK;
}

ju_status read_handle(ju_builder* of_caller, AnyMarks*& out, ju_error* error) noexcept {
  if (const ju_status bad = check(of_caller, "marks", error)) return bad;
  out = std::get_if<AnyMarks>(&of_caller->recorder);
  if (!out) return tell(error, JU_BAD_VALUE, 0, "marks", "a builder of ju_describe() is built: use ju_build()");
  const ju_status misuse = std::exchange(of_caller->first_misuse, JU_OK);
  if (misuse == JU_OK) [[likely]]
    return JU_OK;
  out->recorder().clear();
  return tell(error, misuse, 0, "marks", std::exchange(of_caller->misuse, {}));
}

bool read_name(const char* of_caller, std::string_view& out) noexcept {
  if (!of_caller) return true;
  if constexpr (k_checks_handles) return read_string(of_caller, out);
  out = {of_caller, strnlen(of_caller, k_longest_string)};
  return out.size() < k_longest_string;
}

ju_status read_code(const ju_code* of_caller, Code& out, ju_error* error) noexcept {
  ju_code copy;
  const ju_code* code = nullptr;
  if (const ju_status bad = read_struct(of_caller, code, copy, "code", error)) return bad;
  out = {code->start, code->size, {}, code->lsda, code->landing_pad_base, code->user};
  if (read_name(code->name, out.name)) [[likely]]
    return JU_OK;
  return tell(error, JU_BAD_STRING, "code.name");
}

ju_status hand_out(const Result<unw_dyn_info_t*>& released, ju_registration** registration, ju_error* error) noexcept {
  if (!released) return tell(error, released.error(), "code");
  *registration = reinterpret_cast<ju_registration*>(*released);
  VoidRegistrations::remove(*registration);
  return JU_OK;
}
}  // namespace jitunwind::c

ju_status ju_register(const ju_description* description, const ju_code* code, ju_registration** registration,
                      ju_error* error) {
  return jitunwind::c::register_code<const jitunwind::Description>(description, code, registration, error);
}

ju_status ju_register_marks(ju_builder* marks, const ju_code* code, ju_registration** registration, ju_error* error) {
  return jitunwind::c::register_code<jitunwind::c::AnyMarks>(marks, code, registration, error);
}

ju_status ju_cancel(ju_registration* registration, ju_error* error) {
  if (!registration) return JU_OK;
  return answer(error, [&] {
    using jitunwind::c::VoidRegistrations;
    if (VoidRegistrations::has(registration)) return jitunwind::c::refuse_registration(registration, error);
    VoidRegistrations::add(registration);
    const jitunwind::Status cancelled = jitunwind::cancel_released(jitunwind::c::info_of(registration));
    if (cancelled) [[likely]]
      return JU_OK;
    VoidRegistrations::remove(registration);
    if (!jitunwind::c::is_registered_still(cancelled)) return jitunwind::c::refuse_registration(registration, error);
    return tell(error, cancelled);
  });
}

ju_status ju_retire(ju_registration* registration, ju_ticket* ticket, ju_error* error) {
  if (ticket) *ticket = {};
  if (!registration) return JU_OK;
  return answer(error, [&] {
    if (const ju_status bad = jitunwind::c::check_registration(registration, error)) return bad;
    jitunwind::c::VoidRegistrations::add(registration);
    Registration one = Registration::adopt(jitunwind::c::info_of(registration));
    const ju_status retired = jitunwind::c::retire(one, ticket, error);
    if (one) jitunwind::c::VoidRegistrations::remove(one.release());
    return retired;
  });
}

int ju_reclaimed(const ju_ticket* ticket) {
  if (!ticket) return 1;
  return jitunwind::reclaimed({ticket->serial, ticket->batch, ticket->skipped}) ? 1 : 0;
}

ju_status ju_registration_range(const ju_registration* registration, uint64_t* begin, uint64_t* end) {
  if (const ju_status bad = jitunwind::c::check_registration(registration, nullptr)) return bad;
  const auto range = jitunwind::c::ask(registration, [](const Registration& one) { return one.range(); });
  if (begin) *begin = range.begin;
  if (end) *end = range.end;
  return JU_OK;
}

size_t ju_registration_bytes(const ju_registration* registration) {
  if (jitunwind::c::check_registration(registration, nullptr) != JU_OK) return 0;
  return jitunwind::c::ask(registration, [](const Registration& one) { return one.bytes(); });
}

ju_status ju_batch_new(ju_batch** batch, ju_error* error) {
  return answer(error, [&] {
    if (!batch) return tell(error, JU_NULL_POINTER, "batch");
    return jitunwind::c::hand_out(std::make_unique<ju_batch>(), batch);
  });
}

ju_status ju_batch_register(ju_batch* batch, const ju_description* const* descriptions, const ju_code* codes,
                            size_t count, ju_error* error) {
  return answer(error, [&] {
    if (const ju_status bad = check(batch, "batch", error)) return bad;
    if (count == 0) return JU_OK;
    if (!descriptions || !codes) return tell(error, JU_NULL_POINTER, descriptions ? "codes" : "descriptions");
    if (!jitunwind::c::has_size(*codes)) return tell(error, JU_BAD_STRUCT_SIZE, "codes", codes->struct_size);
    std::vector<jitunwind::RegistrationBatch::Item> items(count);
    for (size_t i = 0; i < count; ++i) {
      // The distance of elements is the caller's structure size.
      const auto* const code =
          reinterpret_cast<const ju_code*>(reinterpret_cast<const std::byte*>(codes) + i * codes->struct_size);
      ju_status bad = check(descriptions[i], "descriptions", error);
      if (bad == JU_OK) bad = jitunwind::c::read_code(code, items[i].code, error);
      if (bad != JU_OK && error) error->at = i;
      if (bad != JU_OK) return bad;
      items[i].description = &descriptions[i]->description;
    }
    return tell(error, batch->batch.register_code(items), "codes");
  });
}

ju_status ju_batch_add(ju_batch* batch, ju_registration* registration, ju_error* error) {
  return answer(error, [&] {
    if (const ju_status bad = check(batch, "batch", error)) return bad;
    if (const ju_status bad = jitunwind::c::check_registration(registration, error)) return bad;
    Registration one = Registration::adopt(jitunwind::c::info_of(registration));
    const jitunwind::Status added = batch->batch.add(std::move(one));
    if (added)
      jitunwind::c::VoidRegistrations::add(registration);
    else
      (void)one.release();
    return tell(error, added);
  });
}

size_t ju_batch_size(const ju_batch* batch) { return check(batch, "batch") == JU_OK ? batch->batch.size() : 0; }

ju_status ju_batch_cancel(ju_batch* batch, ju_error* error) {
  return answer(error, [&] {
    if (const ju_status bad = check(batch, "batch", error)) return bad;
    return tell(error, batch->batch.cancel());
  });
}

ju_status ju_batch_retire(ju_batch* batch, ju_ticket* ticket, ju_error* error) {
  if (ticket) *ticket = {};
  return answer(error, [&] {
    if (const ju_status bad = check(batch, "batch", error)) return bad;
    return jitunwind::c::retire(batch->batch, ticket, error);
  });
}

ju_status ju_batch_free(ju_batch* batch, ju_error* error) {
  if (!batch) return JU_OK;
  return answer(error, [&] {
    if (const ju_status bad = check(batch, "batch", error)) return bad;
    const jitunwind::Status cancelled = batch->batch.cancel();
    if (!jitunwind::c::is_registered_still(cancelled)) jitunwind::c::free_handle(batch);
    return tell(error, cancelled);
  });
}
