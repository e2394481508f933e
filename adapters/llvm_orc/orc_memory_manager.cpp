#include "jitunwind/adapters/llvm_orc/orc_memory_manager.h"

#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/Object/ELFObjectFile.h>

#include <utility>

#include "jitunwind/adapters/llvm_orc/orc_report_p.h"

namespace jitunwind {
namespace {

using llvm::object::SymbolRef;

/// False also if the object has no such information.
template <class T>
bool have(llvm::Expected<T>& value) {
  if (value) return true;
  llvm::consumeError(value.takeError());
  return false;
}

void add_section(const std::uint8_t* at, std::uintptr_t size, std::vector<AddrRange>& to) {
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  if (at) to.push_back({begin, begin + size});
}

}  // namespace

const OrcOptions OrcMemoryManager::k_no_options;

OrcMemoryManager::OrcMemoryManager(const OrcOptions& options, MemoryMapper* mapper)
    : llvm::SectionMemoryManager(mapper), options_(options) {}

OrcMemoryManager::~OrcMemoryManager() = default;

std::uint8_t* OrcMemoryManager::allocateCodeSection(std::uintptr_t size, unsigned alignment, unsigned section,
                                                    llvm::StringRef name) {
  std::uint8_t* const at = llvm::SectionMemoryManager::allocateCodeSection(size, alignment, section, name);
  add_section(at, size, loading_.code);
  return at;
}

std::uint8_t* OrcMemoryManager::allocateDataSection(std::uintptr_t size, unsigned alignment, unsigned section,
                                                    llvm::StringRef name, bool is_read_only) {
  std::uint8_t* const at =
      llvm::SectionMemoryManager::allocateDataSection(size, alignment, section, name, is_read_only);
  add_section(at, size, loading_.data);
  return at;
}

/// All sections of the object are allocated. The linker's own symbol table has local symbols, too, as long as it lives.
void OrcMemoryManager::notifyObjectLoaded(llvm::RuntimeDyld& linker, const llvm::object::ObjectFile& object) {
  loading_.name = object.getFileName().str();
  for (const SymbolRef& symbol : object.symbols()) {
    auto type = symbol.getType();
    auto name = symbol.getName();
    if (!have(type) || !have(name) || *type != SymbolRef::ST_Function) continue;
    const Addr start = linker.getSymbol(*name).getAddress();
    const std::uint64_t size = object.isELF() ? llvm::object::ELFSymbolRef(symbol).getSize() : 0;
    if (start != 0) loading_.symbols.push_back({start, size, name->str()});
  }
  loaded_.push_back(std::exchange(loading_, {}));
}

/// LLVM calls this for every object that has the section, before it is finalised.
void OrcMemoryManager::registerEHFrames(std::uint8_t* at, std::uint64_t, std::size_t size) {
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  for (LoadedObject& object : loaded_)
    for (const AddrRange& section : object.data)
      if (section.contains(begin)) object.eh_frame = {begin, begin + size};
}

void OrcMemoryManager::deregisterEHFrames() { registrations_.clear(); }

bool OrcMemoryManager::finalizeMemory(std::string* error) {
  if (llvm::SectionMemoryManager::finalizeMemory(error)) return true;
  std::string errors;
  for (const LoadedObject& object : std::exchange(loaded_, {})) {
    const std::string failed = register_loaded(object);
    errors += errors.empty() || failed.empty() ? failed : "; " + failed;
  }
  if (errors.empty()) return false;
  if (error) *error = std::move(errors);
  return true;
}

std::string OrcMemoryManager::register_loaded(const LoadedObject& object) {
  std::vector<ObjectFunction> functions;
  for (const Symbol& symbol : object.symbols) functions.push_back({symbol.start, symbol.size, symbol.name});
  auto registered = register_orc_object({object.code, object.eh_frame, functions}, object.name, options_);
  if (!registered) return llvm::toString(registered.takeError());
  registrations_.push_back(std::move(*registered));
  return {};
}

}  // namespace jitunwind
