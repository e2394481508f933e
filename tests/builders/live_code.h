// Executable memory in which described procedures live, and are stepped through.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "jitunwind/adapters/testing/single_step_p.h"
#include "jitunwind/builders/registration.h"
#include "tests/builders/describing_assembler.h"

namespace jitunwind::test {

/// The code calls its argument, if it calls at all.
using Function = long (*)(void (*helper)(), long n);

/// Executable memory with everything that was put there registered, one registration a procedure.
class LiveCode {
 public:
  explicit LiveCode(std::size_t bytes)
      : memory_(static_cast<std::byte*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        bytes_(bytes) {}
  ~LiveCode() { munmap(memory_, bytes_); }
  LiveCode(const LiveCode&) = delete;
  LiveCode& operator=(const LiveCode&) = delete;

  /// Returns null, and fails the test, if the description is refused.
  template <class Signature = Function>
  Signature add(const std::vector<std::uint8_t>& code, const Result<Description, BuildError>& description) {
    if (!description) {
      ADD_FAILURE() << description.error().text();
      return nullptr;
    }
    std::byte* const at = memory_ + used_;
    used_ += (code.size() + 15) / 16 * 16;
    if (used_ > bytes_) {
      ADD_FAILURE() << "no room for the code";
      return nullptr;
    }
    std::memcpy(at, code.data(), code.size());
    auto live = register_code(*description, at, code.size());
    if (!live) {
      ADD_FAILURE() << live.error().what;
      return nullptr;
    }
    ranges_.push_back({"procedure " + std::to_string(ranges_.size()), live->range()});
    registrations_.push_back(std::move(*live));
    return reinterpret_cast<Signature>(at);
  }
  template <class Signature = Function>
  Signature add(const DescribingAssembler& a) {
    return add<Signature>(a.code(), a.description());
  }

  const std::vector<stepping::SteppedCode>& ranges() const { return ranges_; }

  /// Runs `body` one instruction at a time; every row of every procedure that ran must be right.
  stepping::SingleStepRun step(const std::function<int()>& body) const {
    stepping::SingleStepOptions options;
    options.max_steps = 40'000'000;
    const stepping::SingleStepJudge judge{"registered", {&dyn_row_source()}};
    return stepping::single_step(ranges_, body, {&judge, 1}, options);
  }
  /// Counts the instructions that never ran.
  std::size_t missed(const stepping::SingleStepRun& run) const {
    std::size_t count = 0;
    for (const stepping::SteppedCode& c : ranges_)
      count += run.missed(reinterpret_cast<const void*>(c.range.begin), c.range.size()).size();
    return count;
  }

 private:
  std::byte* memory_;
  std::size_t bytes_;
  std::size_t used_ = 0;
  std::vector<stepping::SteppedCode> ranges_;
  std::vector<Registration> registrations_;
};

/// A callee that destroys what it has saved.
inline void (*add_helper(LiveCode& live, int popped))() {
  DescribingAssembler a;
  a.push(x86_64::rbx);
  a.clobber(x86_64::rbx);
  a.pop(x86_64::rbx);
  a.ret(popped);
  return live.add<void (*)()>(a);
}

}  // namespace jitunwind::test
