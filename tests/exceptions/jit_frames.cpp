#include "tests/exceptions/jit_frames.h"

#include <sys/mman.h>

#include <cstring>

#include "tests/builders/describing_assembler.h"

namespace jitunwind::test {
namespace {

using namespace x86_64;

constexpr Reg k_preserved[]{rbx, rbp, r12, r13, r14, r15};

void clobber_all(DescribingAssembler& a) {
  for (const Reg reg : k_preserved) a.clobber(reg);
}

void push_but_rbp(DescribingAssembler& a) {
  for (const Reg reg : k_preserved)
    if (reg != rbp) a.push(reg);
}

void pop_but_rbp(DescribingAssembler& a) {
  for (std::size_t i = std::size(k_preserved); i-- > 0;)
    if (k_preserved[i] != rbp) a.pop(k_preserved[i]);
}

void plain(DescribingAssembler& a) {
  for (const Reg reg : k_preserved) a.push(reg);
  a.allocate(40);
  clobber_all(a);
  a.call_rdi();
  a.deallocate(40);
  for (std::size_t i = std::size(k_preserved); i-- > 0;) a.pop(k_preserved[i]);
  a.ret();
}

/// rbp, then the other registers below it, and what `grow` adds.
template <class Grow>
void with_frame_pointer(DescribingAssembler& a, Grow grow) {
  a.push(rbp);
  a.set_frame_pointer();
  push_but_rbp(a);
  a.allocate(8);
  grow();
  for (const Reg reg : k_preserved)
    if (reg != rbp) a.clobber(reg);
  a.call_rdi();
  a.restore_sp(-40);
  pop_but_rbp(a);
  a.pop(rbp);
  a.ret();
}

void sp_slot(DescribingAssembler& a) {
  for (const Reg reg : k_preserved) a.push(reg);
  a.copy_sp_to_rax();
  a.realign();
  a.allocate(64);
  a.store_rax_as_sp(16);
  clobber_all(a);
  a.call_rdi();
  a.reload_sp(16);
  for (std::size_t i = std::size(k_preserved); i-- > 0;) a.pop(k_preserved[i]);
  a.ret();
}

void emit(FrameKind kind, DescribingAssembler& a) {
  switch (kind) {
    case FrameKind::plain:
    case FrameKind::rows:
      return plain(a);
    case FrameKind::frame_pointer:
      return with_frame_pointer(a, [] {});
    case FrameKind::realigned:
      return with_frame_pointer(a, [&] { a.realign(); });
    case FrameKind::variable:
      return with_frame_pointer(a, [&] { a.allocate_rsi(); });
    case FrameKind::sp_slot:
      return sp_slot(a);
  }
}

/// The rows of plain() as they are, but for the body: its CFA is found through a pointer in the frame, as interpreters
/// keep it.
JitCode rows_code() {
  // push rbp; push rbx; push r12; push r13; push r14; push r15; lea rax,[rsp+56]; push rax;
  // mov rbx,-1; mov rbp,-1; mov r12,-1; ...; call rdi; add rsp,8; pops; ret
  const std::vector<std::uint8_t> bytes{
      0x55, 0x53, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57, 0x48, 0x8d, 0x44, 0x24, 0x38, 0x50,  // 16
      0x48, 0xc7, 0xc3, 0xff, 0xff, 0xff, 0xff, 0x48, 0xc7, 0xc5, 0xff, 0xff, 0xff, 0xff,              // 30
      0x49, 0xc7, 0xc4, 0xff, 0xff, 0xff, 0xff, 0x49, 0xc7, 0xc5, 0xff, 0xff, 0xff, 0xff,              // 44
      0x49, 0xc7, 0xc6, 0xff, 0xff, 0xff, 0xff, 0x49, 0xc7, 0xc7, 0xff, 0xff, 0xff, 0xff,              // 58
      0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5b, 0x5d, 0xc3};
  const std::string saved = " rbx=[cfa-24] rbp=[cfa-16] r12=[cfa-32] r13=[cfa-40] r14=[cfa-48] r15=[cfa-56] ra=[cfa-8]";
  const auto built = describe("rows")
                         .size(bytes.size())
                         .row_at(0, "cfa=rsp+8 ra=[cfa-8]")
                         .row_at(1, "cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]")
                         .row_at(2, "cfa=rsp+24 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]")
                         .row_at(10, "cfa=rsp+56" + saved)
                         .row_at(16, "cfa=[rsp+0]" + saved)
                         .row_at(64, "cfa=rsp+56" + saved)
                         .row_at(74, "cfa=rsp+8 ra=[cfa-8]")
                         .build();
  if (!built) throw std::runtime_error(built.error().text());
  return {bytes, *built};
}

}  // namespace

std::string name_of(FrameKind kind) {
  constexpr const char* k_names[]{"plain", "frame_pointer", "realigned", "sp_slot", "variable", "rows"};
  return k_names[static_cast<int>(kind)];
}

JitCode make_code(FrameKind kind) {
  if (kind == FrameKind::rows) return rows_code();
  DescribingAssembler a;
  emit(kind, a);
  auto description = a.description();
  if (!description) throw std::runtime_error(description.error().text());
  return {a.code(), *description};
}

ExecutableCopy::ExecutableCopy(const std::vector<std::uint8_t>& bytes)
    : memory_(mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
      size_(bytes.size()) {
  std::memcpy(memory_, bytes.data(), size_);
  mprotect(memory_, size_, PROT_READ | PROT_EXEC);
}

ExecutableCopy::~ExecutableCopy() { munmap(memory_, size_); }

JitFrame::JitFrame(FrameKind kind) {
  const JitCode code = make_code(kind);
  code_ = std::make_unique<ExecutableCopy>(code.bytes);
  registration_ = register_code(code.description, code_->begin(), code_->size()).value();
}

Crowd::Crowd(std::size_t count) : procedures_(count) {
  constexpr Addr k_somewhere = 0x100'0000'0000;
  std::vector<unw_dyn_info_t*> batch;
  for (std::size_t i = 0; i < count; ++i) {
    procedures_[i].start_ip = k_somewhere + 128 * i;
    procedures_[i].end_ip = procedures_[i].start_ip + 100;
    batch.push_back(&procedures_[i]);
  }
  if (!register_procedures(batch)) std::abort();
}

Crowd::~Crowd() {
  for (unw_dyn_info_t& procedure : procedures_) (void)cancel_procedure(&procedure);
}

}  // namespace jitunwind::test
