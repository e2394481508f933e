// An address that is no code, which unwinders are asked about to see who answers.
#pragma once

#pragma GCC visibility push(default)
namespace jitunwind {

/// Whether `pc` is the private address; notes that the question has come. Signal-safe.
bool is_probe(const void* pc) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
