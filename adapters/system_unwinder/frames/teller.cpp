#include "jitunwind/adapters/system_unwinder/frames/teller_p.h"

#include <cstddef>
#include <new>
#include <span>
#include <vector>

#include "jitunwind/adapters/system_unwinder/frames/frame_tables_p.h"
#include "jitunwind/adapters/system_unwinder/lookups_p.h"
#include "jitunwind/dyn_info/registry/observers_internal.h"

namespace jitunwind {
namespace {

/// Announces procedures to an unwinder that does not call _Unwind_Find_FDE. Never destroyed, because foreign static
/// objects cancel at exit.
class Teller final : public RegistryObserver {
 public:
  explicit Teller(FrameContract contract) noexcept : tables_(contract) {}

  void registered(std::span<const RegisteredProcedure> procedures) noexcept override {
    change([&] {
      std::vector<unw_dyn_info_t*> infos;
      for (const RegisteredProcedure& procedure : procedures) infos.push_back(procedure.info);
      tables_.add(infos);
    });
  }
  void cancelled(std::span<unw_dyn_info_t* const> procedures) noexcept override {
    change([&] { tables_.remove(procedures); });
  }
  void retired() noexcept override {
    change([&] { tables_.remove_all_gone(); });
  }

 private:
  template <class Change>
  static void change(Change change) noexcept {
    try {
      change();
    } catch (const std::bad_alloc&) {
      note_refusal({ErrorCode::out_of_memory, 0, "no memory for the unwinder's tables"});
    }
  }

  FrameTables tables_;
};

alignas(Teller) std::byte teller_memory[sizeof(Teller)];

}  // namespace

/// The first path that is found stays: once the tables exist, they are kept up to date.
void start_telling() noexcept {
  const ObserversScope scope;
  if (told_contract.load(std::memory_order_relaxed) != FrameContract::none) return;
  const FrameContract found = find_frame_contract();
  if (found == FrameContract::none) return;
  auto* const teller = new (teller_memory) Teller(found);
  told_contract.store(found, std::memory_order_release);
  (void)attach_in_scope(*teller);
}

}  // namespace jitunwind
