#include "tests/exceptions/links/run_through.h"

int main(int argc, char** argv) { return run_through(argc, argv); }
