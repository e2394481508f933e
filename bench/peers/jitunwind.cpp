// This library: the bare registry, the builders on top of it, and beside them the list that is the least a registration
// can be.
#include <jitunwind/c.h>
#include <jitunwind/jitunwind.h>
#include <uwx_self.h>

#include <deque>
#include <vector>

#include "bench/describe.h"
#include "bench/peer.h"

namespace bench {

namespace {

using jitunwind::Description;

std::size_t backtrace(std::span<void*> into) { return jitunwind::backtrace(into); }

std::size_t step(std::span<void*> into) {
  std::size_t count = 0;
  alignas(16) std::byte context[jitunwind::k_context_size];
  jitunwind_capture_context(context);
  jitunwind::Cursor cursor = jitunwind::cursor_at(context, jitunwind::Cursor::Top::returned_to);
  while (count < into.size()) {
    const auto moved = cursor.step();
    if (!moved || !*moved) break;
    into[count++] = reinterpret_cast<void*>(cursor.pc());
  }
  return count;
}

/// The cursor of C: at most 1.1 times `step`.
std::size_t ju_steps(std::span<void*> into) {
  std::size_t count = 0;
  ju_cursor cursor;
  if (ju_cursor_here(&cursor, nullptr) != JU_OK) return 0;
  while (count < into.size() && ju_cursor_step(&cursor, nullptr) == JU_OK)
    into[count++] = reinterpret_cast<void*>(ju_frame_pc(&cursor));
  return count;
}

std::size_t range(std::span<void*> into) {
  std::size_t count = 0;
  for (const jitunwind::Frame& frame : jitunwind::walk_here()) {
    if (count == into.size()) break;
    into[count++] = reinterpret_cast<void*>(frame.pc());
  }
  return count;
}

/// An environment for walks of one thread, as a program keeps one.
struct UwxSelf {
  UwxSelf() : env(uwx_init()), info(uwx_self_init_info(env)) {
    (void)uwx_register_callbacks(env, reinterpret_cast<std::intptr_t>(info), &uwx_self_copyin, &uwx_self_lookupip);
  }
  uwx_env* env;
  uwx_self_info* info;
};

/// Unwind Express: a step is at most three of `step`.
std::size_t uwx_steps(std::span<void*> into) {
  thread_local const UwxSelf self;
  std::size_t count = 0;
  if (uwx_self_init_context(self.env) != UWX_OK) return 0;
  while (count < into.size() && uwx_step(self.env) == UWX_OK) {
    std::uint64_t ip = 0;
    (void)uwx_get_reg(self.env, UWX_REG_IP, &ip);
    into[count++] = reinterpret_cast<void*>(ip);
  }
  return count;
}

bool find_procedure(const void* pc) {
  jitunwind::MemoryWindow window;
  const auto at = jitunwind::CodeAddress::interrupted(reinterpret_cast<std::uintptr_t>(pc));
  jitunwind::Lookup lookup(jitunwind::local_space(), at, window);
  jitunwind::ProcedureInfo info;
  const auto found = jitunwind::local_space().find_procedure(lookup, info);
  return found && *found;
}

/// The arena's functions come in few shapes, as those of a generator do.
class Descriptions {
 public:
  const Description& of(const JitFunction& function) {
    for (const auto& [locals, description] : known_) {
      if (locals == function.locals) return description;
    }
    known_.emplace_back(function.locals, describe(function, "jit"));
    return known_.back().second;
  }

 private:
  std::deque<std::pair<std::size_t, Description>> known_;
};

Descriptions descriptions;

/// register_procedure() with descriptors that the caller has, as libunwind's interface does it.
class RegistryRegistrar final : public Registrar {
 public:
  const char* name() const override { return "register_procedure"; }
  std::size_t max_functions() const override { return 1'000'000; }
  bool find(const void* pc) override { return find_procedure(pc); }

  void prepare(std::span<const JitFunction> functions) override {
    prepared_.assign(functions.size(), {});
    for (std::size_t i = 0; i < functions.size(); ++i) {
      const JitFunction& function = functions[i];
      auto registration = jitunwind::register_code(descriptions.of(function), function.code, function.size).value();
      unw_dyn_info_t& copy = prepared_[i];
      copy = *registration.info();
      copy.u.pi.name_ptr = 0;  // the registration's own
    }
  }
  void register_function(std::size_t index) override { (void)jitunwind::register_procedure(&prepared_[index]); }
  void cancel_function(std::size_t index) override { (void)jitunwind::cancel_procedure(&prepared_[index]); }

 private:
  std::vector<unw_dyn_info_t> prepared_;
};

/// register_code(): allocates the descriptor and the name as well.
class BuilderRegistrar final : public Registrar {
 public:
  const char* name() const override { return "register_code"; }
  std::size_t max_functions() const override { return 1'000'000; }
  bool find(const void* pc) override { return find_procedure(pc); }

  void prepare(std::span<const JitFunction> functions) override {
    functions_ = functions;
    live_.clear();
    live_.resize(functions.size());
  }
  void register_function(std::size_t index) override {
    const JitFunction& function = functions_[index];
    live_[index] = jitunwind::register_code(descriptions.of(function), function.code, function.size).value();
  }
  void cancel_function(std::size_t index) override { (void)live_[index].cancel(); }

 private:
  std::span<const JitFunction> functions_;
  std::vector<jitunwind::Registration> live_;
};

/// ju_register(): the same from C.
class CRegistrar final : public Registrar {
 public:
  const char* name() const override { return "ju_register"; }
  std::size_t max_functions() const override { return 1'000'000; }
  bool find(const void* pc) override { return find_procedure(pc); }

  void prepare(std::span<const JitFunction> functions) override {
    functions_ = functions;
    live_.assign(functions.size(), nullptr);
  }
  void register_function(std::size_t index) override {
    const JitFunction& function = functions_[index];
    ju_code code;
    ju_code_init(&code, function.code, function.size);
    if (ju_register(description_of(function), &code, &live_[index], nullptr) != JU_OK) std::abort();
  }
  void cancel_function(std::size_t index) override { (void)ju_cancel(live_[index], nullptr); }

 private:
  const ju_description* description_of(const JitFunction& function) {
    for (const auto& [locals, description] : known_) {
      if (locals == function.locals) return description;
    }
    known_.emplace_back(function.locals, describe_in_c(function));
    return known_.back().second;
  }

  std::deque<std::pair<std::size_t, ju_description*>> known_;  // for good, as the C++ ones
  std::span<const JitFunction> functions_;
  std::vector<ju_registration*> live_;
};

/// A doubly linked list of descriptors, unprotected, that nothing can be found in.
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

constexpr Walker k_walkers[]{{"backtrace", backtrace, true},
                             {"step", step, true},
                             {"ju_cursor_step", ju_steps, true},
                             {"range", range, true},
                             {"uwx_step", uwx_steps, true}};
RegistryRegistrar registry_registrar;
BuilderRegistrar builder_registrar;
CRegistrar c_registrar;
ListRegistrar list_registrar;
Registrar* const k_registrars[]{&registry_registrar, &builder_registrar, &c_registrar, &list_registrar};

}  // namespace

const char* thrower() { return JITUNWIND_THROWER; }
std::span<const Walker> walkers() { return k_walkers; }
std::span<Registrar* const> registrars() { return k_registrars; }

}  // namespace bench
