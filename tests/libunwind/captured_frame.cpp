#include "tests/libunwind/captured_frame.inc"
