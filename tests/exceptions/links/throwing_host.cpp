// A throw makes the host load the C++ run-time before anything else.
namespace {

[[gnu::constructor]] void throw_once() {
  try {
    throw 1;
  } catch (int) {
  }
}

}  // namespace
