#include "jitunwind/sdk/statistics.h"

#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/trace/counters.h"

namespace jitunwind {
namespace {

std::string line_of(const char* name, const TableStatistics& table) {
  return std::string(name) + ": " + std::to_string(table.hits) + " hits, " + std::to_string(table.misses) +
         " misses, " + std::to_string(table.refusals) + " refusals\n";
}

std::string line_of(const char* name, std::uint64_t value) {
  return std::string(name) + ": " + std::to_string(value) + "\n";
}

/// The list has every member: the first one is counts_hits, and its padding.
#define JITUNWIND_TABLE(member, ...) +sizeof(Statistics::member)
#define JITUNWIND_TABLE_OF_CPP JITUNWIND_TABLE
#define JITUNWIND_NUMBER JITUNWIND_TABLE
static_assert(sizeof(Statistics) == alignof(Statistics)
#include "jitunwind/sdk/statistics_internal.def"
);
#undef JITUNWIND_TABLE
#undef JITUNWIND_TABLE_OF_CPP
#undef JITUNWIND_NUMBER

}  // namespace

Statistics statistics() noexcept {
  Statistics out;
  out.counts_hits = k_counts_warm_paths;
  const RegistryStatistics registry = registry_statistics();
#define JITUNWIND_TABLE(member, text, hits, misses, refusals) \
  out.member = {counted(Counter::hits), counted(Counter::misses), refusals};
#define JITUNWIND_TABLE_OF_CPP JITUNWIND_TABLE
#define JITUNWIND_NUMBER(member, text, number) out.member = number;
#include "jitunwind/sdk/statistics_internal.def"
#undef JITUNWIND_TABLE
#undef JITUNWIND_TABLE_OF_CPP
#undef JITUNWIND_NUMBER
  return out;
}

std::string Statistics::text() const {
  std::string out = counts_hits ? "" : "hits are not counted: build with JITUNWIND_COUNT\n";
#define JITUNWIND_TABLE(member, text, ...) out += line_of(text, member);
#define JITUNWIND_TABLE_OF_CPP JITUNWIND_TABLE
#define JITUNWIND_NUMBER JITUNWIND_TABLE
#include "jitunwind/sdk/statistics_internal.def"
#undef JITUNWIND_TABLE
#undef JITUNWIND_TABLE_OF_CPP
#undef JITUNWIND_NUMBER
  return out;
}

}  // namespace jitunwind
