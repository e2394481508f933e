/* toy_vm SCRIPT [ARGUMENT...]: runs the script's main() with the arguments, numbers where they look like numbers. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/c_toy_vm/toy.h"

enum { exit_uncaught = 1, exit_cannot_run = 2 };

/* The limit down to which scripts may use the stack: the memory below it is for natives and for throwing. */
static char* stack_limit(char* here) {
  const size_t most = 2 << 20;
  pthread_attr_t attributes;
  void* lowest = NULL;
  size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return here - most / 16;
  pthread_attr_getstack(&attributes, &lowest, &size);
  pthread_attr_destroy(&attributes);
  const size_t half = (size_t)(here - (char*)lowest) / 2;
  return here - (half < most ? half : most);
}

static char* read_file(machine* m, const char* path, size_t* size) {
  char buffer[4096];
  char* content = NULL;
  FILE* const file = fopen(path, "rb");
  if (file == NULL) return NULL;
  for (size_t got = 1; got > 0; *size += got) {
    got = fread(buffer, 1, sizeof buffer, file);
    char* const more = realloc(content, *size + got + 1);
    if (more == NULL) break;
    content = more;
    memcpy(content + *size, buffer, got);
  }
  const int error = ferror(file) ? errno : 0;
  fclose(file);
  char* const kept = toy_keep(m, *size + 1);
  memcpy(kept, content, *size);
  free(content);
  errno = error;
  return error == 0 ? kept : NULL;
}

static value argument(machine* m, const char* from) {
  char* end = NULL;
  value made = {{0}, kind_number};
  errno = 0;
  made.as.number = strtoll(from, &end, 10);
  if ((*from == '-' || (*from >= '0' && *from <= '9')) && *end == '\0' && errno == 0) return made;
  made.as.text = toy_text(m, from, strlen(from));
  made.kind = kind_text;
  return made;
}

/* A line for each frame; very deep stacks have the first and the last frames. */
static void print_trace(const machine* m) {
  enum { shown_at_end = 8 };
  int width = 0;
  for (size_t i = 0; i < m->trace_count; ++i) {
    const int length = (int)strlen(m->trace[i].name);
    if (width < length) width = length;
  }
  for (size_t i = 0; i < m->trace_count; ++i) {
    if (m->trace_count > 2 * shown_at_end + 1 && i == shown_at_end) {
      i = m->trace_count - shown_at_end;
      fprintf(stderr, "  ... %zu more ...\n", i - shown_at_end);
    }
    const traced* const frame = &m->trace[i];
    if (frame->line != 0)
      fprintf(stderr, "  at %-*s  %s:%d\n", width, frame->name, m->script_name, frame->line);
    else
      fprintf(stderr, "  at %-*s  C\n", width, frame->name);
  }
}

static int run(machine* m, const value* arguments, int count) {
  const function* script_main = NULL;
  protected_call call = {m, NULL, arguments, {{0}, kind_number}, NULL, 1};
  char here = 0;
  for (size_t i = 0; i < m->function_count; ++i)
    if (strcmp(m->functions[i]->name, "main") == 0) script_main = m->functions[i];
  if (count != script_main->arity) {
    fprintf(stderr, "uncaught: 'main' takes %d argument%s, not %d\n", script_main->arity,
            script_main->arity == 1 ? "" : "s", count);
    return exit_uncaught;
  }
  m->stack_limit = stack_limit(&here);
  call.code = script_main->code;
  toy_run_protected(&call);
  if (call.exception == NULL) return 0;
  fflush(stdout);
  fprintf(stderr, "uncaught: %s\n", toy_to_text(m, toy_caught(call.exception))->bytes);
  print_trace(m);
  return exit_uncaught;
}

static int load_and_run(machine* m, int argc, char** argv) {
  const char* const slash = strrchr(argv[1], '/');
  size_t size = 0;
  const char* const script = read_file(m, argv[1], &size);
  if (script == NULL) {
    fprintf(stderr, "toy_vm: cannot read %s: %s\n", argv[1], strerror(errno));
    return exit_cannot_run;
  }
  m->script_name = slash != NULL ? slash + 1 : argv[1];
  if (!toy_load(m, toy_natives, toy_native_count, script, size)) {
    if (m->refused_line != 0)
      fprintf(stderr, "%s:%d: %s\n", argv[1], m->refused_line, m->message);
    else
      fprintf(stderr, "toy_vm: %s\n", m->message);
    return exit_cannot_run;
  }
  value* const arguments = toy_keep(m, (size_t)argc * sizeof *arguments);
  for (int i = 2; i < argc; ++i) arguments[i - 2] = argument(m, argv[i]);
  return run(m, arguments, argc - 2);
}

int main(int argc, char** argv) {
  static machine m;
  if (argc < 2) {
    fputs("usage: toy_vm SCRIPT [ARGUMENT...]\n", stderr);
    return exit_cannot_run;
  }
  const int status = load_and_run(&m, argc, argv);
  toy_free(&m);
  return status;
}
