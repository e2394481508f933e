// Another process of this machine, stopped by ptrace, behind the callbacks of Unwind Express.
#pragma once

#include <uwx.h>

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <string>

class StoppedProcess {
 public:
  explicit StoppedProcess(pid_t pid);
  ~StoppedProcess();
  StoppedProcess(const StoppedProcess&) = delete;
  StoppedProcess& operator=(const StoppedProcess&) = delete;

  std::uint64_t ip() const { return registers_.rip; }
  std::uint64_t sp() const { return registers_.rsp; }

  // The token is the address of this object.
  static int copyin(int request, char* loc, std::uint64_t rem, int len, std::intptr_t tok);
  static int lookupip(int request, std::uint64_t ip, std::intptr_t tok, std::uint64_t** resultp);

 private:
  /// A file that is mapped around an address.
  struct Module {
    std::uint64_t base = 0;
    std::string path;
  };

  bool read(std::uint64_t at, void* into, std::size_t size) const;
  bool find_module(std::uint64_t ip);
  int find_table(std::uint64_t** resultp);
  int find_names(std::uint64_t ip, std::uint64_t** resultp);

  pid_t pid_;
  user_regs_struct registers_{};
  Module module_;
  uwx_env* files_;  // for uwx_find_source_info alone
  uwx_symbol_cache* symbols_ = nullptr;
  std::uint64_t answer_[16] = {};
};
