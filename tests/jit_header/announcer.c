/* A JIT compiler that has jitunwind_jit.h and nothing else of this project. Its first argument says what it does; it
   prints what came of it. C99 and C++17; x86-64. */
#include <dlfcn.h>

/* The header's calls of the dynamic linker. */
static int searches;
static void* counted_dlopen(const char* path, int how) {
  __atomic_fetch_add(&searches, 1, __ATOMIC_RELAXED);
  return dlopen(path, how);
}
#define dlopen counted_dlopen
#include "announcer.h"
#undef dlopen

#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

static void* frames[16];
static int frames_seen;
static void watch(void) { frames_seen = backtrace(frames, 16); }

static unsigned char* made_code(void) {
  unsigned char* const memory =
      (unsigned char*)mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  memcpy(memory, code_of_twice, sizeof code_of_twice);
  return memory;
}

static ju_jit_frame frame_of_twice = {marks_of_twice, 2, 1, NULL, NULL};

__attribute__((noinline)) static const char* passes(const void* code) {
  long (*twice)(void (*)(void), long);
  memcpy(&twice, &code, sizeof twice);
  if (twice(watch, 21) != 42) abort();
  int of_code = 0; /* a sanitizer may have a frame in front of it, too */
  while (of_code < frames_seen && (uintptr_t)frames[of_code] - (uintptr_t)code > sizeof code_of_twice) ++of_code;
  return of_code + 1 < frames_seen ? "goes on" : "ends";
}

static ju_jit_known* announced(const void* code, const char* name) {
  ju_jit_code at = JU_JIT_CODE(code, sizeof code_of_twice, name, &frame_of_twice);
  ju_jit_known* known = NULL;
  ju_jit_error error;
  error.struct_size = sizeof error;
  const int result = ju_jit_announce(&at, &known, &error);
  printf("announced: %s\n", ju_jit_text(result));
  return known;
}

static void tell(const char* what, int result) { printf("%s: %s\n", what, ju_jit_text(result)); }
static void tell_status(void) {
  ju_jit_status now;
  ju_jit_status_get(&now);
  printf("library %s, %zu kept, %zu lost, %zu refused\n", now.library != 0 ? "found" : "none", now.kept, now.lost,
         now.refused);
}

static void announce_once(void) {
  unsigned char* const code = made_code();
  ju_jit_known* const known = announced(code, "twice");
  printf("backtrace() %s\n", passes(code));
  tell("taken back", ju_jit_take_back(known, NULL));
  printf("backtrace() %s\n", passes(code));
  printf("wanted: %d, known in the other source: %d\n", ju_jit_wanted(), wanted_in_other_source());
}

static void ask(const char* path) {
  ju_jit_error error;
  error.struct_size = sizeof error;
  const int result = ju_jit_look(path, &error);
  printf("asked: %s\n", result == JU_JIT_OK ? ju_jit_text(result) : error.text);
}

/* The library comes with another part of the program. */
static void come_late(const char* path) {
  unsigned char *const first = made_code(), *const second = made_code(), *const gone = made_code();
  ju_jit_known* const known = announced(first, "first");
  ju_jit_known* const taken = announced(gone, "gone");
  tell("taken back", ju_jit_take_back(taken, NULL));
  tell("taken back again", ju_jit_take_back(taken, NULL));
  tell_status();
  printf("backtrace() %s\n", passes(first));
  if (dlopen(path, RTLD_NOW) == NULL) abort();
  printf("backtrace() %s\n", passes(first));
  announced(second, "second");
  tell_status();
  printf("backtrace() %s, %s, %s\n", passes(first), passes(second), passes(gone));
  tell("taken back", ju_jit_take_back(known, NULL));
  printf("backtrace() %s, %s\n", passes(first), passes(second));
}

