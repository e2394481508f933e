// The task of a program in every form of linking: it throws through registered code, continues to do so while
// procedures come and go, and reports by which path the unwinder learned of them.
#pragma once

/// Returns 0 if all went well. Prints one line about the throws and one about the path. The second argument and the
/// following ones may be:
///   without-backtrace  backtrace() is not called: it loads an unwinder of its own
///   frames=ADDRESS     the function at this address, in hex, counts frames in place of backtrace()
///   path=NAME          the expected path
///   at-the-end         the path is asked for at the end alone: the question makes the library look
///   short              one throw
///   late-unwinder      backtrace() is called once when something is registered
extern "C" int run_through(int argc, char** argv);
