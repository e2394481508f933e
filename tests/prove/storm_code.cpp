#include "tests/prove/storm_code.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

#include "jitunwind/builders/procedure_builder.h"
#include "jitunwind/builders/registers_x86_64.h"
#include "tests/prove/storm_threads.h"
#include "tests/support/bytes.h"
#include "tests/support/failing_memory.h"

namespace jitunwind::storm {
namespace {

using test::Bytes, test::FailingMemory;

enum class Form { directives, rows, frame_pointer, realigned };

/// Emits code that pushes the caller's frame and its own on the shadow in rdx, which rbx keeps; calls rdi with rsi;
/// pops.
void push_and_call(Bytes& code) {
  code.add({0x48, 0x89, 0x41, 0x08});  // mov [rcx+8], rax: the caller's SP
  const std::size_t displacement = code.size() + 3;
  code.add({0x48, 0x8d, 0x05}).u32(0);  // lea rax, [behind the call]
  const std::size_t next = code.size();
  code.add({0x48, 0x89, 0x41, 0x10});  // mov [rcx+16], rax
  code.add({0x48, 0x89, 0x61, 0x18});  // mov [rcx+24], rsp
  code.add({0x48, 0x83, 0x02, 0x20});  // add qword [rdx], 32
  code.add({0x48, 0x89, 0xd3});        // mov rbx, rdx
  code.add({0x48, 0x89, 0xf8});        // mov rax, rdi
  code.add({0x48, 0x89, 0xf7});        // mov rdi, rsi
  code.add({0xff, 0xd0});              // call rax
  code.put(displacement, code.size() - next, 4);
  code.add({0x48, 0x83, 0x2b, 0x20});  // sub qword [rbx], 32
}

Kind by_stack_pointer(Form form, std::uint32_t room) {
  using namespace x86_64;
  Bytes code;
  code.add({0x53});                                   // push rbx
  code.add({0x48, 0x81, 0xec}).u32(room);             // sub rsp, room
  code.add({0x48, 0x8b, 0x0a});                       // mov rcx, [rdx]
  code.add({0x48, 0x8b, 0x84, 0x24}).u32(room + 8);   // mov rax, [return address]
  code.add({0x48, 0x89, 0x01});                       // mov [rcx], rax
  code.add({0x48, 0x8d, 0x84, 0x24}).u32(room + 16);  // lea rax, [rsp behind it]
  push_and_call(code);
  const auto end = static_cast<std::uint32_t>(code.size());
  code.add({0x48, 0x81, 0xc4}).u32(room);  // add rsp, room
  code.add({0x5b, 0xc3});                  // pop rbx; ret
  auto builder = describe(form == Form::rows ? "storm_rows" : "storm_directives");
  if (form == Form::directives) {
    const int at = static_cast<int>(end);
    builder.push({0, 1}, rbx).allocate({1, 8}, room).deallocate({at, at + 7}, room).pop({at + 7, at + 8}, rbx);
  } else {
    const std::string saved = " rbx=[cfa-16] ra=[cfa-8]";
    builder.row_at(0, "cfa=rsp+8 ra=[cfa-8]").row_at(1, "cfa=rsp+16" + saved);
    builder.row_at(8, "cfa=rsp+" + std::to_string(room + 16) + saved);
    builder.row_at(end + 7, "cfa=rsp+16" + saved).row_at(end + 8, "cfa=rsp+8 ra=[cfa-8]");
  }
  return {code.vector(), builder.build().value()};
}

Kind by_frame_pointer(Form form, std::uint32_t room) {
  using namespace x86_64;
  Bytes code;
  code.add({0x55, 0x48, 0x89, 0xe5, 0x53});                         // push rbp; mov rbp, rsp; push rbx
  code.add({0x48, 0x81, 0xec}).u32(room + 8);                       // sub rsp, room + 8
  if (form == Form::realigned) code.add({0x48, 0x83, 0xe4, 0xc0});  // and rsp, -64
  code.add({0x48, 0x8b, 0x0a});                                     // mov rcx, [rdx]
  code.add({0x48, 0x8b, 0x45, 0x08});                               // mov rax, [rbp+8]
  code.add({0x48, 0x89, 0x01});                                     // mov [rcx], rax
  code.add({0x48, 0x8d, 0x45, 0x10});                               // lea rax, [rbp+16]
  push_and_call(code);
  code.add({0x48, 0x8b, 0x5d, 0xf8});  // mov rbx, [rbp-8]
  code.add({0xc9, 0xc3});              // leave; ret
  auto builder = describe(form == Form::realigned ? "storm_realigned" : "storm_frame_pointer");
  builder.row_at(0, "cfa=rsp+8 ra=[cfa-8]").row_at(1, "cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]");
  builder.row_at(4, "cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]");
  builder.row_at(5, "cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]");
  builder.row_at(static_cast<std::uint32_t>(code.size()) - 1, "cfa=rsp+8 ra=[cfa-8]");
  return {code.vector(), builder.build().value()};
}

void nap(long ns) {
  const timespec time{0, ns};
  ::nanosleep(&time, nullptr);
}

}  // namespace

void Gate::close() {
  state_.fetch_or(k_closed, std::memory_order_acquire);
  while ((state_.load(std::memory_order_acquire) & ~k_closed) != 0) nap(20'000);
}

bool Gate::close_if_empty() {
  int nobody = 0;
  return state_.compare_exchange_strong(nobody, k_closed, std::memory_order_acquire);
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = [] {
    std::vector<Kind> made;
    for (std::uint32_t room = 0; room < 160; room += 16) {
      made.push_back(by_stack_pointer(Form::directives, room));
      made.push_back(by_stack_pointer(Form::rows, room));
      made.push_back(by_frame_pointer(Form::frame_pointer, room));
      made.push_back(by_frame_pointer(Form::realigned, room));
    }
    return made;
  }();
  return all;
}

void Slot::fill(std::mt19937& random) {
  const Kind& kind = kinds()[random() % kinds().size()];
  if (kind.bytes.size() > k_slot_size) throw std::logic_error("code of a slot");
  std::memcpy(code_, kind.bytes.data(), kind.bytes.size());
  for (;;) {
    const FailingMemory failing(4);
    auto registered = register_code(kind.description, code_, kind.bytes.size());
    if (registered) {
      registration_ = std::move(*registered);
      break;
    }
    if (registered.error().code != ErrorCode::out_of_memory) throw std::logic_error(registered.error().what);
    ++counters().refused;
  }
  ++counters().registered;
}

void Slot::empty(std::mt19937& random) {
  const FailingMemory failing(4);
  if (random() % 2 == 0) {
    if (!registration_.cancel()) count_wrong("a cancel was refused");
  } else if (!registration_.retire()) {
    // There was no memory for a record of the batch; cancelling needs none.
    if (!registration_.cancel()) count_wrong("a cancel of a retired procedure was refused");
  }
}

void* map_code(void* at, std::size_t size) noexcept {
  const FailingMemory none(0);
  const int only_there = at == nullptr ? 0 : MAP_FIXED_NOREPLACE;
  void* const mapped =
      ::mmap(at, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | only_there, -1, 0);
  return mapped == MAP_FAILED ? nullptr : mapped;
}

void unmap_code(void* code, std::size_t size) noexcept { ::munmap(code, size); }

Arena::Arena() {
  void* const memory = map_code(nullptr, k_slots * k_slot_size);
  if (memory == nullptr) throw std::runtime_error("no memory for code");
  begin_ = reinterpret_cast<std::uintptr_t>(memory);
  for (std::size_t i = 0; i < k_slots; ++i) slots_[i].set_code(static_cast<std::uint8_t*>(memory) + i * k_slot_size);
}

Arena::~Arena() { unmap_code(reinterpret_cast<void*>(static_cast<std::uintptr_t>(begin_)), k_slots * k_slot_size); }

void Arena::fill_all(std::mt19937& random) {
  for (Slot& slot : slots_) {
    slot.fill(random);
    slot.gate().open();
  }
}

bool Arena::replace_one(std::mt19937& random) {
  Slot& slot = any(random);
  if (!slot.gate().close_if_empty()) return false;
  slot.empty(random);
  slot.fill(random);
  slot.gate().open();
  return true;
}

}  // namespace jitunwind::storm
