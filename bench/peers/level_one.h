// What the C++ run-time unwinders have in common: the level I names, with two meanings of __register_frame.
#pragma once

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
  std::size_t max_functions() const override { return max_functions_; }
  void prepare(std::span<const JitFunction> functions) override { functions_ = functions; }
  void register_function(std::size_t index) override { __register_frame(argument(index)); }
  void cancel_function(std::size_t index) override { __deregister_frame(argument(index)); }
  bool find(const void* pc) override {
    dwarf_eh_bases bases;
    return _Unwind_Find_FDE(pc, &bases) != nullptr;
  }

 private:
  const void* argument(std::size_t index) const {
    return argument_ == Argument::section ? functions_[index].eh_frame : functions_[index].fde;
  }

  Argument argument_;
  std::size_t max_functions_;
  std::span<const JitFunction> functions_;
};

}  // namespace bench
