#include "tests/exceptions/jit_frames.h"

#include <iterator>

#include "tests/builders/describing_assembler.h"

namespace jitunwind::test {
namespace {

using namespace x86_64;

constexpr Reg k_preserved[]{rbx, rbp, r12, r13, r14, r15};

bool has_frame_pointer(FrameKind kind) {
  return kind == FrameKind::frame_pointer || kind == FrameKind::realigned || kind == FrameKind::variable;
}

/// The slot for SP lies above the room.
int sp_slot(int room) { return room + 8; }

void pop_preserved(DescribingAssembler& a, bool with_rbp) {
  for (std::size_t i = std::size(k_preserved); i-- > 0;)
    if (with_rbp || k_preserved[i] != rbp) a.pop(k_preserved[i]);
}

/// The frame of FrameKind::plain as rows, but for the body: its CFA is found through a pointer in the frame, as
/// interpreters keep it.
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

void write_prologue(DescribingAssembler& a, FrameKind kind, int room) {
  const bool first_rbp = has_frame_pointer(kind);
  if (first_rbp) {
    a.push(rbp);
    a.set_frame_pointer();
  }
  for (const Reg reg : k_preserved)
    if (!first_rbp || reg != rbp) a.push(reg);
  if (kind == FrameKind::sp_slot) {
    a.copy_sp_to_rax();
    a.realign();
    a.allocate(room + 24);
    return a.store_rax_as_sp(sp_slot(room));
  }
  a.allocate(room);
  if (kind == FrameKind::realigned) a.realign();
  if (kind == FrameKind::variable) a.allocate_rsi();
}

void set_preserved(DescribingAssembler& a, FrameKind kind) {
  for (const Reg reg : k_preserved)
    if (reg != rbp || !has_frame_pointer(kind)) a.set(reg, static_cast<int>(preserved_value(reg.dwarf())));
}

Instruction write_epilogue(DescribingAssembler& a, FrameKind kind, int room) {
  if (has_frame_pointer(kind)) {
    a.restore_sp(-40);
    pop_preserved(a, false);
    a.pop(rbp);
    return a.ret();
  }
  if (kind == FrameKind::sp_slot)
    a.reload_sp(sp_slot(room));
  else
    a.deallocate(room);
  pop_preserved(a, true);
  return a.ret();
}

JitCode make_code(FrameKind kind) {
  if (kind == FrameKind::rows) return rows_code();
  constexpr int k_room = 40;
  DescribingAssembler a;
  write_prologue(a, kind, k_room);
  set_preserved(a, kind);
  a.call_rdi();
  write_epilogue(a, kind, k_room);
  auto description = a.description();
  if (!description) throw std::runtime_error(description.error().text());
  return {a.code(), *description};
}

FrameOfKind::FrameOfKind(FrameKind kind, const Place* place) {
  const JitCode code = make_code(kind);
  code_ = std::make_unique<ExecutableCopy>(code.bytes, place);
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
