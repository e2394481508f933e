// The writer of the answers that the library's own callbacks give.
#pragma once

#include <cstdint>

#include "jitunwind/sdk/uwx/answers/frame_vector_p.h"

namespace jitunwind::uwx {

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
