/* Prints the cleanups of threads that end early. It also jumps by a buffer that the C library sets, as <setjmp.h>
   asks. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <unistd.h>

static void clean_up(void* why) { printf("cleaned up: %s\n", (const char*)why); }

static void* wait_for_cancellation(void* unused) {
  (void)unused;
  pthread_cleanup_push(clean_up, "cancelled");
  for (;;) pause();
  pthread_cleanup_pop(0);
  return 0;
}
static void* end(void* unused) {
  (void)unused;
  pthread_cleanup_push(clean_up, "ended");
  pthread_exit((void*)5);
  pthread_cleanup_pop(0);
  return 0;
}

static sigjmp_buf buffer;
__attribute__((noinline)) static void jump(void) { siglongjmp(buffer, 3); }

int main(void) {
  pthread_t thread;
  void* result = 0;
  pthread_create(&thread, 0, wait_for_cancellation, 0);
  usleep(20000);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  puts(result == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
  pthread_create(&thread, 0, end, 0);
  pthread_join(thread, &result);
  puts(result == (void*)5 ? "ended" : "not ended");
  if (sigsetjmp(buffer, 1) == 0) jump();
  puts("jumped");
  return 0;
}
