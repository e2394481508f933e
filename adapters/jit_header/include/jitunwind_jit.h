/* jitunwind_jit.h tells jitunwind of code that a JIT compiler makes, in processes that have jitunwind. Copy this file
   into the JIT's own sources. It is C99 and C++17, and links nothing: the library is found at run time. C libraries
   before glibc 2.34 have dlopen() in -ldl. docs/jit_header.md has the manual.

   A call is three instructions if there is no library. The first one of a program or shared object looks for one that
   is loaded. Else JITUNWIND=1 or JITUNWIND=/path/to/library in the environment loads one, except in setuid programs.
   JITUNWIND=0 uses none. JITUNWIND=late and ju_jit_keep() keep announcements until a library comes. If there is no
   library, then that is final until ju_jit_look() looks again.

   Results are JU_JIT_OK, a negative number of this header, or a positive ju_status of the library. All functions are
   thread-safe for different code. Calls that reach a library, look for one or are kept may allocate and load: handlers
   that can interrupt malloc() or the dynamic linker must not make them. The library refuses handlers that interrupt it.

   SPDX-License-Identifier: MIT, https://spdx.org/licenses/MIT.html
   Copyright (c) 2026 The jitunwind authors */
#ifndef JITUNWIND_JIT_H
#define JITUNWIND_JIT_H
#include <stddef.h>
#include <stdint.h>
#if defined(__linux__) && defined(__GNUC__) && !defined(JITUNWIND_JIT_OFF)
#define JU_JIT_FINDS_LIBRARIES 1
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#endif
/* The version of this file. Libraries serve all versions up to their own. */
#define JU_JIT_VERSION 1
/* clang-format off */
#define JU_JIT_RESULTS(is)                                                                                     \
  is(JU_JIT_OK, 0, "no error")                                                                                 \
  is(JU_JIT_NO_LIBRARY, -1, "no library of jitunwind serves this program or shared object")                    \
  is(JU_JIT_FULL, -2, "not kept for a later library: as much as there is room for is kept already")            \
  is(JU_JIT_OLD_LIBRARY, -3, "the library is older than this program's copy of jitunwind_jit.h")               \
  is(JU_JIT_NOT_LOADED, -4, "the file cannot be loaded, or takes no announcements, as libjitunwind.so.1 does") \
  is(JU_JIT_OTHER_LIBRARY, -5, "another library of jitunwind serves this program or shared object already")    \
  is(JU_JIT_SWITCHED_OFF, -6, "switched off by JITUNWIND=0 in the environment")                                \
  is(JU_JIT_BUSY, -7, "another thread hands this code to a library that has just come: ask again")             \
  is(JU_JIT_BAD_CODE, -8, "the code's range, structure size or strings are wrong, or it has no frame")         \
  is(JU_JIT_NOT_KNOWN, -9, "nothing that was announced")
