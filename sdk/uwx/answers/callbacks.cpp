#include "jitunwind/sdk/uwx/answers/callbacks_p.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"

namespace jitunwind::uwx {

int status_of(const Error& error) noexcept {
  if (const int status = callback_result(error); status != 0) return status;
  switch (error.code) {
    case ErrorCode::out_of_memory:
      return UWX_ERR_NOMEM;
    case ErrorCode::no_info:
      return UWX_ERR_IPNOTFOUND;
    case ErrorCode::unreadable_memory:
      return UWX_ERR_COPYIN_MSTK;
    case ErrorCode::e_pop:
      return UWX_ERR_PROLOG_UF;
    case ErrorCode::e_label:
      return UWX_ERR_UNDEFLABEL;
    case ErrorCode::unspecified:
    case ErrorCode::stop_unwind:
    case ErrorCode::invalid_ip:
    case ErrorCode::bad_frame:
    case ErrorCode::undefined_register:
    case ErrorCode::cyclic_frames:
    case ErrorCode::frame_limit:
    case ErrorCode::bad_signature:
    case ErrorCode::unknown_signature:
    case ErrorCode::e_lr:
    case ErrorCode::e_sp_lost:
      return UWX_ERR_CANTUNWIND;
    default:
      return UWX_ERR_BADUDESC;
  }
}

std::size_t CopyinMemory::read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept {
  window.failure = 0;
  std::size_t done = 0;
  while (done < into.size()) {
    const Addr next = at + done;
    if (next < at) break;
    const std::size_t left = into.size() - done;
    const bool halves = request_ == UWX_COPYIN_UINFO && (next % 8 != 0 || left < 8);
    const int unit = halves ? 4 : 8;
    const Addr begin = next & ~static_cast<Addr>(unit - 1);
    alignas(8) std::array<char, 8> bytes{};
    if (callbacks_.copyin(request_, bytes.data(), begin, unit, callbacks_.token) != unit) {
      window.failure = failure_;
      break;
    }
    const auto skipped = static_cast<std::size_t>(next - begin);
    const std::size_t count = std::min(left, static_cast<std::size_t>(unit) - skipped);
    std::memcpy(into.data() + done, bytes.data() + skipped, count);
    done += count;
  }
  return done;
}

Result<std::uint64_t> copy_register(const Callbacks& callbacks, int regid, bool big_endian) noexcept {
  alignas(8) std::array<char, 8> bytes{};
  const auto id = static_cast<std::uint64_t>(regid);
  if (callbacks.copyin(UWX_COPYIN_REG, bytes.data(), id, 8, callbacks.token) != 8)
    return failure(UWX_ERR_COPYIN_REG, "register");
  std::uint64_t value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return big_endian == (std::endian::native == std::endian::big) ? value : __builtin_bswap64(value);
}

namespace {

bool has_vector(int kind) noexcept {
  return kind == UWX_LKUP_UTABLE || kind == UWX_LKUP_FDESC || kind == UWX_LKUP_SYMINFO || kind == UWX_LKUP_REMAP ||
         kind == UWX_LKUP_UINFO;
}

constexpr std::uint64_t k_spill = 2;  // the low 4 bits of UWX_KEY_SPILL
constexpr int k_code_none = 0, k_code_spplus = 1, k_code_sprel = 2, k_code_psprel = 3, k_code_reg = 4,
              k_code_regrel = 7;

std::int64_t offset_of(std::uint64_t disposition) noexcept {
  return static_cast<std::int64_t>(UWX_GET_DISP_OFFSET(disposition));
}

struct RegPlus {
  const RegisterInfo* reg;
  std::int64_t offset;
};
RegPlus reg_plus(std::uint64_t disposition, const Arch& arch) noexcept {
  constexpr unsigned k_above = 16;
  return {register_of(static_cast<int>(disposition >> 48), arch),
          static_cast<std::int64_t>((disposition & ~std::uint64_t{7}) << k_above) >> k_above};
}

/// A register id has 28 bits; no register has a larger one.
const RegisterInfo* reg_in(std::uint64_t disposition, const Arch& arch) noexcept {
  return disposition >> 32 == 0 ? register_of(static_cast<int>(disposition >> 4), arch) : nullptr;
}

Error bad(const char* what) noexcept { return failure(UWX_ERR_BADUDESC, what); }

Status read_psp(std::uint64_t disposition, const Arch& arch, FrameRow& out) noexcept {
  switch (UWX_GET_DISP_CODE(disposition)) {
    case k_code_spplus:
      out.cfa = CfaRule::at(arch.sp, offset_of(disposition));
      return Done{};
    case k_code_sprel:
      out.cfa = CfaRule::deref(arch.sp, offset_of(disposition), 0);
      return Done{};
    case k_code_reg:
      if (const RegisterInfo* const reg = reg_in(disposition, arch)) {
        out.cfa = CfaRule::at(reg->dwarf, 0);
        return Done{};
      }
      break;
    case k_code_regrel:
      if (const auto [reg, offset] = reg_plus(disposition, arch); reg) {
        out.cfa = CfaRule::at(reg->dwarf, offset);
        return Done{};
      }
      break;
    default:
      break;
  }
  return bad("disposition of PSP");
}

Result<RegRule> rule_of(std::uint64_t disposition, const Arch& arch) noexcept {
  switch (UWX_GET_DISP_CODE(disposition)) {
    case k_code_none:
      return RegRule::same();
    case k_code_sprel:
      return RegRule::at_reg(arch.sp, offset_of(disposition));
    case k_code_psprel:
      return RegRule::at_cfa(static_cast<std::int64_t>(-static_cast<std::uint64_t>(offset_of(disposition))));
    case k_code_reg:
      if (const RegisterInfo* const reg = reg_in(disposition, arch)) return RegRule::in_reg(reg->dwarf);
      break;
    case k_code_regrel:
      if (const auto [reg, offset] = reg_plus(disposition, arch); reg) return RegRule::is_reg(reg->dwarf, offset);
      break;
    default:
      break;
  }
  return bad("disposition of a register");
}

/// The registers that FDESC may describe: RP, PSP and registers of the CPU. IP and SP are excluded, since RP and PSP
/// stand for them.
std::optional<RegNum> spilled(std::uint64_t key, const Arch& arch) noexcept {
  const std::uint64_t id = key >> 4;
  if (id == UWX_REG_RP) return arch.ra;
  const RegisterInfo* const reg = id < 0x1000 && id >= 0x100 ? register_of(static_cast<int>(id), arch) : nullptr;
  return reg && reg->dwarf != arch.sp && reg->dwarf != arch.pc ? std::optional(reg->dwarf) : std::nullopt;
}

class FrameReader {
 public:
  FrameReader(const Arch& arch, FrameRow& out, FrameFacts& facts) noexcept : arch_(arch), out_(out), facts_(facts) {}

