#include "jitunwind/sdk/uwx/environment_p.h"

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind::uwx {
namespace {

constexpr std::uint64_t bit(int column) noexcept { return std::uint64_t{1} << column; }

/// The columns that a target has for the context in which a walk begins.
std::uint64_t registers_of_context(const Arch& arch) noexcept {
  std::uint64_t columns = 0;
  for (const RegisterInfo& reg : arch.registers)
    if (reg.uwx >= 0 && RegisterFile::has(reg.column)) columns |= bit(reg.column);
  return columns;
}

/// The columns whose values are needed to apply a row, except those that stay in their places.
struct ReadByRow {
  std::uint64_t named = 0;
  bool has_expressions = false;  ///< these may read any column
};
ReadByRow registers_read_by(const FrameRow& row, const Arch& arch) noexcept {
  ReadByRow read;
  const auto add = [&](RegNum reg) {
    if (const int column = arch.column(reg); column >= 0) read.named |= bit(column);
  };
  const auto stays = [](const RegRule& rule) {
    return rule.kind == RegRule::Kind::unspecified || rule.kind == RegRule::Kind::same;
  };
  add(row.cfa.reg);
  read.has_expressions = row.cfa.kind == CfaRule::Kind::expression;
  for (const FrameRow::Entry& e : row.entries()) {
    if (e.rule.has_expression()) read.has_expressions = true;
    add(e.rule.reg);
  }
  const RegNum ra = row.ra == k_no_reg ? arch.ra : row.ra;
  if (stays(row.rule(ra))) add(ra);
  return read;
}

}  // namespace

Environment::Environment(const Allocator& allocator) noexcept
    : allocator_(allocator), cpu_(*host_arch()), names_(allocator_) {}

const AddressSpace& Environment::space() const noexcept { return walks_itself_ ? local_space() : space_of_callbacks_; }

void Environment::choose_space() noexcept {
  walks_itself_ = !remote_ && self_ && callbacks_.copyin == &uwx_self_copyin &&
                  callbacks_.lookupip == &uwx_self_lookupip &&
                  callbacks_.token == reinterpret_cast<std::intptr_t>(self_);
  forget_context();
}

void Environment::forget_context() noexcept {
  cursor_.reset();
  unread_ = 0;
  arrive();
}

void Environment::arrive() noexcept {
  has_row_ = false;
  context_code_ = 0;
  names_.forget();
}

int Environment::set_remote(bool big_endian) noexcept {
  if (big_endian != cpu_.big_endian && !cpu_.bi_endian) return UWX_ERR_CANTUNWIND;
  cpu_ = with_byte_order(cpu_, big_endian);
  remote_ = true;
  choose_space();
  return UWX_OK;
}

int Environment::set_target(unsigned elf_machine) noexcept {
  for (const Arch* const known : all_arches()) {
    if (known->elf_machine != elf_machine) continue;
    cpu_ = *known;
    remote_ = true;
    choose_space();
    return UWX_OK;
  }
  return UWX_ERR_CANTUNWIND;
}

int Environment::set_callbacks(const Callbacks& callbacks) noexcept {
  if (!callbacks.complete()) return UWX_ERR_NOCALLBACKS;
  callbacks_ = callbacks;
  choose_space();
  return UWX_OK;
}

void Environment::set_self(uwx_self_info* info) noexcept {
  self_ = info;
  choose_space();
}

void Environment::know(const FrameFacts& facts) const noexcept {
  names_.know(facts);
  context_of_row_ = facts.context;
}

int Environment::begin(Addr ip, Addr sp) noexcept {
  RegisterFile registers;
  registers.set_from_register(arch().column(arch().pc), ip, arch().pc);
  registers.set_from_register(arch().column(arch().sp), sp, arch().sp);
  const int status = begin(registers, Cursor::Top::interrupted);
  unread_ = registers_of_context(arch()) & ~bit(arch().column(arch().pc)) & ~bit(arch().column(arch().sp));
  return status;
}

int Environment::begin(const RegisterFile& registers, Cursor::Top top) noexcept {
  cursor_.emplace(space(), registers, top);
  unread_ = 0;
  arrive();
  return UWX_OK;
}

bool Environment::is_known_of(const RegisterInfo& reg) const noexcept {
  return has_vectors_ || reg.reg_class != RegClass::vector;
}

int Environment::set_register(int regid, std::uint64_t value) noexcept {
  if (!cursor_) return UWX_ERR_NOCONTEXT;
  const RegisterInfo* const reg = register_of(regid, arch());
  if (!reg || !is_known_of(*reg)) return UWX_ERR_BADREGID;
  unread_ &= ~bit(reg->column);
  if (reg->dwarf != arch().pc) {
    cursor_->know(reg->dwarf, value);
    return UWX_OK;
  }
  RegisterFile registers = cursor_->registers();
  registers.set_from_register(reg->column, value, reg->dwarf);
  cursor_.emplace(space(), registers, Cursor::Top::interrupted);
  arrive();
  return UWX_OK;
}

int Environment::check() const noexcept {
  if (!callbacks_.complete()) return UWX_ERR_NOCALLBACKS;
  return cursor_ ? UWX_OK : UWX_ERR_NOCONTEXT;
}

int Environment::find_row() noexcept {
  if (has_row_) return UWX_OK;
  context_of_row_ = 0;
  const Status found = cursor_->find_row(row_);
  if (!found) return status_of(found.error());
  for (const RegisterInfo& reg : arch().registers)
    if (reg.reg_class == RegClass::vector && !is_known_of(reg)) (void)row_.set(reg.dwarf, RegRule());
  has_row_ = true;
  return UWX_OK;
}

Result<std::uint64_t> Environment::read_register(const RegisterInfo& reg) noexcept {
  const auto value = copy_register(callbacks_, reg.uwx, arch().big_endian);
  if (!value) return value;
  cursor_->know(reg.dwarf, *value);
  unread_ &= ~bit(reg.column);
  return value;
}

int Environment::read_registers() noexcept {
  const ReadByRow read = registers_read_by(row_, arch());
  for (const RegisterInfo& reg : arch().registers) {
    if (reg.column < 0 || (unread_ & bit(reg.column)) == 0 || !is_known_of(reg)) continue;
    const bool is_named = (read.named & bit(reg.column)) != 0;
    if (!is_named && !read.has_expressions) continue;
    // A register that is only read by an expression, if at all, need not be there.
    const auto value = read_register(reg);
    if (!value && is_named) return status_of(value.error());
  }
  return UWX_OK;
}

std::uint64_t Environment::still_unread() const noexcept {
  std::uint64_t columns = 0;
  for (const RegisterInfo& reg : arch().registers) {
    if (!reg.preserved || reg.column < 0) continue;
    const RegRule::Kind kind = row_.rule(reg.dwarf).kind;
    if (kind == RegRule::Kind::unspecified || kind == RegRule::Kind::same) columns |= bit(reg.column);
  }
  return unread_ & columns;
}

int Environment::find_caller(Cursor& out) noexcept {
  if (!walks_itself_) {
    if (const int status = find_row(); status != UWX_OK) return status;
    if (const int status = read_registers(); status != UWX_OK) return status;
  }
  out = *cursor_;
  const auto moved = walks_itself_ ? out.step() : out.step_by(row_);
  if (!moved) return status_of(moved.error());
  return *moved ? UWX_OK : UWX_BOTTOM;
}

int Environment::step() noexcept {
  if (const int status = check(); status != UWX_OK) return status;
  context_code_ = 0;
  if (walks_itself_) return step_here();
  if (const int status = find_row(); status != UWX_OK) return status;
  if (row_.signal_frame) {
    context_code_ = context_of_row_;
    return UWX_ABI_FRAME;
  }
  Cursor caller = *cursor_;
  if (const int status = find_caller(caller); status != UWX_OK) return status;
  unread_ = still_unread();
  *cursor_ = caller;
  arrive();
  return UWX_OK;
}

/// Steps by the engine's own sources, with its cached rows.
int Environment::step_here() noexcept {
  Cursor& cursor = *cursor_;
  const auto is_signal_frame = cursor.is_signal_frame();
  const bool is_leaf =
      !is_signal_frame && is_signal_frame.error().code == ErrorCode::no_info && !cursor.address().is_return_address();
  if (!is_signal_frame && !is_leaf) return status_of(is_signal_frame.error());
  if (is_signal_frame && *is_signal_frame) {
    context_code_ = UWX_ABI_CONTEXT_SIGNAL;
    return UWX_ABI_FRAME;
  }
  const auto moved = is_leaf ? cursor.step_by(entry_row(arch())) : cursor.step();
  if (!moved) return status_of(moved.error());
  if (!*moved) return UWX_BOTTOM;
  arrive();
  return UWX_OK;
}

int Environment::get_register(int regid, std::uint64_t* into) noexcept {
  if (const int status = check(); status != UWX_OK) return status;
  if (regid == UWX_REG_IP) return *into = cursor_->pc(), UWX_OK;
  if (regid == UWX_REG_RP || regid == UWX_REG_PSP) {
    Cursor caller = *cursor_;
    const int status = find_caller(caller);
    if (status == UWX_BOTTOM && regid == UWX_REG_RP) return *into = 0, UWX_OK;
    if (status != UWX_OK) return status < 0 ? status : UWX_ERR_CANTUNWIND;
    *into = regid == UWX_REG_RP ? caller.pc() : caller.sp();
    return UWX_OK;
  }
  const RegisterInfo* const reg = register_of(regid, arch());
  if (!reg || !is_known_of(*reg)) return UWX_ERR_BADREGID;
  auto value = cursor_->get(reg->dwarf);
  if (!value && (unread_ & bit(reg->column)) != 0) value = read_register(*reg);
  if (!value) return value.error().code == ErrorCode::callback_failed ? status_of(value.error()) : UWX_ERR_BADREGID;
  into[0] = *value;
  if (reg->reg_class == RegClass::vector) into[1] = 0;
  return UWX_OK;
}

int Environment::get_nat(int regid, int& nat) const noexcept {
  if (const int status = check(); status != UWX_OK) return status;
  if (!register_of(regid, arch())) return UWX_ERR_BADREGID;
  nat = 0;
  return UWX_OK;
}

int Environment::get_location(int regid, std::uint64_t& disposition) noexcept {
  if (const int status = check(); status != UWX_OK) return status;
  if (regid == UWX_REG_PSP) {
    std::uint64_t psp = 0;
    const int status = get_register(UWX_REG_PSP, &psp);
    if (status == UWX_OK) disposition = UWX_DISP_SPPLUS(psp - cursor_->sp());
    return status;
  }
  Cursor caller = *cursor_;
  const Cursor* at = &*cursor_;
  if (regid == UWX_REG_RP) {
    if (const int status = find_caller(caller); status != UWX_OK) return status < 0 ? status : UWX_ERR_CANTUNWIND;
    at = &caller;
    regid = UWX_REG_IP;
  }
  const RegisterInfo* const reg = register_of(regid, arch());
  if (!reg || !is_known_of(*reg)) return UWX_ERR_BADREGID;
  SaveLocation place = at->location(reg->dwarf);
  if (at == &*cursor_ && (unread_ & bit(reg->column)) != 0) place = {SaveLocation::Kind::reg, reg->dwarf, 0};
  disposition = UWX_DISP_NONE;
  if (place.kind == SaveLocation::Kind::memory && place.at % 8 == 0) disposition = UWX_DISP_MSTK(place.at);
  if (place.kind == SaveLocation::Kind::reg)
    if (const RegisterInfo* const holder = arch().by_dwarf(place.reg); holder && holder->uwx >= 0)
      disposition = UWX_DISP_REG(holder->uwx);
  return UWX_OK;
}

int Environment::find_row_at(Addr ip, FrameRow& out, FrameFacts& facts) const noexcept {
  struct Keeper final : FactsListener {
    explicit Keeper(FrameFacts& into) noexcept : kept(into) {}
    void know(const FrameFacts& known) const noexcept override { kept = known; }
    FrameFacts& kept;
  };
  if (!callbacks_.complete()) return UWX_ERR_NOCALLBACKS;
  const Keeper keeper(facts);
  const LookedUpRows rows(callbacks_, keeper);
  const bool is_context = cursor_ && cursor_->pc() == ip && !cursor_->address().is_return_address();
  MemoryWindow window;
  Lookup lookup(space_of_callbacks_, is_context ? CodeAddress::interrupted(ip) : CodeAddress::returned_to(ip + 1),
                window);
  const Found found = rows.find_row(lookup, out);
  return found ? UWX_OK : status_of(found.error());
}

bool Environment::read_target(Addr at, std::span<std::byte> into) const noexcept {
  const CopyinMemory unwind_information(callbacks_, UWX_COPYIN_UINFO, UWX_ERR_COPYIN_UINFO);
  MemoryWindow window;
  return callbacks_.complete() &&
         (stack_.read(at, into, window) == into.size() || unwind_information.read(at, into, window) == into.size());
}

int Environment::step_inline(int context) noexcept {
  if (const int status = check(); status != UWX_OK) return status;
  if (context <= 0) return UWX_ERR_NOSYM;
  names_.step_inline(context);
  return UWX_OK;
}

int Environment::find_module() noexcept {
  if (const int status = check(); status != UWX_OK) return status;
  const int status = names_.ask_module(callbacks_, cursor_->address());
  if (names_.text_base() == 0 && !walks_itself_) (void)find_row();
  return status == UWX_ERR_NOSYM && names_.text_base() != 0 ? UWX_OK : status;
}

int Environment::find_function() noexcept {
  if (const int status = check(); status != UWX_OK) return status;
  if (names_.function() == 0) {
    if (!walks_itself_)
      (void)find_row();
    else if (const auto procedure = cursor_->procedure())
      names_.know_function(procedure->range.begin);
  }
  if (names_.function() != 0) return UWX_OK;
  const int status = ask_symbols(false);
  if (names_.function() != 0) return UWX_OK;
  return status == UWX_OK ? UWX_ERR_NOSYM : status;
}

int Environment::find_symbol() noexcept { return ask_symbols(false); }

int Environment::find_source() noexcept { return ask_symbols(true); }

int Environment::ask_symbols(bool with_source) noexcept {
  if (const int status = check(); status != UWX_OK) return status;
  if (self_) self_->wants_source = with_source;
  return names_.ask_symbols(callbacks_, cursor_->address(), with_source, with_source || !self_);
}

void FrameNames::forget() noexcept {
  pool_.clear();
  module_ = symbol_ = nullptr;
  text_base_ = function_ = symbol_start_ = 0;
  source_ = {};
  inlined_at_ = 0;
  module_asked_ = false;
  symbols_asked_ = Asked::no;
}

void FrameNames::step_inline(int context) noexcept {
  inlined_at_ = context;
  source_ = {};
  symbols_asked_ = Asked::no;
}

void FrameNames::know(const FrameFacts& facts) noexcept {
  const auto keep = [&](Addr text) { return pool_.keep(reinterpret_cast<const void*>(text)); };
  text_base_ = facts.text_base;
  function_ = facts.func_start;
  if (facts.module_name != 0 && !module_) module_ = keep(facts.module_name);
  if (facts.func_name == 0 || symbol_) return;
  symbol_ = keep(facts.func_name);
  symbol_start_ = facts.func_start;
}

int FrameNames::ask_module(const Callbacks& callbacks, CodeAddress at) noexcept {
  if (!module_ && !module_asked_) {
    const int status = ask(callbacks, UWX_LKUP_MODULE, at);
    if (status != UWX_OK && status != UWX_ERR_NOSYM) return status;
    module_asked_ = true;
  }
  return module_ ? UWX_OK : UWX_ERR_NOSYM;
}

int FrameNames::ask_symbols(const Callbacks& callbacks, CodeAddress at, bool wants_source, bool gets_source) noexcept {
  const bool known = wants_source ? symbols_asked_ == Asked::with_source
                                  : symbols_asked_ != Asked::no || (symbol_ != nullptr && module_ != nullptr);
  if (!known) {
    const int status = ask(callbacks, UWX_LKUP_SYMBOLS, at);
    if (status != UWX_OK && status != UWX_ERR_NOSYM) return status;
    symbols_asked_ = gets_source ? Asked::with_source : Asked::symbols;
  }
  return module_ || symbol_ || source_.file ? UWX_OK : UWX_ERR_NOSYM;
}

int FrameNames::ask(const Callbacks& callbacks, int request, CodeAddress at) noexcept {
  Question question;
  if (at.is_return_address()) question.add(UWX_KEY_CALLER, 1);
  if (function() != 0) question.add(UWX_KEY_FUNCSTART, function());
  if (request == UWX_LKUP_SYMBOLS && inlined_at_ != 0)
    question.add(UWX_KEY_INLINE, static_cast<std::uint64_t>(inlined_at_));
  const Answer answer(callbacks, request, at.value(), question);
  if (answer.kind() == UWX_LKUP_NOTFOUND) return UWX_ERR_NOSYM;
  if (answer.kind() != UWX_LKUP_SYMINFO) return UWX_ERR_LOOKUPERR;
  bool lacks_memory = false;
  const Status read = answer.for_each([&](auto key, auto value) { return take(key, value, lacks_memory); });
  if (!read) return status_of(read.error());
  return lacks_memory ? UWX_ERR_NOMEM : UWX_OK;
}

bool FrameNames::take(std::uint64_t key, std::uint64_t value, bool& lacks_memory) noexcept {
  const auto keep = [&](char*& into) {
    if (value == 0) return true;
    if (!into) into = pool_.keep(pointer_to(value));
    lacks_memory = lacks_memory || !into;
    return true;
  };
  switch (key) {
    case UWX_KEY_MODULE:
      return keep(module_);
    case UWX_KEY_FUNC:
      return keep(symbol_);
    case UWX_KEY_FUNCSTART:
      return symbol_start_ = value, true;
    case UWX_KEY_INLINED_FUNC:
      return keep(source_.inlined);
    case UWX_KEY_SRCFILE:
      return keep(source_.file);
    case UWX_KEY_LINENUM:
      return source_.line = static_cast<int>(value), true;
    case UWX_KEY_INLINE:
      return source_.context = static_cast<int>(value), true;
    case UWX_KEY_TBASE:
      return text_base_ = value, true;
    default:
      return false;
  }
}

}  // namespace jitunwind::uwx