#define JU_JIT_CODE_OF(name, code, text) name = code,
enum { JU_JIT_RESULTS(JU_JIT_CODE_OF) JU_JIT_IN_HANDLER = 122 /* the library's: this handler has interrupted it */ };
/* An instruction's effect on the frame, by the names of functions in sdk/c/describe.h, and its arguments. */
enum ju_jit_does {
  JU_JIT_PUSH /* reg */, JU_JIT_PUSH_OTHER, JU_JIT_ENTER /* value */, JU_JIT_ALLOCATE /* value */,
  JU_JIT_SET_FRAME_POINTER /* reg := SP + value */, JU_JIT_MOVE_FRAME_POINTER /* reg, value */,
  JU_JIT_SAVE_AT_SP /* reg at [SP + value] */, JU_JIT_SAVE_AT_FP /* reg at [frame pointer + value] */,
  JU_JIT_MOVE_TO /* other := reg */, JU_JIT_STORE_PAIR /* reg, other at [SP + value] */,
  JU_JIT_STORE_PAIR_PRE /* the same, value < 0 */, JU_JIT_STORE_PRE /* reg, value < 0 */,
  JU_JIT_SIGN_RETURN_ADDRESS, JU_JIT_REALIGN, JU_JIT_ALLOCATE_VARIABLE, JU_JIT_STORE_SP /* value */,
  JU_JIT_RELOAD_SP /* value */, JU_JIT_POP /* reg */, JU_JIT_POP_OTHER, JU_JIT_DEALLOCATE /* value */,
  JU_JIT_RESTORE_SP /* SP := reg + value */, JU_JIT_LEAVE, JU_JIT_RELOAD /* reg */, JU_JIT_RELOAD_PAIR /* reg, other */,
  JU_JIT_LOAD_PAIR_POST /* reg, other, value > 0 */, JU_JIT_LOAD_POST /* reg, value > 0 */,
  JU_JIT_AUTHENTICATE_RETURN_ADDRESS, JU_JIT_RESTORE, JU_JIT_CALLEE_POPS /* value */,
  /* No instruction; `end` is not read. */
  JU_JIT_REMEMBER, JU_JIT_ENDS_WITHOUT_RETURN,
  /* The frame of other code: reg is at [SP + value], SP is value further up, behind `end`; 0 is in front of the first
     instruction. */
  JU_JIT_SPILL_SP_REL, JU_JIT_ADD_TO_SP,
  JU_JIT_DOES_COUNT
};
/* clang-format on */
/* A register by its DWARF number; of x86-64 also by the number in instructions, rax = 0, rcx = 1, ... r15. */
#define JU_JIT_X86_64(n) ((uint16_t)(0xfedcba9854673120u >> 4 * ((n)&15) & 15))
/** An instruction and its effect. */
typedef struct ju_jit_mark {
  uint16_t does; /* enum ju_jit_does */
  uint16_t reg, other;
  int32_t end; /* offset behind the instruction; 0 and negative ones count from the code's end */
  int64_t value;
} ju_jit_mark;
/* A mark of code for x86-64, whose register has the number that it has in instructions. */
static inline ju_jit_mark ju_jit_x86_64(int does, int reg, int32_t end, int64_t value) {
  const ju_jit_mark mark = {(uint16_t)does, JU_JIT_X86_64(reg), 0, end, value};
  return mark;
}
/** The way in which code builds its frame. A frame that serves many is checked once. It must stay until all of
   their code is taken back, and ends with ju_jit_forget(). Any other one is read during the call alone, which checks
   nothing of it but places and registers. */
typedef struct ju_jit_frame {
  const ju_jit_mark* marks; /* in the order of the instructions; may be empty: code that leaves the stack alone */
  size_t mark_count;
  int serves_many;
  const void* personality; /* null: exceptions pass */
  void* made;              /* the library's; null at first */
} ju_jit_frame;
/** The line of the code from an offset on. */
typedef struct ju_jit_line {
  uint64_t offset; /* from the start of the code; ascending */
  uint32_t line;   /* 0: of no line */
} ju_jit_line;
/** Code that is in place. */
typedef struct ju_jit_code {
  size_t struct_size; /* sizeof(ju_jit_code) */
  const void* start;
  size_t size;
  const char* name;     /* copied; null: none */
  ju_jit_frame* frame;  /* null: `eh_frame` has it */
  const void* eh_frame; /* CFI of the code as compilers make it: whole entries, resolved, in place until taken back */
  size_t eh_frame_size;
  const void* lsda; /* of frames with a personality routine; null: none */
  void* user;       /* ju_frame_user() gives it */
  const char* file; /* of the lines */
  const ju_jit_line* lines;
  size_t line_count;
} ju_jit_code;
#define JU_JIT_CODE(start, size, name, frame) \
  { sizeof(ju_jit_code), start, size, name, frame, NULL, 0, NULL, NULL, NULL, NULL, 0 }
