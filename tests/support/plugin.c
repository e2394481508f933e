/* A library with exported and static functions. SECOND only gives them other names, of the same length. */
#include <stddef.h>

#ifdef SECOND
#define plugin_hidden second_hidden
#define plugin_entry second_entry
#endif

__attribute__((noinline)) static int plugin_hidden(int (*call)(void), int value) { return call() + value; }

int plugin_entry(int (*call)(void), int value) { return plugin_hidden(call, value) * 3; }

/* An address inside the static function, which no dynamic symbol names. */
const void* plugin_hidden_address(void) { return (const char*)(size_t)&plugin_hidden + 2; }

const void* plugin_entry_address(void) { return (const char*)(size_t)&plugin_entry + 2; }
