#include "jitunwind/adapters/listen/lists/gdb_descriptors_p.h"

#include "jitunwind/sdk/dialects/gdb_list.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/image/dynamic_object_internal.h"

namespace jitunwind {

bool GdbDescriptors::look() noexcept {
  const ListVersion now = list_version();
  if (now == ListVersion{} || now == seen_) return false;
  count_ = 0;
  is_one_of_others_ = false;
  seen_ = visit_own_objects(*this);
  return true;
}

/// By memory alone: dlsym() would take a lock of the dynamic linker that a forked child may find taken for ever.
void GdbDescriptors::visit(const ListedObject& object) noexcept {
  DynamicObject dynamic(local_space().memory, local_space().arch, object.bias, object.dynamic);
  const auto found = dynamic.find_variable(k_gdb_descriptor);
  if (!found || count_ == all_.size()) return;
  all_[count_++] = *found;
  is_one_of_others_ = is_one_of_others_ || object.dynamic != own_dynamic_section();
}

}  // namespace jitunwind
