/* Libraries of one layout whose frames differ in size. */
void room_call(void (*function)(void));

void room_call(void (*function)(void)) {
  volatile char room[ROOM];
  room[0] = 0;
  function();
  room[1] = room[0];
}
