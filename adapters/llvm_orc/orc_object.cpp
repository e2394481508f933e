#include "jitunwind/adapters/llvm_orc/orc_object_p.h"

#include <algorithm>
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

/// References of 32 bits reach 2 GiB; some lie behind the begin of what they are in.
constexpr std::uint64_t k_reach = (std::uint64_t{1} << 31) - (std::uint64_t{1} << 24);

/// The parts' places behind a start that is aligned to `alignment`, which this sets; returns the size of all.
std::uint64_t lay_out(std::span<OrcCode> parts, std::uint64_t& alignment) noexcept {
  std::uint64_t end = 0;
  for (OrcCode& part : parts) {
    end += (part.alignment_offset - end) % part.alignment;
    part.start = end;
    end += part.size;
    alignment = std::max(alignment, part.alignment);
  }
  return end;
}

/// Returns the data that the room's code does not reach.
std::span<const AddrRange>::iterator find_unreached(AddrRange room, std::span<const AddrRange> data) noexcept {
  return std::find_if(data.begin(), data.end(), [&](AddrRange d) {
    return std::max(d.end, room.end) - std::min(d.begin, room.begin) >= k_reach;
  });
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

OrcRoom& OrcRoom::operator=(OrcRoom&& other) noexcept {
  release();
  segments_ = std::exchange(other.segments_, nullptr);
  code_ = other.code_;
  return *this;
}

OrcRoom OrcRoom::allocate(CodeSegments* segments, std::span<OrcCode> parts, std::size_t functions,
                          std::span<const AddrRange> data) {
  if (segments == nullptr) return {};
  std::uint64_t alignment = 16;
  const std::uint64_t size = lay_out(parts, alignment);
  const auto allocated = segments->allocate(size, functions, alignment);
  if (!allocated) return segments->refuse(allocated.error()), OrcRoom();
  OrcRoom room(segments, {allocated->start, allocated->start + size});
  if (const auto far = find_unreached(room.code_, data); far != data.end()) {
    segments->refuse({ErrorCode::e_range, far->begin, "data of an object lies more than 2 GiB from the segment"});
    return {};
  }
  for (OrcCode& part : parts) {
    part.writable = allocated->writable.data() + part.start;
    part.start += allocated->start;
  }
  return room;
}

void OrcRoom::publish() noexcept {
  if (segments_ != nullptr) (void)segments_->publish(code_);
}

void OrcRoom::release() noexcept {
  if (segments_ != nullptr) (void)std::exchange(segments_, nullptr)->release(code_.begin);
}

}  // namespace jitunwind
