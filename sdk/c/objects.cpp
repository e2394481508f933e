// Objects with call frame information, and questions about the registry.
#include <memory>
#include <utility>

#include "jitunwind/builders/object_registration.h"
#include "jitunwind/sdk/c/handles_p.h"
#include "jitunwind/sdk/c/register.h"
#include "jitunwind/unwind_core/heap_internal.h"

using jitunwind::c::answer;
using jitunwind::c::check;
using jitunwind::c::Kind;
using jitunwind::c::tell;

struct ju_object {
  static constexpr Kind k_kind = Kind::object;
  Kind kind = k_kind;
  jitunwind::ObjectRegistration object{};
};

namespace {

struct FreeObject {
  void operator()(ju_object* object) const noexcept { jitunwind::destroy_on_heap(object); }
};

void free_object(ju_object* object) noexcept {
  std::destroy_at(object);
  jitunwind::c::free_memory(object, jitunwind::give_back);
}

}  // namespace

ju_status ju_object_register(const ju_object_code* object, ju_object** registered, ju_error* error) {
  return answer(error, [&] {
    ju_object_code code;
    if (const ju_status bad = jitunwind::c::read_struct(object, code, "object", error)) return bad;
    if (!registered) return tell(error, JU_NULL_POINTER, "registered");
    if (code.code_count != 0 && !code.code) return tell(error, JU_NULL_POINTER, "object.code");
    if (code.function_count != 0 && !code.functions) return tell(error, JU_NULL_POINTER, "object.functions");
    jitunwind::HeapList<jitunwind::AddrRange> ranges;
    jitunwind::HeapList<jitunwind::ObjectFunction> functions;
    std::unique_ptr<ju_object, FreeObject> made(jitunwind::make_on_heap<ju_object>());
    if (!made || !ranges.reserve(code.code_count) || !functions.reserve(code.function_count))
      return tell(error, JU_OUT_OF_MEMORY, "object");
    for (size_t i = 0; i < code.code_count; ++i) (void)ranges.add({code.code[i].begin, code.code[i].end});
    for (size_t i = 0; i < code.function_count; ++i) {
      const ju_function& function = code.functions[i];
      std::string_view name;
      if (!jitunwind::c::read_string(function.name, name)) return tell(error, JU_BAD_STRING, "object.functions", i);
      (void)functions.add({function.start, function.size, name});
    }
    auto done = jitunwind::register_object({ranges, {code.eh_frame.begin, code.eh_frame.end}, functions});
    if (!done) return tell(error, done.error(), "object");
    made->object = std::move(*done);
    return *registered = made.release(), JU_OK;
  });
}

ju_status ju_object_count(const ju_object* object, size_t* procedures, size_t* undescribed) {
  if (const ju_status bad = check(object, "object")) return bad;
  if (procedures) *procedures = object->object.procedures().size();
  if (undescribed) *undescribed = object->object.undescribed().size();
  return JU_OK;
}

ju_status ju_object_range(const ju_object* object, size_t i, ju_range* range) {
  if (const ju_status bad = check(object, "object")) return bad;
  if (!range) return JU_NULL_POINTER;
  const auto all = object->object.procedures();
  if (i >= all.size()) return JU_OUT_OF_RANGE;
  *range = {all[i].start_ip, all[i].end_ip};
  return JU_OK;
}

ju_status ju_object_cancel(ju_object* object, ju_error* error) {
  if (!object) return JU_OK;
  return answer(error, [&] {
    if (const ju_status bad = check(object, "object", error)) return bad;
    const jitunwind::Status cancelled = object->object.cancel();
    if (!jitunwind::c::is_registered_still(cancelled)) free_object(object);
    return tell(error, cancelled);
  });
}

void ju_registered(size_t* procedures, size_t* bytes) {
  const auto now = jitunwind::registry_statistics();
  if (procedures) *procedures = now.registered;
  if (bytes) *bytes = now.library_bytes;
}

const void* ju_procedure_list(void) { return jitunwind::procedure_list(); }
int ju_may_be_registered(uint64_t pc) { return jitunwind::may_be_registered(pc) ? 1 : 0; }
void ju_forget_rows(uint64_t begin, uint64_t end) { jitunwind::forget_rows(begin, end); }
