/* A library that is loaded where code made at run time was. Its function calls through, as that code does; ROOM is the
   size of its frame. */
struct storm_call {
  void* pc;
  void* sp;
};
struct storm_shadow {
  struct storm_call* top;
};

void* storm_plugin_call(void* (*function)(void*), void* argument, struct storm_shadow* shadow);

void* storm_plugin_call(void* (*function)(void*), void* argument, struct storm_shadow* shadow) {
  volatile char room[ROOM];
  room[0] = 0;
  struct storm_call* const top = shadow->top;
  top->pc = __builtin_return_address(0);
  top->sp = __builtin_dwarf_cfa();
  __asm__ volatile("" ::: "memory");
  shadow->top = top + 1;
  void* const result = function(argument);
  shadow->top = top;
  __asm__ volatile("" ::: "memory");
  room[1] = room[0];
  return result;
}
