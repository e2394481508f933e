// Registration with this library: the bare registry and the builders on top of it. Beside them there is the list that
// is the least that a registration can be.
#include <jitunwind/c.h>
#include <jitunwind/code_segments.h>
#include <jitunwind/jitunwind.h>
#include <jitunwind_jit.h>

#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "bench/describe.h"
#include "bench/peer.h"

namespace bench {

namespace {

using jitunwind::Description;

bool find_procedure(const void* pc) {
  jitunwind::MemoryWindow window;
  const auto at = jitunwind::CodeAddress::interrupted(reinterpret_cast<std::uintptr_t>(pc));
  jitunwind::Lookup lookup(jitunwind::local_space(), at, window);
  jitunwind::ProcedureInfo info;
  const auto found = jitunwind::local_space().find_procedure(lookup, info);
  return found && *found;
}

/// Keeps one description for each shape. Most arenas have few shapes, as the functions of a generator do.
class Descriptions {
 public:
  const Description& of(const JitFunction& function) {
    const auto known = known_.find(function.locals);
    if (known != known_.end()) return known->second;
    return known_.emplace(function.locals, describe(function, "jit")).first->second;
  }

 private:
  std::map<std::size_t, Description> known_;
};

Descriptions descriptions;

/// Calls register_procedure() with descriptors of the caller, as libunwind's interface does.
class RegistryRegistrar : public Registrar {
 public:
  const char* name() const override { return "register_procedure"; }
  const char* description() const override { return "directives"; }
  std::size_t max_functions() const override { return 1'000'000; }
  bool find(const void* pc) override { return find_procedure(pc); }

  void prepare(std::span<const JitFunction> functions) override {
    prepared_.assign(functions.size(), {});
    for (std::size_t i = 0; i < functions.size(); ++i) {
      const JitFunction& function = functions[i];
      auto registration = jitunwind::register_code(descriptions.of(function), function.code, function.size).value();
      unw_dyn_info_t& copy = prepared_[i];
      copy = *registration.info();
      copy.u.pi.name_ptr = 0;  // the name belongs to the registration
    }
  }
  void register_function(std::size_t index) override { (void)jitunwind::register_procedure(&prepared_[index]); }
  void cancel_function(std::size_t index) override { (void)jitunwind::cancel_procedure(&prepared_[index]); }

 protected:
  std::vector<unw_dyn_info_t> prepared_;
};

/// Registers procedures that have a table with one FDE each.
class TableRegistrar final : public RegistryRegistrar {
 public:
  const char* name() const override { return "register_procedure, tables"; }
  const char* description() const override { return "table"; }
  void prepare(std::span<const JitFunction> functions) override {
    prepared_.assign(functions.size(), {});
    pairs_.clear();
    pairs_.reserve(functions.size());
    for (std::size_t i = 0; i < functions.size(); ++i) {
      const auto start = reinterpret_cast<std::uintptr_t>(functions[i].code);
      pairs_.push_back({start, reinterpret_cast<std::uintptr_t>(functions[i].fde)});
      unw_dyn_info_t& info = prepared_[i];
      info.start_ip = start;
      info.end_ip = start + functions[i].size;
      info.format = UNW_INFO_FORMAT_REMOTE_TABLE_64;
      info.u.rti.table_len = sizeof pairs_[i] / sizeof(unw_word_t);
      info.u.rti.table_data = reinterpret_cast<std::uintptr_t>(&pairs_[i]);
    }
  }

 private:
  std::vector<std::array<std::uint64_t, 2>> pairs_;
};

/// Keeps what each registration gives.
template <class Handle>
class HandleRegistrar : public Registrar {
 public:
  std::size_t max_functions() const override { return 1'000'000; }
  bool find(const void* pc) override { return find_procedure(pc); }

  void prepare(std::span<const JitFunction> functions) override {
    functions_ = functions;
    live_.clear();
    live_.resize(functions.size());
  }

 protected:
  std::span<const JitFunction> functions_;
  std::vector<Handle> live_;
};

/// Calls register_code(), which allocates the descriptor and the name as well.
class BuilderRegistrar final : public HandleRegistrar<jitunwind::Registration> {
 public:
  const char* name() const override { return "register_code"; }

  void register_function(std::size_t index) override {
    const JitFunction& function = functions_[index];
    live_[index] = jitunwind::register_code(descriptions.of(function), function.code, function.size).value();
  }
  void cancel_function(std::size_t index) override { (void)live_[index].cancel(); }
};

/// Calls ju_register(), the C form of register_code().
class CRegistrar final : public HandleRegistrar<ju_registration*> {
 public:
  const char* name() const override { return "ju_register"; }

  void register_function(std::size_t index) override {
    const JitFunction& function = functions_[index];
    ju_code code;
    ju_code_init(&code, function.code, function.size);
    if (ju_register(description_of(function), &code, &live_[index], nullptr) != JU_OK) std::abort();
  }
  void cancel_function(std::size_t index) override { (void)ju_cancel(live_[index], nullptr); }

