// GDB's descriptor of a list of its own, which an engine defines.
struct Descriptor {
  unsigned version = 1;
  unsigned action = 0;
  const void* relevant = nullptr;
  const void* first = nullptr;
};
extern "C" [[gnu::visibility("default")]] Descriptor __jit_debug_descriptor;
Descriptor __jit_debug_descriptor;
