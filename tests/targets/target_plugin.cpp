// A library with its own copy of our library, and a procedure in that copy's list.
#include "tests/targets/target_plugin.h"
#include "jitunwind/dyn_info/registry/registry_state_p.h"
#include "tests/support/jit_frame.h"

/// Only the file's symbol table names this function.
extern "C" [[gnu::visibility("hidden"), gnu::noinline]] void* plugin_inner(jitunwind::test::JitFrame::Callee callee,
                                                                           void* argument) {
  static jitunwind::test::JitFrame frame;
  void* const result = frame(callee, argument);
  asm volatile("");  // no tail call
  return result;
}

extern "C" [[gnu::visibility("default")]] void* plugin_call(jitunwind::test::JitFrame::Callee callee, void* argument) {
  void* const result = plugin_inner(callee, argument);
  asm volatile("");  // no tail call
  return result;
}

namespace {

using namespace jitunwind;

unw_dyn_info_t at_page(unw_dyn_info_t info, Addr page) {
  info.end_ip = page + (info.end_ip - info.start_ip);
  info.start_ip = page;
  return info;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] void* plugin_described_again(test::JitFrame::Callee callee, void* argument,
                                                                       const test::PluginDescribes& how) {
  // The descriptors are in the library's own memory, so they have the same place wherever the library has its place
  // again.
  static unw_dyn_info_t places[2], more;
  test::JitFrame frame(test::JitFrame::On{how.page});
  (void)frame.registration().cancel();
  auto end = test::host::describe("ends_here");
  end.row_at(0, test::host_row("cfa=SP+8 ra=undefined"));
  const auto description = how.as_the_end ? end.build() : test::JitFrame::described().build();
  auto registered = register_code(*description, reinterpret_cast<void*>(how.page), frame.size());
  if (!registered) return nullptr;
  unw_dyn_info_t* const elsewhere = registered->release();
  unw_dyn_info_t& there = places[how.place] = *elsewhere;
  constexpr Addr k_other_code = 0x10'0000;
  more = at_page(*elsewhere, how.page + k_other_code);
  void* result = nullptr;
  if (cancel_procedure(elsewhere) && register_procedure(&there) && (!how.one_more || register_procedure(&more))) {
    if (how.generation != 0) procedure_list_head().generation = how.generation;
    result = frame(callee, argument);
    if (how.one_more) (void)cancel_procedure(&more);
    (void)cancel_procedure(&there);
  }
  (void)register_procedure(elsewhere);
  (void)Registration::adopt(elsewhere).cancel();
  return result;
}
