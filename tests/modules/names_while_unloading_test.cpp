// Questions about an address whose library another thread unloads meanwhile: the answer is right or missing, and
// nothing faults. The asking thread is stopped in each of its system calls in turn. The library is unloaded when that
// call has proven what it can, and before it returns.
#include <jitunwind/jitunwind.h>
#include <libunwind.h>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "jitunwind/sdk/local_space.h"
#include "tests/support/allowed_calls.h"

namespace jitunwind::test {
namespace {

std::optional<Frame> g_frame;  // of the library's function, as a walk from within found it

[[gnu::noinline]] void keep_second_frame() {
  int depth = 0;
  for (const Frame& frame : walk_here())
    if (depth++ == 1) g_frame.emplace(frame);
}

/// The library, and an address in it.
class Library {
 public:
  Library() : handle_(::dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL)) {
    const auto function = reinterpret_cast<void (*)(void (*)())>(::dlsym(handle_, "room_call"));
    at_ = reinterpret_cast<std::uintptr_t>(function) + 1;
    function(&keep_second_frame);
  }
  ~Library() { unload(); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  Addr at() const { return at_; }
  void unload() {
    if (handle_) ::dlclose(std::exchange(handle_, nullptr));
  }

 private:
  void* handle_;
  Addr at_ = 0;
};

using Question = std::function<std::string(Addr at)>;

std::string named(int returned, const char* text) { return returned == 0 ? text : ""; }

std::string name_by_address(Addr at) {
  std::array<char, 64> text;
  ProcedureName name;
  return find_local_name(CodeAddress::interrupted(at), text, name) ? text.data() : "";
}
std::string name_by_ip(Addr at) {
  std::array<char, 64> text;
  unw_word_t offset = 0;
  const int returned = unw_get_proc_name_by_ip(unw_local_addr_space, at, text.data(), text.size(), &offset, nullptr);
  return named(returned, text.data());
}
std::string procedure_by_ip(Addr at) {
  unw_proc_info_t info;
  const int returned = unw_get_proc_info_by_ip(unw_local_addr_space, at, &info, nullptr);
  return returned == 0 && info.start_ip == at - 1 && info.end_ip > at ? "room_call" : named(returned, "wrong");
}
std::string file_by_ip(Addr at) {
  std::array<char, 512> text;
  unw_word_t offset = 0;
  const int returned = unw_get_elf_filename_by_ip(unw_local_addr_space, at, text.data(), text.size(), &offset, nullptr);
  const std::string path = named(returned, text.data());
  return path == PLUGIN ? "room_call" : path;
}
std::string name_of_frame(Addr) {
  std::array<char, 64> text;
  return g_frame->raw_name(text) ? text.data() : "";
}
std::string procedure_of_frame(Addr at) {
  const auto found = g_frame->procedure();
  if (!found) return "";
  return found->range.begin == at - 1 && found->range.contains(g_frame->pc()) ? "room_call" : "wrong";
}

/// System calls that a lookup makes.
constexpr std::array<unsigned, 10> k_stops{
    SYS_rt_sigprocmask, SYS_process_vm_readv, SYS_getpid,   SYS_msync, SYS_openat, SYS_pread64,
    SYS_close,          SYS_newfstatat,       SYS_readlink, SYS_mmap};
constexpr long k_done = SYS_getppid;  // by which the thread tells that it has an answer

int listen_to_this_thread() {
  std::vector<unsigned> stops(k_stops.begin(), k_stops.end());
  stops.push_back(k_done);
  auto program = answers(stops, SECCOMP_RET_USER_NOTIF, SECCOMP_RET_ALLOW);
  return install_and_listen(program);
}

/// A thread that answers one question, stopping at its system calls.
class AskingThread {
 public:
  AskingThread(const Question& question, Addr at) {
    std::promise<int> listener;
    auto listens = listener.get_future();
    thread_ = std::thread([this, &question, at, &listener] {
      listener.set_value(listen_to_this_thread());
      answer_ = question(at);
      ::syscall(k_done);
    });
    listener_ = listens.get();
    EXPECT_GE(listener_, 0) << std::strerror(errno);
  }
  /// Nobody listens to the thread's end.
  ~AskingThread() {
    ::close(listener_);
    thread_.join();
  }
  AskingThread(const AskingThread&) = delete;
  AskingThread& operator=(const AskingThread&) = delete;

