// Two threads register one descriptor at the same time, and cancel it at the same time, over and over. Prints how often
// it was not in the list once, and how long the list is in the end. Knows only libunwind 1.6.

#include <pthread.h>

#include <cstdio>
#include <cstring>
#include <thread>

extern "C" {
#include "release_1_6.h"
}

extern "C" uint64_t _U_dyn_info_list_addr();

namespace {

struct List {
  std::uint32_t version, generation;
  const dyn_info_t* first;
};

long listed() {
  const auto* list = reinterpret_cast<const List*>(_U_dyn_info_list_addr());
  long count = 0;
  for (const dyn_info_t* info = list->first; info; info = static_cast<const dyn_info_t*>(info->next)) ++count;
  return count;
}

constexpr int k_rounds = 10'000;
dyn_info_t descriptor;
pthread_barrier_t together;
long not_once;

void register_and_cancel(bool is_first) {
  for (int i = 0; i < k_rounds; ++i) {
    if (is_first) {
      std::memset(&descriptor, i % 2 == 0 ? 0 : 0xa5, sizeof descriptor);  // links may hold anything
      descriptor.start_ip = 0x10000 + 64 * static_cast<uint64_t>(i);
      descriptor.end_ip = descriptor.start_ip + 16;
      descriptor.format = 0;
    }
    pthread_barrier_wait(&together);
    _U_dyn_register(&descriptor);
    pthread_barrier_wait(&together);
    if (is_first && listed() != 1) ++not_once;
    pthread_barrier_wait(&together);
    _U_dyn_cancel(&descriptor);
    pthread_barrier_wait(&together);
  }
}

}  // namespace

int main() {
  pthread_barrier_init(&together, nullptr, 2);
  std::thread first(register_and_cancel, true), second(register_and_cancel, false);
  first.join(), second.join();
  std::printf("%ld times not registered once\n%ld listed in the end\n", not_once, listed());
}
