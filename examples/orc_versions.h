// Differences between versions of LLVM: the examples compile with each that the adapter takes.
#pragma once

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Function.h>

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace orc_versions {

/// An LLJIT that links by JITLink and finds the symbols of this program, which is the default of LLVM 18.
inline llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>> create_jit() {
  llvm::orc::LLJITBuilder builder;
#if LLVM_VERSION_MAJOR < 18
  auto machine = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!machine) return machine.takeError();
  machine->setRelocationModel(llvm::Reloc::PIC_).setCodeModel(llvm::CodeModel::Small);
  builder.setJITTargetMachineBuilder(std::move(*machine));
  builder.setObjectLinkingLayerCreator(
      [](llvm::orc::ExecutionSession& session,
         const llvm::Triple&) -> llvm::Expected<std::unique_ptr<llvm::orc::ObjectLayer>> {
        return std::make_unique<llvm::orc::ObjectLinkingLayer>(session);
      });
  auto jit = builder.create();
  if (!jit) return jit.takeError();
  auto program =
      llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess((*jit)->getDataLayout().getGlobalPrefix());
  if (!program) return program.takeError();
  (*jit)->getMainJITDylib().addGenerator(std::move(*program));
  return jit;
#else
  return builder.create();
#endif
}

/// The type of pointers to that type. LLVM 14 has one for each type.
inline llvm::PointerType* pointer_to(llvm::Type* type) {
#if LLVM_VERSION_MAJOR < 15
  return llvm::PointerType::getUnqual(type);
#else
  return llvm::PointerType::getUnqual(type->getContext());
#endif
}

/// The result of LLJIT::lookup(), as a pointer.
#if LLVM_VERSION_MAJOR < 15
template <class Function>
Function* function_at(const llvm::JITEvaluatedSymbol& symbol) {
  return llvm::jitTargetAddressToFunction<Function*>(symbol.getAddress());
}
#else
template <class Function>
Function* function_at(const llvm::orc::ExecutorAddr& address) {
  return address.toPtr<Function*>();
}
#endif

/// A function of this program, for llvm::orc::absoluteSymbols().
using Symbol = llvm::orc::SymbolMap::mapped_type;
inline Symbol native_symbol(std::uint64_t address) {
  using Address = std::decay_t<decltype(Symbol().getAddress())>;
  return Symbol(Address(address), llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable);
}

/// Walks at any instruction need unwind tables of all functions, not only of those that may throw.
inline void write_unwind_table(llvm::Function& function) {
#if LLVM_VERSION_MAJOR < 15
  function.setHasUWTable();
#else
  function.setUWTableKind(llvm::UWTableKind::Async);
#endif
}

}  // namespace orc_versions
