#include "jitunwind/sdk/local_space.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <new>
#include <optional>
#include <span>

#include "jitunwind/dyn_info/code_shape_internal.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/environment.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"
#include "jitunwind/unwind_core/memory/copied.h"
#include "jitunwind/unwind_core/memory/known_stack_internal.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/sources/guesses/taken_back_internal.h"
#include "jitunwind/unwind_core/sources/guesses/unknown_code_internal.h"
#include "jitunwind/unwind_core/sources/sources.h"

namespace jitunwind {
namespace {

constinit const LocalMemory k_memory;
constinit const CopiedMemory k_copied_memory;

class LocalModuleVersions final : public ModuleVersions {
 public:
  constexpr LocalModuleVersions() = default;
  bool find(Addr at, ModuleVersion& out) const noexcept override { return find_module_version(at, out); }
};

constinit const LocalModuleVersions k_versions;

/// The tables of what is kept of this process's code. They are mapped while the library is loaded, since a walk in a
/// signal handler of a sandbox must not ask for memory.
struct LocalTables {
  KeptRules rules;
  KeptRules::Table alike;
  UnknownCode::Table unknown_code;
};

struct LocalSpace {
  /// Null: no rows are kept. Such a space is the reference for one that keeps them.
  explicit LocalSpace(LocalTables* kept) noexcept
      : keeping(kept ? std::optional<Keeping>(std::in_place, *kept, cpu) : std::optional<Keeping>()),
        space{cpu,
              k_memory,
              local_modules(),
              sources.rows(),
              names,
              keeping ? &keeping->row_cache : nullptr,
              sources.guesses(),
              &of_addresses,
              keys} {}

  struct Keeping {
    Keeping(LocalTables& kept, const Arch& cpu) noexcept
        : alike{registered_shapes(), kept.alike},
          unknown(kept.unknown_code),
          row_cache{CompactLayout(cpu), registration_changes(), k_versions, kept.rules, &alike, &unknown, true} {}

    const AlikeRules alike;
    const UnknownCode unknown;
    const RowCache row_cache;
  };

  const Arch cpu = arch_of_this_machine();
  const SigningInstructions* const keys = keys_of_this_process();

  const SourceOrder sources{{.registered = &dyn_row_source(), .followed = &followed_own_code_source()}};
  std::array<const NameSource*, 2> names{&dyn_name_source(), &elf_name_source()};
  const std::optional<Keeping> keeping;
  AddressSpace of_addresses{cpu, k_copied_memory, modules_of_addresses(), sources.rows(), names};
  AddressSpace of_listed_addresses{cpu, k_copied_memory, listed_modules_of_addresses(), sources.rows(), names};
  AddressSpace space;
  AddressSpace without_kept_rows{
      cpu, k_memory, local_modules(), sources.rows(), names, nullptr, sources.guesses(), &of_addresses, keys};
  AddressSpace of_listed_modules{
      cpu, k_memory, listed_modules(), sources.rows(), names, nullptr, sources.guesses(), &of_listed_addresses, keys};
};

// A function-local static would lock, which a signal handler must not. The constructor below publishes before threads
// and handlers exist. Other constructors may come here earlier: each builds a copy in a slot of its own, and the first
// to finish publishes. A thread waits only if eight others build at the same instant.
struct Building {
  MadeOnce<LocalTables> tables;
  std::atomic<const LocalSpace*> published{nullptr};
  std::atomic<std::size_t> next_slot{0};
  alignas(LocalSpace) std::array<std::byte[sizeof(LocalSpace)], 8> slots{};
};
constinit Building building;

[[gnu::hot]] const LocalSpace* build() noexcept {
  const std::size_t slot = building.next_slot.fetch_add(1, std::memory_order_relaxed);
  if (slot >= building.slots.size()) {
    const LocalSpace* ready = nullptr;
    while (!(ready = building.published.load(std::memory_order_acquire))) {
    }
    return ready;
  }
  const LocalSpace* const made =
      new (building.slots[slot]) LocalSpace(is_to_keep_nothing() ? nullptr : building.tables.get());
  const LocalSpace* expected = nullptr;
  building.published.compare_exchange_strong(expected, made, std::memory_order_acq_rel);
  return building.published.load(std::memory_order_acquire);
}

[[gnu::hot]] const LocalSpace& published_or_built() noexcept {
  const LocalSpace* ready = building.published.load(std::memory_order_acquire);
  return *(ready ? ready : build());
}

/// Finds the main thread's stack, so that the first walk need not do it.
[[gnu::constructor]] void publish_at_load() {
  (void)build();  // a page that is read first is mapped twice
  (void)has_listed_modules();
  expect_walk_from(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
}

}  // namespace

[[gnu::hot]] const AddressSpace& local_space() noexcept { return published_or_built().space; }
const AddressSpace& local_space_without_kept_rows() noexcept { return published_or_built().without_kept_rows; }
const AddressSpace& local_space_of_listed_modules() noexcept { return published_or_built().of_listed_modules; }
bool keep_at_least(std::size_t rows) noexcept {
  LocalTables* const kept = building.tables.get();
  return kept && kept->rules.table.reserve(rows);
}
std::size_t kept_rows() noexcept {
  const LocalTables* const kept = building.tables.if_made();
  return kept ? kept->rules.table.size() : 0;
}

[[gnu::hot]] AddrRange expect_walk_from(Addr sp) noexcept { return known_stack(sp); }

void forget_walked_stacks() noexcept { forget_known_stacks(); }

bool find_local_name(CodeAddress at, std::span<char> into, ProcedureName& out) noexcept {
  return with_room([&] {
    const AddressSpace& space = local_space().for_addresses();
    MemoryWindow window;
    Lookup lookup(space, at, window);
    const Found found = space.find_name(lookup, into, out);
    return found && *found;
  });
}

}  // namespace jitunwind
