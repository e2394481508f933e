/* Code made at run time in a program of another CPU, and its descriptions: what a library of its own would register,
   written by hand. A function has the signature long f(function callee, long n), and calls callee(n), if it calls.

     framed    has a frame pointer, and moves SP by an amount that its description does not tell
     plain     has none, and is described by two regions, of which the last counts from the end
     trapping  is interrupted with a part of its frame made, and the return address in another register

   The file of each CPU has their instructions, TEMPLATE, their directives, REGION, and PRESERVED: DWARF numbers of
   registers that calls preserve. */
#ifndef JITUNWIND_TESTS_DESCRIBED_H
#define JITUNWIND_TESTS_DESCRIBED_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define JITUNWIND_UNW_WORD_T
typedef uintptr_t unw_word_t;
typedef intptr_t unw_sword_t;
#include "../../../../dyn_info/libunwind-dynamic.h"

#if defined __aarch64__
#define OF_CPU "aarch64.inc"
#elif defined __arm__
#define OF_CPU "arm.inc"
#elif defined __i386__
#define OF_CPU "x86.inc"
#elif defined __riscv
#define OF_CPU "riscv64.inc"
#elif defined __powerpc64__
#define OF_CPU "ppc64.inc"
#elif defined __s390x__
#define OF_CPU "s390x.inc"
#elif defined __mips__
#define OF_CPU "mips64.inc"
#endif

typedef long (*function)(long);
enum { k_framed, k_plain, k_trapping, k_procedures };
enum { k_described_code = 4096, k_described_regions = 5, k_described_ops = 20 };

#define PRESERVED(...) static const int k_preserved[] = {__VA_ARGS__};
#define TEMPLATE(name, text)                                                  \
  __asm__(                                                                    \
      ".pushsection .rodata\n.balign 8\n"                                     \
      ".globl template_" #name "\n.globl template_" #name                     \
      "_end\n"                                                                \
      "template_" #name ":\n" text "template_" #name "_end:\n.popsection\n"); \
  extern const char template_##name[], template_##name##_end[];
#define REGION(name, index, count, ...)
#include OF_CPU
#undef PRESERVED
#undef TEMPLATE
#undef REGION

/* All that is registered. */
static struct {
  unw_dyn_info_t procedures[k_procedures];
  struct {
    unw_dyn_region_info_t* next;
    int32_t insn_count;
    uint32_t op_count;
    unw_dyn_op_t op[k_described_ops];
  } regions[k_described_regions];
  char names[k_procedures][32];
} described;
unw_dyn_info_list_t described_list = {1, 0, 0};
static char* described_code;
static int procedures, regions;
#if defined __powerpc64__ && _CALL_ELF != 2
static void* descriptors[k_procedures][3]; /* of functions: code, global pointer, environment */
#endif

/* The note by which the list is found: docs/registry.md, "Finding the list". */
#ifdef __LP64__
#ifdef __mips__ /* there are differences of 32 bits alone */
#define DISTANCE_TO(symbol) MIPS_DISTANCE(symbol)
#else
#define DISTANCE_TO(symbol) ".8byte " symbol " - .\n"
#endif
#define WORD "8"
#else
#ifdef __ARMEB__
#define DISTANCE_TO(symbol) ".long 0, " symbol " - . + 4\n"
#else
#define DISTANCE_TO(symbol) ".long " symbol " - ., 0\n"
#endif
#define WORD "4"
#endif
#ifdef __MIPSEB__
#define MIPS_DISTANCE(symbol) ".4byte 0, " symbol " - . + 4\n"
#else
#define MIPS_DISTANCE(symbol) ".4byte " symbol " - ., 0\n"
#endif
#ifdef __arm__
#define NOTE_TYPE "%note"
#else
#define NOTE_TYPE "@note"
#endif
__asm__(".pushsection .note.unwdyn, \"a\", " NOTE_TYPE
        "\n"
        ".balign 4\n"
        ".4byte 7, 16, 1\n"
        ".asciz \"UNWDYN\"\n"
        ".balign 4\n"
        ".4byte 1, " WORD "\n" DISTANCE_TO("described_list") ".popsection\n");

static void describe(const char* name, const char* begin, const char* end) {
  unw_dyn_info_t* info = &described.procedures[procedures];
  char* code = described_code + 256 * (procedures + 1);
  memcpy(code, begin, (size_t)(end - begin));
  __builtin___clear_cache(code, code + (end - begin));
  strcpy(described.names[procedures], name);
  info->start_ip = (unw_word_t)code;
  info->end_ip = info->start_ip + (unw_word_t)(end - begin);
  info->format = UNW_INFO_FORMAT_DYNAMIC;
  info->u.pi.name_ptr = (unw_word_t)described.names[procedures++];
  ++described_list.generation;
  info->next = described_list.first;
  if (info->next) info->next->prev = info;
  described_list.first = info;
  ++described_list.generation;
}

static void add_region(int insn_count, const unw_dyn_op_t* ops, size_t count) {
  unw_dyn_region_info_t* region = (unw_dyn_region_info_t*)&described.regions[regions++];
  unw_dyn_region_info_t** at = &described.procedures[procedures - 1].u.pi.regions;
  if (count > k_described_ops || regions > k_described_regions) abort();
  while (*at) at = &(*at)->next;
  *at = region;
  region->insn_count = insn_count;
  region->op_count = (uint32_t)count;
  memcpy(((char*)region) + offsetof(unw_dyn_region_info_t, op), ops, count * sizeof *ops);
}

static void describe_all(void) {
  described_code = mmap(0, k_described_code, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#define OP(tag, when, reg, value) _U_dyn_op(tag, _U_QP_TRUE, when, reg, value)
#define ADD(when, reg, value) OP(UNW_DYN_ADD, when, reg, value)
#define SAVE(when, reg, in) OP(UNW_DYN_SAVE_REG, when, reg, in)
#define SPILL(when, reg, offset) OP(UNW_DYN_SPILL_SP_REL, when, reg, offset)
#define SPILL_BY_FP(when, reg, offset) OP(UNW_DYN_SPILL_FP_REL, when, reg, offset)
#define POP(when, frames) OP(UNW_DYN_POP_FRAMES, when, 0, frames)
#define UNKNOWN UNW_DYN_ADD_UNKNOWN
#define PRESERVED(...)
#define TEMPLATE(name, text) describe("described_" #name, template_##name, template_##name##_end);
#define REGION(name, index, count, ...)                 \
  {                                                     \
    const unw_dyn_op_t ops[] = {__VA_ARGS__};           \
    add_region(count, ops, sizeof ops / sizeof ops[0]); \
  }
#include OF_CPU
}

static long (*described_function(int which))(function, long) {
#if defined __powerpc64__ && _CALL_ELF != 2
  memcpy(descriptors[which], (const void*)describe, sizeof descriptors[which]);
  descriptors[which][0] = (void*)described.procedures[which].start_ip;
  return (long (*)(function, long))descriptors[which];
#else
  return (long (*)(function, long))described.procedures[which].start_ip;
#endif
}

/* The address of its code. */
static function callee_of(function callee) {
#if defined __powerpc64__ && _CALL_ELF != 2
  return callee ? (function) * (void**)callee : callee;
#else
  return callee;
#endif
}

static const char* described_name(uintptr_t at) {
  for (int i = 0; i < k_procedures; ++i)
    if (at >= described.procedures[i].start_ip && at < described.procedures[i].end_ip) return described.names[i];
  return "";
}

#endif
