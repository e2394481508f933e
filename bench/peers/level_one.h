// The common part of the C++ run-time unwinders: the level I names, with two meanings of __register_frame.
#pragma once

#include <vector>

#include "bench/peer.h"

extern "C" {
void __register_frame(const void*);
void __deregister_frame(const void*);
struct dwarf_eh_bases {
  void* text;
  void* data;
  void* function;
};
const void* _Unwind_Find_FDE(const void* pc, dwarf_eh_bases* bases);
}

namespace bench {

class FrameRegistrar final : public Registrar {
 public:
  enum class Argument { section, fde };

  FrameRegistrar(Argument argument, std::size_t max_functions) : argument_(argument), max_functions_(max_functions) {}

  const char* name() const override { return "__register_frame"; }
  const char* description() const override { return "told"; }
  std::size_t max_functions() const override { return max_functions_; }
  void prepare(std::span<const JitFunction> functions) override {
    arguments_.clear();
    for (const JitFunction& function : functions)
      arguments_.push_back(argument_ == Argument::section ? function.eh_frame : function.fde);
  }
  void register_function(std::size_t index) override { __register_frame(arguments_[index]); }
  void cancel_function(std::size_t index) override { __deregister_frame(arguments_[index]); }
  bool find(const void* pc) override {
    dwarf_eh_bases bases;
    return _Unwind_Find_FDE(pc, &bases) != nullptr;
  }

 private:
  Argument argument_;
  std::size_t max_functions_;
  // An entry takes eight bytes. If it took 48, waiting for entries in random order would take a quarter of the time of
  // 40,000 calls.
  std::vector<const void*> arguments_;
};

}  // namespace bench
