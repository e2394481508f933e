/* A library that is loaded by dlopen(): its function stands between the caller and the callback. */
__attribute__((visibility("default"))) int later(int (*callback)(void*), void* argument) {
  return callback(argument) + 1;
}
