/* PostgreSQL's log of an error that is raised at the end of the known stack: known_stack(way, frame, place). */
#include <postgres.h>

#include <fmgr.h>
#include <utils/builtins.h>

#include "tests/tools/known_stack.h"

PG_MODULE_MAGIC;

PGDLLEXPORT Datum known_stack(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(known_stack);

/* The setting backtrace_functions names this function. */
void* look(void* argument) {
  ereport(LOG, errmsg("seen"));
  return argument;
}

Datum known_stack(PG_FUNCTION_ARGS) {
  const char* const words[3] = {text_to_cstring(PG_GETARG_TEXT_PP(0)), text_to_cstring(PG_GETARG_TEXT_PP(1)),
                                text_to_cstring(PG_GETARG_TEXT_PP(2))};
  PG_RETURN_BOOL(make_known_stack(words, NULL) != NULL);
}