  /// Returns whether the key is known.
  bool take(std::uint64_t key, std::uint64_t value) noexcept {
    ++pairs_;
    if (key == UWX_KEY_FSIZE) return out_.cfa = CfaRule::at(arch_.sp, static_cast<std::int64_t>(value)), true;
    if (key == UWX_KEY_CONTEXT) return facts_.context = static_cast<int>(value), has_context_ = true;
    if (key == UWX_KEY_FUNCSTART) return facts_.func_start = value, true;
    if (key == UWX_KEY_MODULE) return facts_.module_name = value, true;
    if (key == UWX_KEY_FUNC) return facts_.func_name = value, true;
    if ((key & 0xf) != k_spill) return false;
    if (key >> 4 == UWX_REG_PSP) return keep(read_psp(value, arch_, out_)), true;
    const auto reg = spilled(key, arch_);
    if (!reg) return false;
    const auto rule = rule_of(value, arch_);
    if (!rule) return keep(rule.error()), true;
    if (!out_.set(*reg, *rule)) keep(bad("too many registers"));
    return true;
  }

  Status finish() noexcept {
    if (has_context_ && (pairs_ != 1 || facts_.context <= 0)) return bad("UWX_KEY_CONTEXT");
    if (has_context_) out_.signal_frame = true;
    facts_.has_row = !has_context_;
    return first_;
  }

 private:
  void keep(Status status) noexcept {
    if (first_ && !status) first_ = status;
  }

