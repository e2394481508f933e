/* A walk of this thread: address, stack pointer, name, and the kind of each frame. */
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <signal.h>
#include <stdio.h>

static int show_backtrace(void) {
  unw_context_t context;
  unw_cursor_t cursor;
  int moved;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  do {
    unw_word_t ip, sp, offset;
    char name[128];
    unw_get_reg(&cursor, UNW_REG_IP, &ip);
    unw_get_reg(&cursor, UNW_REG_SP, &sp);
    if (unw_get_proc_name(&cursor, name, sizeof name, &offset) != 0) name[0] = '\0';
    printf("ip=%lx sp=%lx %s%s\n", (unsigned long)ip, (unsigned long)sp, name,
           unw_is_signal_frame(&cursor) > 0 ? " (signal)" : "");
    moved = unw_step(&cursor);
  } while (moved > 0);
  if (moved < 0) printf("incomplete: %s\n", unw_strerror(moved));
  return moved;
}

/* Walks through code without any information, at the price that frames may be missing behind a guess. */
static int show_bold_backtrace(void) {
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  if (unw_set_guesses(&cursor, UNW_GUESSES_BOLD) != 0) return 0;
  do {
    unw_word_t ip;
    unw_get_reg(&cursor, UNW_REG_IP, &ip);
    printf("ip=%lx%s\n", (unsigned long)ip, unw_is_guess(&cursor) > 0 ? " (its caller is a guess)" : "");
  } while (unw_step(&cursor) > 0);
  return 1;
}

static int show_registers(void) {
  unw_context_t context;
  unw_cursor_t cursor;
  unw_regnum_t reg;
  int known = 0;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  if (unw_step(&cursor) <= 0) return 0; /* to the caller, whose scratch registers are gone */
  for (reg = 0; reg <= UNW_REG_LAST; ++reg) {
    unw_word_t value;
    if (unw_get_reg(&cursor, reg, &value) != 0) continue;
    printf("%s=%lx\n", unw_regname(reg), (unsigned long)value);
    ++known;
  }
  return known;
}

/* The address by which a frame's line is found: a return address is after the call, which may be the last instruction
   of its code. */
static unw_word_t place_of(unw_cursor_t* cursor) {
  unw_word_t ip = 0;
  unw_get_reg(cursor, UNW_REG_IP, &ip);
  return unw_is_signal_frame(cursor) > 0 || unw_is_interrupted_frame(cursor) > 0 ? ip : ip - 1;
}

static int interrupted_frames;

static void handler(int number) {
  unw_context_t context;
  unw_cursor_t cursor;
  (void)number;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  do {
    printf("line of %lx\n", (unsigned long)place_of(&cursor)); /* where raise() stands, printf may be called */
    interrupted_frames += unw_is_interrupted_frame(&cursor) > 0;
  } while (unw_step(&cursor) > 0);
}

int main(void) {
  signal(SIGUSR1, handler);
  if (show_backtrace() != 0 || !show_bold_backtrace() || raise(SIGUSR1) != 0 || interrupted_frames != 1) return 1;
  return show_registers() >= 8 ? 0 : 1;
}
