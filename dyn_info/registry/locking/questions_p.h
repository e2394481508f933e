// Lookups that are disturbed again and again ask (docs/registry.md "Lookups").
#pragma once

namespace jitunwind {

/// For the holder of the writers' lock, before each change that makes lookups start again.
void answer_questions() noexcept;

}  // namespace jitunwind
