// For tests whose signals come where the test raises them, never inside malloc: their handlers may allocate, and
// ThreadSanitizer, which cannot tell these from others, need not report that.
extern "C" const char* __tsan_default_options();
extern "C" [[gnu::visibility("default")]] const char* __tsan_default_options() { return "report_signal_unsafe=0"; }
