#include "adapters/llvm_orc/orc_memory_manager.h"

#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/Object/ELFObjectFile.h>

#include <utility>

#include "adapters/llvm_orc/orc_report_p.h"

namespace jitunwind {
namespace {

using llvm::object::SymbolRef;

/// False also where the object does not say.
template <class T>
bool have(llvm::Expected<T>& value) {
  if (value) return true;
  llvm::consumeError(value.takeError());
  return false;
}

}  // namespace

const OrcOptions OrcMemoryManager::k_no_options;

OrcMemoryManager::OrcMemoryManager(const OrcOptions& options, MemoryMapper* mapper)
    : llvm::SectionMemoryManager(mapper), options_(options) {}

OrcMemoryManager::~OrcMemoryManager() = default;

std::uint8_t* OrcMemoryManager::allocateCodeSection(std::uintptr_t size, unsigned alignment, unsigned section,
                                                    llvm::StringRef name) {
  std::uint8_t* const at = llvm::SectionMemoryManager::allocateCodeSection(size, alignment, section, name);
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  if (at) code_.push_back({begin, begin + size});
  return at;
}

/// The linker's own symbol table has local symbols, too, as long as it lives.
void OrcMemoryManager::notifyObjectLoaded(llvm::RuntimeDyld& linker, const llvm::object::ObjectFile& object) {
  object_ = object.getFileName().str();
  for (const SymbolRef& symbol : object.symbols()) {
    auto type = symbol.getType();
    auto name = symbol.getName();
    if (!have(type) || !have(name) || *type != SymbolRef::ST_Function) continue;
    const Addr start = linker.getSymbol(*name).getAddress();
    const std::uint64_t size = object.isELF() ? llvm::object::ELFSymbolRef(symbol).getSize() : 0;
    if (start != 0) symbols_.push_back({start, size, name->str()});
  }
}

void OrcMemoryManager::registerEHFrames(std::uint8_t* at, std::uint64_t, std::size_t size) {
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  eh_frames_.push_back({begin, begin + size});
}

void OrcMemoryManager::deregisterEHFrames() { registrations_.clear(); }

bool OrcMemoryManager::finalizeMemory(std::string* error) {
  if (llvm::SectionMemoryManager::finalizeMemory(error)) return true;
  std::vector<ObjectFunction> functions;
  for (const Symbol& symbol : symbols_) functions.push_back({symbol.start, symbol.size, symbol.name});
  // An object without the section has functions, too.
  const AddrRange eh_frame = eh_frames_.empty() ? AddrRange{} : eh_frames_.front();
  auto registered = register_orc_object({code_, eh_frame, functions}, object_, options_);
  code_.clear();
  symbols_.clear();
  eh_frames_.clear();
  if (!registered) {
    std::string text = llvm::toString(registered.takeError());
    if (error) *error = std::move(text);
    return true;
  }
  registrations_.push_back(std::move(*registered));
  return false;
}

}  // namespace jitunwind
