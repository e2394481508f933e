// What makes a host have the C++ run-time before it loads anything: it has thrown.
namespace {

[[gnu::constructor]] void throw_once() {
  try {
    throw 1;
  } catch (int) {
  }
}

}  // namespace
