// A program, and a library that other programs map, with so little code that all of it may be on the file's first page.
// It stands still, or faults on request. It has no C library and no relocations.
#define USED __attribute__((noinline, used, visibility("default")))

// The kernel enters at start, with the number of arguments on the stack. Programs that map it as a library call the
// code 64 bytes behind start.
__asm__(
    ".text\n"
    ".balign 64\n"
    ".globl start\n"
    ".type start, @function\n"
    "start:\n"
    "  .cfi_startproc\n"
    "  .cfi_undefined rip\n"
    "  mov (%rsp), %rdi\n"
    "  call first\n"
    "  hlt\n"
    "  .cfi_endproc\n"
    "  .size start, .-start\n"
    ".balign 64\n"
    ".globl from_outside\n"
    ".type from_outside, @function\n"
    "from_outside:\n"
    "  .cfi_startproc\n"
    "  sub $8, %rsp\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  call first\n"
    "  add $8, %rsp\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  ret\n"
    "  .cfi_endproc\n"
    "  .size from_outside, .-from_outside\n");

static long call_kernel(long number, long a, const void* b, long c) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
}

USED int stand(long arguments) {
  const char ready[] = {'r', 'e', 'a', 'd', 'y', '\n'};
  call_kernel(1, 1, ready, sizeof ready);
  while (arguments == 1) call_kernel(34, 0, ready, 0);
  *(volatile int*)0x4710 = 1;
  return 1;
}

// The function is in its own segment if there are several of code. A reader of instructions cannot tell the size of its
// frame.
__attribute__((section(".text.second"))) USED int middle(long arguments) {
  volatile char* const room = __builtin_alloca((unsigned long)(arguments * 100));
  room[arguments] = 1;
  return stand(arguments) + room[1];
}

// The page with this variable becomes the process's own, and is in its core.
extern volatile int written;

// Builds differ only in the size of a frame.
#ifndef ROOM
#define ROOM 48
#endif
USED int first(long arguments) {
  volatile char room[ROOM];
  room[arguments & 7] = 2;
  written = 2;
  return middle(arguments) + room[0];
}

volatile int written = 1;
