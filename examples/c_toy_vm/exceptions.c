/* Exceptions of the language: those of <unwind.h>, with a class of their own. Compiled code has no tables; a handler is
   called for each of its frames. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "examples/c_toy_vm/toy.h"

static const char class_of_ours[8] = {'T', 'O', 'Y', 'V', 'M', 'C', '9', '9'};

typedef struct thrown {
  struct _Unwind_Exception header;
  value value;
} thrown;

static void toy_free_thrown(_Unwind_Reason_Code reason, struct _Unwind_Exception* exception) {
  (void)reason;
  free(exception);
}

__attribute__((noreturn)) static void toy_die(const char* why) {
  fprintf(stderr, "toy_vm: %s\n", why);
  abort();
}

void toy_throw(const value* what) {
  thrown* const made = calloc(1, sizeof *made);
  if (made == NULL) toy_die("no memory for an exception");
  memcpy(&made->header.exception_class, class_of_ours, sizeof class_of_ours);
  made->header.exception_cleanup = toy_free_thrown;
  made->value = *what;
  _Unwind_RaiseException(&made->header);
  toy_die("an exception was thrown outside of toy_run_protected()");
}

void toy_fail(machine* m, const char* format, ...) {
  char message[256];
  value what = {{0}, kind_text};
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  what.as.text = toy_text(m, message, strlen(message));
  toy_throw(&what);
}

void toy_overflow(machine* m) { toy_fail(m, "stack overflow"); }

/* An exception that lands at `catch` ends here, and leaves its value. */
value toy_caught(struct _Unwind_Exception* exception) {
  const value what = ((const thrown*)exception)->value;
  _Unwind_DeleteException(exception);
  return what;
}

/* `finally` has kept the exception, and 1 if a `catch` of the function has caught it. It continues to that, or to the
   callers. */
void toy_resume(const value* kept) {
  if (kept->kind != 0) _Unwind_RaiseException(kept->as.exception);
  _Unwind_Resume(kept->as.exception);
  toy_die("an exception was lost");
}

void toy_discard(const value* kept) {
  if (kept->as.exception != NULL) _Unwind_DeleteException(kept->as.exception);
}

/* An exception replaces the kept one. */
void toy_displace(value* kept, struct _Unwind_Exception* exception, uint64_t caught) {
  toy_discard(kept);
  kept->as.exception = exception;
  kept->kind = caught;
  toy_resume(kept);
}

/* The value that applies at a code offset. */
int toy_mark(const marks* marks, int64_t at) {
  size_t i = 0;
  while (i < marks->count && marks->list[i].at <= at) ++i;
  return i == 0 ? -1 : marks->list[i - 1].what;
}

/* `catch` is for exceptions of scripts, `finally` for all, pthread_exit() included. */
static int is_ours(const ju_passed_frame* frame) {
  const struct _Unwind_Exception* const exception = frame->exception;
  return !frame->forced && memcmp(&exception->exception_class, class_of_ours, sizeof class_of_ours) == 0;
}

/* The code continues at the innermost handler that wants the exception. rdx tells whether a `catch` of this function
   catches it, be it this handler or one around it: the exception then ends its way there (toy_resume()). */
void toy_decide(const ju_passed_frame* frame, ju_decision* decision, void* of) {
  const function* const f = of;
  const int ours = is_ours(frame);
  const handler *first = NULL, *catching = NULL;
  for (int i = toy_mark(&f->sites, (int64_t)frame->call_offset); i >= 0; i = f->handlers[i].outer) {
    const handler* const h = &f->handlers[i];
    if (h->kind == handler_catches && !ours) continue;
    if (first == NULL) first = h;
    if (catching == NULL && h->kind == handler_catches) catching = h;
  }
  if (first == NULL) return;
  const uint64_t pad = frame->start + (uint64_t)first->pad;
  if (catching != NULL)
    ju_catch_at(decision, pad);
  else
    ju_clean_up_at(decision, pad);
  ju_land_with(decision, JU_X86_64_RDX, catching != NULL);
}

/* AddressSanitizer's functions have names with a prefix. */
static int is_throwing(const char* name) {
  static const char end[] = "_Unwind_RaiseException";
  const size_t size = strlen(name);
  return size >= sizeof end - 1 && strcmp(name + size - (sizeof end - 1), end) == 0;
}

/* Script functions and natives, from the throw on; the machine's own functions and the callers of main() are left out.
 */
static int toy_trace_frame(const ju_cursor* cursor, void* context) {
  machine* const m = context;
  const function* const f = ju_frame_user(cursor);
  traced frame = {"?", 0};
  ju_procedure procedure = {0};
  procedure.struct_size = sizeof procedure;
  ju_frame_name(cursor, frame.name, sizeof frame.name, NULL);
  if (f == NULL) frame.name[strcspn(frame.name, ".")] = '\0'; /* a compiler's "native_number.cold" */
  if (is_throwing(frame.name)) m->trace_count = 0;
  if (f == NULL && (is_throwing(frame.name) || strncmp(frame.name, "toy_", 4) == 0)) return 0;
  if (f == NULL && strcmp(frame.name, "<script>") == 0) return 0;
  if (f != NULL && ju_frame_procedure(cursor, &procedure, NULL) == JU_OK)
    frame.line = toy_mark(&f->lines, (int64_t)(ju_frame_pc(cursor) - 1 - procedure.begin));
  m->trace = toy_grown(m, m->trace, m->trace_count, sizeof *m->trace);
  m->trace[m->trace_count++] = frame;
  return f == NULL && strcmp(frame.name, "main") == 0;
}

/* A native catches values of scripts, not errors of natives. The outermost call catches both: the search reaches it
   only if nothing below catches, and the whole stack is still there. */
void toy_decide_entry(const ju_passed_frame* frame, ju_decision* decision, void* context) {
  enum { offset_of_pad = 24 };
  machine* const m = context;
  uint64_t rbx = 0;
  protected_call* call = NULL;
  if (!is_ours(frame) || ju_passed_frame_get(frame, JU_X86_64_RBX, &rbx) != JU_OK) return;
  memcpy(&call, &rbx, sizeof call);
  if (!call->outermost && ((const thrown*)frame->exception)->value.kind == kind_error) return;
  if (frame->in_search && call->outermost) {
    m->trace_count = 0;
    ju_walk_here(toy_trace_frame, m, NULL);
  }
  ju_catch_at(decision, frame->start + offset_of_pad);
}
