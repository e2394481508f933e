// Between munmap() and the end of dlclose() the dynamic linker still answers for addresses that are unmapped or already
// reused. Code made at run time at such an address is walked, named and thrown through as anywhere. A filter stops the
// unloading thread at its munmap(), which is made on its behalf.
#include <jitunwind/jitunwind.h>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "jitunwind/sdk/local_space.h"
#include "tests/support/allowed_calls.h"
#include "tests/support/jit_frame.h"

namespace jitunwind::test {
namespace {

constexpr Addr k_page = 4096;

/// Makes the calling thread wait in munmap() of a mapping that begins there, until somebody answers the notification
/// that is read from the descriptor (seccomp(2), SECCOMP_RET_USER_NOTIF).
int stop_at_munmap_of(Addr begin) {
  const auto low = static_cast<std::uint32_t>(begin), high = static_cast<std::uint32_t>(begin >> 32);
  constexpr auto k_address = static_cast<std::uint32_t>(offsetof(seccomp_data, args));
  std::array<sock_filter, 8> filter{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, k_address),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, low, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, k_address + 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, high, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  return install_and_listen(filter);
}

struct Seen {
  std::vector<std::string> names;
  std::string why;
  std::size_t listed = 0;
};
/// Records the calling frames.
void* walk_into(void* into) {
  Seen& seen = *static_cast<Seen*>(into);
  Walk walk = walk_here();
  for (const Frame& frame : walk) {
    seen.names.push_back(frame.name());
    (void)frame.procedure();
  }
  seen.why = walk.why();
  std::array<void*, 128> frames;
  seen.listed = backtrace(frames);
  return nullptr;
}

void expect_whole_walks_through(const JitFrame& frame) {
  for (int time = 0; time < 3; ++time) {
    Seen seen;
    frame(&walk_into, &seen);
    ASSERT_GT(seen.names.size(), 2u);
    EXPECT_EQ(seen.names[1], "jit_frame");
    EXPECT_EQ(seen.names.back(), "_start");
    EXPECT_EQ(seen.why, "complete");
    EXPECT_EQ(seen.listed + 1, seen.names.size()) << "all but the one that walked";
  }
}
void expect_throws_through(const JitFrame& frame) {
  for (int time = 0; time < 3; ++time) EXPECT_THROW(frame([](void*) -> void* { throw 7; }, nullptr), int);
}

/// A library that is being unloaded, from its munmap() on to the end of this object.
class UnloadedLibrary {
 public:
  UnloadedLibrary() {
    // The first registration of a process waits for the linker's lock, and other first uses may map memory, which might
    // take the library's place.
    const JitFrame first;
    expect_whole_walks_through(first);
    expect_throws_through(first);
    std::promise<int> stopped;
    thread_ = std::thread([this, &stopped] {
      void* const library = ::dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
      void* const function = ::dlsym(library, "room_call");
      EXPECT_EQ(::_dl_find_object(function, &object_), 0);
      // All caches of modules know the library.
      reinterpret_cast<void (*)(void (*)())>(function)([] {
        for (int i = 0; i < 2; ++i) (void)walk_here();
        std::array<void*, 64> frames;
        (void)backtrace(frames);
      });
      stopped.set_value(stop_at_munmap_of(begin()));
      ::dlclose(library);
    });
    listener_ = stopped.get_future().get();
    EXPECT_GE(listener_, 0) << std::strerror(errno);
    EXPECT_EQ(::ioctl(listener_, SECCOMP_IOCTL_NOTIF_RECV, &request_), 0) << std::strerror(errno);
    EXPECT_EQ(request_.data.args[0], begin());
    ::munmap(reinterpret_cast<void*>(request_.data.args[0]), request_.data.args[1]);
    dl_find_object found;
    EXPECT_EQ(::_dl_find_object(reinterpret_cast<void*>(begin() + k_page), &found), 0) << "or nothing is tested";
  }
  ~UnloadedLibrary() {
    seccomp_notif_resp done{};
    done.id = request_.id;
    EXPECT_EQ(::ioctl(listener_, SECCOMP_IOCTL_NOTIF_SEND, &done), 0);
    thread_.join();
    ::close(listener_);
  }
  UnloadedLibrary(const UnloadedLibrary&) = delete;
  UnloadedLibrary& operator=(const UnloadedLibrary&) = delete;

  Addr begin() const { return reinterpret_cast<std::uintptr_t>(object_.dlfo_map_start); }
  Addr end() const { return (reinterpret_cast<std::uintptr_t>(object_.dlfo_map_end) + k_page - 1) & ~(k_page - 1); }

 private:
  std::thread thread_;
  dl_find_object object_{};
  int listener_ = -1;
  seccomp_notif request_{};
};

TEST(UnloadedLibrary, RegisteredCodeInItsPlaceIsWalked) {
  const UnloadedLibrary library;
  for (Addr page = library.begin(); page < library.end(); page += k_page) {
    const JitFrame frame(JitFrame::On{page});
    expect_whole_walks_through(frame);
    expect_throws_through(frame);
  }
}

/// The whole mapped range is mapped again.
TEST(UnloadedLibrary, RegisteredCodeThatFillsItsPlaceIsWalked) {
  const UnloadedLibrary library;
  std::vector<std::unique_ptr<JitFrame>> frames;
  for (Addr page = library.begin(); page < library.end(); page += k_page)
    frames.push_back(std::make_unique<JitFrame>(JitFrame::On{page}));
  for (const auto& frame : frames) {
    expect_whole_walks_through(*frame);
    expect_throws_through(*frame);
  }
}

TEST(UnloadedLibrary, UnregisteredCodeInItsPlaceEndsTheWalk) {
  const UnloadedLibrary library;
  for (Addr page = library.begin(); page < library.end(); page += k_page) {
    JitFrame frame(JitFrame::On{page});
    ASSERT_TRUE(frame.registration().cancel());
    Seen seen;
    frame(&walk_into, &seen);
    ASSERT_GE(seen.names.size(), 2u);
    EXPECT_EQ(seen.names[1], "");
  }
}

TEST(UnloadedLibrary, NothingIsSaidOfItsAddresses) {
  const UnloadedLibrary library;
  for (Addr at = library.begin(); at < library.end(); at += 512) {
    std::array<char, 64> name;
    ProcedureName found;
    EXPECT_FALSE(find_local_name(CodeAddress::interrupted(at), name, found));
  }
}

// covers: SF10
TEST(UnloadedLibrary, AChildForkedMeanwhileWalksAndThrows) {
  const UnloadedLibrary library;
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    const JitFrame frame(JitFrame::On{library.begin() + k_page});
    expect_whole_walks_through(frame);
    expect_throws_through(frame);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace jitunwind::test