static void fill(const char* path) {
  static char file[5000];
  ju_jit_line lines[400];
  unsigned char* const code = made_code();
  ju_jit_known* known[4096];
  ju_jit_code at = JU_JIT_CODE(code, sizeof code_of_twice, "twice", &frame_of_twice);
  int result = JU_JIT_OK;
  size_t count = 0;
  memset(file, 'x', sizeof file - 1);
  memset(lines, 0, sizeof lines);
  ju_jit_keep();
  at.file = file;
  at.lines = lines;
  at.line_count = 400;
  for (; count < 4096 && result == JU_JIT_OK; ++count) result = ju_jit_announce(&at, &known[count], NULL);
  printf("%s large ones are kept: %s\n", count > 350 && count < 420 ? "some 400" : "wrong", ju_jit_text(result));
  at.line_count = 0;
  at.file = NULL;
  for (--count, result = JU_JIT_OK; count < 4096 && result == JU_JIT_OK; ++count)
    result = ju_jit_announce(&at, &known[count], NULL);
  tell_status();
  tell("one more", ju_jit_announce(&at, NULL, NULL));
  tell_status();
  ju_jit_known* const stale = known[7];
  tell("taken back", ju_jit_take_back(known[7], NULL));
  tell("one more", ju_jit_announce(&at, &known[7], NULL)); /* where that was */
  tell("taken back again", ju_jit_take_back(stale, NULL));
  ask(path);
  tell_status();
  for (count = 0; count < 4096; ++count)
    if (ju_jit_take_back(known[count], NULL) != JU_JIT_OK) abort();
  printf("backtrace() %s\n", passes(code));
}

static void make_mistakes(void) {
  static char endless[70000];
  unsigned char* const code = made_code();
  ju_jit_code right = JU_JIT_CODE(code, sizeof code_of_twice, "twice", &frame_of_twice), at = right;
  ju_jit_mark mark = {JU_JIT_DOES_COUNT, 0, 0, 1, 0};
  ju_jit_frame frame = {&mark, 1, 0, NULL, NULL};
  ju_jit_known* known = NULL;
  memset(endless, 'x', sizeof endless);
  tell("no code", ju_jit_announce(NULL, &known, NULL));
  at.struct_size = 8;
  tell("size of the structure", ju_jit_announce(&at, &known, NULL));
  at = right, at.size = 0;
  tell("empty", ju_jit_announce(&at, &known, NULL));
  at = right, at.size = (size_t)-1;
  tell("wraps", ju_jit_announce(&at, &known, NULL));
  at = right, at.name = endless;
  tell("endless", ju_jit_announce(&at, &known, NULL));
  at = right, at.frame = NULL;
  tell("no frame", ju_jit_announce(&at, &known, NULL));
  at = right, at.frame = &frame;
  const int result = ju_jit_announce(&at, &known, NULL); /* what is kept is read when there is a library */
  printf("no such mark: %s\n", result == JU_JIT_OK ? "kept" : ju_jit_text(result));
  mark.does = JU_JIT_ALLOCATE, mark.end = INT32_MIN;
  printf("far: %s\n", ju_jit_announce(&at, &known, NULL) == JU_JIT_OK ? "kept" : "refused");
  frame.marks = NULL;
  tell("no marks", ju_jit_announce(&at, &known, NULL));
  at = right, at.line_count = 1;
  tell("no lines", ju_jit_announce(&at, &known, NULL));
  tell("nothing known", ju_jit_take_back((ju_jit_known*)(void*)endless, NULL));
  tell("null", ju_jit_take_back(NULL, NULL));
  ask("/dev/null");
  tell_status();
}

static void announce_section(void) {
  static uint64_t section[8];
  unsigned char* const code = made_code();
  ju_jit_code at = JU_JIT_CODE(code, sizeof code_of_twice, "by_section", NULL);
  ju_jit_known* known = NULL;
  at.eh_frame = section;
  at.eh_frame_size = section_of_twice(code, section);
  tell("section", ju_jit_announce(&at, &known, NULL));
  printf("backtrace() %s\n", passes(code));
  tell("taken back", ju_jit_take_back(known, NULL));
  printf("backtrace() %s\n", passes(code));
}

