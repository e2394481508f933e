// The linker of a program's published functions, which is all that differs in these programs.
#include "tests/orc/linked_by.h"

namespace jitunwind::test {

const Linker linker_of_published = Linker::JITUNWIND_LINKER;

}  // namespace jitunwind::test