  const Arch& arch_;
  FrameRow& out_;
  FrameFacts& facts_;
  Status first_ = Done{};
  unsigned pairs_ = 0;
  bool has_context_ = false;
};

/// The disposition of a rule; empty: there is none.
std::optional<std::uint64_t> disposition_of(const RegRule& rule, const Arch& arch) noexcept {
  using Kind = RegRule::Kind;
  if (rule.offset % 8 != 0) return std::nullopt;
  const RegisterInfo* const reg = rule.reg == k_no_reg ? nullptr : arch.by_dwarf(rule.reg);
  const bool named = reg && reg->uwx >= 0;
  switch (rule.kind) {
    case Kind::unspecified:
    case Kind::same:
      return UWX_DISP_NONE;
    case Kind::at_cfa:
      return UWX_DISP_PSPREL(-static_cast<std::uint64_t>(rule.offset));
    case Kind::in_reg:
      if (named) return UWX_DISP_REG(reg->uwx);
      break;
    case Kind::at_reg:
      if (rule.reg == arch.sp) return UWX_DISP_SPREL(rule.offset);
      break;
    case Kind::is_reg:
      if (named) return UWX_DISP_REGREL(reg->uwx, rule.offset);
      break;
    default:
      break;
  }
  return std::nullopt;
}

/// The disposition of the CFA.
std::optional<std::uint64_t> disposition_of(const CfaRule& cfa, const Arch& arch) noexcept {
  const RegisterInfo* const reg = cfa.reg == k_no_reg ? nullptr : arch.by_dwarf(cfa.reg);
  if (cfa.offset % 8 != 0 || !reg || reg->uwx < 0) return std::nullopt;
  if (cfa.kind == CfaRule::Kind::deref && cfa.reg == arch.sp && cfa.add == 0) return UWX_DISP_SPREL(cfa.offset);
  if (cfa.kind != CfaRule::Kind::offset) return std::nullopt;
  return cfa.reg == arch.sp ? UWX_DISP_SPPLUS(cfa.offset) : UWX_DISP_REGREL(reg->uwx, cfa.offset);
}

}  // namespace

Answer::Answer(const Callbacks& callbacks, int request, Addr ip, Question& question) noexcept
    : callbacks_(callbacks), vector_(question.words()) {
  kind_ = callbacks.lookupip(request, ip, callbacks.token, &vector_);
  // The client must not get back a vector that it did not give.
  if (!has_vector(kind_) || vector_ == question.words()) {
    vector_ = nullptr;
    if (kind_ != UWX_LKUP_NOTFOUND) kind_ = UWX_LKUP_ERR;
  }
}

Answer::~Answer() {
  if (vector_) (void)callbacks_.lookupip(UWX_LKUP_FREE, 0, callbacks_.token, &vector_);
}

bool Answer::read(std::size_t index, Pair& out, MemoryWindow& window) const noexcept {
  const Addr at = reinterpret_cast<std::uintptr_t>(vector_) + index * sizeof(Pair);
  return read_object(LocalMemory(), window, at, out);
}

const RegisterInfo* register_of(int regid, const Arch& arch) noexcept {
  if (regid == UWX_REG_IP) return arch.by_dwarf(arch.pc);
  if (regid == UWX_REG_SP) return arch.by_dwarf(arch.sp);
  const auto found = std::ranges::find_if(
      arch.registers, [&](const RegisterInfo& reg) { return regid > 0 && reg.uwx == regid && reg.column >= 0; });
  return found == arch.registers.end() ? nullptr : &*found;
}

Status read_frame(const Answer& answer, const Arch& arch, FrameRow& out, FrameFacts& facts) noexcept {
  out = entry_row(arch);
  FrameReader reader(arch, out, facts);
  if (const Status read = answer.for_each([&](auto key, auto value) { return reader.take(key, value); }); !read)
    return read;
  return reader.finish();
}

std::optional<std::size_t> write_frame(const FrameRow& row, const Arch& arch, std::span<std::uint64_t> into) noexcept {
  std::size_t used = 0;
  const auto add = [&](std::uint64_t key, const std::optional<std::uint64_t>& value) {
    if (!value || into.size() - used < 2) return false;
    into[used++] = key;
    into[used++] = *value;
    return true;
  };
  if (row.ra != k_no_reg && row.ra != arch.ra) return std::nullopt;
  if (!add(UWX_KEY_SPILL(UWX_REG_PSP), disposition_of(row.cfa, arch))) return std::nullopt;
  for (const FrameRow::Entry& e : row.entries()) {
    const RegisterInfo* const reg = arch.by_dwarf(e.reg);
    const bool is_ra = e.reg == arch.ra;
    if (!is_ra && (!reg || reg->uwx < 0)) return std::nullopt;
    const auto key = static_cast<std::uint64_t>(UWX_KEY_SPILL(is_ra ? UWX_REG_RP : reg->uwx));
    if (!add(key, disposition_of(e.rule, arch))) return std::nullopt;
  }
  return used;
}

}  // namespace jitunwind::uwx
