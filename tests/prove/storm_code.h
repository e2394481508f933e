// Code that the storm makes at run time: procedures that call through, push themselves on a shadow, and are replaced in
// place while they are walked.
#pragma once

#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "jitunwind/builders/description.h"
#include "jitunwind/builders/registration.h"
#include "tests/prove/storm_shadow.h"

namespace jitunwind::storm {

using Callee = void* (*)(void*);
/// The type of code made at run time, of the plugin's function, and of some of the program's functions: it calls
/// through.
using Through = void* (*)(Callee function, void* argument, Shadow* shadow);

/// Guards code against being replaced while it runs. A gate is closed at first.
class Gate {
 public:
  bool enter() {
    if ((state_.fetch_add(1, std::memory_order_acquire) & k_closed) == 0) return true;
    leave();
    return false;
  }
  void leave() { state_.fetch_sub(1, std::memory_order_release); }
  /// Returns when nobody is inside.
  void close();
  /// Returns false if somebody is inside; the gate stays open then.
  bool close_if_empty();
  void open() { state_.fetch_and(~k_closed, std::memory_order_release); }

 private:
  static constexpr int k_closed = 1 << 30;
  std::atomic<int> state_{k_closed};
};

/// One form of procedure.
struct Kind {
  std::vector<std::byte> bytes;
  Description description;
};
/// Kinds described by directives and by rows, with and without a frame pointer, realigned, of many sizes. They are made
/// once.
const std::vector<Kind>& kinds();

inline constexpr std::size_t k_slot_size = 256;

/// A place for successive procedures.
class Slot {
 public:
  Slot() = default;
  explicit Slot(void* code) : code_(static_cast<std::uint8_t*>(code)) {}

  /// Precondition of all functions: the gate is closed. Registers under failing memory, as often as it takes.
  void fill(std::mt19937& random);
  void empty(std::mt19937& random);
  Through code() const { return reinterpret_cast<Through>(code_); }
  void set_code(void* code) { code_ = static_cast<std::uint8_t*>(code); }
  Gate& gate() { return gate_; }

 private:
  std::uint8_t* code_ = nullptr;
  Registration registration_;
  Gate gate_;
};

/// Enters a gate if it is open, as long as the object lives.
class User {
 public:
  explicit User(Gate& gate) : gate_(gate), is_inside_(gate.enter()) {}
  ~User() {
    if (is_inside_) gate_.leave();
  }
  User(const User&) = delete;
  User& operator=(const User&) = delete;
  explicit operator bool() const { return is_inside_; }

 private:
  Gate& gate_;
  bool is_inside_;
};

/// Maps memory for code even if other memory fails. Returns null if the place is not free; `at` null: any place.
void* map_code(void* at, std::size_t size) noexcept;
void unmap_code(void* code, std::size_t size) noexcept;

/// Many slots that are never removed.
class Arena {
 public:
  Arena();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  Slot& any(std::mt19937& random) { return slots_[random() % k_slots]; }
  bool contains(Addr pc) const { return pc - begin_ < k_slots * k_slot_size; }
  /// Replaces the procedure of one slot, unless somebody runs it.
  bool replace_one(std::mt19937& random);
  void fill_all(std::mt19937& random);

 private:
  static constexpr std::size_t k_slots = 64;
  Addr begin_ = 0;
  std::array<Slot, k_slots> slots_;
};

}  // namespace jitunwind::storm
