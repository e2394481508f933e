#include "jitunwind/adapters/llvm_orc/orc_plugin.h"

#include <llvm/ADT/BitmaskEnum.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/Orc/Shared/WrapperFunctionUtils.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "jitunwind/adapters/llvm_orc/orc_object_p.h"

namespace jitunwind {
namespace {

namespace jitlink = llvm::jitlink;
namespace shared = llvm::orc::shared;
using llvm::orc::ExecutorAddr;

LLVM_ENABLE_BITMASK_ENUMS_IN_NAMESPACE();

#if LLVM_VERSION_MAJOR < 22
using ActionResult = shared::CWrapperFunctionResult;
#else
using ActionResult = shared::CWrapperFunctionBuffer;
#endif

constexpr const char* k_eh_frame = ".eh_frame";
constexpr const char* k_hidden = ".eh_frame of jitunwind";

/// Names of symbols are pooled strings from LLVM 20 on.
[[maybe_unused]] llvm::StringRef text_of(llvm::StringRef name) { return name; }
template <class Pooled>
llvm::StringRef text_of(const Pooled& name) {
  return *name;
}

bool is_code(const jitlink::Section& section) {
  const auto protection = section.getMemProt();
  using Protection = std::remove_const_t<decltype(protection)>;
  return (protection & Protection::Exec) != Protection::None;
}

AddrRange range_of(const jitlink::Section& section) {
  const jitlink::SectionRange range(section);
  return {range.getStart().getValue(), range.getEnd().getValue()};
}

/// One object from its link to the end of its memory. The link's passes own it; from finalisation on it owns itself,
/// until deallocation.
class OrcObject : public std::enable_shared_from_this<OrcObject> {
 public:
  OrcObject(std::string name, std::shared_ptr<const OrcOptions> options)
      : name_(std::move(name)), options_(std::move(options)) {}

  /// Records names before JITLink prunes: local functions that are called directly have no symbol afterwards.
  llvm::Error note_names(const jitlink::LinkGraph& graph) {
    for (const jitlink::Symbol* symbol : graph.defined_symbols()) {
      if (!symbol->isCallable() || !symbol->hasName() || !is_code(symbol->getBlock().getSection())) continue;
      const auto size = static_cast<std::uint64_t>(symbol->getSize());
      names_.push_back({&symbol->getBlock(), symbol->getOffset(), size, text_of(symbol->getName())});
    }
    return llvm::Error::success();
  }

  /// Gives code its place in a segment, where it is fixed up, and adds the actions that register it. A second plugin in
  /// the layer finds them.
  llvm::Error claim(jitlink::LinkGraph& graph) {
    if (is_known(graph)) return llvm::Error::success();
    std::vector<jitlink::Block*> blocks;
    std::vector<OrcCode> parts;
    std::vector<AddrRange> data;
    for (jitlink::Section& section : graph.sections()) {
      for (jitlink::Block* const block : section.blocks()) {
        const Addr start = block->getAddress().getValue();
        if (is_code(section))
          blocks.push_back(block),
              parts.push_back({block->getSize(), block->getAlignment(), block->getAlignmentOffset()});
        else if (start != 0)
          data.push_back({start, start + block->getSize()});
      }
    }
    if (blocks.empty()) return llvm::Error::success();
    room_ = OrcRoom::allocate(options_->segments, parts, count_functions(graph), data);
    for (std::size_t i = 0; room_ && i < blocks.size(); ++i) move(*blocks[i], parts[i]);
    is_claimed_ = true;
    return add_actions(graph);
  }

  /// Records the addresses of all parts.
  llvm::Error place(jitlink::LinkGraph& graph) {
    if (!is_claimed_) return llvm::Error::success();
    llvm::DenseSet<const jitlink::Block*> blocks;
    for (const jitlink::Section& section : graph.sections()) {
      if (!is_code(section)) continue;
      blocks.insert(section.blocks().begin(), section.blocks().end());
      if (const AddrRange range = range_of(section); !range.empty()) code_.push_back(range);
    }
    for (const Name& name : names_)
      if (blocks.contains(name.block))
        functions_.push_back({name.block->getAddress().getValue() + name.offset, name.size,
                              std::string_view(name.text.data(), name.text.size())});
    if (const jitlink::Section* const section = graph.findSectionByName(k_eh_frame)) eh_frame_ = range_of(*section);
    return llvm::Error::success();
  }

 private:
  static bool is_known(jitlink::LinkGraph& graph) {
    for (const auto& actions : graph.allocActions())
      if (actions.Finalize && actions.Finalize.getCallee() == ExecutorAddr::fromPtr(&finalize)) return true;
    return false;
  }

  struct Name {
    const jitlink::Block* block;
    std::uint64_t offset;
    std::uint64_t size;
    llvm::StringRef text;  // memory of the graph
  };

  /// There are at most as many as names, or as entries of call frame information, which are a block each.
  std::size_t count_functions(jitlink::LinkGraph& graph) const {
    std::size_t entries = 0;
    if (const jitlink::Section* const frames = graph.findSectionByName(k_eh_frame))
      for ([[maybe_unused]] const jitlink::Block* block : frames->blocks()) ++entries;
    return std::max(names_.size(), entries);
  }

