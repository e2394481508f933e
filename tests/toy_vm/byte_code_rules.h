// Rules of byte code that toy_vm's code generator relies on: operands exist, control stays in the function, and no slot
// is read on any path, exceptions included, before it was written.
#pragma once

#include <string>

#include "examples/toy_vm/bytecode.h"

namespace toy_test {

/// Returns "" if the program keeps all rules, else the broken rule and its place.
std::string broken_rule(const toy::Program& program);

}  // namespace toy_test
