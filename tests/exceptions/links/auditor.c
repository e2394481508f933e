/* An auditor of the dynamic linker (rtld-audit(7)) that wants to see every call, so that jump slots stay as they are.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>

unsigned int la_version(unsigned int version) { return version; }

unsigned int la_objopen(struct link_map* map, Lmid_t space, uintptr_t* cookie) {
  (void)map, (void)space, (void)cookie;
  return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

uintptr_t la_symbind64(Elf64_Sym* symbol, unsigned int index, uintptr_t* from, uintptr_t* to, unsigned int* flags,
                       const char* name) {
  (void)index, (void)from, (void)to, (void)flags, (void)name;
  return symbol->st_value;
}

Elf64_Addr la_x86_64_gnu_pltenter(Elf64_Sym* symbol, unsigned int index, uintptr_t* from, uintptr_t* to,
                                  La_x86_64_regs* registers, unsigned int* flags, const char* name,
                                  long int* frame_size) {
  (void)index, (void)from, (void)to, (void)registers, (void)flags, (void)name, (void)frame_size;
  return symbol->st_value;
}
