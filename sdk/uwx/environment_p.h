// uwx_env: a target behind two callbacks, and a cursor on one of its stacks. If the target is this process itself, with
// the callbacks of uwx_self.h, the space is that of the engine's local walks.
//
// The cursor gets unknown values when they are needed: registers of the frame in which the walk began. `unread_` marks
// those that no frame has saved since.
#pragma once

#include <uwx_self.h>

#include <array>
#include <cstdint>
#include <optional>

#include "jitunwind/sdk/uwx/answers/callbacks_p.h"
#include "jitunwind/sdk/uwx/names/file_cache_p.h"
#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/emit/row_state.h"
#include "jitunwind/unwind_core/row_source.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"
#include "jitunwind/unwind_core/walk/cursor.h"

namespace jitunwind::uwx {

// UWX_LKUP_LOOKUP as the source of rows of a target. The client finds the table, entry or frame for an address, and the
// engine reads it through the client's memory.

/// Receives the facts of the frame besides its row, while the strings of the answer still exist.
class FactsListener {
 public:
  virtual void know(const FrameFacts& facts) const noexcept = 0;

 protected:
  ~FactsListener() = default;
};

/// Makes one request for each question, and a second one if the first was answered with UWX_LKUP_REMAP.
class LookedUpRows final : public RowSource {
 public:
  LookedUpRows(const Callbacks& callbacks, const FactsListener& listener) noexcept
      : callbacks_(callbacks), listener_(listener) {}

  /// Never false: unknown code has a leaf's row, or is an error. A context frame of FDESC has no row, but signal_frame
  /// is set.
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override;

 private:
  /// The values of UTABLE and UINFO; 0: none.
  struct Table {
    std::optional<Addr> text_base, begin, end, entry;
    std::uint64_t flags = UWX_UFLAGS_EH_FRAME_HDR;
    Addr gp = 0;

    CfiContext context(const Arch& arch) const noexcept {
      CfiContext made{arch};
      made.text_base = text_base.value_or(0);
      made.data_base = gp;
      return made;
    }
  };
  static Result<Table> read_table(const Answer& answer, FrameFacts& facts) noexcept;

  Found row_of(const Answer& answer, CodeAddress at, Lookup& lookup, FrameRow& out, FrameFacts& facts) const noexcept;
  Found row_by_table(const Table& table, CodeAddress at, Lookup& lookup, FrameRow& out, AddrRange& code) const noexcept;
  Found row_by_search(const Table& table, CodeAddress at, Lookup& lookup, FrameRow& out,
                      AddrRange& code) const noexcept;
  Found row_by_scan(const Table& table, AddrRange entries, CodeAddress at, Lookup& lookup, FrameRow& out,
                    AddrRange& code) const noexcept;
  Found row_by_entry(Addr entry, const Table& table, CodeAddress at, Lookup& lookup, FrameRow& out,
                     AddrRange& code) const noexcept;

  const Callbacks& callbacks_;
  const FactsListener& listener_;
  CopyinMemory tables_{callbacks_, UWX_COPYIN_UINFO, UWX_ERR_COPYIN_UTBL};
  CopyinMemory entries_{callbacks_, UWX_COPYIN_UINFO, UWX_ERR_COPYIN_UINFO};
};

// Names and source of the current frame: the client's answers, requested once, and the strings that were handed out.

class FrameNames {
 public:
  explicit FrameNames(const Allocator& allocator) noexcept : pool_(allocator) {}

  /// Begins another frame.
  void forget() noexcept;
  /// Continues with the code around an inlined call.
  void step_inline(int context) noexcept;
  /// Stores the facts that LOOKUP gave.
  void know(const FrameFacts& facts) noexcept;
  void know_function(Addr start) noexcept { function_ = start; }

  /// The requests UWX_LKUP_MODULE and UWX_LKUP_SYMBOLS are made unless the answer is known. Status: OK, NOSYM, or an
  /// error.
  int ask_module(const Callbacks& callbacks, CodeAddress at) noexcept;
  /// `wants_source`: names alone are not enough. `gets_source`: an answer contains everything.
  int ask_symbols(const Callbacks& callbacks, CodeAddress at, bool wants_source, bool gets_source) noexcept;

  char* module() const noexcept { return module_; }
  Addr text_base() const noexcept { return text_base_; }
  /// The function's start by the unwind information, or else by the symbol; 0: not known.
  Addr function() const noexcept { return function_ != 0 ? function_ : symbol_start_; }
  char* symbol() const noexcept { return symbol_; }
  /// The offset of `at` from the symbol's start; 0: not known.
  std::uint64_t offset(Addr at) const noexcept { return symbol_ && symbol_start_ != 0 ? at - symbol_start_ : 0; }

  struct Source {
    char* inlined = nullptr;
    char* file = nullptr;
    int line = 0;
    int context = 0;  ///< for step_inline()
  };
  const Source& source() const noexcept { return source_; }

  StringPool& pool() noexcept { return pool_; }

 private:
  enum class Asked : unsigned char { no, symbols, with_source };

  int ask(const Callbacks& callbacks, int request, CodeAddress at) noexcept;
  bool take(std::uint64_t key, std::uint64_t value, bool& lacks_memory) noexcept;

  StringPool pool_;
  char* module_ = nullptr;
  char* symbol_ = nullptr;
  Addr text_base_ = 0;
  Addr function_ = 0;
  Addr symbol_start_ = 0;
  Source source_{};
  int inlined_at_ = 0;  // the argument of uwx_step_inline
  bool module_asked_ = false;
  Asked symbols_asked_ = Asked::no;
};

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