static void move_code(void) {
  unsigned char *const from = made_code(), *const to = made_code();
  ju_jit_frame own = {marks_of_twice, 2, 0, NULL, NULL};
  ju_jit_code at = JU_JIT_CODE(from, sizeof code_of_twice, "moves", &own);
  ju_jit_known* known = NULL;
  tell("announced", ju_jit_announce(&at, &known, NULL));
  at.start = to;
  tell("moved", ju_jit_moved(&known, &at, NULL));
  printf("backtrace() %s, %s\n", passes(from), passes(to));
  at.size = 0;
  printf("refused: %d\n", ju_jit_moved(&known, &at, NULL) > 0);
  printf("backtrace() %s\n", passes(to));
  tell("taken back", ju_jit_take_back(known, NULL));
  tell("forgotten", ju_jit_forget(&frame_of_twice));
}

static void use_rooms(void) {
  ju_jit_room room;
  int result = ju_jit_allocate(sizeof code_of_twice, &room, NULL);
  tell("room", result);
  if (result != JU_JIT_OK) return;
  ju_jit_code at = JU_JIT_CODE(room.start, sizeof code_of_twice, "in_a_room", &frame_of_twice);
  Dl_info info;
  memcpy(room.writable, code_of_twice, sizeof code_of_twice);
  tell("committed", ju_jit_commit(&at, NULL));
  printf("backtrace() %s\n", passes(room.start));
  printf("dladdr(): %s\n", dladdr(room.start, &info) != 0 && info.dli_sname != NULL ? info.dli_sname : "nothing");
  tell("released", ju_jit_release(room.start, NULL));
  tell("released again", ju_jit_release(room.start, NULL));
}

static void announce_lines(const char* library) {
  unsigned char* const code = made_code();
  static const ju_jit_line lines[] = {{0, 7}, {4, 8}};
  ju_jit_code at = JU_JIT_CODE(code, sizeof code_of_twice, "with_lines", &frame_of_twice);
  at.file = "source_of_twice.toy";
  at.lines = lines;
  at.line_count = 2;
  if (*library != '\0') { /* else the environment attaches it */
    int (*attach)(void*) = NULL;
    void* const function = dlsym(dlopen(library, RTLD_NOW), "ju_attach_perf");
    memcpy(&attach, &function, sizeof attach);
    if (attach(NULL) != 0) abort();
  }
  announced(made_code(), "without_lines"); /* perf's files begin with the first code */
  tell("lines", ju_jit_announce(&at, NULL, NULL));
  char path[64];
  snprintf(path, sizeof path, "jit-%d.dump", (int)getpid());
  FILE* const dump = fopen(path, "rb");
  static char text[65536];
  const size_t size = dump == NULL ? 0 : fread(text, 1, sizeof text, dump);
  int found = 0;
  for (size_t i = 0; i + 19 < size; ++i) found += memcmp(text + i, "source_of_twice.toy", 19) == 0;
  printf("in the dump: %d\n", found > 0);
  remove(path);
  snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
  printf("a map: %d\n", remove(path) == 0);
}

static void announce_in_children(const char* path) {
  unsigned char* const code = made_code();
  ju_jit_known* const known = announced(code, "of_parent");
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    ask(path);
    announced(made_code(), "of_child");
    printf("child: backtrace() %s\n", passes(code));
    tell("child: taken back", ju_jit_take_back(known, NULL));
    printf("child: backtrace() %s\n", passes(code));
    fflush(stdout);
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  printf("status %d, parent: backtrace() %s\n", status, passes(code));
  tell("parent: taken back", ju_jit_take_back(known, NULL));
}

static volatile sig_atomic_t in_handlers, refused_in_handlers, wrong_in_handlers;
static unsigned char* code_of_handlers;
static void announce_in_handler(int signal) {
  ju_jit_code at = JU_JIT_CODE(code_of_handlers, sizeof code_of_twice, "of_handler", &frame_of_twice);
  ju_jit_known* known = NULL;
  (void)signal;
  const int result = ju_jit_announce(&at, &known, NULL);
  const int back = result == JU_JIT_OK ? ju_jit_take_back(known, NULL) : result;
  in_handlers = in_handlers + 1;
  if (result == JU_JIT_IN_HANDLER || back == JU_JIT_IN_HANDLER)
    refused_in_handlers = refused_in_handlers + 1;
  else if (result != JU_JIT_OK || back != JU_JIT_OK)
    wrong_in_handlers = wrong_in_handlers + 1;
}

