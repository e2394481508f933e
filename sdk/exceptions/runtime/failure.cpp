#include "jitunwind/sdk/exceptions/runtime/failure_p.h"

#include <array>
#include <cstdlib>
#include <span>
#include <string_view>

#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind::eh {
namespace {

/// Text in a fixed buffer: printf allocates.
class Line {
 public:
  Line& add(std::string_view text) noexcept {
    for (const char c : text)
      if (size_ + 1 < text_.size()) text_[size_++] = c;
    return *this;
  }
  Line& number(std::uint64_t value, unsigned base) noexcept {
    std::array<char, 20> digits;
    std::size_t at = digits.size();
    do digits[--at] = "0123456789abcdef"[value % base];
    while ((value /= base) != 0);
    return add({digits.data() + at, digits.size() - at});
  }
  void write() noexcept {
    text_[size_++] = '\n';
    write_to_standard_error({text_.data(), size_});
  }

 private:
  std::array<char, 512> text_;
  std::size_t size_ = 0;
};

void add_name(Line& line, const UnwindFrame& frame) noexcept {
  std::array<char, 200> text;
  ProcedureName name;
  if (!find_local_name(frame.address(), text, name)) return void(line.add(" (unknown code)"));
  line.add(" (").add(text.data()).add("+0x").number(frame.pc() - name.start, 16).add(")");
}

}  // namespace

void report(const char* what, const UnwindFrame& frame, const Error* why) noexcept {
  Line line;
  line.add("jitunwind: ").add(what).add(" at frame ").number(frame.depth(), 10);
  line.add(", pc 0x").number(frame.pc(), 16);
  add_name(line, frame);
  if (why) line.add(": ").add(error_text(why->code)).add(", ").add(why->what).add(" at 0x").number(why->at, 16);
  line.write();
}

void give_up(const char* what) noexcept {
  Line line;
  line.add("jitunwind: ").add(what).write();
  std::abort();
}

}  // namespace jitunwind::eh
