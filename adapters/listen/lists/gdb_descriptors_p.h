// Where the objects of this process have GDB's descriptors, as far as they export them.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "jitunwind/unwind_core/modules/object_list_internal.h"

namespace jitunwind {

/// More than there is room for are left out.
class GdbDescriptors final : private ObjectVisitor {
 public:
  /// True: objects have come or gone since the last time, or this is the first. A fork waits for it.
  bool look() noexcept;
  std::span<const Addr> all() const noexcept { return {all_.data(), count_}; }
  /// Somebody but this library has one: an engine, or a library that has one in it.
  bool is_one_of_others() const noexcept { return is_one_of_others_; }

 private:
  void visit(const ListedObject& object) noexcept override;

  std::array<Addr, 32> all_{};
  std::size_t count_ = 0;
  bool is_one_of_others_ = false;
  ListVersion seen_{};
};

}  // namespace jitunwind
