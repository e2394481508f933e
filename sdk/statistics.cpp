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

}  // namespace

Statistics statistics() noexcept {
  Statistics out;
  out.counts_hits = k_counts_warm_paths;
  out.rows_kept = counted(Counter::row_kept);
  out.rows_of_more = counted(Counter::row_of_more);
  out.rows_not_compact = counted(Counter::row_not_compact);
  out.rows_met_once = counted(Counter::row_met_once);
  out.rows = {counted(Counter::kept_row_used), counted(Counter::row_made),
              out.rows_of_more + out.rows_not_compact + out.rows_met_once};
  out.rows_in_table = kept_rows();
  out.guesses = counted(Counter::row_guessed);
  out.walks_of_addresses = {counted(Counter::kept_rule_used), counted(Counter::chain_left), 0};
  out.cies = {counted(Counter::cie_known), counted(Counter::cie_read), 0};
  out.modules = {counted(Counter::module_known), counted(Counter::module_read), 0};
  out.fdes = {counted(Counter::fde_known), counted(Counter::fde_made), counted(Counter::fde_refused)};
  out.unknown_code = {counted(Counter::unknown_known), counted(Counter::unknown_met), 0};
  out.module_files = {counted(Counter::files_known), counted(Counter::files_opened), counted(Counter::files_refused)};
  out.frame_shapes = {counted(Counter::shape_known), counted(Counter::shape_made), 0};
  out.registrations = counted(Counter::procedure_registered);
  out.cancelled = counted(Counter::procedure_cancelled);
  out.retired = counted(Counter::procedure_retired);
  out.registry_refusals = counted(Counter::registry_refused);
  out.cancel_waits = counted(Counter::cancel_waited);
  const RegistryStatistics registry = registry_statistics();
  out.registered = registry.registered;
  out.index_bytes = registry.index_bytes;
  out.registry_bytes = registry.library_bytes;
  return out;
}

std::string Statistics::text() const {
  std::string out = counts_hits ? "" : "hits are not counted: build with JITUNWIND_COUNT\n";
  out += line_of("rows", rows);
  out += line_of("rows kept", rows_kept);
  out += line_of("rows that depend on more", rows_of_more);
  out += line_of("rows that are not compact", rows_not_compact);
  out += line_of("rows met once", rows_met_once);
  out += line_of("rows in the table", rows_in_table);
  out += line_of("guesses", guesses);
  out += line_of("walks of addresses", walks_of_addresses);
  out += line_of("CIEs", cies);
  out += line_of("modules", modules);
  out += line_of("FDEs", fdes);
  out += line_of("unknown code", unknown_code);
  out += line_of("files of modules", module_files);
  out += line_of("frame shapes", frame_shapes);
  out += line_of("registrations", registrations);
  out += line_of("cancelled", cancelled);
  out += line_of("retired", retired);
  out += line_of("refused changes of the registry", registry_refusals);
  out += line_of("waits of cancellations", cancel_waits);
  out += line_of("registered", registered);
  out += line_of("bytes of the index", index_bytes);
  out += line_of("bytes of the registry", registry_bytes);
  return out;
}

}  // namespace jitunwind
