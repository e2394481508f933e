/* The toy VM of examples/toy_vm once more, in C: the same language, by <jitunwind/c.h> only. docs/c.md. */
#pragma once

#include <jitunwind/c.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

typedef struct machine machine;
typedef struct function function;

/* Equal texts are the same pointer. */
typedef struct text {
  struct text* next;
  size_t size;
  char bytes[];
} text;

/* An error is the failure of a native function; it holds the message. */
enum kind { kind_number, kind_text, kind_function, kind_error };

/* 16 bytes of a frame; rax and rdx as a result (x86-64 psABI 3.2.3). */
typedef struct value {
  union {
    int64_t number;
    const struct text* text;
    const struct function* function;
    struct _Unwind_Exception* exception; /* in the compiler's own slots */
  } as;
  uint64_t kind;
} value;

/* Natives and functions of scripts are called alike. */
typedef value (*callable)(machine* m, const value* arguments);

typedef struct native {
  const char* name;
  int arity;
  callable code;
} native;

/* `what` is valid from code offset `at` on: a line, or the innermost handler. */
typedef struct mark {
  int64_t at;
  int what;
} mark;

typedef struct marks {
  mark* list;
  size_t count;
} marks;

/* The place where exceptions continue that leave the code inside of it. */
typedef struct handler {
  enum { handler_catches, handler_finishes, handler_discards } kind;
  int outer; /* the handler around this one; -1: none */
  int slot;
  int64_t pad; /* code offset */
} handler;

struct function {
  callable code;
  const char* name;
  int arity, line, slots; /* line 0: not defined yet; slots: the most that are in use */
  int64_t begin, end;     /* bytes in machine.bytes, end exclusive; none of a native */
  marks lines, sites;
  handler* handlers;
  size_t handler_count;
};

typedef struct traced {
  char name[64];
  int line; /* 0: no script */
} traced;

enum { text_buckets = 1024 };

struct machine {
  char* stack_limit; /* first: compiled code reads it */
  struct block* blocks;
  text* texts[text_buckets];
  function** functions; /* natives first */
  size_t function_count, native_count;
  const char* script_name;
  unsigned char* bytes; /* compiled code, as long as it is written */
  int64_t size;
  void* memory; /* compiled code, as it runs */
  size_t memory_size;
  ju_batch* registered;
  const unsigned char* entry;
  traced* trace; /* trace of the last exception that came out */
  size_t trace_count;
  jmp_buf refused;
  int refused_line; /* 0: the script is not at fault */
  char message[1024];
};

/* The callee of a stub, and its result. The stub knows the offsets. */
typedef struct protected_call {
  machine* m;
  callable code;
  const value* arguments;
  value result;
  struct _Unwind_Exception* exception; /* null: it returned */
  int outermost;                       /* no function catches exceptions here: their stack is kept */
} protected_call;

typedef struct token {
  enum { token_name, token_number, token_text, token_word, token_end } kind; /* word: a keyword or a sign */
  int line;
  const char* spelling;
  size_t size;
  int64_t number;
} token;

enum op {
  op_add,
  op_subtract,
  op_multiply,
  op_divide,
  op_remainder,
  op_less,
  op_less_equal,
  op_greater,
  op_greater_equal,
  op_equal,
  op_not_equal,
  op_and,
  op_or
};

/* memory.c: everything is freed with the machine. The program ends if there is no memory. */
void* toy_keep(machine* m, size_t size);
void* toy_grown(machine* m, void* array, size_t count, size_t size); /* with room for one more */
const text* toy_text(machine* m, const char* bytes, size_t size);
void toy_free(machine* m);
/* A script that cannot be run returns to toy_load(). */
__attribute__((noreturn)) void toy_refuse(machine* m, int line, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

/* lexer.c, compiler.c */
token* toy_tokens(machine* m, const char* script, size_t size);
void toy_compile(machine* m, const char* script, size_t size);

/* exceptions.c */
__attribute__((noreturn)) void toy_throw(const value* thrown);
__attribute__((noreturn)) void toy_fail(machine* m, const char* format, ...) __attribute__((format(printf, 2, 3)));
__attribute__((noreturn)) void toy_overflow(machine* m);
__attribute__((noreturn)) void toy_resume(const value* kept);
__attribute__((noreturn)) void toy_displace(value* kept, struct _Unwind_Exception* exception, uint64_t caught);
value toy_caught(struct _Unwind_Exception* exception);
void toy_discard(const value* kept);
void toy_decide(const ju_passed_frame* frame, ju_decision* decision, void* of);
void toy_decide_entry(const ju_passed_frame* frame, ju_decision* decision, void* m);
int toy_mark(const marks* marks, int64_t at);

/* runtime.c */
const text* toy_to_text(machine* m, value of);
value toy_compute(machine* m, const value* operands, enum op op);
value toy_call(machine* m, value of, const value* arguments, int count);
extern const native toy_natives[];
extern const size_t toy_native_count;

/* machine.c */
int toy_load(machine* m, const native* natives, size_t count, const char* script, size_t size);
void toy_run_protected(protected_call* call);
