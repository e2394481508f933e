#include "jitunwind/adapters/llvm_orc/orc_memory_manager.h"

#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/Object/ELFObjectFile.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "jitunwind/adapters/llvm_orc/orc_object_p.h"

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

AddrRange range_of(const std::uint8_t* at, std::uintptr_t size) {
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  return {begin, begin + size};
}

}  // namespace

/// The sections of an object's code, the object from its first section to finalisation, and after it.
struct OrcMemoryManager::Objects {
  struct Section {
    AddrRange code;
    std::uint64_t alignment;
  };
  /// The bytes of a section that runs elsewhere.
  struct MovedCode {
    const void* from;
    std::uint64_t size;
    std::byte* to;
  };
  struct Symbol {
    Addr start;
    std::uint64_t size;
    std::string name;
  };
  /// An object between its first section and finalisation.
  struct LoadedObject {
    std::string name;
    std::vector<Section> sections;
    std::vector<AddrRange> data;
    OrcRoom room;
    std::vector<MovedCode> moved;
    std::vector<Symbol> symbols;
    AddrRange eh_frame;

    void move(llvm::RuntimeDyld& linker, CodeSegments* segments, std::size_t functions);
    void note_symbols(llvm::RuntimeDyld& linker, const llvm::object::ObjectFile& object);
  };
  struct RegisteredObject {
    OrcRoom room;  // outlives the registration
    ObjectRegistration registration;
  };

  LoadedObject loading;
  std::vector<LoadedObject> loaded;
  std::vector<RegisteredObject> registered;

  /// The error as text; empty on success.
  std::string add(LoadedObject&& object, const OrcOptions& options);
};

/// Relocations are resolved for the address at which the code will run, and written to the linker's own memory.
void OrcMemoryManager::Objects::LoadedObject::move(llvm::RuntimeDyld& linker, CodeSegments* segments,
                                                   std::size_t functions) {
  std::vector<OrcCode> parts;
  for (const Section& section : sections) parts.push_back({section.code.size(), section.alignment});
  if (parts.empty()) return;
  room = OrcRoom::allocate(segments, parts, functions, data);
  for (std::size_t i = 0; room && i < parts.size(); ++i) {
    const auto* const from = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(sections[i].code.begin));
    linker.mapSectionAddress(from, parts[i].start);
    moved.push_back({from, parts[i].size, parts[i].writable});
    sections[i].code = {parts[i].start, parts[i].start + parts[i].size};
  }
}

void OrcMemoryManager::Objects::LoadedObject::note_symbols(llvm::RuntimeDyld& linker,
                                                           const llvm::object::ObjectFile& object) {
  for (const SymbolRef& symbol : object.symbols()) {
    auto type = symbol.getType();
    auto symbol_name = symbol.getName();
    if (!have(type) || !have(symbol_name) || *type != SymbolRef::ST_Function) continue;
    const Addr start = linker.getSymbol(*symbol_name).getAddress();
    const std::uint64_t size = object.isELF() ? llvm::object::ELFSymbolRef(symbol).getSize() : 0;
    if (start != 0) symbols.push_back({start, size, symbol_name->str()});
  }
}

const OrcOptions OrcMemoryManager::k_no_options;

OrcMemoryManager::OrcMemoryManager(const OrcOptions& options, MemoryMapper* mapper)
    : llvm::SectionMemoryManager(mapper), options_(options), objects_(std::make_unique<Objects>()) {}

OrcMemoryManager::~OrcMemoryManager() = default;

std::uint8_t* OrcMemoryManager::allocateCodeSection(std::uintptr_t size, unsigned alignment, unsigned section,
                                                    llvm::StringRef name) {
  std::uint8_t* const at = llvm::SectionMemoryManager::allocateCodeSection(size, alignment, section, name);
  if (at) objects_->loading.sections.push_back({range_of(at, size), std::max(alignment, 1u)});
  return at;
}

std::uint8_t* OrcMemoryManager::allocateDataSection(std::uintptr_t size, unsigned alignment, unsigned section,
                                                    llvm::StringRef name, bool is_read_only) {
  std::uint8_t* const at =
      llvm::SectionMemoryManager::allocateDataSection(size, alignment, section, name, is_read_only);
  if (at) objects_->loading.data.push_back(range_of(at, size));
  return at;
}

/// All sections of the object are allocated. The linker's own symbol table has local symbols, too, as long as it lives.
void OrcMemoryManager::notifyObjectLoaded(llvm::RuntimeDyld& linker, const llvm::object::ObjectFile& object) {
  Objects::LoadedObject loaded = std::exchange(objects_->loading, {});
  loaded.name = object.getFileName().str();
  const auto symbols = object.symbols();
  loaded.move(linker, options_.segments, static_cast<std::size_t>(std::distance(symbols.begin(), symbols.end())));
  loaded.note_symbols(linker, object);
  objects_->loaded.push_back(std::move(loaded));
}

/// LLVM calls this for every object that has the section, before it is finalised.
void OrcMemoryManager::registerEHFrames(std::uint8_t* at, std::uint64_t, std::size_t size) {
  const AddrRange eh_frame = range_of(at, size);
  for (Objects::LoadedObject& object : objects_->loaded)
    for (const AddrRange& section : object.data)
      if (section.contains(eh_frame.begin)) object.eh_frame = eh_frame;
}

void OrcMemoryManager::deregisterEHFrames() { objects_->registered.clear(); }

bool OrcMemoryManager::finalizeMemory(std::string* error) {
  if (llvm::SectionMemoryManager::finalizeMemory(error)) return true;
  std::string errors;
  for (Objects::LoadedObject& object : std::exchange(objects_->loaded, {})) {
    const std::string failed = objects_->add(std::move(object), options_);
    errors += errors.empty() || failed.empty() ? failed : "; " + failed;
  }
  if (errors.empty()) return false;
  if (error) *error = std::move(errors);
  return true;
}

std::string OrcMemoryManager::Objects::add(LoadedObject&& object, const OrcOptions& options) {
  for (const MovedCode& code : object.moved) std::memcpy(code.to, code.from, code.size);
  std::vector<AddrRange> code;
  for (const Section& section : object.sections) code.push_back(section.code);
  std::vector<ObjectFunction> functions;
  for (const Symbol& symbol : object.symbols) functions.push_back({symbol.start, symbol.size, symbol.name});
  auto made = register_orc_object({code, object.eh_frame, functions}, object.name, options);
  if (!made) return llvm::toString(made.takeError());
  object.room.publish();
  registered.push_back({std::move(object.room), std::move(*made)});
  return {};
}

}  // namespace jitunwind