/** Room for code: where it runs, where it is written, its size in bytes. */
typedef struct ju_jit_room {
  void *start, *writable;
  size_t size;
} ju_jit_room;
/** Written by calls that fail while a library is there or awaited. Set struct_size. */
typedef struct ju_jit_error {
  size_t struct_size;
  int code;
  uint64_t at;
  const char* remedy;
  char place[64];
  char text[512];
} ju_jit_error;
/** The state of a program or shared object, by ju_jit_status_get(). */
typedef struct ju_jit_status {
  unsigned library; /* version, 10000 * major + 100 * minor + patch; 0: none serves this object */
  size_t kept;      /* announcements that wait for a library */
  size_t lost;      /* those that were not kept, beyond the bound */
  size_t refused;   /* kept ones that the library refused when it came */
  int refusal;      /* the code of the latest of these */
} ju_jit_status;
typedef struct ju_jit_known ju_jit_known; /* announced code */
/** The functions of a library. Newer ones have more members at the end. */
typedef struct ju_jit_table {
  size_t struct_size;
  unsigned library;
  int (*announce)(const ju_jit_code* code, ju_jit_known** known, ju_jit_error* error);
  int (*take_back)(ju_jit_known* known, ju_jit_error* error);
  int (*forget)(ju_jit_frame* frame);
  int (*allocate)(size_t size, ju_jit_room* room, ju_jit_error* error);
  int (*commit)(const ju_jit_code* code, ju_jit_error* error);
  int (*release)(const void* start, ju_jit_error* error);
  const char* (*text)(int code);
} ju_jit_table;
/* The function that libraries export, ju_jit_functions(). Null: it is older than the header of that version. */
typedef const ju_jit_table* ju_jit_functions_t(unsigned version);
#ifdef __cplusplus
extern "C" {
#endif
#ifdef JU_JIT_FINDS_LIBRARIES
/* A program or shared object has the rest once, even if many of its sources include this file. The number in the names
   is that of JU_JIT_VERSION. */
#define JU_JIT_ONCE __attribute__((weak, visibility("hidden")))
#define ju_jit_object ju_jit_object_1
#define ju_jit_slow ju_jit_slow_1
#define ju_jit_looks ju_jit_looks_1
#define ju_jit_look ju_jit_look_1
#define ju_jit_keep ju_jit_keep_1
#define ju_jit_text ju_jit_text_1
#define ju_jit_status_get ju_jit_status_get_1
#define ju_jit_come ju_jit_come_1
#define JU_JIT_LOAD(from) __atomic_load_n(&(from), __ATOMIC_SEQ_CST)
#define JU_JIT_STORE(into, value) __atomic_store_n(&(into), value, __ATOMIC_SEQ_CST)
#define JU_JIT_SWAP(word, from, to) __atomic_compare_exchange_n(word, from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
#define JU_JIT_ADD(to, value) __atomic_fetch_add(&(to), value, __ATOMIC_SEQ_CST)

typedef struct ju_jit_slot ju_jit_slot;
typedef struct ju_jit_state {
  const ju_jit_table* now;     /* where calls go; null: nowhere */
  const ju_jit_table* library; /* null: none yet */
  ju_jit_slot* slots;          /* null: nothing was kept yet */
  size_t mapped, lost, refused, turn;
  int keeps, is_told, refusal; /* keeps: 1; 2 from the begin of a search on, after which a library brings itself */
} ju_jit_state;
extern JU_JIT_ONCE ju_jit_state ju_jit_object;
JU_JIT_ONCE __thread volatile int ju_jit_looks = 0; /* whether this thread looks: its handlers must not do so, too */
/* Looks for a library again: null as the first call does, else the file `path` (or a name for the dynamic linker to
   find). Hands it what was kept. JU_JIT_OK: one serves this object. Waits for the dynamic linker's lock. */
JU_JIT_ONCE int ju_jit_look(const char* path, ju_jit_error* error);
/* Keeps announcements from now on, if there is no library: 4096 at a time, and 4 MiB of those with more than some 400
   bytes of marks, lines and names. The next one looks for a loaded library again. */
JU_JIT_ONCE void ju_jit_keep(void);
/* A result's meaning, in a sentence; never null. */
JU_JIT_ONCE const char* ju_jit_text(int code);
JU_JIT_ONCE void ju_jit_status_get(ju_jit_status* status);
/* Libraries that are loaded later find this note of each object, and call the function: it is theirs alone. */
JU_JIT_ONCE __attribute__((used)) void ju_jit_come(ju_jit_functions_t* functions);
__asm__(
    ".pushsection .note.jitunwind.jit,\"a\",%note\n.balign 4\n.long 10,4,1\n.asciz \"jitunwind\"\n.balign 4\n"
    ".long ju_jit_come_1-.\n.popsection");

#define JU_JIT_NOW __atomic_load_n(&ju_jit_object.now, __ATOMIC_RELAXED)
#else /* Elsewhere nothing is announced. */
#define JU_JIT_NOW ((const ju_jit_table*)NULL)
static inline int ju_jit_look(const char* path, ju_jit_error* error) {
  return (void)path, (void)error, JU_JIT_NO_LIBRARY;
}
static inline void ju_jit_keep(void) {}
static inline const char* ju_jit_text(int code) { return code == JU_JIT_OK ? "no error" : "not in this build"; }
static inline void ju_jit_status_get(ju_jit_status* status) {
  status->kept = status->lost = status->refused = status->library = 0, status->refusal = 0;
}
#endif

/* The calls. Each is three instructions without a library. */
#define JU_JIT_CALL(call)                     \
  const ju_jit_table* const now = JU_JIT_NOW; \
  return now == NULL ? JU_JIT_NO_LIBRARY : call

/* Whether announcements go anywhere: JITs without it need not collect marks. */
static inline int ju_jit_wanted(void) { return JU_JIT_NOW != NULL; }
/* Announces code that is in place. `known` may be null, for code that is never taken back. */
static inline int ju_jit_announce(const ju_jit_code* code, ju_jit_known** known, ju_jit_error* error) {
  JU_JIT_CALL(now->announce(code, known, error));
}
/* Takes code back, before it is freed or written over. Null does nothing. */
static inline int ju_jit_take_back(ju_jit_known* known, ju_jit_error* error) {
  JU_JIT_CALL(now->take_back(known, error));
}
static inline int ju_jit_move(ju_jit_known** known, const ju_jit_code* code, ju_jit_error* error) {
  ju_jit_known* moved = NULL;
  int result = ju_jit_announce(code, &moved, error);
  if (result != JU_JIT_OK) return result;
  result = ju_jit_take_back(*known, error);
  if (result == JU_JIT_OK) return *known = moved, JU_JIT_OK;
  return (void)ju_jit_take_back(moved, NULL), result;
}
/* Announces code that was copied to another place, and takes back the old place, which is still intact. After an error
   nothing has changed. */
static inline int ju_jit_moved(ju_jit_known** known, const ju_jit_code* code, ju_jit_error* error) {
  JU_JIT_CALL(ju_jit_move(known, code, error));
}
/* Frees what the library has made of a frame that serves many. */
static inline int ju_jit_forget(ju_jit_frame* frame) { JU_JIT_CALL(now->forget(frame)); }
/* Memory for code that tools see (docs/code_segments.md). The JIT writes its code to a room; commit() announces it;
   release() takes it back and frees it. JITs use memory of their own if there is no library. */
static inline int ju_jit_allocate(size_t size, ju_jit_room* room, ju_jit_error* error) {
  JU_JIT_CALL(now->allocate(size, room, error));
}
static inline int ju_jit_commit(const ju_jit_code* code, ju_jit_error* error) { JU_JIT_CALL(now->commit(code, error)); }
static inline int ju_jit_release(const void* start, ju_jit_error* error) { JU_JIT_CALL(now->release(start, error)); }

#ifdef JU_JIT_FINDS_LIBRARIES
#ifdef MAP_ANONYMOUS
#define JU_JIT_MAP (MAP_PRIVATE | MAP_ANONYMOUS)
#else /* programs of strict C are not told */
#define JU_JIT_MAP (MAP_PRIVATE | 0x20)
#endif
extern char* ju_jit_environment(const char* name) __asm__("secure_getenv"); /* declared with _GNU_SOURCE alone */

/* An announcement that is kept. `holder` is 0: free; taken: a thread works on it; waits: `copy` is the announcement;
   else the ju_jit_known of the library. There is no lock, which handlers and children of fork() could find held. */
enum { JU_JIT_SLOTS = 4096, JU_JIT_SLOT_WORDS = 60, JU_JIT_MOST_MAPPED = 1 << 22, JU_JIT_LONGEST = 65536 };
#define JU_JIT_TAKEN ((uintptr_t)1)
#define JU_JIT_WAITS ((uintptr_t)2)
struct ju_jit_slot {
  uintptr_t holder;
  ju_jit_code* copy;   /* in `words`, or a mapping */
  size_t mapped, uses; /* a ju_jit_known is the slot's address and the uses modulo its size: an old one is told apart */
  uint64_t words[JU_JIT_SLOT_WORDS];
};
static inline int ju_jit_fail(ju_jit_error* error, int code, const char* text) {
  if (error == NULL || error->struct_size < sizeof *error) return code;
  const ju_jit_error empty = {sizeof empty, code, 0, "", "", ""};
  *error = empty;
  strncat(error->text, text != NULL ? text : ju_jit_text(code), sizeof error->text - 1);
  return code;
}
/* Copies `size` bytes behind those that are in use; null `base` only counts. */
static inline void* ju_jit_put(char* base, size_t* used, const void* from, size_t size) {
  char* const to = base == NULL ? NULL : base + *used;
  if (to != NULL && size != 0) memcpy(to, from, size);
  *used += (size + 7) & ~(size_t)7;
  return to;
}
/* Copies an announcement with all that only the call may read; returns its bytes. */
static inline size_t ju_jit_copy(const ju_jit_code* code, char* base) {
  size_t used = 0;
  ju_jit_frame* frame = code->frame;
  ju_jit_code* const copy = (ju_jit_code*)ju_jit_put(base, &used, code, sizeof *code);
  if (frame != NULL && !frame->serves_many) {
    ju_jit_frame* const own = (ju_jit_frame*)ju_jit_put(base, &used, frame, sizeof *frame);
    const void* const marks = ju_jit_put(base, &used, frame->marks, frame->mark_count * sizeof *frame->marks);
    if (own != NULL) own->marks = (const ju_jit_mark*)marks;
    frame = own;
  }
  const void* const name = code->name == NULL ? NULL : ju_jit_put(base, &used, code->name, strlen(code->name) + 1);
  const void* const file = code->file == NULL ? NULL : ju_jit_put(base, &used, code->file, strlen(code->file) + 1);
  const void* const lines = ju_jit_put(base, &used, code->lines, code->line_count * sizeof *code->lines);
  if (copy == NULL) return used;
  copy->frame = frame, copy->lines = (const ju_jit_line*)lines;
  copy->name = (const char*)name, copy->file = (const char*)file;
  return used;
}
static inline int ju_jit_ends(const char* text) { return text == NULL || memchr(text, 0, JU_JIT_LONGEST) != NULL; }
#define JU_JIT_HAS(array, count) ((count) <= JU_JIT_LONGEST && ((count) == 0 || (array) != NULL))
static inline int ju_jit_is_right(const ju_jit_code* code) {
  return code != NULL && code->struct_size == sizeof *code && code->size != 0 &&
         code->size <= UINTPTR_MAX - (uintptr_t)code->start && ju_jit_ends(code->name) && ju_jit_ends(code->file) &&
         JU_JIT_HAS(code->lines, code->line_count) &&
         (code->frame == NULL ? code->eh_frame != NULL : JU_JIT_HAS(code->frame->marks, code->frame->mark_count));
}
static inline int ju_jit_take(ju_jit_slot* slot, uintptr_t holder) {
  return JU_JIT_SWAP(&slot->holder, &holder, JU_JIT_TAKEN);
}
static inline void ju_jit_free_slot(ju_jit_slot* slot, uintptr_t holder) {
  if (slot->mapped != 0) munmap(slot->copy, slot->mapped);
  (void)JU_JIT_ADD(ju_jit_object.mapped, (size_t)0 - slot->mapped);
  slot->mapped = 0;
  JU_JIT_STORE(slot->holder, holder);
}
static inline ju_jit_slot* ju_jit_find_slot(void) {
  ju_jit_slot* slots = JU_JIT_LOAD(ju_jit_object.slots);
  if (slots == NULL) {
    const size_t size = JU_JIT_SLOTS * sizeof *slots;
    void* const made = mmap(NULL, size, PROT_READ | PROT_WRITE, JU_JIT_MAP, -1, 0);
    if (made == MAP_FAILED) return NULL;
    if (!JU_JIT_SWAP(&ju_jit_object.slots, &slots, (ju_jit_slot*)made)) munmap(made, size);
    slots = JU_JIT_LOAD(ju_jit_object.slots);
  }
  const size_t turn = JU_JIT_ADD(ju_jit_object.turn, 1); /* a slot is used again as late as possible */
  for (size_t i = 0; i < JU_JIT_SLOTS; ++i) {
    ju_jit_slot* const slot = &slots[(turn + i) % JU_JIT_SLOTS];
    if (JU_JIT_LOAD(slot->holder) == 0 && ju_jit_take(slot, 0)) return (void)JU_JIT_ADD(slot->uses, 1), slot;
  }
  return NULL;
}
/* Hands what was kept to the library. A slot that another thread works on is handed over by that thread. */
static inline void ju_jit_hand_over(const ju_jit_table* library) {
  ju_jit_slot* const slots = JU_JIT_LOAD(ju_jit_object.slots);
  for (size_t i = 0; slots != NULL && i < JU_JIT_SLOTS; ++i) {
    ju_jit_known* known = NULL;
    if (!ju_jit_take(&slots[i], JU_JIT_WAITS)) continue;
    const int result = library->announce(slots[i].copy, &known, NULL);
    const int again = result == JU_JIT_IN_HANDLER; /* the next ju_jit_look() does it */
    if (result != JU_JIT_OK && !again) (void)JU_JIT_ADD(ju_jit_object.refused, 1);
    if (result != JU_JIT_OK && !again) JU_JIT_STORE(ju_jit_object.refusal, result);
    if (!again) ju_jit_free_slot(&slots[i], (uintptr_t)known);
    if (again) JU_JIT_STORE(slots[i].holder, JU_JIT_WAITS);
  }
}
static inline int ju_jit_hold(const ju_jit_code* code, ju_jit_known** known, ju_jit_error* error) {
  if (!ju_jit_is_right(code)) return ju_jit_fail(error, JU_JIT_BAD_CODE, NULL);
  ju_jit_slot* const slot = ju_jit_find_slot();
  const size_t size = ju_jit_copy(code, NULL);
  void* copy = slot == NULL ? NULL : slot->words;
  if (slot != NULL && size > sizeof slot->words) {
    const int has_room = JU_JIT_LOAD(ju_jit_object.mapped) + size <= JU_JIT_MOST_MAPPED;
    copy = has_room ? mmap(NULL, size, PROT_READ | PROT_WRITE, JU_JIT_MAP, -1, 0) : MAP_FAILED;
    slot->mapped = copy == MAP_FAILED ? 0 : size;
    (void)JU_JIT_ADD(ju_jit_object.mapped, slot->mapped);
    if (copy == MAP_FAILED) JU_JIT_STORE(slot->holder, (uintptr_t)0);
  }
  if (copy == NULL || copy == MAP_FAILED) {
    (void)JU_JIT_ADD(ju_jit_object.lost, 1);
    return ju_jit_fail(error, JU_JIT_FULL, NULL);
  }
  ju_jit_known* const mine = (ju_jit_known*)((char*)slot + slot->uses % sizeof *slot);
  slot->copy = (ju_jit_code*)copy;
  ju_jit_copy(code, (char*)copy);
  JU_JIT_STORE(slot->holder, JU_JIT_WAITS);
  if (known != NULL) *known = mine;
  const ju_jit_table* const library = JU_JIT_LOAD(ju_jit_object.library);
  if (library != NULL) ju_jit_hand_over(library); /* it came meanwhile */
  return JU_JIT_OK;
}
static inline int ju_jit_give_up_slot(ju_jit_slot* slot, size_t use, ju_jit_error* error) {
  const ju_jit_table* const library = JU_JIT_LOAD(ju_jit_object.library);
  uintptr_t holder = JU_JIT_LOAD(slot->holder);
  for (int i = 0; i < 1000 && holder == JU_JIT_TAKEN; ++i, holder = JU_JIT_LOAD(slot->holder)) sched_yield();
  if (holder == 0 || JU_JIT_LOAD(slot->uses) % sizeof *slot != use) return ju_jit_fail(error, JU_JIT_NOT_KNOWN, NULL);
  if (holder == JU_JIT_TAKEN || !ju_jit_take(slot, holder)) return ju_jit_fail(error, JU_JIT_BUSY, NULL);
  const int result = holder == JU_JIT_WAITS ? JU_JIT_OK : library->take_back((ju_jit_known*)holder, error);
  ju_jit_free_slot(slot, result == JU_JIT_IN_HANDLER ? holder : 0);
  return result;
}
/* The library, if there is one or if it is found now. A library that comes after the search brings itself. */
static inline const ju_jit_table* ju_jit_found(void) {
  if (JU_JIT_LOAD(ju_jit_object.library) == NULL && JU_JIT_LOAD(ju_jit_object.keeps) != 2 && !ju_jit_looks)
    (void)ju_jit_look(NULL, NULL);
  return JU_JIT_LOAD(ju_jit_object.library);
}
static inline int ju_jit_slow_announce(const ju_jit_code* code, ju_jit_known** known, ju_jit_error* error) {
  const ju_jit_table* const library = ju_jit_found();
  if (library != NULL) return library->announce(code, known, error);
  if (JU_JIT_LOAD(ju_jit_object.keeps)) return ju_jit_hold(code, known, error);
  return ju_jit_looks ? ju_jit_look(NULL, error) : JU_JIT_NO_LIBRARY;
}
static inline int ju_jit_slow_take_back(ju_jit_known* known, ju_jit_error* error) {
  ju_jit_slot* const slots = JU_JIT_LOAD(ju_jit_object.slots);
  const uintptr_t at = (uintptr_t)known - (uintptr_t)slots;
  if (known == NULL) return JU_JIT_OK;
  if (slots != NULL && at < JU_JIT_SLOTS * sizeof *slots)
    return ju_jit_give_up_slot(slots + at / sizeof *slots, at % sizeof *slots, error);
  const ju_jit_table* const library = ju_jit_found();
  return library != NULL ? library->take_back(known, error) : ju_jit_fail(error, JU_JIT_NOT_KNOWN, NULL);
}
#define JU_JIT_FORWARD(function, parameters, call)                       \
  static inline int ju_jit_slow_##function parameters {                  \
    const ju_jit_table* const library = ju_jit_found();                  \
    return library == NULL ? JU_JIT_NO_LIBRARY : library->function call; \
  }
