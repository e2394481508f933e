// What the registry asks of whoever makes procedures known to the unwinder of the C++ run-time. Declared here, defined
// in the layer above that does it: every library that is assembled has both. That the registry calls it is also what
// makes a linker take the definitions of the other side out of an archive.
#pragma once

namespace jitunwind {

/// Before the first registration; outside of all locks; by one thread or several at once. Not signal-safe.
void attach_system_unwinder() noexcept;

}  // namespace jitunwind
