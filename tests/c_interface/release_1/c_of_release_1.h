/* Parts of <jitunwind/c.h> as its first release had them. Never changed: programs that were compiled with it are about.
 */
#ifndef JITUNWIND_C_OF_RELEASE_1_H
#define JITUNWIND_C_OF_RELEASE_1_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t ju_status;
typedef uint32_t ju_reg;
enum { JU_OK = 0, JU_END = 1, JU_BAD_HANDLE = 141, JU_CPU_HOST = 0, JU_X86_64_RBX = 0x3e0003 };
typedef struct ju_builder ju_builder;
typedef struct ju_description ju_description;
typedef struct ju_registration ju_registration;
typedef struct ju_error {
  size_t struct_size;
  ju_status code;
  uint64_t at;
  const char* remedy;
  char place[64];
  char text[512];
} ju_error;
typedef struct ju_code {
  size_t struct_size;
  uint64_t start;
  uint64_t size;
  const char* name;
  uint64_t lsda;
  uint64_t landing_pad_base;
  void* user;
} ju_code;
typedef struct ju_cursor {
  uint64_t words[160];
} ju_cursor;
typedef struct ju_frame {
  size_t struct_size;
  uint64_t pc;
  uint64_t sp;
  uint32_t depth;
  int32_t origin;
  int32_t is_guess;
  int32_t is_signal_frame;
  int32_t is_return_address;
} ju_frame;

ju_status ju_check_version(unsigned compiled_with, ju_error* error);
ju_status ju_describe(int32_t cpu, const char* name, ju_builder** builder, ju_error* error);
ju_status ju_push(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg);
ju_status ju_pop(ju_builder* builder, int64_t begin, int64_t end, ju_reg reg);
ju_status ju_build(const ju_builder* builder, ju_description** description, ju_error* error);
ju_status ju_builder_free(ju_builder* builder);
ju_status ju_description_free(ju_description* description);
ju_status ju_register(const ju_description* description, const ju_code* code, ju_registration** registration,
                      ju_error* error);
ju_status ju_cancel(ju_registration* registration, ju_error* error);
ju_status ju_cursor_here(ju_cursor* cursor, ju_error* error);
ju_status ju_cursor_step(ju_cursor* cursor, ju_error* error);
ju_status ju_frame_get(const ju_cursor* cursor, ju_frame* frame, ju_error* error);
ju_status ju_frame_name(const ju_cursor* cursor, char* into, size_t room, uint64_t* offset);
void* ju_frame_user(const ju_cursor* cursor);

#endif
