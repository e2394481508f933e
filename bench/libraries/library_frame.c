// What each of many libraries holds: one function, which calls the next of those in the context (bench::Context). ROOM
// bytes are its frame's.
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