static void announce_in_handlers(void) {
  const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
  unsigned char* const code = made_code();
  code_of_handlers = made_code();
  ju_jit_code at = JU_JIT_CODE(code, sizeof code_of_twice, "twice", &frame_of_twice);
  tell("announced", ju_jit_announce(&at, NULL, NULL)); /* looks for the library */
  ju_jit_status status;
  ju_jit_status_get(&status);
  const int most = status.library != 0 ? 100000 : 200; /* until one has interrupted the library, if there is one */
  signal(SIGPROF, announce_in_handler);
  setitimer(ITIMER_PROF, &often, NULL);
  while (in_handlers < 200 || (refused_in_handlers == 0 && in_handlers < most)) {
    ju_jit_known* known = NULL;
    if (ju_jit_announce(&at, &known, NULL) != JU_JIT_OK || ju_jit_take_back(known, NULL) != JU_JIT_OK) abort();
  }
  setitimer(ITIMER_PROF, &never, NULL);
  printf("200 handlers: %s refused, %d wrong\n", refused_in_handlers > 0 ? "some" : "none", (int)wrong_in_handlers);
}

/* Who waits for a library looks for one once: a child that was forked while another thread of its parent is in dlopen()
   has the dynamic linker's data in the middle of a change. */
static void announce_again(void) {
  ju_jit_known* known = announced(made_code(), "first");
  printf("searches: %s\n", searches != 0 ? "some" : "none");
  searches = 0;
  tell("taken back", ju_jit_take_back(known, NULL));
  known = announced(made_code(), "second");
  tell("taken back", ju_jit_take_back(known, NULL));
  printf("searches: %s\n", searches != 0 ? "some" : "none");
}

/* Announces and takes back while the library comes; returns code that is announced at the end. */
static void* announce_often(void* done) {
  unsigned char* const code = made_code();
  const ju_jit_code at = JU_JIT_CODE(code, sizeof code_of_twice, "of_thread", &frame_of_twice);
  ju_jit_known* known = NULL;
  for (int more = 500; more != 0; more -= __atomic_load_n((int*)done, __ATOMIC_RELAXED)) {
    ju_jit_error error;
    error.struct_size = sizeof error;
    int result = JU_JIT_OK;
    /* The main thread may be handing it to the library. */
    while (known != NULL && (result = ju_jit_take_back(known, &error)) == JU_JIT_BUSY) continue;
    if (result == JU_JIT_OK) result = ju_jit_announce(&at, &known, &error);
    if (result != JU_JIT_OK) printf("thread: %s\n", error.text), abort();
  }
  return code;
}

static void announce_in_threads(const char* path) {
  static int done;
  pthread_t threads[4];
  const void* code[4];
  ju_jit_keep();
  for (int i = 0; i < 4; ++i)
    if (pthread_create(&threads[i], NULL, announce_often, &done) != 0) abort();
  usleep(20000);
  ask(path);
  __atomic_store_n(&done, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 4; ++i) {
    void* its = NULL;
    if (pthread_join(threads[i], &its) != 0) abort();
    code[i] = its;
  }
  tell_status();
  printf("backtrace() %s, %s, %s, %s\n", passes(code[0]), passes(code[1]), passes(code[2]), passes(code[3]));
}

static void open_library(const char* path) {
  if (dlopen(path, RTLD_NOW | RTLD_LOCAL) == NULL) abort();
}

static void* start_plugin(const char* plugin, const void* code) {
  void* const object = dlopen(plugin, RTLD_NOW);
  int (*start)(const void*) = NULL;
  if (object == NULL) abort();
  void* const function = dlsym(object, "start_plugin");
  memcpy(&start, &function, sizeof start);
  tell("plugin", start(code));
  return object;
}

