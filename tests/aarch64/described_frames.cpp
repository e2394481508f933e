#include "tests/aarch64/described_frames.h"

#include <sys/mman.h>

#include <cstring>
#include <stdexcept>
#include <utility>

#include "tests/aarch64/a64_assembler.h"

namespace jitunwind::test {
namespace {

using namespace aarch64;

constexpr unsigned k_helper = 11;  // x11, until the first call

template <class Recorder>
class Writer {
 public:
  Writer(std::mt19937_64& random, int lie) : random_(random), a_(lie) {}

  void write() {
    a_.emit(0xaa0003eb);  // mov x11,x0
    if (one_in(6))
      write_leaf();
    else
      write_frame();
  }
  A64AssemblerWith<Recorder>& assembler() { return a_; }
  int early_returns() const { return early_returns_; }

 private:
  struct Saved {
    Reg reg;
    int offset;  ///< from SP behind the prologue
  };

  bool one_in(unsigned n) { return random_() % n == 0; }
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  void filler() {
    if (one_in(2)) a_.nop();
    if (one_in(2)) a_.clobber(x9);
  }

  /// Writes a leaf without a frame, or with one for its registers alone: the return address stays in x30, or in x17.
  void write_leaf() {
    filler();
    const bool parks = one_in(2);
    if (parks) {
      a_.park_return_address();
      a_.clobber(x30);
      filler();
      a_.unpark_return_address();
    }
    if (one_in(2)) {
      a_.push(x19, 16);
      a_.clobber(x19);
      a_.pop(x19, 16);
    }
    a_.move_to(0, k_frame_result);
    filler();
    a_.ret();
  }

  void write_frame() {
    is_signed_ = one_in(2);
    if (is_signed_) a_.sign();
    build();
    filler();
    clobber_saved();
    body();
    leave();
    if (is_signed_) a_.authenticate();
    filler();
    a_.ret();
  }

  void build() {
    choose_saved();
    // The frame record is at the bottom, stored by one instruction or two, or on top of the other saved registers.
    record_at_ = size_ <= 512 && one_in(3) ? size_ - 16 : 0;
    if (size_ <= 496 && record_at_ == 0 && one_in(2)) {
      by_index_ = true;
      a_.push_pair(x29, x30, size_);
    } else {
      a_.allocate(size_);
      a_.store_pair(x29, x30, record_at_);
    }
    filler();
    has_pointer_ = one_in(2);
    if (has_pointer_) a_.set_frame_pointer(record_at_);
    for (std::size_t i = 0; i < saved_.size(); ++i) {
      const Saved& s = saved_[i];
      const bool is_pair = i + 1 < saved_.size() && !a_.is_vector(s.reg) && !a_.is_vector(saved_[i + 1].reg) &&
                           s.offset % 16 == 0 && one_in(2);
      if (is_pair)
        a_.store_pair(s.reg, saved_[++i].reg, s.offset);
      else
        a_.store(s.reg, s.offset);
      if (one_in(4)) filler();
    }
    if (!has_pointer_ || !one_in(2)) return;
    is_lost_ = true;
    if (one_in(2))
      a_.realign();
    else
      a_.allocate_variable(16 * (1 + below(8)));
  }

  /// Chooses slots above the frame record's 16 bytes at the bottom and below those on top.
  void choose_saved() {
    int offset = 16;
    for (unsigned n = 19; n <= 28; ++n)
      if (one_in(2)) saved_.push_back({Reg(static_cast<RegNum>(n)), offset}), offset += 8;
    for (unsigned n = 72; n <= 79; ++n)
      if (one_in(4)) saved_.push_back({Reg(static_cast<RegNum>(n)), offset}), offset += 8;
    size_ = (offset + 15) / 16 * 16 + 16 + 16 * below(one_in(8) ? 100 : 4);
  }

  void clobber_saved() {
    for (const Saved& s : saved_)
      if (one_in(2)) a_.clobber(s.reg);
    if (!has_pointer_ && one_in(2)) a_.clobber(x29);
  }

  void body() {
    if (one_in(2)) early_return();
    a_.move_to(0, below(100));
    a_.builder().call(a_.call(k_helper));
    clobber_saved();
    a_.move_to(0, k_frame_result);
  }

  /// Leaves by the frame pointer if SP is lost.
  void leave() {
    if (has_pointer_ && (is_lost_ || one_in(2))) a_.restore_sp(record_at_);
    for (const Saved& s : saved_) a_.load(s.reg, s.offset);
    if (by_index_) return a_.pop_pair(x29, x30, size_);
    a_.load_pair(x29, x30, record_at_);
    a_.deallocate(size_);
  }

  void early_return() {
    ++early_returns_;
    const std::size_t jump = a_.skip_unless_counted_down();
    a_.builder().remember();
    a_.move_to(0, k_frame_result);
    leave();
    if (is_signed_) a_.authenticate();
    a_.builder().restore(a_.ret());
    a_.land(jump);
  }

  std::mt19937_64& random_;
  A64AssemblerWith<Recorder> a_;
  std::vector<Saved> saved_;
  int size_ = 0;
  int record_at_ = 0;
  int early_returns_ = 0;
  bool is_signed_ = false;
  bool by_index_ = false;
  bool has_pointer_ = false;
  bool is_lost_ = false;
};

}  // namespace

RandomFrame random_frame(std::mt19937_64& random, int lie) {
  Writer<aarch64::Builder> writer(random, lie);
  writer.write();
  const auto& a = writer.assembler();
  return {a.code(), a.description(), writer.early_returns(), a.said()};
}

MarkedFrame random_marked_frame(std::mt19937_64& random) {
  Writer<aarch64::Marks> writer(random, -1);
  writer.write();
  return {writer.assembler().code(), std::move(writer.assembler().builder())};
}

CodePages::CodePages(std::size_t bytes) : size_(bytes) {
  constexpr int k_kind = MAP_PRIVATE | MAP_ANONYMOUS;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE | PROT_EXEC, k_kind, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory for code");
  memory_ = static_cast<char*>(memory);
}
CodePages::~CodePages() { ::munmap(memory_, size_); }

void* CodePages::add(const std::vector<std::uint32_t>& code) {
  const std::size_t bytes = code.size() * sizeof code[0];
  if (used_ + bytes > size_) throw std::runtime_error("no room for code");
  char* const at = memory_ + used_;
  std::memcpy(at, code.data(), bytes);
  __builtin___clear_cache(at, at + bytes);
  used_ += (bytes + 15) / 16 * 16;
  return at;
}

}  // namespace jitunwind::test
