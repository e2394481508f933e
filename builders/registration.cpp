#include "jitunwind/builders/registration.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "jitunwind/builders/draft/handler_draft_p.h"
#include "jitunwind/builders/draft/mark_recorder.h"
#include "jitunwind/builders/released_registration_internal.h"
#include "jitunwind/builders/shapes/shape_pool_p.h"
#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/heap_internal.h"

extern "C" [[gnu::weak]] void __lsan_ignore_object(const void* block);

namespace jitunwind {
namespace {

/// One allocation per procedure. The handlers it keeps, the LSDA record or table, the region of marks, and the name
/// follow, in this order.
struct ProcedureBlock {
  unw_dyn_info_t info;  // first: the registry identifies a block by it
  void* user;           // Behind::user_word
  FrameShape shape;
  std::size_t bytes : 8 * sizeof(std::size_t) - 1;
  std::size_t keeps_handlers : 1;

  HandlersRef* handlers() noexcept { return reinterpret_cast<HandlersRef*>(this + 1); }
  std::byte* behind() noexcept {
    return reinterpret_cast<std::byte*>(this + 1) + (keeps_handlers ? sizeof(HandlersRef) : 0);
  }
};
static_assert(sizeof(ProcedureBlock) == sizeof(unw_dyn_info_t) + 3 * sizeof(void*));
static_assert(offsetof(ProcedureBlock, user) == sizeof(unw_dyn_info_t));
static_assert(offsetof(unw_dyn_info_t, u.pi.name_ptr) == offsetof(unw_dyn_info_t, u.rti.name_ptr));

ProcedureBlock* block_of(unw_dyn_info_t* info) noexcept { return reinterpret_cast<ProcedureBlock*>(info); }

void free_block(ProcedureBlock* block) noexcept {
  if (block->keeps_handlers) std::destroy_at(block->handlers());
  destroy_on_heap(block);
}

void free_procedure(void* info) noexcept { free_block(block_of(static_cast<unw_dyn_info_t*>(info))); }

/// The values that follow from a description or from marks, and the procedure's Code.
struct Plan {
  Plan(const Description& described, const Code& its_code)
      : code(its_code),
        name(its_code.name.empty() ? std::string_view(described.name()) : its_code.name),
        facts{described.personality(), its_code.lsda != 0 ? its_code.lsda : described.lsda(), described.gp()},
        format(described.format()),
        shape(&described.shape()) {
    if (described.handlers() && facts.lsda == described.lsda()) handlers = &described.handlers();
  }
  Plan(const MarkRecorder& marks, const Code& its_code)
      : code(its_code),
        name(its_code.name),
        facts(marks.facts()),
        ops(marks.ops()),
        entry_regions(marks.entry_regions()),
        insn_count(marks.insn_count()) {
    if (its_code.lsda != 0) facts.lsda = its_code.lsda;
  }
  Plan(const ReadyDirectives& directives, const Code& its_code)
      : code(its_code),
        name(its_code.name),
        facts{directives.personality, its_code.lsda, 0},
        ops(directives.ops),
        insn_count(directives.insn_count) {}

  const Code& code;
  std::string_view name;
  MarkRecorder::Facts facts;
  int format = UNW_INFO_FORMAT_DYNAMIC;
  const FrameShape* shape = nullptr;             // null for marks
  const HandlersRef* handlers = nullptr;         // null: none are kept
  std::span<const unw_dyn_op_t> ops;             // of marks
  std::span<const std::uint16_t> entry_regions;  // the number of those in each region but the last
  std::int32_t insn_count = 0;                   // of the last region

