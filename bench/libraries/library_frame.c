// The contents of each of many libraries: one function, which calls the next one in the context (bench::Context). Its
// frame has ROOM bytes.
struct Context;
typedef void (*StackFunction)(struct Context*);
struct Context {
  const StackFunction* next;
};

void library_frame(struct Context* context) {
  volatile char room[ROOM];
  room[0] = 0;
  (*context->next++)(context);
  (void)room[0];
}
