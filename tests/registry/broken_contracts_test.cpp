// Violations of what callers owe the registry: docs/contracts.md says what happens.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include "tests/registry/procedures.h"

namespace {

using namespace jitunwind;
using namespace registry_test;

constexpr std::uint64_t k_contract_code = 0x40000000;
constexpr std::size_t k_page = 4096;

/// A descriptor on its own page.
struct Descriptor {
  unw_dyn_info_t* info =
      static_cast<unw_dyn_info_t*>(::mmap(nullptr, k_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  Descriptor() { *info = procedure(k_contract_code, 64); }
  void be_read_only() const { ::mprotect(info, k_page, PROT_READ); }
  void be_gone() const { ::munmap(info, k_page); }
};

#define EXPECT_FAULT(...) EXPECT_EXIT(__VA_ARGS__; std::_Exit(0), testing::KilledBySignal(SIGSEGV), "")

TEST(BrokenContracts, OfDescriptorsEndInAFaultOfWriters) {
  const Descriptor descriptor;
  unw_dyn_info_t other = procedure(k_contract_code + 64, 64);
  EXPECT_FAULT({
    descriptor.be_read_only();
    (void)register_procedure(descriptor.info);
  });
  EXPECT_FAULT({
    (void)register_procedure(descriptor.info);
    descriptor.be_gone();
    (void)register_procedure(&other);
  });
  EXPECT_FAULT({
    descriptor.be_gone();
    (void)cancel_procedure(descriptor.info);
  });
}

TEST(BrokenContracts, WhatWasNeverRegisteredIsRefusedWhateverItHolds) {
  unw_dyn_info_t never = procedure(k_contract_code, 64);
  for (const std::uintptr_t prev : {std::uintptr_t{0}, std::uintptr_t{1}, ~std::uintptr_t{0} / 0xff * 0x41}) {
    never.prev = reinterpret_cast<unw_dyn_info_t*>(prev);
    never.next = reinterpret_cast<unw_dyn_info_t*>(prev);
    EXPECT_EQ(error_of(cancel_procedure(&never)), "not_registered");
  }
}

}  // namespace
