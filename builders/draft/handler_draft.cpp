#include "jitunwind/builders/draft/handler_draft_p.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "jitunwind/builders/draft/draft_record_p.h"
#include "jitunwind/builders/frame_handler.h"
#include "jitunwind/builders/frame_personality_internal.h"
#include "jitunwind/unwind_core/emit/byte_writer.h"

/// The personality routine of the C++ run-time library (Itanium C++ ABI, exception handling). Only its address is used.
extern "C" int __gxx_personality_v0(...);

namespace jitunwind {

FrameDecision& FrameDecision::with(RegNum dwarf, std::uint64_t value) {
  registers_.push_back({dwarf, value});
  return *this;
}

FrameHandler::FrameHandler(const FrameHandler& other) noexcept : function_(other.function_) {
  if (function_) std::atomic_ref(function_->users).fetch_add(1, std::memory_order_relaxed);
}

FrameHandler::~FrameHandler() {
  if (function_ && std::atomic_ref(function_->users).fetch_sub(1, std::memory_order_acq_rel) == 1) delete function_;
}

Addr ProcedureHandlers::lsda() const noexcept {
  return frame_handler ? reinterpret_cast<std::uintptr_t>(&frame_handler)
                       : reinterpret_cast<std::uintptr_t>(table.data());
}

Addr ProcedureHandlers::personality() const noexcept {
  return frame_handler ? reinterpret_cast<std::uintptr_t>(&jitunwind_frame_personality)
                       : reinterpret_cast<std::uintptr_t>(&__gxx_personality_v0);
}

HandlersRef::HandlersRef(const HandlersRef& other) noexcept : handlers_(other.handlers_) {
  if (handlers_) handlers_->users.fetch_add(1, std::memory_order_relaxed);
}

HandlersRef::~HandlersRef() {
  if (handlers_ && handlers_->users.fetch_sub(1, std::memory_order_acq_rel) == 1) delete handlers_;
}

std::size_t HandlersRef::users() const noexcept { return handlers_->users.load(std::memory_order_relaxed); }

void HandlerDraft::refuse(const std::string& place, ErrorCode code, const std::string& reason) {
  findings_.push_back(finding_of(place, code, reason));
}

void HandlerDraft::set_frame_handler(FrameHandler handler) {
  if (!handler) return refuse("handled_by()", ErrorCode::invalid_argument, "no function");
  frame_handler_ = std::move(handler);
}

std::vector<Finding> HandlerDraft::contradictions(const Procedure& procedure) const {
  std::vector<Finding> found;
  const auto refuse = [&](const char* place, const char* reason) {
    found.push_back(finding_of(place, ErrorCode::invalid_argument, reason));
  };
  if (procedure.lsda != 0) refuse("procedure", "handlers, and language-specific data of the caller's by lsda()");
  if (frame_handler_ && !sites_.empty()) refuse("handled_by()", "beside call_site(): one or the other decides");
  if (frame_handler_ && procedure.personality != 0) refuse("handled_by()", "beside a personality() of the caller's");
  return found;
}

void HandlerDraft::call_site(Instruction calls, std::int64_t pad) { sites_.push_back({Kind::lands, calls, pad, {}}); }

void HandlerDraft::terminates(Instruction calls) { sites_.push_back({Kind::terminates, calls, 0, {}}); }

void HandlerDraft::add_selector(const char* what, std::int64_t selector) {
  if (sites_.empty() || sites_.back().kind != Kind::lands)
    return refuse(what, ErrorCode::invalid_argument, "not behind a call_site()");
  sites_.back().selectors.push_back(selector);
}

int HandlerDraft::selector(const std::type_info* type) {
  const auto same = [type](const std::type_info* other) {
    return other == type || (other != nullptr && type != nullptr && *other == *type);
  };
  const auto known = std::ranges::find_if(types_, same);
  const auto number = static_cast<int>(known - types_.begin()) + 1;
  if (known == types_.end()) types_.push_back(type);
  return number;
}

void HandlerDraft::catches(const std::type_info* type) {
  if (type == nullptr) return refuse("catches()", ErrorCode::e_catch_type, "null is no type; see catches_all()");
  add_selector("catches()", selector(type));
}

void HandlerDraft::catches_all() { add_selector("catches_all()", selector(nullptr)); }

void HandlerDraft::cleans_up() { add_selector("cleans_up()", 0); }

void HandlerDraft::allows(std::span<const std::type_info* const> types) {
  std::vector<std::uint64_t> list;
  for (const std::type_info* type : types) {
    if (type == nullptr) return refuse("allows()", ErrorCode::e_catch_type, "null is no type");
    list.push_back(static_cast<std::uint64_t>(selector(type)));
  }
  list.push_back(0);
  // The selector is minus the position of the list in the filters' bytes, counted from 1.
  ByteWriter counting({}, false);
  for (const std::uint64_t number : filters_) counting.uleb(number);
  filters_.insert(filters_.end(), list.begin(), list.end());
  add_selector("allows()", -static_cast<std::int64_t>(counting.size()) - 1);
}

}  // namespace jitunwind
