// A library that a program needs, and whose text is taken away while walks go through it. It is compiled with call
// frame information and without.
void THROUGH(void (*function)(void));

void THROUGH(void (*function)(void)) {
  volatile char room[64];
  room[0] = 1;
  function();
  room[1] = room[0];
}