JU_JIT_FORWARD(forget, (ju_jit_frame * frame), (frame))
JU_JIT_FORWARD(allocate, (size_t size, ju_jit_room* room, ju_jit_error* error), (size, room, error))
JU_JIT_FORWARD(commit, (const ju_jit_code* code, ju_jit_error* error), (code, error))
JU_JIT_FORWARD(release, (const void* start, ju_jit_error* error), (start, error))
/* Calls go here until something was found, and for good if announcements are kept: their ju_jit_known are slots. */
extern JU_JIT_ONCE ju_jit_table ju_jit_slow;
/* clang-format off */
JU_JIT_ONCE ju_jit_table ju_jit_slow = {
    sizeof(ju_jit_table), 0, ju_jit_slow_announce, ju_jit_slow_take_back, ju_jit_slow_forget, ju_jit_slow_allocate,
    ju_jit_slow_commit, ju_jit_slow_release, NULL};
/* clang-format on */
JU_JIT_ONCE ju_jit_state ju_jit_object = {&ju_jit_slow, NULL, NULL, 0, 0, 0, 0, 0, 0, 0};
JU_JIT_ONCE const char* ju_jit_text(int code) {
#define JU_JIT_TEXT_OF(name, code, text) text,
  static const char* const own[] = {JU_JIT_RESULTS(JU_JIT_TEXT_OF)};
  const ju_jit_table* const library = JU_JIT_LOAD(ju_jit_object.library);
  if (code <= 0 && code >= JU_JIT_NOT_KNOWN) return own[-code];
  return library != NULL ? library->text(code) : "error of a library that is not there";
}
JU_JIT_ONCE void ju_jit_status_get(ju_jit_status* status) {
  const ju_jit_table* const library = JU_JIT_LOAD(ju_jit_object.library);
  const ju_jit_slot* const slots = JU_JIT_LOAD(ju_jit_object.slots);
  status->library = library == NULL ? 0 : library->library;
  status->kept = 0;
  for (size_t i = 0; slots != NULL && i < JU_JIT_SLOTS; ++i)
    status->kept += JU_JIT_LOAD(slots[i].holder) == JU_JIT_WAITS;
  status->lost = JU_JIT_LOAD(ju_jit_object.lost);
  status->refused = JU_JIT_LOAD(ju_jit_object.refused);
  status->refusal = JU_JIT_LOAD(ju_jit_object.refusal);
}
JU_JIT_ONCE void ju_jit_keep(void) {
  JU_JIT_STORE(ju_jit_object.keeps, 1);
  if (JU_JIT_LOAD(ju_jit_object.library) == NULL) JU_JIT_STORE(ju_jit_object.now, &ju_jit_slow);
}
static inline int ju_jit_serve(ju_jit_functions_t* functions, ju_jit_error* error) {
  const ju_jit_table* before = NULL;
  const ju_jit_table* const library = functions(JU_JIT_VERSION);
  if (library == NULL) return ju_jit_fail(error, JU_JIT_OLD_LIBRARY, NULL);
  if (!JU_JIT_SWAP(&ju_jit_object.library, &before, library) && before != library)
    return ju_jit_fail(error, JU_JIT_OTHER_LIBRARY, NULL);
  JU_JIT_STORE(ju_jit_object.now, JU_JIT_LOAD(ju_jit_object.keeps) ? &ju_jit_slow : library);
  ju_jit_hand_over(library);
  return JU_JIT_OK;
}
JU_JIT_ONCE void ju_jit_come(ju_jit_functions_t* functions) {
  if (JU_JIT_LOAD(ju_jit_object.keeps)) (void)ju_jit_serve(functions, NULL);
}
/* The function of this file, or of the library by its names. Null: `error` has the dynamic linker's sentence. */
static inline void* ju_jit_open(const char* path, int how, ju_jit_error* error) {
  static const char* const names[] = {"libjitunwind-listen.so.1", "libjitunwind.so.1", "libjitunwind-core.so.1"};
  void* found = NULL;
  for (int i = 0; found == NULL && i < (path != NULL ? 1 : 3); ++i) {
    void* const file = dlopen(path != NULL ? path : names[i], RTLD_LAZY | RTLD_NODELETE | how);
    if (file != NULL) found = dlsym(file, "ju_jit_functions");
    if (found == NULL && i == 0) (void)ju_jit_fail(error, JU_JIT_NOT_LOADED, file == NULL ? dlerror() : NULL);
  }
  return found;
}
static inline int ju_jit_search(const char* path, const char* word, ju_jit_error* error) {
  const ju_jit_table* const library = JU_JIT_LOAD(ju_jit_object.library);
  ju_jit_functions_t* functions = NULL;
  if (library != NULL && path == NULL) return ju_jit_hand_over(library), JU_JIT_OK;
  void* found = path == NULL ? dlsym(NULL /* RTLD_DEFAULT */, "ju_jit_functions") : NULL;
  if (found == NULL && path == NULL) found = ju_jit_open(NULL, RTLD_NOLOAD, NULL);
  if (found == NULL && path == NULL && word == NULL) return ju_jit_fail(error, JU_JIT_NO_LIBRARY, NULL);
  if (found == NULL && path == NULL && strcmp(word, "1") != 0) path = word;
  if (found == NULL) found = ju_jit_open(path, library != NULL ? RTLD_NOLOAD : 0, error);
  if (found == NULL) return library != NULL ? ju_jit_fail(error, JU_JIT_OTHER_LIBRARY, NULL) : JU_JIT_NOT_LOADED;
  memcpy(&functions, &found, sizeof found); /* ISO C converts no void* to a pointer to a function */
  return ju_jit_serve(functions, error);
}
JU_JIT_ONCE int ju_jit_look(const char* path, ju_jit_error* error) {
  const char* word = ju_jit_environment("JITUNWIND");
  ju_jit_error why = {sizeof why, 0, 0, "", "", ""};
  if (ju_jit_looks) return ju_jit_fail(error, JU_JIT_IN_HANDLER, "this handler has interrupted a search for a library");
  if (word != NULL && strcmp(word, "late") == 0) ju_jit_keep();
  const int is_off = word != NULL && strcmp(word, "0") == 0;
  if (word != NULL && (*word == '\0' || strcmp(word, "late") == 0 || JU_JIT_LOAD(ju_jit_object.is_told))) word = NULL;
  if (is_off || JU_JIT_LOAD(ju_jit_object.keeps)) JU_JIT_STORE(ju_jit_object.keeps, is_off ? 0 : 2);
  ju_jit_looks = 1;
  const int result = is_off ? ju_jit_fail(&why, JU_JIT_SWITCHED_OFF, NULL) : ju_jit_search(path, word, &why);
  ju_jit_looks = 0;
  if (result == JU_JIT_OK) return result;
  if (path == NULL && word != NULL && !is_off) { /* the user has asked for it, and is told once */
    fprintf(stderr, "jitunwind: JITUNWIND=%s: %s\n", word, why.text);
    JU_JIT_STORE(ju_jit_object.is_told, 1);
  }
  /* Calls end where they begin from now on, unless a library serves or may come. */
  const int goes_on = JU_JIT_LOAD(ju_jit_object.keeps) || JU_JIT_LOAD(ju_jit_object.library) != NULL;
  JU_JIT_STORE(ju_jit_object.now, goes_on ? &ju_jit_slow : (const ju_jit_table*)NULL);
  if (error != NULL && error->struct_size >= sizeof why) *error = why;
  return result;
}
#endif
#ifdef __cplusplus
}
#endif
#endif
