// A process with stacks, for those who look at it: watched.cpp.
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
  /// A procedure is cancelled and registered. Precondition: the process runs.
  void change() const;
  void stop();

 private:
  pid_t process_ = 0;
  int in_ = -1, out_ = -1;
  bool is_stopped_ = false;
};

/// The one of these arguments, which lives until the end.
Watched& watched(const std::string& arguments);

}  // namespace bench