  static void move(jitlink::Block& block, const OrcCode& to) {
    const llvm::MutableArrayRef<char> bytes(reinterpret_cast<char*>(to.writable), block.getSize());
    if (block.isZeroFill())
      std::fill(bytes.begin(), bytes.end(), 0);
    else
      std::copy(block.getContent().begin(), block.getContent().end(), bytes.begin());
    block.setMutableContent(bytes);
    block.setAddress(ExecutorAddr(to.start));
  }

  llvm::Error add_actions(jitlink::LinkGraph& graph) {
    using Arguments = shared::SPSArgList<shared::SPSExecutorAddr>;
    const ExecutorAddr self = ExecutorAddr::fromPtr(this);
    auto on_finalize = shared::WrapperFunctionCall::Create<Arguments>(ExecutorAddr::fromPtr(&finalize), self);
    if (!on_finalize) return on_finalize.takeError();
    auto on_deallocate = shared::WrapperFunctionCall::Create<Arguments>(ExecutorAddr::fromPtr(&deallocate), self);
    if (!on_deallocate) return on_deallocate.takeError();
    graph.allocActions().push_back({std::move(*on_finalize), std::move(*on_deallocate)});
    return llvm::Error::success();
  }

  using Action = shared::WrapperFunction<shared::SPSError(shared::SPSExecutorAddr)>;
  static ActionResult finalize(const char* data, std::size_t size) {
    return Action::handle(data, size, [](ExecutorAddr at) { return at.toPtr<OrcObject*>()->registers(); }).release();
  }
  static ActionResult deallocate(const char* data, std::size_t size) {
    return Action::handle(data, size, [](ExecutorAddr at) { return at.toPtr<OrcObject*>()->cancels(); }).release();
  }

  llvm::Error registers() {
    auto registered = register_orc_object({code_, eh_frame_, functions_}, name_, *options_);
    if (!registered) return registered.takeError();
    registration_ = std::move(*registered);
    room_.publish();
    names_.clear();
    functions_.clear();
    code_.clear();
    self_ = shared_from_this();
    return llvm::Error::success();
  }

  llvm::Error cancels() {
    const auto self = std::move(self_);
    if (const Status cancelled = registration_.cancel(); !cancelled)
      return orc_error("cannot cancel " + name_ + ": " + error_text(cancelled.error().code));
    room_.release();
    return llvm::Error::success();
  }

  const std::string name_;
  const std::shared_ptr<const OrcOptions> options_;
  std::vector<Name> names_;
  std::vector<AddrRange> code_;
  std::vector<ObjectFunction> functions_;
  AddrRange eh_frame_;
  bool is_claimed_ = false;
  OrcRoom room_;  // outlives the registration
  ObjectRegistration registration_;
  std::shared_ptr<OrcObject> self_;
};

/// Passes between these two that look .eh_frame up find an empty section.
llvm::Error hide_eh_frame(jitlink::LinkGraph& graph) {
  jitlink::Section* const section = graph.findSectionByName(k_eh_frame);
  if (section) graph.mergeSections(graph.createSection(k_hidden, section->getMemProt()), *section, true);
  return llvm::Error::success();
}
llvm::Error show_eh_frame(jitlink::LinkGraph& graph) {
  jitlink::Section* const hidden = graph.findSectionByName(k_hidden);
  if (hidden) graph.mergeSections(*graph.findSectionByName(k_eh_frame), *hidden);
  return llvm::Error::success();
}

}  // namespace

OrcPlugin::OrcPlugin(OrcOptions options) : options_(std::make_shared<const OrcOptions>(std::move(options))) {}

void OrcPlugin::modifyPassConfig(llvm::orc::MaterializationResponsibility& responsibility, jitlink::LinkGraph& graph,
                                 jitlink::PassConfiguration& passes) {
  const std::string dylib = responsibility.getTargetJITDylib().getName();
  const auto object = std::make_shared<OrcObject>(graph.getName() + " in " + dylib, options_);
  passes.PrePrunePasses.push_back([object](jitlink::LinkGraph& g) { return object->note_names(g); });
  passes.PostAllocationPasses.insert(passes.PostAllocationPasses.begin(),
                                     [object](jitlink::LinkGraph& g) { return object->claim(g); });
  passes.PostFixupPasses.insert(passes.PostFixupPasses.begin(), hide_eh_frame);
  passes.PostFixupPasses.push_back([object](jitlink::LinkGraph& g) {
    if (llvm::Error error = show_eh_frame(g)) return error;
    return object->place(g);
  });
}

llvm::Error OrcPlugin::notifyFailed(llvm::orc::MaterializationResponsibility&) { return llvm::Error::success(); }
#if LLVM_VERSION_MAJOR < 16
llvm::Error OrcPlugin::notifyRemovingResources(llvm::orc::ResourceKey) { return llvm::Error::success(); }
void OrcPlugin::notifyTransferringResources(llvm::orc::ResourceKey, llvm::orc::ResourceKey) {}
#else
llvm::Error OrcPlugin::notifyRemovingResources(llvm::orc::JITDylib&, llvm::orc::ResourceKey) {
  return llvm::Error::success();
}
void OrcPlugin::notifyTransferringResources(llvm::orc::JITDylib&, llvm::orc::ResourceKey, llvm::orc::ResourceKey) {}
#endif

}  // namespace jitunwind
