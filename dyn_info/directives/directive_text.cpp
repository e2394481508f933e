#include <cinttypes>
#include <cstdio>

#include "jitunwind/dyn_info/directives/directives.h"

namespace jitunwind {
namespace {

std::string number(const char* format, std::int64_t value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

/// The result is "r99", with the libunwind number, if the CPU has no such register.
std::string reg_text(std::int64_t libunwind, const Arch& arch) {
  const bool in_range = libunwind >= 0 && libunwind <= 0x7fff;
  const RegisterInfo* const info = in_range ? arch.by_libunwind(static_cast<int>(libunwind)) : nullptr;
  return info ? info->name : number("r%" PRId64, libunwind);
}

std::string body_text(const unw_dyn_op_t& op, const Arch& arch) {
  const auto value = static_cast<std::int64_t>(op.val);
  const std::string reg = reg_text(op.reg, arch) + ",";
  switch (op.tag) {
    case UNW_DYN_STOP:
      return "STOP";
    case UNW_DYN_SAVE_REG:
      return "SAVE_REG " + reg + reg_text(value, arch);
    case UNW_DYN_SPILL_FP_REL:
      return "SPILL_FP_REL " + reg + number("%" PRId64, value);
    case UNW_DYN_SPILL_SP_REL:
      return "SPILL_SP_REL " + reg + number("%" PRId64, value);
    case UNW_DYN_ADD:
      return "ADD " + reg + (op.val == UNW_DYN_ADD_UNKNOWN ? "unknown" : number("%" PRId64, value));
    case UNW_DYN_POP_FRAMES:
      return "POP_FRAMES " + number("%" PRId64, value);
    case UNW_DYN_LABEL_STATE:
      return "LABEL_STATE " + number("%" PRId64, value);
    case UNW_DYN_COPY_STATE:
      return "COPY_STATE " + number("%" PRId64, value);
    case UNW_DYN_ALIAS:
      return "ALIAS " + number("0x%" PRIx64, value);
    default:
      return "TAG_" + std::to_string(op.tag) + " " + reg + number("%" PRId64, value);
  }
}

}  // namespace

std::string directive_text(const unw_dyn_op_t& op, const Arch& arch) {
  std::string text = body_text(op, arch);
  if (op.qp != _U_QP_TRUE) text += " ?" + std::to_string(op.qp);
  if (op.when >= 0 && op.tag != UNW_DYN_STOP) text += number(" @%" PRIx64, op.when);
  return text;
}

}  // namespace jitunwind
