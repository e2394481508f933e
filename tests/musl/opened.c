/* Opens libjitunwind-core.so.1, argv[1], by dlopen(), as JITs do that do not link it. Another thread is there before.
 */
#include <dlfcn.h>
#include <jitunwind/sdk/c/walk.h>
#include <pthread.h>
#include <stdio.h>

static void* library;
static int count_frames(const ju_cursor* cursor, void* count) {
  (void)cursor;
  ++*(int*)count;
  return 0;
}

static void* walk(void* unused) {
  ju_status (*walk_here)(ju_on_frame, void*, ju_error*) = NULL;
  *(void**)&walk_here = dlsym(library, "ju_walk_here");
  int frames = 0;
  if (walk_here) walk_here(count_frames, &frames, NULL);
  return frames > 1 ? unused : NULL;
}

static pthread_barrier_t is_open;
static void* wait_and_walk(void* unused) {
  pthread_barrier_wait(&is_open);
  return walk(unused);
}

int main(int argc, char** argv) {
  int here = argc;
  void* there = NULL;
  pthread_t thread;
  pthread_barrier_init(&is_open, NULL, 2);
  pthread_create(&thread, NULL, wait_and_walk, &here);
  library = dlopen(argv[1], RTLD_NOW);
  if (!library) return printf("%s\n", dlerror()), 1;
  pthread_barrier_wait(&is_open);
  if (pthread_join(thread, &there) != 0 || there != &here || walk(&here) != &here) return puts("no walk"), 1;
  puts("opened");
  return 0;
}
