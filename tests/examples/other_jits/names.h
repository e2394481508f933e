/* Names of other JITs that examples/other_jits use, so that these are compiled here, too. They run with the JITs only.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef NAMES_OF_mir
typedef uint32_t MIR_reg_t;
typedef int64_t MIR_disp_t;
enum { MIR_OP_VAR, MIR_OP_VAR_MEM, MIR_OP_INT, MIR_MOV, MIR_ADD, MIR_SUB, MIR_T_UNDEF };
enum { SP_HARD_REG = 4, FP_HARD_REG = 5, R15_HARD_REG = 15 };
typedef struct MIR_op {
  int mode;
  union {
    MIR_reg_t var;
    int64_t i;
    struct {
      MIR_reg_t base;
      MIR_disp_t disp;
    } var_mem;
  } u;
} MIR_op_t;
typedef struct MIR_insn {
  int code;
  unsigned nops;
  MIR_op_t ops[3];
} * MIR_insn_t;
int target_call_used_hard_reg_p(MIR_reg_t reg, int type);
#endif

#ifdef NAMES_OF_sljit
enum { SLJIT_NUMBER_OF_SCRATCH_REGISTERS = 9, SLJIT_S0 = 14, SLJIT_GP_REGISTER = 0 };
struct sljit_label;
struct sljit_compiler {
  int options, scratches, saveds, local_size;
};
int sljit_get_register_index(int type, int reg);
struct sljit_label* sljit_emit_label(struct sljit_compiler* compiler);
uintptr_t sljit_get_label_addr(struct sljit_label* label);
uintptr_t sljit_get_generated_code_size(struct sljit_compiler* compiler);
#endif

#ifdef NAMES_OF_ir
typedef uint64_t ir_regset;
typedef struct ir_ctx {
  uint32_t flags;
  uint64_t used_preserved_regs;
  int32_t stack_frame_size, call_stack_size, fixed_stack_red_zone;
} ir_ctx;
typedef struct ir_backend_data {
  void* dasm_state;
  int jit_label, jit_returns; /* the example adds these */
} ir_backend_data;
enum { IR_REG_GP_FIRST = 0, IR_REG_GP_LAST = 15, IR_REG_RBP = 5, IR_USE_FRAME_POINTER = 1, IR_SKIP_PROLOGUE = 2 };
#define IR_REGSET_GP ((ir_regset)0xffff)
#define IR_REGSET_INTERSECTION(a, b) ((a) & (b))
#define IR_REGSET_IN(set, reg) (((set) >> (reg)) & 1)
int dasm_getpclabel(void** state, unsigned label);
void* ir_mem_malloc(size_t size);
void ir_mem_free(void* memory);
#endif

#ifdef NAMES_OF_libjit
enum { X86_64_RBP = 5, JIT_NAME = 1 };
typedef struct jit_gencode {
  unsigned char* code_end;
} * jit_gencode_t;
typedef struct jit_function { /* the example adds its member */
  struct ju_jit_known* known;
} * jit_function_t;
void* jit_function_get_meta(jit_function_t function, int type);
#endif

#ifdef NAMES_OF_luajit
enum { RID_EBX = 3, RID_EBP = 5, RID_R12D = 12, RID_R13D, RID_R14D, RID_R15D, XI_JMP = 0xe9 };
enum { REF_BASE = 0x8000, CFRAME_SIZE_JIT = 96 };
typedef struct IRIns {
  uint16_t op1;
} IRIns;
typedef struct GCtrace { /* the example adds the last two members */
  IRIns* ir;
  uint32_t szmcode, mcloop;
  uint8_t* mcode;
  uint16_t spadjust, traceno;
  uint8_t* jit_built;
  struct ju_jit_known* jit_known;
} GCtrace;
typedef uint32_t TraceNo;
typedef struct jit_State {
  GCtrace** trace;
} jit_State;
#define traceref(J, n) ((J)->trace[n])
int err_unwind_jit();
#endif

#ifdef NAMES_OF_libtcc
#include <link.h>
#define ELFW(name) ELF64_##name
typedef struct Section {
  uint8_t* data;
  size_t data_offset;
  int sh_num;
  struct Section* link;
} Section;
typedef struct TCCState { /* the example adds the last two members */
  Section *symtab, *text;
  struct ju_jit_known** jit_known;
  int jit_known_count;
} TCCState;
#define symtab_section s1->symtab
#define text_section s1->text
void dynarray_add(void* array, int* count, void* added);
void dynarray_reset(void* array, int* count);
#endif
