// What the code generator of toy_vm relies on in byte code: operands that exist, control that stays in the function,
// and no slot that is read on any path, exceptions included, before it was written.
#pragma once

#include <string>

#include "examples/toy_vm/bytecode.h"

namespace toy_test {

/// "" if the program keeps all rules, else what is broken where.
std::string broken_rule(const toy::Program& program);

}  // namespace toy_test
