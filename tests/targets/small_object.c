// A program, and a library that somebody maps, of so little code that all of it may be on the file's first page. It
// stands still, or faults where it is told to. Without a C library, and without relocations.
#define USED __attribute__((noinline, used, visibility("default")))

// The kernel begins at start, which has the number of arguments on the stack. Whoever maps it as a library calls what
// is 64 bytes behind.
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

// In a segment of its own where there are several of code. The size of its frame is not known to those who follow code.
__attribute__((section(".text.second"))) USED int middle(long arguments) {
  volatile char* const room = __builtin_alloca((unsigned long)(arguments * 100));
  room[arguments] = 1;
  return stand(arguments) + room[1];
}

// The page that this is on becomes the process's own, and is in its core.
extern volatile int written;

// Builds differ in nothing but the size of a frame.
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