 private:
  const ju_description* description_of(const JitFunction& function) {
    ju_description*& description = known_[function.locals];
    if (description == nullptr) description = describe_in_c(function);
    return description;
  }

  std::map<std::size_t, ju_description*> known_;  // never released, as those of C++
};

/// Announces code by the header that JITs copy, which finds this program's library.
class HeaderRegistrar final : public HandleRegistrar<ju_jit_known*> {
 public:
  const char* name() const override { return "jitunwind_jit.h"; }

  void register_function(std::size_t index) override {
    const JitFunction& function = functions_[index];
    const ju_jit_code code = JU_JIT_CODE(function.code, function.size, "jit", &frame_of(function));
    if (ju_jit_announce(&code, &live_[index], nullptr) != JU_JIT_OK) std::abort();
  }
  void cancel_function(std::size_t index) override { (void)ju_jit_take_back(live_[index], nullptr); }

 private:
  struct Frame {
    std::array<ju_jit_mark, 4> marks{};
    ju_jit_frame frame{};
  };
  ju_jit_frame& frame_of(const JitFunction& function) {
    Frame& made = known_[function.locals];
    if (made.frame.marks == nullptr) {
      const auto locals = static_cast<std::int64_t>(function.locals);
      made.marks = {{{JU_JIT_PUSH, JU_JIT_X86_64(3), 0, 1, 0},
                     {JU_JIT_ALLOCATE, 0, 0, 8, locals},
                     {JU_JIT_DEALLOCATE, 0, 0, -2, locals},
                     {JU_JIT_POP, JU_JIT_X86_64(3), 0, -1, 0}}};
      made.frame = {made.marks.data(), made.marks.size(), 1, nullptr, nullptr};
    }
    return made.frame;
  }

  std::map<std::size_t, Frame> known_;  // never released, as those of C++
};

/// Allocates room for code that tools see, copies the function, and commits it, which registers it as well.
class SegmentsRegistrar final : public Registrar {
 public:
  const char* name() const override { return "commit, code segments"; }
  const char* description() const override { return "published"; }
  std::size_t max_functions() const override { return 100'000; }  // of files, 48 MiB
  bool find(const void*) override { return false; }
  bool can_find() const override { return false; }
  const std::byte* copy_of(std::size_t index) const override {
    return reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(starts_[index]));
  }

  void prepare(std::span<const JitFunction> functions) override {
    functions_ = functions;
    starts_.assign(functions.size(), 0);
    segments_.emplace();
  }
  void register_function(std::size_t index) override {
    const JitFunction& function = functions_[index];
    const jitunwind::CodeRoom room = segments_->allocate(function.size).value();
    std::memcpy(room.writable.data(), function.code, function.size);
    segments_->commit(descriptions.of(function), {.start = room.start, .size = function.size}).value();
    starts_[index] = room.start;
  }
  void cancel_function(std::size_t index) override { (void)segments_->release(starts_[index]); }

 private:
  std::optional<jitunwind::CodeSegments> segments_;
  std::span<const JitFunction> functions_;
  std::vector<jitunwind::Addr> starts_;
};

/// A doubly linked list of descriptors without any protection, in which nothing can be found.
class ListRegistrar final : public Registrar {
 public:
  const char* name() const override { return "bare list"; }
  std::size_t max_functions() const override { return 1'000'000; }
  bool find(const void*) override { return false; }
  bool can_find() const override { return false; }

  void prepare(std::span<const JitFunction> functions) override {
    nodes_.assign(functions.size(), {});
    for (std::size_t i = 0; i < functions.size(); ++i) {
      nodes_[i].start_ip = reinterpret_cast<unw_word_t>(functions[i].code);
    }
  }
  void register_function(std::size_t index) override {
    unw_dyn_info_t& node = nodes_[index];
    node.prev = nullptr;
    node.next = first_;
    if (first_) first_->prev = &node;
    first_ = &node;
  }
  void cancel_function(std::size_t index) override {
    unw_dyn_info_t& node = nodes_[index];
    (node.prev ? node.prev->next : first_) = node.next;
    if (node.next) node.next->prev = node.prev;
  }

 private:
  std::vector<unw_dyn_info_t> nodes_;
  unw_dyn_info_t* first_ = nullptr;
};

RegistryRegistrar registry_registrar;
TableRegistrar table_registrar;
BuilderRegistrar builder_registrar;
CRegistrar c_registrar;
HeaderRegistrar header_registrar;
SegmentsRegistrar segments_registrar;
ListRegistrar list_registrar;
Registrar* const k_registrars[]{&registry_registrar, &builder_registrar, &c_registrar,    &header_registrar,
                                &segments_registrar, &list_registrar,    &table_registrar};

}  // namespace

std::span<Registrar* const> registrars() { return k_registrars; }

}  // namespace bench
