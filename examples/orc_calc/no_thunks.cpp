// The replacement for builds without asmjit.
#include "examples/orc_calc/thunks.h"

namespace calc {

bool have_thunks() noexcept { return false; }

std::uint64_t thunk_of(const Native& native) { return native.address; }

}  // namespace calc
