// Values for GDB to print, and the expected output: the library's own text.
#include <cstdio>
#include <string>

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"
#include "jitunwind/unwind_core/rows/row_text.h"

using namespace jitunwind;

namespace {

ExpressionPool pool;

FrameRow row_of(const char* text) {
  const auto parsed = parse_row(text, *host_arch(), pool);
  return parsed ? parsed->row : FrameRow();
}

void say(const char* name, const std::string& text) { std::printf("%s is %s\n", name, text.c_str()); }

/// Kept rules of every kind.
struct Rules {
  CallerRule none;
  CallerRule by_sp = of("cfa=rsp+48 rbp=[cfa-24] ra=[cfa-8]", KeptBy::module);
  CallerRule by_fp = of("cfa=rbp+16 ra=[cfa-8]", KeptBy::lasting);
  CallerRule realigned{KeptBy::lasting, CallerRule::Kind::realigned, 10};
  CallerRule signal{KeptBy::module, CallerRule::Kind::signal};
  CallerRule outermost{KeptBy::lasting, CallerRule::Kind::outermost};

  static CallerRule of(const char* text, KeptBy by) {
    const RowCache& rows = *local_space().row_cache;
    CompactRow row;
    return compact(row_of(text), rows.layout, row) ? rows.rule_of(row, RowOrigin::eh_frame, by).with_link(7)
                                                   : CallerRule();
  }
};

/// GDB stops here.
[[gnu::noinline]] void all_is_set(const FrameRow&, const FrameRow&, const FrameRow&, const Error&, const Cursor&,
                                  const Cursor&, const Rules&) {
  asm volatile("" ::: "memory");
}

}  // namespace

int main() {
  FrameRow plain = row_of("cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8] args=16 signal");
  FrameRow odd = row_of("cfa=[r10-8]+8 rax=same rdx=rbx rbx=[rsp+8] rsi=rsp+0 rdi=cfa-4 r12=undefined ra=[cfa-8]");
  FrameRow by_expression = row_of("cfa=expr(7708) rbx=[expr(7710)] rbp=expr(1122) ra=[cfa-8]");
  const Error error{ErrorCode::unreadable_memory, 0x7ffd0, "return address"};
  alignas(16) std::byte context[k_context_size];
  jitunwind_capture_context(context);
  const Cursor first = cursor_at(context, Cursor::Top::returned_to);
  Cursor last = first;
  while (last.step().value()) {
  }
  say("plain", to_text(plain, *host_arch()));
  say("odd", to_text(odd, *host_arch()));
  say("by_expression", to_text(by_expression, *host_arch()));
  std::fflush(stdout);
  const Rules rules;
  all_is_set(plain, odd, by_expression, error, first, last, rules);
  return 0;
}
