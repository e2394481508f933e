/* Keeps the processor busy in two threads, one after the other, below functions of its own. If there is an
   argument, the second thread works below a function that was made at run time. */
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>

#include "made_frame.h"

static volatile unsigned long sum;

static long milliseconds_used(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Measures processor time, so that a busy machine makes no difference. */
__attribute__((noinline)) void be_busy(void) {
  const long end = milliseconds_used() + 300;
  do {
    unsigned long i;
    for (i = 0; i < 100000; ++i) sum += i;
  } while (milliseconds_used() < end);
}
__attribute__((noinline)) void calls_directly(void) {
  be_busy();
  sum = sum; /* no tail call */
}
__attribute__((noinline)) void* calls_in_a_thread(void* by_made) {
  if (by_made)
    made(be_busy);
  else
    be_busy();
  sum = sum;
  return 0;
}

int main(int argc, char** argv) {
  pthread_t thread;
  (void)argv;
  make_frame();
  calls_directly();
  if (pthread_create(&thread, 0, calls_in_a_thread, argc > 1 ? &thread : 0) != 0) return 1;
  pthread_join(thread, 0);
  return 0;
}
