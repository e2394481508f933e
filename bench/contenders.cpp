#include "bench/contenders.h"

#include <algorithm>
#include <cstdlib>

#include "bench/report.h"

namespace bench {

namespace {

constexpr const char* k_libgcc = "libgcc";
constexpr const char* k_nongnu = "nongnu";
constexpr const char* k_llvm = "LLVM";
constexpr const char* k_elfutils = "elfutils";
/// libgcc keeps registrations in a tree since release 13. Earlier releases sort them into a list, in quadratic time.
constexpr int k_libgcc_with_tree = 13;
constexpr std::size_t k_most_for_list = 40'000;

const std::vector<std::string> k_walks{k_walk, k_cold};
const std::vector<std::string> k_throws{k_throw, k_cold_throw};
const std::vector<std::string> k_registers_and_throws{k_registration, k_throw, k_cold_throw};
const std::vector<std::string> k_walks_and_registers{k_walk, k_cold, k_registration};
const std::vector<std::string> k_all_of_a_process{k_walk, k_cold, k_registration, k_throw, k_cold_throw};

std::string on(const std::string& title, const Release& release) { return title + " on " + release.title(); }

bool is_linear(const Release& libgcc) {
  return libgcc.is_unpacked() && std::atoi(libgcc.version.c_str()) < k_libgcc_with_tree;
}

/// Adds libgcc and this library's own programs. They run with the newest libgcc and with the oldest, which is that of
/// the system they are built for.
void add_libgcc(const Release& release, bool is_newest, bool is_oldest, std::vector<Peer>& all) {
  const std::size_t most = is_linear(release) ? k_most_for_list : Peer{}.most_functions;
  all.push_back({release.title(), "bench_libgcc", k_all_of_a_process, "", release, most});
  const std::string own = on(k_reference, release);
  if (is_newest || is_oldest) {
    all.push_back({own, "bench_jitunwind", k_throws, "", release});
    all.push_back({on("listening", release), "bench_listen", k_registers_and_throws, "", release});
    all.push_back({on(k_published, release), "bench_stock", {k_walk, k_throw}, "", release});
  }
  if (is_newest) all.push_back({again(own), "bench_jitunwind", k_throws, "", release});
}

void add_release(const std::vector<Release>& releases, std::size_t index, std::vector<Peer>& all) {
  const Release& release = releases[index];
  const std::string title = release.title();
  const auto is_same = [&](const Release& other) { return other.unwinder == release.unwinder; };
  const auto here = releases.begin() + static_cast<std::ptrdiff_t>(index);
  if (release.unwinder == k_libgcc)
    add_libgcc(release, std::none_of(releases.begin(), here, is_same), std::none_of(here + 1, releases.end(), is_same),
               all);
  if (release.unwinder == k_nongnu) {
    all.push_back({title, "bench_nongnu", k_walks_and_registers, "libunwind-dev", release});
    all.push_back({title, "bench_targets_nongnu", {k_targets}, "libunwind-dev", release});
  }
  if (release.unwinder == k_llvm)
    all.push_back({title, "bench_llvm", k_walks_and_registers, "libunwind-19-dev", release});
  if (release.unwinder == k_elfutils) all.push_back({title, "bench_targets_libdw", {k_targets}, "libdw-dev", release});
}

/// The titles in one suite. The suite "" stands for the newest release of each.
Others others_of(const std::string& suite, const std::vector<Release>& releases) {
  const auto find = [&](const std::string& unwinder) {
    const auto found = std::find_if(releases.begin(), releases.end(), [&](const Release& release) {
      return release.unwinder == unwinder && (suite.empty() || release.suite == suite);
    });
    return found == releases.end() ? Release{"", unwinder, suite} : *found;
  };
  const Release libgcc = find(k_libgcc);
  return {libgcc.title(),          find(k_nongnu).title(),  find(k_llvm).title(),   find(k_elfutils).title(),
          on(k_reference, libgcc), on("listening", libgcc), on(k_published, libgcc)};
}

}  // namespace

bool Peer::measures(const std::string& group) const {
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

std::string Peer::command(const std::filesystem::path& folder, const std::string& tool) const {
  if (release) return release->command(folder / program, tool);
  return (tool.empty() ? "" : tool + " ") + "'" + (folder / program).string() + "'";
}

std::string what_is_missing(const Peer& peer, const std::filesystem::path& folder) {
  if (peer.release && !peer.release->is_unpacked())
    return peer.release->title() + ": its packages are not in " + peer.release->folder.string();
  if (!std::filesystem::exists(folder / peer.program)) return peer.title + ": at build time there was no " + peer.needs;
  if (!peer.release) return "";
  const std::string loaded = output_of("LD_TRACE_LOADED_OBJECTS=1 " + peer.command(folder) + " 2>&1").value_or("");
  const bool loads = loaded.find(peer.release->folder.string() + "/") != std::string::npos;
  if (loads && loaded.find("not found") == std::string::npos) return "";
  return peer.title + ": " + peer.program + " does not load its libraries";
}

std::vector<Peer> peers(const std::vector<Release>& releases) {
  std::vector<Peer> all{{k_reference, "bench_jitunwind", k_walks_and_registers},
                        {again(k_reference), "bench_jitunwind", k_walks_and_registers},
                        {k_own_runtime, "bench_jitunwind_eh", k_throws},
                        {k_limit, "bench_frame_pointer", k_walks},
                        {k_onlooker, "bench_targets", {k_targets}}};
  for (std::size_t i = 0; i < releases.size(); ++i) add_release(releases, i, all);
  const std::vector<Peer> of_one_kind{{k_debugger, "measure_debuggers", {k_debuggers}, "gdb"},
                                      {k_lljit, "bench_orc", {k_orc}, "llvm-19-dev"},
                                      {k_link_form, "measure_links", {k_links}},
                                      {k_preloaded, "measure_starts", {k_starts}},
                                      {k_compiler, "measure_headers", {k_starts}},
                                      {k_engine, "measure_engines", {k_starts}},
                                      {k_large, "bench_large", {k_large_code}},
                                      {k_check, "bench_check", {k_large_code}},
                                      {k_published, "bench_published", {k_large_code}}};
  all.insert(all.end(), of_one_kind.begin(), of_one_kind.end());
  return all;
}

std::vector<Others> others(const std::vector<Release>& releases) {
  std::vector<Others> all{others_of("", releases)};
  std::vector<std::string> suites;
  for (const Release& release : releases) {
    if (std::find(suites.begin(), suites.end(), release.suite) != suites.end()) continue;
    suites.push_back(release.suite);
    all.push_back(others_of(release.suite, releases));
  }
  return all;
}

}  // namespace bench
