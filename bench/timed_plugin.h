// Measures the time that a plugin of LLVM's linker takes itself. It stands in for the plugin and times all its work
// until a module is linked.
#pragma once

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/Orc/Shared/WrapperFunctionUtils.h>

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

namespace bench {

/// Works on one thread only.
class TimedPlugin : public llvm::orc::ObjectLinkingLayer::Plugin {
  template <class Does>
  auto time(Does&& does) {
    struct Stop {
      Clock::duration& spent;
      Clock::time_point start = Clock::now();
      ~Stop() { spent += Clock::now() - start; }
    } const stop{spent_};
    return does();
  }

 public:
  using Clock = std::chrono::steady_clock;
  explicit TimedPlugin(std::shared_ptr<Plugin> timed) : timed_(std::move(timed)) {}

  /// Returns the time since the last call.
  double take_seconds() { return std::chrono::duration<double>(std::exchange(spent_, {})).count(); }

  void modifyPassConfig(llvm::orc::MaterializationResponsibility& responsibility, llvm::jitlink::LinkGraph& graph,
                        llvm::jitlink::PassConfiguration& all) override {
    llvm::jitlink::PassConfiguration its;
    time([&] { timed_->modifyPassConfig(responsibility, graph, its); });
    const auto add = [this](auto& to, auto& passes) {
      for (auto& pass : passes)
        to.push_back([this, pass = std::move(pass)](llvm::jitlink::LinkGraph& g) mutable { return run(pass, g); });
    };
    add(all.PrePrunePasses, its.PrePrunePasses);
    add(all.PostPrunePasses, its.PostPrunePasses);
    add(all.PostAllocationPasses, its.PostAllocationPasses);
    add(all.PreFixupPasses, its.PreFixupPasses);
    add(all.PostFixupPasses, its.PostFixupPasses);
  }
  llvm::Error notifyEmitted(llvm::orc::MaterializationResponsibility& responsibility) override {
    return time([&] { return timed_->notifyEmitted(responsibility); });
  }
  llvm::Error notifyFailed(llvm::orc::MaterializationResponsibility& responsibility) override {
    return timed_->notifyFailed(responsibility);
  }
  llvm::Error notifyRemovingResources(llvm::orc::JITDylib& dylib, llvm::orc::ResourceKey key) override {
    return timed_->notifyRemovingResources(dylib, key);
  }
  void notifyTransferringResources(llvm::orc::JITDylib& dylib, llvm::orc::ResourceKey to,
                                   llvm::orc::ResourceKey from) override {
    timed_->notifyTransferringResources(dylib, to, from);
  }

 private:
  /// An action of the plugin when an object is finalised.
  struct Action {
    TimedPlugin& plugin;
    llvm::orc::shared::WrapperFunctionCall call;
  };
  using AtAction = llvm::orc::shared::SPSExecutorAddr;

  llvm::Error run(llvm::jitlink::LinkGraphPassFunction& pass, llvm::jitlink::LinkGraph& graph) {
    const std::size_t before = graph.allocActions().size();
    if (llvm::Error error = time([&] { return pass(graph); })) return error;
    for (std::size_t i = before; i < graph.allocActions().size(); ++i) {
      auto& finalize = graph.allocActions()[i].Finalize;
      if (!finalize) continue;
      actions_.emplace_back(new Action{*this, std::move(finalize)});
      using llvm::orc::ExecutorAddr;
      finalize = llvm::cantFail(llvm::orc::shared::WrapperFunctionCall::Create<llvm::orc::shared::SPSArgList<AtAction>>(
          ExecutorAddr::fromPtr(&act), ExecutorAddr::fromPtr(actions_.back().get())));
    }
    return llvm::Error::success();
  }

  static llvm::orc::shared::CWrapperFunctionResult act(const char* data, std::size_t size) {
    using Call = llvm::orc::shared::WrapperFunction<llvm::orc::shared::SPSError(AtAction)>;
    return Call::handle(data, size,
                        [](llvm::orc::ExecutorAddr at) {
                          const auto& action = *at.toPtr<Action*>();
                          return action.plugin.time([&] { return action.call.runWithSPSRetErrorMerged(); });
                        })
        .release();
  }

  const std::shared_ptr<Plugin> timed_;
  Clock::duration spent_{};
  std::vector<std::unique_ptr<Action>> actions_;
};

}  // namespace bench
