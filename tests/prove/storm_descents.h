// The work of the storm's threads.
#pragma once

namespace jitunwind::storm {

struct Thread;

// Bodies for run(), until the world is over.

/// Descends through every kind of code, and walks, throws and forks there.
void descend_again_and_again(Thread& self);
/// Descends once and waits at the bottom until the thread is cancelled or ends itself.
void descend_to_be_cancelled(Thread& self);
void replace_procedures(Thread& self);
void load_and_unload(Thread& self);
/// Puts code where a library was a moment ago, or is still being unloaded.
void squat(Thread& self);
/// Asks for names, procedures and files of addresses that others have walked.
void ask_names(Thread& self);

}  // namespace jitunwind::storm
