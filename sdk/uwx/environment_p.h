// uwx_env: a target behind two callbacks, and a cursor on one of its stacks. If the target is this process itself, with
// the callbacks of uwx_self.h, the space is that of the engine's local walks.
//
// The cursor gets unknown values when they are needed: registers of the frame in which the walk began. `unread_` marks
// those that no frame has saved since.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <uwx_self.h>
#include "jitunwind/sdk/uwx/answers/callbacks_p.h"
#include "jitunwind/sdk/uwx/answers/looked_up_rows_p.h"
#include "jitunwind/sdk/uwx/names/file_cache_p.h"
#include "jitunwind/sdk/uwx/names/frame_names_p.h"
#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/emit/row_state.h"
#include "jitunwind/unwind_core/walk/cursor.h"

namespace jitunwind::uwx {

class Environment final : FactsListener {
 public:
  explicit Environment(const Allocator& allocator) noexcept;
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  const Allocator& allocator() const noexcept { return allocator_; }
  StringPool& pool() noexcept { return names_.pool(); }

  // Functions that return a number return UWX_OK or another status.

  int set_remote(bool big_endian) noexcept;
  int set_target(unsigned elf_machine) noexcept;
  void leave_vectors_out() noexcept { has_vectors_ = false; }
  int set_callbacks(const Callbacks& callbacks) noexcept;
  const Callbacks& callbacks() const noexcept { return callbacks_; }

  /// Begins at an instruction; the callbacks give all other registers.
  int begin(Addr ip, Addr sp) noexcept;
  /// Begins with these registers and no others.
  int begin(const RegisterFile& registers, Cursor::Top top) noexcept;
  int set_register(int regid, std::uint64_t value) noexcept;
  int step() noexcept;
  int context_code() const noexcept { return context_code_; }

  int get_register(int regid, std::uint64_t* into) noexcept;
  int get_nat(int regid, int& nat) const noexcept;
  int get_location(int regid, std::uint64_t& disposition) noexcept;

  int step_inline(int context) noexcept;
  int find_module() noexcept;
  int find_function() noexcept;
  int find_symbol() noexcept;
  int find_source() noexcept;
  const FrameNames& names() const noexcept { return names_; }

  /// The token of uwx_self.h that belongs to the environment; null: none.
  void set_self(uwx_self_info* info) noexcept;
  uwx_self_info* self() const noexcept { return self_; }
  bool is_remote() const noexcept { return remote_; }
  bool walks_itself() const noexcept { return walks_itself_; }
  const Arch& target() const noexcept { return cpu_; }

  // The next functions serve walks of the same target by other means.

  /// Finds the row at `ip`: the IP of the context, if that was interrupted, or else the byte before a return address.
  int find_row_at(Addr ip, FrameRow& out, FrameFacts& facts) const noexcept;
  /// Reads memory of the target, whatever its area. False: it cannot be read.
  bool read_target(Addr at, std::span<std::byte> into) const noexcept;
  /// The memory of a row that is lent until the next row is requested.
  RowState& lent_row() noexcept { return lent_row_; }

  /// Null: there is no context.
  const Cursor* cursor() const noexcept { return cursor_ ? &*cursor_ : nullptr; }

 private:
  void know(const FrameFacts& facts) const noexcept override;

  const AddressSpace& space() const noexcept;
  const Arch& arch() const noexcept { return space().arch; }
  int check() const noexcept;
  void choose_space() noexcept;
  void forget_context() noexcept;
  void arrive() noexcept;

  int step_here() noexcept;
  int ask_symbols(bool with_source) noexcept;
  int find_row() noexcept;
  /// Reads the registers that the row needs.
  int read_registers() noexcept;
  Result<std::uint64_t> read_register(const RegisterInfo& reg) noexcept;
  std::uint64_t still_unread() const noexcept;
  /// Makes a cursor at the caller. UWX_BOTTOM: there is none.
  int find_caller(Cursor& out) noexcept;
  bool is_known_of(const RegisterInfo& reg) const noexcept;

  const Allocator allocator_;
  Callbacks callbacks_{};
  Arch cpu_;  // in the byte order of the target
  CopyinMemory stack_{callbacks_, UWX_COPYIN_MSTACK, UWX_ERR_COPYIN_MSTK};
  NoModules no_modules_;
  LookedUpRows rows_{callbacks_, *this};
  std::array<const RowSource*, 1> row_sources_{&rows_};
  AddressSpace space_of_callbacks_{cpu_, stack_, no_modules_, row_sources_, {}};
  bool remote_ = false;
  bool has_vectors_ = true;
  bool walks_itself_ = false;
  uwx_self_info* self_ = nullptr;

  std::optional<Cursor> cursor_;
  std::uint64_t unread_ = 0;  // columns
  mutable FrameNames names_;
  // The following members describe this frame.
  bool has_row_ = false;
  int context_code_ = 0;  // set while uwx_step returns UWX_ABI_FRAME
  mutable int context_of_row_ = 0;
  FrameRow row_;
  RowState lent_row_{};
};

}  // namespace jitunwind::uwx

/// The opaque structure of uwx.h.
struct uwx_env final {
  explicit uwx_env(const jitunwind::uwx::Allocator& allocator) noexcept : environment(allocator) {}
  jitunwind::uwx::Environment environment;
};

/// The opaque structure of uwx_self.h: the token of the callbacks by which a thread walks its own stack.
struct uwx_self_info final {
  explicit uwx_self_info(uwx_env& env) noexcept
      : owner(env), files(env.environment.allocator()), strings(env.environment.allocator()) {}

  uwx_env& owner;
  /// The context that UWX_COPYIN_REG reads: that of the function which made it, or of the code that a signal has
  /// interrupted.
  jitunwind::RegisterFile context;
  /// Whether the next answer to SYMBOLS includes the source, for which debug information is read.
  bool wants_source = true;
  jitunwind::uwx::FileCache files;

  // The words of the current answer.
  std::array<std::uint64_t, jitunwind::uwx::k_answer_words> answer{};
  jitunwind::uwx::StringPool strings;
};
