#include "examples/orc_calc/code_generator.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <pthread.h>

#include <algorithm>

#include "examples/orc_versions.h"

namespace calc {
namespace {

using Kind = Expression::Kind;

/// The limit at which functions stop calling: natives and the unwinder need the rest. It is that of the compiling
/// thread, which also runs the code.
std::uint64_t lowest_stack_pointer() {
  constexpr std::uint64_t k_reserved = 256 * 1024;
  pthread_attr_t attributes;
  void* begin = nullptr;
  std::size_t size = 0;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return 0;
  ::pthread_attr_getstack(&attributes, &begin, &size);
  ::pthread_attr_destroy(&attributes);
  return reinterpret_cast<std::uintptr_t>(begin) + k_reserved;
}

class Generator {
 public:
  Generator(llvm::Module& module, const std::map<std::string, unsigned>& functions)
      : module_(module), functions_(functions), builder_(module.getContext()) {}

  void generate(const Item& item, const std::string& symbol) {
    function_ = declare(symbol, item.parameters.size());
    orc_versions::write_unwind_table(*function_);
    builder_.SetInsertPoint(block("entry"));
    check_stack();
    for (std::size_t i = 0; i < item.parameters.size(); ++i) {
      const bool twice = std::count(item.parameters.begin(), item.parameters.end(), item.parameters[i]) > 1;
      if (twice) throw SyntaxError(item.at, "two parameters are called '" + item.parameters[i] + "'");
      variables_.emplace_back(item.parameters[i], function_->getArg(static_cast<unsigned>(i)));
    }
    builder_.CreateRet(value(*item.body));
  }

 private:
  using Value = llvm::Value*;

  llvm::Type* number_type() { return builder_.getDoubleTy(); }
  llvm::BasicBlock* block(const char* name) { return llvm::BasicBlock::Create(module_.getContext(), name, function_); }
  llvm::Function* declare(const std::string& name, std::size_t parameters) {
    if (llvm::Function* const known = module_.getFunction(name)) return known;
    const std::vector<llvm::Type*> types(parameters, number_type());
    auto* const type = llvm::FunctionType::get(number_type(), types, false);
    return llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module_);
  }

  void check_stack() {
    Value const place = builder_.CreatePtrToInt(builder_.CreateAlloca(builder_.getInt8Ty()), builder_.getInt64Ty());
    Value const is_full = builder_.CreateICmpULT(place, builder_.getInt64(lowest_stack_pointer()));
    llvm::BasicBlock* const full = block("full");
    llvm::BasicBlock* const body = block("body");
    builder_.CreateCondBr(is_full, full, body);
    builder_.SetInsertPoint(full);
    builder_.CreateCall(module_.getOrInsertFunction(k_stack_is_full, builder_.getVoidTy()));
    builder_.CreateUnreachable();
    builder_.SetInsertPoint(body);
  }

  Value value(const Expression& e) {
    switch (e.kind) {
      case Kind::number:
        return llvm::ConstantFP::get(number_type(), e.number);
      case Kind::name:
        return variable(e);
      case Kind::call:
        return call(e);
      case Kind::negate:
        return builder_.CreateFNeg(value(*e.operands[0]));
      case Kind::operation:
        return operation(e);
      case Kind::let:
        return let(e);
      case Kind::if_then_else:
        return if_then_else(e);
      case Kind::try_else:
        return try_else(e);
    }
    return nullptr;
  }

  Value variable(const Expression& e) {
    for (auto at = variables_.rbegin(); at != variables_.rend(); ++at)
      if (at->first == e.name) return at->second;
    throw SyntaxError(e.at, "unknown name '" + e.name + "'");
  }

  Value operation(const Expression& e) {
    Value const left = value(*e.operands[0]);
    Value const right = value(*e.operands[1]);
    const auto truth = [&](Value condition) { return builder_.CreateUIToFP(condition, number_type()); };
    if (e.name == "+") return builder_.CreateFAdd(left, right);
    if (e.name == "-") return builder_.CreateFSub(left, right);
    if (e.name == "*") return builder_.CreateFMul(left, right);
    if (e.name == "/") return builder_.CreateFDiv(left, right);
    if (e.name == "<") return truth(builder_.CreateFCmpOLT(left, right));
    if (e.name == ">") return truth(builder_.CreateFCmpOGT(left, right));
    return truth(builder_.CreateFCmpOEQ(left, right));
  }

  Value let(const Expression& e) {
    Value const bound = value(*e.operands[0]);
    variables_.emplace_back(e.name, bound);
    Value const body = value(*e.operands[1]);
    variables_.pop_back();
    return body;
  }

