// The adapter for RuntimeDyld: a memory manager that registers the object it holds when its memory is finalised.
#pragma once

#include <llvm/ExecutionEngine/SectionMemoryManager.h>

#include <cstdint>
#include <memory>
#include <string>

#include "jitunwind/adapters/llvm_orc/orc_options.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Replaces the llvm::SectionMemoryManager of one object or, for an MCJIT, of all its modules. The system's unwinder
/// gets no registration of its own. Errors of an object (see OrcPlugin) fail its link; MCJIT ignores them and continues
/// without the registration. The destructor of the linker or engine cancels the registrations. `options` must outlive
/// the manager; `mapper` is LLVM's parameter.
class OrcMemoryManager : public llvm::SectionMemoryManager {
 public:
  explicit OrcMemoryManager(const OrcOptions& options = k_no_options, MemoryMapper* mapper = nullptr);
  ~OrcMemoryManager() override;

  // Functions that LLVM calls.
  using llvm::SectionMemoryManager::notifyObjectLoaded;
  std::uint8_t* allocateCodeSection(std::uintptr_t size, unsigned alignment, unsigned section,
                                    llvm::StringRef name) override;
  std::uint8_t* allocateDataSection(std::uintptr_t size, unsigned alignment, unsigned section, llvm::StringRef name,
                                    bool is_read_only) override;
  void notifyObjectLoaded(llvm::RuntimeDyld& linker, const llvm::object::ObjectFile& object) override;
  void registerEHFrames(std::uint8_t* at, std::uint64_t load_address, std::size_t size) override;
  void deregisterEHFrames() override;
  bool finalizeMemory(std::string* error) override;

 private:
  struct Objects;
  static const OrcOptions k_no_options;

  const OrcOptions& options_;
  const std::unique_ptr<Objects> objects_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
