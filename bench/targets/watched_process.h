// A process with stacks to look at: watched.cpp.
#pragma once

#include <sys/types.h>

#include <string>

namespace bench {

class Watched {
 public:
  explicit Watched(const std::string& arguments);
  ~Watched();
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  pid_t process() const { return process_; }
  /// Cancels a procedure and registers it again. Precondition: the process runs.
  void change() const;
  void stop();

 private:
  pid_t process_ = 0;
  int in_ = -1, out_ = -1;
  bool is_stopped_ = false;
};

/// Returns the process with these arguments. It lives until the program ends.
Watched& watched(const std::string& arguments);

}  // namespace bench
