// The functions in C++ that scripts find.
#pragma once

#include <span>

#include "examples/toy_vm/machine.h"

namespace toy {

std::span<const Native> standard_natives();

}  // namespace toy
