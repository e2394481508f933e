#include "tests/sdk/captured_frame.inc"
