// Functions of the arena that are registered only for one measurement, since some peers pay at every frame for all
// registered functions.
#pragma once

#include <bit>
#include <cstddef>

#include "bench/jit_arena.h"
#include "bench/peer.h"

namespace bench {

/// The entry of a registered function.
inline StackFunction entry_of(const Registrar& registrar, const JitArena& arena, std::size_t index) {
  const std::byte* const copy = registrar.copy_of(index);
  return copy == nullptr ? arena.entry(index) : std::bit_cast<StackFunction>(copy);
}

/// Registers the first `count` functions of the arena by the peer's first registrar. That registrar was prepared for
/// the first `prepared` ones and knows them by number.
class Registered {
 public:
  Registered(const JitArena& arena, std::size_t count) : Registered(arena, count, count) {}
  Registered(const JitArena& arena, std::size_t count, std::size_t prepared) : arena_(arena), count_(count) {
    if (count_ == 0) return;
    registrar_ = registrars().front();
    registrar_->prepare(arena.functions().first(prepared));
    for (std::size_t i = 0; i < count_; ++i) registrar_->register_function(i);
  }
  ~Registered() {
    for (std::size_t i = 0; i < count_; ++i) registrar_->cancel_function(i);
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

  StackFunction entry(std::size_t index) const { return entry_of(*registrar_, arena_, index); }
  bool contains(const void* pc) const {
    for (std::size_t i = 0; i < count_; ++i) {
      const auto* const begin = std::bit_cast<const std::byte*>(entry(i));
      if (pc >= begin && pc < begin + arena_.functions()[i].size) return true;
    }
    return false;
  }

 private:
  const JitArena& arena_;
  std::size_t count_;
  Registrar* registrar_ = nullptr;
};

}  // namespace bench