  bool has_rows() const noexcept { return format != UNW_INFO_FORMAT_DYNAMIC; }
  std::size_t handler_bytes() const noexcept { return handlers ? sizeof(HandlersRef) : 0; }
  std::size_t record_ops() const noexcept { return facts.lsda == 0 ? 0 : code.landing_pad_base == 0 ? 2 : 3; }
  std::size_t record_bytes() const noexcept { return record_ops() == 0 ? 0 : _U_dyn_region_info_size(record_ops()); }
  std::size_t payload_bytes() const noexcept {
    if (has_rows()) return RowTable::max_bytes(*shape);
    const std::size_t regions = ops.empty() ? 0 : entry_regions.size() + 1;
    return record_bytes() + regions * _U_dyn_region_info_size(0) + ops.size_bytes();
  }
  std::size_t name_bytes() const noexcept { return name.empty() ? 0 : name.size() + 1; }
};

// The functions that make a procedure are inline, so that each kind of plan has its own: most branches fall away, and
// the plan stays in registers.

/// Writes a region, and moves `at` behind it.
[[gnu::always_inline]] inline unw_dyn_region_info_t* write_region(std::span<const unw_dyn_op_t> ops,
                                                                  std::int32_t insn_count, std::byte*& at) noexcept {
  auto* const region = reinterpret_cast<unw_dyn_region_info_t*>(at);
  region->next = nullptr;
  region->insn_count = insn_count;
  region->op_count = static_cast<std::uint32_t>(ops.size());
  std::memcpy(region->op, ops.data(), ops.size_bytes());
  at += _U_dyn_region_info_size(ops.size());
  return region;
}

/// The regions of marks at `at`, or the shared list. Marks have no shape, and without any directive no region.
[[gnu::always_inline]] inline unw_dyn_region_info_t* own_or_shared(const Plan& plan, std::byte* at) noexcept {
  // Readers do not write to the list; the structure has no const.
  if (plan.shape) return const_cast<unw_dyn_region_info_t*>(plan.shape->regions());
  if (plan.ops.empty()) return nullptr;
  auto* const first = reinterpret_cast<unw_dyn_region_info_t*>(at);
  std::span<const unw_dyn_op_t> left = plan.ops;
  for (const std::size_t count : plan.entry_regions) {
    unw_dyn_region_info_t* const entry = write_region(left.first(count), 0, at);
    entry->next = reinterpret_cast<unw_dyn_region_info_t*>(at);
    left = left.subspan(count);
  }
  (void)write_region(left, plan.insn_count, at);
  return first;
}

/// The list, or the private LSDA record that precedes it. The record is an empty region whose STOP hides the entries
/// after it from every other reader (docs/directives.md, "Language-specific data").
[[gnu::always_inline]] inline unw_dyn_region_info_t* region_list(const Plan& plan, std::byte* at) noexcept {
  unw_dyn_region_info_t* const list = own_or_shared(plan, at + plan.record_bytes());
  const std::size_t ops = plan.record_ops();
  if (ops == 0) return list;
  auto* const record = reinterpret_cast<unw_dyn_region_info_t*>(at);
  record->next = list;
  record->insn_count = 0;
  record->op_count = static_cast<std::uint32_t>(ops);
  unw_dyn_op_t* op = record->op;
  _U_dyn_op_stop(op++);
  *op++ = _U_dyn_op(k_lsda_tag, 0, k_lsda_when, k_lsda_reg, plan.facts.lsda);
  if (ops == 3) *op++ = _U_dyn_op(k_landing_pad_base_tag, 0, k_lsda_when, k_lsda_reg, plan.code.landing_pad_base);
  return record;
}

[[gnu::always_inline]] inline Status fill(ProcedureBlock& block, const Plan& plan) noexcept {
  unw_dyn_info_t& info = block.info;
  info.start_ip = plan.code.start;
  info.end_ip = plan.code.start + plan.code.size;
  info.gp = plan.facts.gp;
  info.format = plan.format;
  std::byte* at = block.behind();
  if (plan.has_rows()) {
    const RowTable::Procedure procedure{code_of(info), plan.facts.personality, plan.facts.lsda};
    if (const Status encoded = RowTable::write(block.shape, procedure, at, info.u.rti); !encoded) return encoded;
  } else {
    info.u.pi.handler = plan.facts.personality;
    info.u.pi.regions = region_list(plan, at);
  }
  if (plan.name.empty()) return Done{};
  at += plan.payload_bytes();
  std::memcpy(at, plan.name.data(), plan.name.size());
  at[plan.name.size()] = std::byte{0};
  info.u.pi.name_ptr = reinterpret_cast<std::uintptr_t>(at);
  return Done{};
}

Status check_range(const Code& code) noexcept {
  if (code.start == 0) return Error{ErrorCode::e_range, 0, "code that starts at a null pointer"};
  if (code.start + code.size < code.start) return Error{ErrorCode::e_range, code.start, "code range wraps around"};
  return Done{};
}

/// `fits`: of the description or the marks, to the size of the code.
Status check_place(const Arch& arch, const Code& code, const Status& fits) noexcept {
  if (host_arch() != nullptr && host_arch() != &arch)
    return Error{ErrorCode::invalid_argument, code.start, "described for another CPU than this process runs on"};
  return fits ? check_range(code) : fits;
}

[[gnu::always_inline]] inline Result<unw_dyn_info_t*> make_procedure(const Plan& plan) noexcept {
  const std::size_t bytes = sizeof(ProcedureBlock) + plan.handler_bytes() + plan.payload_bytes() + plan.name_bytes();
  void* const memory = allocate(bytes);
  if (!memory) return Error{ErrorCode::out_of_memory, plan.code.start, "no memory for the descriptor"};
  auto* const block = new (memory) ProcedureBlock;
  block->info = {};  // gcc clears a whole block by rep stos, which is slow for so few bytes
  block->user = plan.code.user;
  if (plan.shape) block->shape = *plan.shape;
  block->bytes = bytes & SIZE_MAX >> 1;
  block->keeps_handlers = plan.handlers != nullptr;
  if (block->keeps_handlers) std::construct_at(block->handlers(), *plan.handlers);
  if (const Status filled = fill(*block, plan); !filled) {
    free_block(block);
    return filled.error();
  }
  return &block->info;
}

Result<unw_dyn_info_t*> make_procedure(const Description& description, const Code& code) noexcept {
  if (const Status good = check_place(description.arch(), code, description.check_size(code.size)); !good)
    return good.error();
  if (code.lsda != 0 && description.handlers() && description.handlers()->frame_handler)
    return Error{ErrorCode::invalid_argument, code.start, "language-specific data beside a frame handler"};
  return make_procedure(Plan(description, code));
}

[[gnu::always_inline]] inline Result<unw_dyn_info_t*> register_made(const Result<unw_dyn_info_t*>& made) noexcept {
  if (!made) return made;
  if (const Status registered = register_procedure(*made, Behind::user_word); !registered) {
    free_procedure(*made);
    return registered.error();
  }
  return *made;
}

/// LeakSanitizer does not scan the registry's memory, which holds the only pointer until the block is freed.
void now_of_the_registry(const void* block) noexcept {
  if (__lsan_ignore_object) __lsan_ignore_object(block);
}

/// A writer is interrupted on this thread, so nothing was taken out.
bool untouched(const Error& error) noexcept { return error.code == ErrorCode::in_signal_handler; }

}  // namespace

Registration& Registration::operator=(Registration&& other) noexcept {
  if (this == &other) return *this;
  (void)cancel();
  procedure_ = std::exchange(other.procedure_, nullptr);
  return *this;
}

AddrRange Registration::range() const noexcept { return procedure_ ? code_of(*procedure_) : AddrRange{}; }

std::size_t Registration::bytes() const noexcept { return procedure_ ? block_of(procedure_)->bytes : 0; }

Status Registration::cancel() noexcept {
  if (!procedure_) return Done{};
  const Status cancelled = cancel_procedure(procedure_);
  if (!cancelled && untouched(cancelled.error())) return cancelled;
  free_procedure(std::exchange(procedure_, nullptr));
  return cancelled;
}

Status cancel_released(unw_dyn_info_t* released) noexcept {
  const Status cancelled = cancel_procedure(released, Behind::user_word);
  if (cancelled) free_procedure(released);
  return cancelled;
}

Result<RetireTicket> Registration::retire() noexcept {
  if (!procedure_) return RetireTicket{};
  const auto ticket = retire_procedures({&procedure_, 1}, free_procedure, procedure_);
  if (ticket) now_of_the_registry(std::exchange(procedure_, nullptr));
  return ticket;
}

Result<unw_dyn_info_t*> register_released(const Description& description, const Code& code) noexcept {
  return register_made(make_procedure(description, code));
}

Result<Registration> register_code(const Description& description, const Code& code) noexcept {
  const auto registered = register_released(description, code);
  if (!registered) return registered.error();
  return Registration(*registered);
}

Result<Registration> register_marks(MarkRecorder& marks, const Code& code) noexcept {
  Status good = check_place(marks.arch(), code, marks.settle(code.size));
  if (good) good = marks.judge({code.start, code.start + code.size}, code.name);
  const auto registered = good ? register_made(make_procedure(Plan(marks, code))) : good.error();
  marks.clear();
  if (!registered) return registered.error();
  return Registration(*registered);
}

Result<unw_dyn_info_t*> register_released(const ReadyDirectives& directives, const Code& code) noexcept {
  if (const Status good = check_range(code); !good) return good.error();
  return register_made(make_procedure(Plan(directives, code)));
}

/// The descriptors follow in the same allocation.
struct RegistrationBatch::Procedures {
  std::size_t size = 0;
  std::size_t capacity = 0;

