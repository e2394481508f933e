// The two callbacks of a client as the engine sees them: memory that is copied in, and answers to requests. Their
// results are not trusted: numbers are checked, vectors are bounded, and pointers are read without faulting.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <uwx.h>
#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/module.h"
#include "jitunwind/unwind_core/no_modules.h"
#include "jitunwind/unwind_core/rows/frame_row.h"

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

// A row as a vector of UWX_LKUP_FDESC, and back: the frame at one address in the terms of Unwind Express.

/// Finds a register by RegisterInfo::uwx, or by UWX_REG_IP and UWX_REG_SP. Null: the CPU has no such register.
const RegisterInfo* register_of(int regid, const Arch& arch) noexcept;

/// The facts of a frame that LOOKUP gives besides its row.
struct FrameFacts {
  Addr text_base = 0;    ///< 0: not known
  Addr func_start = 0;   ///< 0: not known
  AddrRange code{};      ///< of the function, if its unwind information has it; empty: not known
  int context = 0;       ///< code of a context frame; 0: it is none
  bool has_row = true;   ///< false: FDESC says only that it is a context frame
  Addr module_name = 0;  ///< in host memory, as long as the answer exists; 0: none
  Addr func_name = 0;
};

/// Error: an unknown key (BADKEY), or a value that makes no row (BADUDESC).
Status read_frame(const Answer& answer, const Arch& arch, FrameRow& out, FrameFacts& facts) noexcept;

/// Writes pairs without an end, and returns their number of words. Empty: FDESC cannot express the row, or there is no
/// room.
std::optional<std::size_t> write_frame(const FrameRow& row, const Arch& arch, std::span<std::uint64_t> into) noexcept;

/// The number of words that is enough for any row.
inline constexpr std::size_t k_frame_words = 2 * (FrameRow::k_max_rules + 4);

/// The size of the longest answer in words.
inline constexpr std::size_t k_answer_words = k_frame_words + 12;

/// Appends pairs of key and value.
class AnswerWriter {
 public:
  /// `words`: memory of k_answer_words words, which the client keeps until UWX_LKUP_FREE.
  explicit AnswerWriter(std::span<std::uint64_t, k_answer_words> words) noexcept : words_(words) {}
  void add(std::uint64_t key, std::uint64_t value) noexcept {
    words_[used_++] = key;
    words_[used_++] = value;
  }
  void add(std::uint64_t key, const char* text) noexcept { add(key, reinterpret_cast<std::uintptr_t>(text)); }
  /// False: an answer cannot express the row.
  bool add_frame(const FrameRow& row, const Arch& arch) noexcept {
    const auto written = write_frame(row, arch, words_.subspan(used_, k_frame_words));
    used_ += written.value_or(0);
    return written.has_value();
  }
  int finish(int kind, std::uint64_t** resultp) noexcept {
    words_[used_] = UWX_KEY_END;
    *resultp = words_.data();
    return kind;
  }

 private:
  std::span<std::uint64_t> words_;
  std::size_t used_ = 0;
};

/// The pairs that the engine passes with a request.
struct Asked {
  bool is_caller = false;
  int inline_context = 0;

  static Asked by(const std::uint64_t* pairs) noexcept {
    Asked asked;
    for (; pairs[0] != UWX_KEY_END; pairs += 2) {
      if (pairs[0] == UWX_KEY_CALLER) asked.is_caller = pairs[1] == 1;
      if (pairs[0] == UWX_KEY_INLINE) asked.inline_context = static_cast<int>(pairs[1]);
    }
    return asked;
  }
  CodeAddress address(Addr ip) const noexcept {
    return is_caller ? CodeAddress::returned_to(ip) : CodeAddress::interrupted(ip);
  }
};

}  // namespace jitunwind::uwx
