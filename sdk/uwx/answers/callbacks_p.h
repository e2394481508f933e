// The two callbacks of a client as the engine sees them: memory that is copied in, and answers to requests. Their
// results are not trusted: numbers are checked, vectors are bounded, and pointers are read without faulting.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <uwx.h>
#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/module.h"
#include "jitunwind/unwind_core/no_modules.h"

namespace jitunwind::uwx {

struct Callbacks {
  copyin_cb copyin = nullptr;
  lookupip_cb lookupip = nullptr;
  std::intptr_t token = 0;

  bool complete() const noexcept { return copyin && lookupip; }
};

/// The error that is returned as this status; see status_of().
inline Error failure(int status, const char* what) noexcept { return callback_error(status, what); }

/// The UWX_ERR_* of an error of the engine.
int status_of(const Error& error) noexcept;

/// One area of the target. Reads are aligned, and of 8 bytes; in unwind information they are of 4 bytes if 8 are not
/// wanted.
class CopyinMemory final : public Memory {
 public:
  /// `failure`: status of a read that the callback does not answer, for MemoryWindow::failure.
  CopyinMemory(const Callbacks& callbacks, int request, int failure) noexcept
      : callbacks_(callbacks), request_(request), failure_(failure) {}
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override;

 private:
  const Callbacks& callbacks_;
  int request_;
  int failure_;
};

/// Reads a register by UWX_COPYIN_REG: 8 bytes in the target's byte order.
Result<std::uint64_t> copy_register(const Callbacks& callbacks, int regid, bool big_endian) noexcept;

/// The pairs that the engine passes with a request, and their end.
class Question {
 public:
  Question() noexcept { add(UWX_KEY_VERSION, UWX_VERSION); }
  void add(std::uint64_t key, std::uint64_t value) noexcept {
    words_[used_++] = key;
    words_[used_++] = value;
  }
  /// The words include the end.
  std::uint64_t* words() noexcept { return words_.data(); }

 private:
  std::array<std::uint64_t, 10> words_{};
  std::size_t used_ = 0;
};

/// One request and its answer. The destructor frees the answer.
class Answer {
 public:
  Answer(const Callbacks& callbacks, int request, Addr ip, Question& question) noexcept;
  ~Answer();
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  /// The UWX_LKUP_* of the answer. A kind that promises a vector has one; otherwise the kind is UWX_LKUP_ERR.
  int kind() const noexcept { return kind_; }

  /// on_pair(key, value) returns whether it knows the key. BADKEY: it does not, or the vector has no end.
  template <class OnPair>
  Status for_each(OnPair on_pair) const noexcept {
    MemoryWindow window;
    for (std::size_t i = 0; i < k_most_pairs; ++i) {
      Pair pair;
      if (!read(i, pair, window)) return failure(UWX_ERR_BADKEY, "result vector cannot be read");
      if (pair.key == UWX_KEY_END) return Done{};
      if (!on_pair(pair.key, pair.value)) return failure(UWX_ERR_BADKEY, "unknown key in a result vector");
    }
    return failure(UWX_ERR_BADKEY, "result vector without an end");
  }

 private:
  static constexpr std::size_t k_most_pairs = 256;
  struct Pair {
    std::uint64_t key;
    std::uint64_t value;
  };
  bool read(std::size_t index, Pair& out, MemoryWindow& window) const noexcept;

  const Callbacks& callbacks_;
  std::uint64_t* vector_;
  int kind_;
};

}  // namespace jitunwind::uwx
