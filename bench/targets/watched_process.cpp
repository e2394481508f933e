#include "bench/targets/watched_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <map>
#include <memory>

extern char** environ;

namespace bench {

Watched::Watched(const std::string& arguments) {
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) std::abort();
  const std::string command = "exec '" WATCHED_PROGRAM "' " + arguments;
  std::array<char*, 4> argv{const_cast<char*>("sh"), const_cast<char*>("-c"), const_cast<char*>(command.c_str()),
                            nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  if (::posix_spawn(&process_, "/bin/sh", &actions, nullptr, argv.data(), environ) != 0) std::abort();
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(in[0]), ::close(out[1]);
  in_ = in[1], out_ = out[0];
  char said = 0;
  if (::read(out_, &said, 1) != 1) std::abort();
  ::usleep(50'000);  // gives the thread that wrote the byte time to come to rest
}

Watched::~Watched() {
  ::close(in_), ::close(out_);
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

void Watched::change() const {
  char said = 0;
  if (::write(in_, "c", 1) != 1 || ::read(out_, &said, 1) != 1) std::abort();
}

void Watched::stop() {
  if (is_stopped_) return;
  if (::ptrace(PTRACE_SEIZE, process_, nullptr, nullptr) != 0) std::abort();
  ::ptrace(PTRACE_INTERRUPT, process_, nullptr, nullptr);
  ::waitpid(process_, nullptr, __WALL);
  is_stopped_ = true;
}

Watched& watched(const std::string& arguments) {
  static std::map<std::string, std::unique_ptr<Watched>> all;
  auto& one = all[arguments];
  if (!one) one = std::make_unique<Watched>(arguments);
  return *one;
}

}  // namespace bench
