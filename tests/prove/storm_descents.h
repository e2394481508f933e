// The work of the storm's threads.
#pragma once

namespace jitunwind::storm {

struct Thread;

// Bodies for run(), until the world is over.

/// Calls down through every kind of code, and there walks, throws, forks.
void descend_again_and_again(Thread& self);
/// Once, and waits at the bottom until it is cancelled, or ends itself.
void descend_to_be_cancelled(Thread& self);
void replace_procedures(Thread& self);
void load_and_unload(Thread& self);
/// Code of its own where a library was a moment ago, or still is going.
void squat(Thread& self);
/// Names, procedures and files of addresses that others have walked.
void ask_names(Thread& self);

}  // namespace jitunwind::storm
