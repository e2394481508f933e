/* Runs a program to which the kernel refuses memory for tables: anonymous memory of 64 KiB or more that is mapped
   anywhere, by the flags that this library asks for its tables with. argv[1] is the program, and argv[2] its argument.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARGUMENT(i) ((unsigned)(offsetof(struct seccomp_data, args) + 8 * (i)))

int main(int argc, char** argv) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(3)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MAP_PRIVATE | MAP_ANONYMOUS, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(1)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 65536, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    return perror("seccomp"), 1;
  if (mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
    return printf("nothing is refused\n"), 1;
  execv(argv[1], argv + 1);
  return perror(argv[1]), 1;
}
