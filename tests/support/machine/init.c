// The first process of a machine that is started for one test. It runs the program that follows "--" on the kernel's
// command line, reports how the program ended, and switches the machine off.
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

static void mount_or_say(const char* type, const char* folder) {
  if (mount(type, folder, type, 0, NULL) != 0) perror(folder);
}

int main(int argc, char** argv) {
  (void)argc;
  mount_or_say("proc", "/proc");
  mount_or_say("sysfs", "/sys");
  mount_or_say("devtmpfs", "/dev");
  const pid_t program = fork();
  if (program == 0) {
    char* const environment[] = {"HOME=/tmp", "PATH=/bin", NULL};
    (void)!chdir("/tmp");
    execve(argv[1], argv + 1, environment);
    perror(argv[1]);
    _exit(127);
  }
  int status = 0;
  pid_t ended;
  while ((ended = wait(&status)) != program && ended != -1) continue;
  printf("machine: status %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  fflush(stdout);
  sync();
  reboot(RB_POWER_OFF);
}
