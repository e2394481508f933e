#include "examples/uwx_walk/stopped_process.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include <cstdio>
#include <cstring>
#include <fstream>

StoppedProcess::StoppedProcess(pid_t pid) : pid_(pid), files_(uwx_init()) {
  ::ptrace(PTRACE_GETREGS, pid, nullptr, &registers_);
}

StoppedProcess::~StoppedProcess() {
  uwx_release_symbol_cache(files_, symbols_);
  uwx_free(files_);
}

bool StoppedProcess::read(std::uint64_t at, void* into, std::size_t size) const {
  const iovec local{into, size}, remote{reinterpret_cast<void*>(at), size};
  return ::process_vm_readv(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

int StoppedProcess::copyin(int request, char* loc, std::uint64_t rem, int len, std::intptr_t tok) {
  const auto& self = *reinterpret_cast<StoppedProcess*>(tok);
  const user_regs_struct& r = self.registers_;
  // UWX_REG_GR(n): n is the DWARF number.
  const unsigned long long* const by_number[] = {&r.rax, &r.rdx, &r.rcx, &r.rbx, &r.rsi, &r.rdi, &r.rbp, &r.rsp, &r.r8,
                                                 &r.r9,  &r.r10, &r.r11, &r.r12, &r.r13, &r.r14, &r.r15, &r.rip};
  if (request != UWX_COPYIN_REG) return self.read(rem, loc, static_cast<std::size_t>(len)) ? len : 0;
  if (rem < UWX_REG_GR(0) || rem > UWX_REG_GR(16)) return 0;
  std::memcpy(loc, by_number[rem - UWX_REG_GR(0)], sizeof r.rax);
  return len;
}

int StoppedProcess::lookupip(int request, std::uint64_t ip, std::intptr_t tok, std::uint64_t** resultp) {
  auto& self = *reinterpret_cast<StoppedProcess*>(tok);
  if (request == UWX_LKUP_FREE) return 0;  // answer_ stays
  // A return address may be after the end of its function: the lookup is for the call before it.
  for (const std::uint64_t* said = *resultp; said[0] != UWX_KEY_END; said += 2)
    if (said[0] == UWX_KEY_CALLER) ip -= said[1];
  if (!self.find_module(ip)) return UWX_LKUP_NOTFOUND;
  return request == UWX_LKUP_LOOKUP ? self.find_table(resultp) : self.find_names(ip, resultp);
}

/// Lines "begin-end permissions offset device inode path".
bool StoppedProcess::find_module(std::uint64_t ip) {
  std::ifstream maps("/proc/" + std::to_string(pid_) + "/maps");
  Module last;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0, offset = 0;
    int path_at = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %*s %lx %*s %*s %n", &begin, &end, &offset, &path_at) < 3) continue;
    const std::string path = line.substr(static_cast<std::size_t>(path_at));
    if (offset == 0) last = {begin, path};
    if (ip < begin || ip >= end) continue;
    module_ = last;
    return !path.empty() && path == last.path;
  }
  return false;
}

/// The program headers are at the beginning of a module, and lead to its .eh_frame_hdr.
int StoppedProcess::find_table(std::uint64_t** resultp) {
  Elf64_Ehdr head;
  if (!read(module_.base, &head, sizeof head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
    return UWX_LKUP_NOTFOUND;
  std::uint64_t bias = module_.base, table = 0, size = 0;
  bool is_first = true;
  for (unsigned i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read(module_.base + head.e_phoff + i * sizeof segment, &segment, sizeof segment)) return UWX_LKUP_ERR;
    if (segment.p_type == PT_LOAD && is_first) bias -= segment.p_vaddr, is_first = false;
    if (segment.p_type == PT_GNU_EH_FRAME) table = segment.p_vaddr, size = segment.p_memsz;
  }
  if (size == 0) return UWX_LKUP_NOTFOUND;
  const std::uint64_t answer[] = {UWX_KEY_TBASE, module_.base,        UWX_KEY_USTART, bias + table,
                                  UWX_KEY_UEND,  bias + table + size, UWX_KEY_END};
  std::memcpy(answer_, answer, sizeof answer);
  *resultp = answer_;
  return UWX_LKUP_UTABLE;
}

int StoppedProcess::find_names(std::uint64_t ip, std::uint64_t** resultp) {
  char *function = nullptr, *file = nullptr;
  std::uint64_t offset = 0;
  int line = 0;
  (void)uwx_find_source_info(files_, &symbols_, module_.path.data(), ip - module_.base, 0, 0, nullptr, &function,
                             &offset, &file, &line, nullptr);
  const std::uint64_t answer[] = {UWX_KEY_MODULE,    (std::uint64_t)module_.path.c_str(),
                                  UWX_KEY_FUNC,      (std::uint64_t)function,
                                  UWX_KEY_FUNCSTART, ip - offset,
                                  UWX_KEY_SRCFILE,   (std::uint64_t)file,
                                  UWX_KEY_LINENUM,   (std::uint64_t)line,
                                  UWX_KEY_END};
  std::memcpy(answer_, answer, sizeof answer);
  *resultp = answer_;
  return UWX_LKUP_SYMINFO;
}