  /// A value that comes from two blocks.
  Value join(Value first, llvm::BasicBlock* from_first, Value second, llvm::BasicBlock* from_second) {
    llvm::PHINode* const joined = builder_.CreatePHI(number_type(), 2);
    joined->addIncoming(first, from_first);
    joined->addIncoming(second, from_second);
    return joined;
  }

  Value if_then_else(const Expression& e) {
    Value const condition = builder_.CreateFCmpUNE(value(*e.operands[0]), llvm::ConstantFP::get(number_type(), 0));
    llvm::BasicBlock* const then_block = block("then");
    llvm::BasicBlock* const else_block = block("else");
    llvm::BasicBlock* const end = block("end");
    builder_.CreateCondBr(condition, then_block, else_block);
    builder_.SetInsertPoint(then_block);
    Value const then_value = value(*e.operands[1]);
    llvm::BasicBlock* const then_end = builder_.GetInsertBlock();
    builder_.CreateBr(end);
    builder_.SetInsertPoint(else_block);
    Value const else_value = value(*e.operands[2]);
    llvm::BasicBlock* const else_end = builder_.GetInsertBlock();
    builder_.CreateBr(end);
    builder_.SetInsertPoint(end);
    return join(then_value, then_end, else_value, else_end);
  }

  Value call(const Expression& e) {
    const auto known = functions_.find(e.name);
    if (known == functions_.end()) throw SyntaxError(e.at, "unknown function '" + e.name + "'");
    if (known->second != e.operands.size())
      throw SyntaxError(e.at, "'" + e.name + "' takes " + std::to_string(known->second) + " arguments, not " +
                                  std::to_string(e.operands.size()));
    std::vector<Value> arguments;
    for (const auto& operand : e.operands) arguments.push_back(value(*operand));
    llvm::Function* const callee = declare(e.name, arguments.size());
    if (!landing_pad_) {
      // A tail call would leave its caller's frame before it is made, and the frame would be missing in every walk.
      llvm::CallInst* const made = builder_.CreateCall(callee, arguments);
      made->setTailCallKind(llvm::CallInst::TCK_NoTail);
      return made;
    }
    llvm::BasicBlock* const next = block("next");
    Value const made = builder_.CreateInvoke(callee, next, landing_pad_, arguments);
    builder_.SetInsertPoint(next);
    return made;
  }

  /// C++ exceptions of any type land in the block that evaluates the other expression.
  Value try_else(const Expression& e) {
    llvm::BasicBlock* const pad = block("pad");
    llvm::BasicBlock* const end = block("end");
    llvm::BasicBlock* const outer = std::exchange(landing_pad_, pad);
    Value const tried = value(*e.operands[0]);
    llvm::BasicBlock* const tried_end = builder_.GetInsertBlock();
    builder_.CreateBr(end);
    landing_pad_ = outer;

    builder_.SetInsertPoint(pad);
    catch_everything();
    Value const otherwise = value(*e.operands[1]);
    llvm::BasicBlock* const otherwise_end = builder_.GetInsertBlock();
    builder_.CreateBr(end);
    builder_.SetInsertPoint(end);
    return join(tried, tried_end, otherwise, otherwise_end);
  }

  void catch_everything() {
    auto* const pointer = orc_versions::pointer_to(builder_.getInt8Ty());
    llvm::FunctionCallee personality =
        module_.getOrInsertFunction("__gxx_personality_v0", llvm::FunctionType::get(builder_.getInt32Ty(), true));
    function_->setPersonalityFn(llvm::cast<llvm::Function>(personality.getCallee()));
    auto* const landed = builder_.CreateLandingPad(llvm::StructType::get(pointer, builder_.getInt32Ty()), 1);
    landed->addClause(llvm::ConstantPointerNull::get(pointer));
    Value const exception = builder_.CreateExtractValue(landed, 0);
    builder_.CreateCall(module_.getOrInsertFunction("__cxa_begin_catch", pointer, pointer), exception);
    builder_.CreateCall(module_.getOrInsertFunction("__cxa_end_catch", builder_.getVoidTy()));
  }

  llvm::Module& module_;
  const std::map<std::string, unsigned>& functions_;
  llvm::IRBuilder<> builder_;
  llvm::Function* function_ = nullptr;
  llvm::BasicBlock* landing_pad_ = nullptr;  // of the innermost "try"
  std::vector<std::pair<std::string, Value>> variables_;
};

}  // namespace

llvm::orc::ThreadSafeModule generate(const Item& item, const std::map<std::string, unsigned>& functions,
                                     const std::string& symbol) {
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = std::make_unique<llvm::Module>(symbol, *context);
  Generator(*module, functions).generate(item, symbol.empty() ? "expression" : symbol);
  return {std::move(module), std::move(context)};
}

}  // namespace calc
