// What every form of linking has to do: throw through registered code, keep it right while procedures come and go, and
// say which way the unwinder learned of them.
#pragma once

/// 0: all went well. Prints one line about the throws and one about the way. Words from the second argument on:
/// without-backtrace  backtrace() is not called: it loads an unwinder of its own
/// frames=ADDRESS     the function at this address, in hex, counts frames in place of backtrace()
/// path=NAME          the way that is expected
/// at-the-end         the way is asked for at the end alone: to ask makes the library look
/// short              one throw
/// late-unwinder      backtrace() is called once when something is registered
extern "C" int run_through(int argc, char** argv);