  /// Makes the thread wait in a system call of its lookup. Returns false if it has the answer.
  bool stop() {
    request_ = {};
    EXPECT_EQ(::ioctl(listener_, SECCOMP_IOCTL_NOTIF_RECV, &request_), 0) << std::strerror(errno);
    return request_.data.nr != k_done;
  }
  void go_on() { answer_call({request_.id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE}); }
  /// Makes the call on behalf of the thread, in the same process, and returns when `meanwhile` was done.
  template <class Do>
  void go_on_after(Do meanwhile) {
    const auto& [nr, arch, ip, args] = request_.data;
    const long result = ::syscall(nr, args[0], args[1], args[2], args[3], args[4], args[5]);
    const int error = result == -1 ? -errno : 0;
    meanwhile();
    answer_call({request_.id, error == 0 ? result : 0, error, 0});
  }
  /// Precondition: the thread has the answer.
  const std::string& answer() const { return answer_; }

 private:
  void answer_call(seccomp_notif_resp response) {
    EXPECT_EQ(::ioctl(listener_, SECCOMP_IOCTL_NOTIF_SEND, &response), 0) << std::strerror(errno);
  }

  std::string answer_;
  int listener_ = -1;
  seccomp_notif request_{};
  std::thread thread_;
};

struct Asked {
  const char* what;
  std::string (*question)(Addr);
};
constexpr std::array k_of_addresses{
    Asked{"find_local_name", name_by_address}, Asked{"unw_get_proc_name_by_ip", name_by_ip},
    Asked{"unw_get_proc_info_by_ip", procedure_by_ip}, Asked{"unw_get_elf_filename_by_ip", file_by_ip}};
[[maybe_unused]] constexpr std::array k_of_frames{Asked{"Frame_raw_name", name_of_frame},
                                                  Asked{"Frame_procedure", procedure_of_frame}};
constexpr auto k_name = [](const testing::TestParamInfo<Asked>& info) { return std::string(info.param.what); };

#ifndef JITUNWIND_TEST_SANITIZED
class NamesWhileUnloading : public testing::TestWithParam<Asked> {};
INSTANTIATE_TEST_SUITE_P(OfAddresses, NamesWhileUnloading, testing::ValuesIn(k_of_addresses), k_name);
INSTANTIATE_TEST_SUITE_P(OfFrames, NamesWhileUnloading, testing::ValuesIn(k_of_frames), k_name);

TEST_P(NamesWhileUnloading, AreRightOrNone) {
  const Question question = GetParam().question;
  unsigned answered = 0, calls = 0;
  for (bool was_unloaded = true; was_unloaded; ++calls) {
    Library library;
    EXPECT_EQ(question(library.at()), "room_call");
    AskingThread asking(question, library.at());
    unsigned seen = 0;
    was_unloaded = false;
    while (asking.stop()) {
      if (seen++ != calls) {
        asking.go_on();
        continue;
      }
      asking.go_on_after([&] { library.unload(); });
      was_unloaded = true;
    }
    if (!asking.answer().empty()) {
      EXPECT_EQ(asking.answer(), "room_call") << "unloaded at system call " << calls;
      ++answered;
    }
  }
  EXPECT_GE(calls, 2u) << "it is unloaded in between";
  EXPECT_GE(answered, 1u) << "once it stayed";
}

#endif

/// Asks without stops.
class NamesInAStorm : public testing::TestWithParam<Asked> {};
INSTANTIATE_TEST_SUITE_P(OfAddresses, NamesInAStorm, testing::ValuesIn(k_of_addresses), k_name);

TEST_P(NamesInAStorm, AreRightOrNone) {
  std::atomic<Addr> at{0};
  std::atomic<bool> stop{false};
  std::thread loads([&] {
    while (!stop) {
      const Library library;
      at = library.at();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  while (at == 0) std::this_thread::yield();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (std::chrono::steady_clock::now() < end) {
    const std::string answer = GetParam().question(at);
    EXPECT_TRUE(answer.empty() || answer == "room_call") << answer;
  }
  stop = true;
  loads.join();
}

}  // namespace
}  // namespace jitunwind::test