  std::span<unw_dyn_info_t*> all() noexcept { return {reinterpret_cast<unw_dyn_info_t**>(this + 1), size}; }
  /// Precondition: the capacity suffices.
  void add(std::span<unw_dyn_info_t* const> more) noexcept {
    std::ranges::copy(more, all().end());
    size += more.size();
  }
  /// Precondition: the procedures are taken out of the registry.
  void free() noexcept {
    for (unw_dyn_info_t* info : all()) free_procedure(info);
    give_back(this);
  }
};

RegistrationBatch& RegistrationBatch::operator=(RegistrationBatch&& other) noexcept {
  if (this == &other) return *this;
  (void)cancel();
  procedures_ = std::exchange(other.procedures_, nullptr);
  return *this;
}

std::size_t RegistrationBatch::size() const noexcept { return procedures_ ? procedures_->size : 0; }

Status RegistrationBatch::make_room(std::size_t more) noexcept {
  const std::size_t size = this->size();
  if (procedures_ && procedures_->capacity - size >= more) return Done{};
  const std::size_t capacity = std::max({size + more, 2 * size, std::size_t{6}});
  void* const memory = allocate(sizeof(Procedures) + capacity * sizeof(unw_dyn_info_t*));
  if (!memory) return Error{ErrorCode::out_of_memory, 0, "no memory for the list of a batch"};
  auto* const larger = new (memory) Procedures{0, capacity};
  if (procedures_) larger->add(procedures_->all());
  give_back(std::exchange(procedures_, larger));
  return Done{};
}

Status RegistrationBatch::register_code(std::span<const Item> items) noexcept {
  if (items.empty()) return Done{};
  if (const Status room = make_room(items.size()); !room) return room;
  const std::size_t before = procedures_->size;
  // The batch owns the new procedures once they are registered.
  const auto made = [&] { return procedures_->all().subspan(before); };
  const auto undo = [&](const Error& error) {
    for (unw_dyn_info_t* info : made()) free_procedure(info);
    procedures_->size = before;
    return error;
  };
  for (std::size_t i = 0; i < items.size(); ++i) {
    Code code = items[i].code;
    if (code.size == 0 && i + 1 < items.size()) code.size = items[i + 1].code.start - code.start;
    const auto one = make_procedure(*items[i].description, code);
    if (!one) return undo(one.error());
    procedures_->add({&*one, 1});
  }
  if (const Status registered = register_procedures(made(), Behind::user_word); !registered)
    return undo(registered.error());
  return Done{};
}

Status RegistrationBatch::add(Registration&& one) noexcept {
  if (!one) return Done{};
  if (const Status room = make_room(1); !room) return room;
  procedures_->add({&one.procedure_, 1});
  one.procedure_ = nullptr;
  return Done{};
}

Status RegistrationBatch::cancel() noexcept {
  if (!procedures_) return Done{};
  const auto all = procedures_->all();
  const Status cancelled = all.size() == 1 ? cancel_procedure(all.front()) : cancel_procedures(all);
  if (!cancelled && untouched(cancelled.error())) return cancelled;
  std::exchange(procedures_, nullptr)->free();
  return cancelled;
}

Result<RetireTicket> RegistrationBatch::retire() noexcept {
  if (empty()) return RetireTicket{};
  const auto free = [](void* procedures) { static_cast<Procedures*>(procedures)->free(); };
  const auto ticket = retire_procedures(procedures_->all(), free, procedures_);
  if (ticket) now_of_the_registry(std::exchange(procedures_, nullptr));
  return ticket;
}

}  // namespace jitunwind
