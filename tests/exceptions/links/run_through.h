// What every form of linking has to do: throw through registered code, keep it right while procedures come and go, and
// say which way the unwinder learned of them.
#pragma once

/// 0: all went well. Prints one line about the throws and one about the way. A second argument: backtrace() loads an
/// unwinder of its own, which knows nothing of ours.
extern "C" int run_through(int argc, char** argv);