/* The library is loaded when no one calls the header any more. */
static void come_to_plugin(const char* plugin, const char* path) {
  unsigned char* const code = made_code();
  start_plugin(plugin, code);
  printf("backtrace() %s", passes(code));
  open_library(path);
  printf(", %s\n", passes(code));
}

/* A JIT that is unloaded, and has taken nothing back. */
static void unload(const char* plugin) {
  for (int round = 0; round < 3; ++round) {
    unsigned char* const code = made_code();
    void* const object = start_plugin(plugin, code);
    printf("backtrace() %s", passes(code));
    dlclose(object);
    printf(", %s\n", passes(code));
    munmap(code, 4096);
  }
  announced(made_code(), "after");
}

static const unsigned char* thrown_through;
static int is_through;
static jmp_buf caught;
static _Unwind_Reason_Code pass_frame(int version, _Unwind_Action actions, _Unwind_Exception_Class of,
                                      struct _Unwind_Exception* thrown, struct _Unwind_Context* context, void* to) {
  const size_t at = (size_t)(_Unwind_GetIP(context) - (uintptr_t)thrown_through);
  (void)version, (void)actions, (void)of, (void)thrown, (void)to;
  if (is_through) longjmp(caught, 1); /* in the caller of the code */
  is_through = at < sizeof code_of_twice;
  return _URC_NO_REASON;
}
static void throw_up(void) {
  static struct _Unwind_Exception thrown;
  (void)_Unwind_ForcedUnwind(&thrown, pass_frame, NULL);
}
static int has_library_of_cxx(void) {
  FILE* const maps = fopen("/proc/self/maps", "r");
  char line[512];
  int found = 0;
  if (maps == NULL) abort();
  while (fgets(line, sizeof line, maps) != NULL) found |= strstr(line, "libstdc++") != NULL;
  return fclose(maps), found;
}
/* All calls of the header, in a process to which the library must not bring that of C++. */
static void announce_in_c(void) {
  long (*twice)(void (*)(void), long);
  unsigned char* const code = made_code();
  Dl_info info;
  announce_once();
  announce_section();
  move_code();
  use_rooms();
  announced(code, "named");
  printf("dladdr(): %s\n", dladdr(code + 2, &info) != 0 && info.dli_sname != NULL ? info.dli_sname : "nothing");
  memcpy(&twice, &code, sizeof twice);
  thrown_through = code;
  if (setjmp(caught) == 0) twice(throw_up, 21);
  printf("thrown through: %d, libstdc++: %d\n", is_through, has_library_of_cxx());
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "once";
  const char* const path = argc > 2 ? argv[2] : "";
  if (strcmp(what, "once") == 0) announce_once();
  if (strcmp(what, "in_c") == 0) announce_in_c();
  if (strcmp(what, "ask") == 0) ask(path), announce_once();
  if (strcmp(what, "ask_twice") == 0) ask(path), ask(argv[3]), announce_once();
  if (strcmp(what, "late") == 0) come_late(path);
  if (strcmp(what, "keep") == 0) ju_jit_keep(), come_late(path);
  if (strcmp(what, "again") == 0) announce_again();
  if (strcmp(what, "fill") == 0) fill(path);
  if (strcmp(what, "mistakes") == 0) make_mistakes();
  if (strcmp(what, "section") == 0) announce_section();
  if (strcmp(what, "move") == 0) move_code();
  if (strcmp(what, "rooms") == 0) use_rooms();
  if (strcmp(what, "lines") == 0) announce_lines(path);
  if (strcmp(what, "fork") == 0) announce_in_children(path);
  if (strcmp(what, "handlers") == 0) announce_in_handlers();
  if (strcmp(what, "exec") == 0)
    announced(made_code(), "before"), fflush(stdout), execl(argv[0], argv[0], "once", NULL);
  if (strcmp(what, "threads") == 0) announce_in_threads(path);
  if (strcmp(what, "unload") == 0) unload(path);
  if (strcmp(what, "come_to_plugin") == 0) come_to_plugin(path, argv[3]);
  if (strcmp(what, "beside") == 0) open_library(path), announce_once();
  return 0;
}
