#include "jitunwind/adapters/llvm_orc/orc_report_p.h"

#include <cinttypes>
#include <cstdio>
#include <new>

namespace jitunwind {
namespace {

const char* name_of(const unw_dyn_info_t& procedure) noexcept {
  return reinterpret_cast<const char*>(procedure.u.rti.name_ptr);
}

void report(const ObjectRegistration& registration, const std::string& name, const OrcOptions& options) {
  if (!options.on_undescribed || registration.undescribed().empty()) return;
  OrcUndescribed report{name, {}};
  for (const unw_dyn_info_t& procedure : registration.undescribed()) report.functions.emplace_back(name_of(procedure));
  options.on_undescribed(report);
}

}  // namespace

std::string OrcUndescribed::text() const {
  std::string text = object + ": no call frame information for";
  for (const std::string& function : functions) text += ' ' + function;
  return text + " (LLVM writes it for functions that may throw, and for those with the attribute uwtable)";
}

llvm::Error orc_error(const std::string& what) {
  return llvm::make_error<llvm::StringError>("jitunwind: " + what, llvm::inconvertibleErrorCode());
}

llvm::Expected<ObjectRegistration> register_orc_object(const ObjectCode& code, const std::string& name,
                                                       const OrcOptions& options) noexcept {
  try {
    auto registered = register_object(code);
    if (registered) {
      report(*registered, name, options);
      return std::move(*registered);
    }
    const Error& error = registered.error();
    char place[128];
    std::snprintf(place, sizeof place, " (.eh_frame at 0x%" PRIx64 ", +0x%" PRIx64 ")", code.eh_frame.begin,
                  error.at - code.eh_frame.begin);
    const bool in_eh_frame = code.eh_frame.contains(error.at);
    return orc_error("cannot register " + name + ": " + error_text(error.code) + ": " + error.what +
                     (in_eh_frame ? place : ""));
  } catch (const std::bad_alloc&) {
    return orc_error("no memory to register an object");
  }
}

}  // namespace jitunwind
