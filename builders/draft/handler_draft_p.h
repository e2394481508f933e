// The exception handlers of a draft: call sites, their landing pads, and the exceptions that land. build() converts
// them to the table that __gxx_personality_v0 reads (Itanium C++ ABI, exception handling tables; LSB 5.0 core, 10.6).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <typeinfo>
#include <vector>

#include "jitunwind/builders/description.h"
#include "jitunwind/builders/frame_handler.h"
#include "jitunwind/builders/instruction.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind {

/// The exception handlers of a procedure, shared by its description and every procedure registered with it.
struct ProcedureHandlers {
  std::vector<std::byte> table;  ///< language-specific data, independent of the code's address. Empty: frame_handler
  std::uint64_t min_size = 0;    ///< size in bytes of a procedure that contains all call sites and landing pads
  FrameHandler frame_handler{};
  mutable std::atomic<std::size_t> users{1};  ///< HandlersRef

  /// The value of the descriptor's field.
  Addr lsda() const noexcept;
  Addr personality() const noexcept;
};

/// Every function only records; build() reports the mistakes.
class HandlerDraft {
 public:
  void call_site(Instruction calls, std::int64_t pad);
  void terminates(Instruction calls);
  // These apply to the last call site.
  void catches(const std::type_info* type);
  void catches_all();
  void allows(std::span<const std::type_info* const> types);
  void cleans_up();

  void set_frame_handler(FrameHandler handler);

  /// Number of a type, from 1 on, in the order in which types are first named.
  int selector(const std::type_info* type);

  bool empty() const noexcept { return sites_.empty() && findings_.empty() && !frame_handler_; }

  /// The properties of the procedure as a whole.
  struct Procedure {
    const Arch& arch;
    std::optional<std::uint64_t> size;
    Addr personality;
    Addr lsda;
  };
  /// Empty when the draft has no handlers, and after a mistake, which adds to `findings`.
  HandlersRef build(const Procedure& procedure, std::vector<Finding>& findings) const;

 private:
  friend class HandlerTable;
  enum class Kind : std::uint8_t { lands, terminates };
  struct Site {
    Kind kind;
    Instruction calls;
    std::int64_t pad;
    std::vector<std::int64_t> selectors;  // in the order of their precedence; 0: cleanup
  };

  void add_selector(const char* what, std::int64_t selector);
  [[gnu::cold]] void refuse(const std::string& place, ErrorCode code, const std::string& reason);
  std::vector<Finding> contradictions(const Procedure& procedure) const;

  std::vector<Site> sites_;
  std::vector<const std::type_info*> types_;  // by number - 1; null: all
  std::vector<std::uint64_t> filters_;        // lists of numbers, each ended by 0
  FrameHandler frame_handler_;
  std::vector<Finding> findings_;
};

}  // namespace jitunwind
