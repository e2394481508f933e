// The descriptions of the examples in C, by the C++ interface.
#pragma once

#include <vector>

#include "jitunwind/builders/description.h"

struct ExampleInCpp {
  const char* name;
  jitunwind::Result<jitunwind::Description, jitunwind::BuildError> (*build)();
};

const std::vector<ExampleInCpp>& examples_in_cpp();
extern const void* const examples_type_a;
extern const void* const examples_type_b;
