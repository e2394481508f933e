// Declarations that the check of the reference must notice, and some that it need not: tests/rules/CMakeLists.txt.
#pragma once

namespace jitunwind {

struct Offender {
  int speaks_for_itself = 0;
  int accessor() const;
};

/// Two functions have one comment.
int first(int a);
int second(int a);

int offend(int a);

}  // namespace jitunwind
