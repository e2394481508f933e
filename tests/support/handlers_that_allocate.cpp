// Link this into tests that raise their signals themselves, never inside malloc. Their handlers may allocate, and
// ThreadSanitizer need not report it: it cannot distinguish them from others.
extern "C" const char* __tsan_default_options();
extern "C" [[gnu::visibility("default")]] const char* __tsan_default_options() { return "report_signal_unsafe=0"; }
