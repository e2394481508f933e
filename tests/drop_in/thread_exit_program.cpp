// Ends threads in the two ways that make the C library load libgcc_s and unwind by it.
#include <pthread.h>
#include <unistd.h>

#include <cstdio>

namespace {

struct Said {
  const char* what;
  ~Said() { std::printf("%s\n", what); }
};

[[gnu::noinline]] void ends_the_thread() {
  const Said said{"destructor of the function that called pthread_exit"};
  pthread_exit(nullptr);
}
[[gnu::noinline]] void waits_to_be_cancelled() {
  const Said said{"destructor of the function that was cancelled"};
  for (;;) pause();
}

void run(void (*function)()) {
  pthread_t thread;
  const auto body = [](void* of) -> void* {
    const Said said{"destructor of the thread"};
    reinterpret_cast<void (*)()>(of)();
    return nullptr;
  };
  if (pthread_create(&thread, nullptr, body, reinterpret_cast<void*>(function)) != 0) return;
  if (function == waits_to_be_cancelled) pthread_cancel(thread);
  void* result = nullptr;
  pthread_join(thread, &result);
  std::printf(result == PTHREAD_CANCELED ? "cancelled\n" : "ended\n");
}

}  // namespace

int main() {
  run(ends_the_thread);
  run(waits_to_be_cancelled);
}
