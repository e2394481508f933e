// Arguments of __register_frame that describe no procedure, or that disappear while they are read.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "jitunwind/adapters/listen/frames/told_frames_p.h"
#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/rows/dwarf_constants_internal.h"
#include "tests/builders/placed_eh_frame.h"
#include "tests/builders/registered_code.h"
#include "tests/listen/frame_functions.h"
#include "tests/listen/told_frame.h"
#include "tests/listen/told_section.h"
#include "tests/support/allowed_calls.h"
#include "tests/support/failing_memory.h"

extern "C" const void* _Unwind_Find_FDE(const void* pc, void* bases);

namespace jitunwind::test {
namespace {

constexpr Addr k_page = 0x1000;

/// The effect of one call on a section, which is taken back.
struct Effect {
  std::size_t procedures;
  std::uint64_t refused, handed_on;
  std::string row;  ///< of k_code + 4
  bool operator==(const Effect&) const = default;
  friend void PrintTo(const Effect& effect, std::ostream* out) {
    *out << effect.procedures << " heard, " << effect.refused << " refused, " << effect.handed_on << " handed on, "
         << effect.row;
  }
};
Effect tell(EhFrame& frames) {
  const void* const begin = at(frames.placed().begin);
  const ListenStatus before = listen_status();
  __register_frame(begin);
  const ListenStatus status = listen_status();
  const Effect effect{registered(), status.refused - before.refused, status.handed_on - before.handed_on,
                      RegisteredCode().row_at(k_code + 4)};
  __deregister_frame(begin);
  EXPECT_EQ(registered(), 0u);
  return effect;
}
const Effect k_believed{1, 0, 0, k_row}, k_disbelieved{0, 1, 1, "no row"};

/// Adds an FDE with "zPLR" and absolute pointers, or with "zPR".
void put_catching(EhFrame& frames, Addr code, std::uint64_t size, Addr lsda = 0) {
  Bytes data = Bytes{dwarf::pe_absptr}.u64(0x1234);
  if (lsda != 0) data.u8(dwarf::pe_absptr);
  const Addr cie = frames.section.cie(host_cie(lsda != 0 ? "zPLR" : "zPR", data.u8(dwarf::pe_absptr)));
  Bytes body = frames.section.bytes().u64(code).u64(size);
  if (lsda != 0)
    body.u8(8).u64(lsda);
  else
    body.u8(0);
  frames.section.fde(cie, body.add(saved_register()));
  frames.section.terminator();
}

/// A catch-all FDE of an area covers one page or more and ends with a page, and has no landing table.
TEST(HostileFrames, AreBelievedWhereTheyCanBeThoseOfAProcedure) {
  EhFrame area, with_lsda, small, within;
  put_catching(area, k_code, k_page);
  put_catching(with_lsda, k_code, k_page, 0x5678);
  put_catching(small, k_code, k_page - 16);
  put_catching(within, k_code + k_page / 2 + k_page / 4, k_page / 4);
  EXPECT_EQ(tell(area), k_disbelieved);
  EXPECT_EQ(tell(with_lsda), k_believed);
  EXPECT_EQ(tell(small), k_believed);
  EXPECT_EQ(tell(within), (Effect{1, 0, 0, "no row"})) << "less than a page, to the end of one";
}

TEST(HostileFrames, ClaimNoMoreThanAProcedureCanBe) {
  constexpr std::uint64_t k_most = std::uint64_t{1} << 30;
  EhFrame most, more, wraps;
  most.fde(k_code, k_most);
  more.fde(k_code, k_most + 1);
  wraps.fde(k_code, ~std::uint64_t{0});
  for (EhFrame* const frames : {&most, &more, &wraps}) frames->section.terminator();
  EXPECT_EQ(tell(most), k_believed);
  EXPECT_EQ(tell(more), k_disbelieved);
  EXPECT_EQ(tell(wraps), (Effect{0, 1, 0, "no row"}));
}

/// Linkers leave such FDEs behind for code that they have dropped.
TEST(HostileFrames, OfNoCodeArePassedByWithoutAWord) {
  EhFrame frames;
  frames.fde(0, 16);
  frames.fde(k_code, 0);
  frames.fde(k_code, 16);
  frames.section.terminator();
  EXPECT_EQ(tell(frames), k_believed);
}

/// Lengths take 12 bytes (LSB 5.0 core, 10.6.1): in a section, and in a single FDE, which LLVM's libunwind accepts.
TEST(HostileFrames, AreOfTheLongFormToo) {
  CfiSection section(0, CfiSection::Format::eh_frame, true);
  const Addr fde = section.fde(section.cie(host_cie()), k_code, 16, saved_register());
  section.terminator();
  const auto& bytes = section.section().bytes;
  const std::unique_ptr<std::byte[]> memory(new std::byte[bytes.size()]);
  std::memcpy(memory.get(), bytes.data(), bytes.size());
  for (const std::byte* const begin : {memory.get() + 0, memory.get() + fde}) {
    __register_frame(begin);
    EXPECT_EQ(registered(), 1u);
    EXPECT_EQ(RegisteredCode().row_at(k_code + 4), k_row);
    __deregister_frame(begin);
  }
}

/// Readable memory that would take long to check.
TEST(HostileFrames, AreNotLongerThanEntriesAre) {
  constexpr std::size_t k_size = std::size_t{64} << 20;
  constexpr std::uint32_t k_length = 32u << 20;
  EhFrame frames(k_size);
  const Addr fde = frames.fde(k_code, 16) - frames.section.section().address;
  frames.fde(k_code + 16, 16);
  std::memcpy(frames.section.data().vector().data() + fde, &k_length, sizeof k_length);
  EXPECT_EQ(tell(frames), (Effect{0, 1, 0, "no row"}));
}

struct FdeOf {
  explicit FdeOf(Addr pc) : address(_Unwind_Find_FDE(at(pc), bases)) {}
  const void* bases[3]{};
  const void* address;
};

/// libgcc finds the same entries as it would by itself.
TEST(HostileFrames, AreLibgccsToReadWhereTheyLie) {
  EhFrame frames;
  const Addr fde = frames.fde(k_code, 16);
  frames.section.terminator();
  CfiSection section(0, CfiSection::Format::eh_frame, true);
  const Addr long_fde = section.fde(section.cie(host_cie()), k_code + 64, 16, saved_register());
  section.terminator();
  const auto& bytes = section.section().bytes;
  const std::vector<std::byte> long_form(bytes.begin(), bytes.end());
  const AddrRange placed = frames.placed();
  for (const void* const begin : {at(placed.begin), static_cast<const void*>(long_form.data())})
    __register_frame(begin);
  for (int again = 0; again < 2; ++again) {
    const FdeOf own(k_code + 4), of_long(k_code + 64 + 4);
    EXPECT_EQ(own.address, at(fde));
    EXPECT_EQ(own.bases[2], at(k_code));
    EXPECT_NE(of_long.address, nullptr);
    EXPECT_NE(of_long.address, long_form.data() + long_fde) << "libgcc does not know this form";
    EXPECT_EQ(of_long.bases[2], at(k_code + 64));
  }
  for (const void* const begin : {at(placed.begin), static_cast<const void*>(long_form.data())})
    __deregister_frame(begin);
}

/// Many sections are found without a system call for each.
TEST(HostileFrames, AreFoundByLibgccWithoutASystemCall) {
  EhFrame frames(16384);
  for (Addr i = 0; i < 100; ++i) frames.fde(k_code + 16 * i, 16);
  frames.section.terminator();
  const void* const begin = at(frames.placed().begin);
  __register_frame(begin);
  const pid_t child = ::fork();
  if (child == 0) {
    (void)FdeOf(k_code);
    if (!k_is_sanitized && !allow_only({SYS_exit_group})) ::_exit(8);  // sanitizers make system calls of their own
    for (Addr i = 1; i < 100; ++i)
      if (FdeOf(k_code + 16 * i + 3).bases[2] != at(k_code + 16 * i)) ::_exit(7);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  __deregister_frame(begin);
}

/// libgcc would read the section.
TEST(HostileFrames, AreNotReadWhereTheirMemoryIsGone) {
  void* const page = ::mmap(nullptr, k_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EhFrame frames;
  frames.fde(k_code, 16);
  frames.section.terminator();
  const auto& bytes = frames.section.section().bytes;
  std::memcpy(page, bytes.data(), bytes.size());
  __register_frame(page);
  const RegisteredCode code;
  EXPECT_EQ(code.row_at(k_code + 4), k_row);
  ::munmap(page, k_page);
  EXPECT_NE(code.row_at(k_code + 12), k_row);
  (void)_Unwind_FindEnclosingFunction(reinterpret_cast<void*>(k_code + 8));
  __deregister_frame(page);
  EXPECT_EQ(code.row_at(k_code + 4), "no row");
}

// Other threads at the same time.

constexpr std::size_t k_many = 3000;

/// Code in unmapped memory, with so many procedures that it takes a while to forget them, and the thread that forgets
/// them.
class BeingForgotten {
 public:
  BeingForgotten()
      : code_(::mmap(nullptr, 16 * k_many, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
        frames_(4096 + 64 * k_many) {
    for (std::size_t i = 0; i < k_many; ++i) frames_.fde(reinterpret_cast<std::uintptr_t>(code_) + 16 * i, 16);
    frames_.section.terminator();
    begin_ = at(frames_.placed().begin);
    __register_frame_info(begin_, &object_);
    forgetting_ = std::thread([this] {
      for (; !stop_; forgets_ = true) forget_unmapped_frames(64);
    });
    while (!forgets_) std::this_thread::yield();  // memory that a thread begins with would be where the code was
    ::munmap(code_, 16 * k_many);
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (listen_status().procedures == k_many && std::chrono::steady_clock::now() < end) {
    }
  }
  ~BeingForgotten() {
    stop_ = true;
    forgetting_.join();
  }
  BeingForgotten(const BeingForgotten&) = delete;
  BeingForgotten& operator=(const BeingForgotten&) = delete;

  bool is_taken_back() { return __deregister_frame_info(begin_) == &object_ && registered() == 0; }

 private:
  void* const code_;
  EhFrame frames_;
  const void* begin_ = nullptr;
  int object_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<bool> forgets_{false};
  std::thread forgetting_;
};

constexpr int k_rounds = 20;

TEST(HostileFrames, AreTakenBackInTheMiddleOfBeingForgotten) {
  for (int i = 0; i < k_rounds; ++i) {
    BeingForgotten frames;
    EXPECT_TRUE(frames.is_taken_back());
    EXPECT_EQ(listen_status().procedures, 0u);
  }
}

/// The child does not have the thread that was forgetting the frames.
TEST(HostileFrames, AreTakenBackInAForkedChildInTheMiddleOfBeingForgotten) {
  for (int i = 0; i < k_rounds; ++i) {
    BeingForgotten frames;
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      ::_exit(frames.is_taken_back() ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    EXPECT_TRUE(frames.is_taken_back());
  }
}

void throw_it() { throw std::runtime_error("through"); }

/// The code stays reported while a second call for it comes and goes.
TEST(HostileFrames, ComeAndGoWhileExceptionsPass) {
  const ExecutableCopy code(calling_frame());
  EhFrame frames;
  put_calling_frame(frames, code);
  const void* const told = at(frames.placed().begin);
  __register_frame(told);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) {
      __register_frame(told);
      __deregister_frame(told);
    }
  });
  const auto function = reinterpret_cast<void (*)(void (*)())>(code.begin());
  for (int i = 0; i < 1000; ++i) EXPECT_THROW(function(throw_it), std::runtime_error);
  stop = true;
  other.join();
  __deregister_frame(told);
  EXPECT_EQ(registered(), 0u);
}

}  // namespace
}  // namespace jitunwind::test
