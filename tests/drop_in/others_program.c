/* Functions that libunwind 1.6 exports beside walks: they read LEB128 numbers and, with an argument, resume at a
   context. */
#include <stdio.h>

#include "release_1_6.h"

uint64_t _ReadULEB(unsigned char** at);
uint64_t _ReadSLEB(unsigned char** at);
int REMOTE(setcontext)(const ucontext_t* context);

/* Numbers of one to ten bytes, with and without a sign, and one that is longer than it need be. */
static unsigned char numbers[][11] = {{0x00},
                                      {0x3f},
                                      {0x40},
                                      {0x7f},
                                      {0x80, 0x01},
                                      {0xff, 0x7f},
                                      {0xe5, 0x8e, 0x26},
                                      {0x9b, 0xf1, 0x59},
                                      {0x82, 0x80, 0x00},
                                      {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
                                      {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f}};

int main(int argc, char** argv) {
  ucontext_t context;
  volatile int times = 0;
  size_t i;
  (void)argv;
  for (i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
    unsigned char *behind = numbers[i], *same = numbers[i];
    const unsigned long without_sign = _ReadULEB(&behind);
    const long with_sign = (long)_ReadSLEB(&same);
    printf("%d %d: %lx %ld\n", (int)(behind - numbers[i]), (int)(same - numbers[i]), without_sign, with_sign);
  }
  if (argc < 2) return 0;
  REMOTE(getcontext)(&context);
  printf("here %d\n", ++times);
  fflush(stdout);
  if (times < 3) REMOTE(setcontext)(&context);
  return 0;
}
