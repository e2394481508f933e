// A lookup that is disturbed again and again asks the writers (docs/registry.md "Lookups").
#pragma once

namespace jitunwind {

/// The holder of the writers' lock calls it before each change that makes lookups start again.
void answer_questions() noexcept;

}  // namespace jitunwind
