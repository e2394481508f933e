// Walking by the C interface of any libunwind. This file is included behind its <libunwind.h>.
#pragma once

#include "bench/peer.h"

namespace bench {

inline std::size_t unw_step_walk(std::span<void*> into) {
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  std::size_t count = 0;
  while (count < into.size() && unw_step(&cursor) > 0) {
    unw_word_t pc = 0;
    unw_get_reg(&cursor, UNW_REG_IP, &pc);
    into[count++] = reinterpret_cast<void*>(pc);
  }
  return count;
}

}  // namespace bench
