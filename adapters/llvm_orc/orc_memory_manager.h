// RuntimeDyld: a memory manager that registers the object it holds when its memory is finalised.
#pragma once

#include <llvm/ExecutionEngine/SectionMemoryManager.h>

#include <string>
#include <vector>

#include "adapters/llvm_orc/orc_options.h"
#include "builders/object_registration.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// In place of the llvm::SectionMemoryManager of one object; tells the system's unwinder nothing itself. Errors of an
/// object (see OrcPlugin) fail its link. `options` must outlive it; `mapper` as for LLVM's.
class OrcMemoryManager : public llvm::SectionMemoryManager {
 public:
  explicit OrcMemoryManager(const OrcOptions& options = k_no_options, MemoryMapper* mapper = nullptr);
  ~OrcMemoryManager() override;

  // What LLVM calls.
  using llvm::SectionMemoryManager::notifyObjectLoaded;
  std::uint8_t* allocateCodeSection(std::uintptr_t size, unsigned alignment, unsigned section,
                                    llvm::StringRef name) override;
  void notifyObjectLoaded(llvm::RuntimeDyld& linker, const llvm::object::ObjectFile& object) override;
  void registerEHFrames(std::uint8_t* at, std::uint64_t load_address, std::size_t size) override;
  void deregisterEHFrames() override;
  bool finalizeMemory(std::string* error) override;

 private:
  struct Symbol {
    Addr start;
    std::uint64_t size;
    std::string name;
  };
  static const OrcOptions k_no_options;

  const OrcOptions& options_;
  std::string object_;
  std::vector<AddrRange> code_;
  std::vector<Symbol> symbols_;
  std::vector<AddrRange> eh_frames_;
  std::vector<ObjectRegistration> registrations_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
