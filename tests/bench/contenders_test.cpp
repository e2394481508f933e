// The programs that run with each release of other libraries, and the contents of targets.
#include "bench/contenders.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unwind.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "bench/report.h"
#include "bench/tables.h"
#include "tests/bench/unpacked.h"

namespace bench {
namespace {

using Strings = std::vector<std::string>;

constexpr const char* k_three_of_libgcc =
    "libgcc sid libgcc-s1\nlibgcc trixie libgcc-s1\nlibgcc bookworm libgcc-s1\nnongnu sid libunwind8\n";

Strings titles_of(const std::string& program, const std::vector<Peer>& peers) {
  Strings titles;
  for (const Peer& peer : peers)
    if (peer.program == program) titles.push_back(peer.title);
  return titles;
}

TEST(Contenders, AreEachReleaseOfOthersAndOursOnTheNewestAndTheOldest) {
  const Unpacked unpacked(k_three_of_libgcc);
  unpacked.unpack_libgcc();
  const std::vector<Peer> all = peers(unpacked.releases());
  EXPECT_EQ(titles_of("bench_libgcc", all), (Strings{"libgcc 16", "libgcc 14", "libgcc 12"}));
  EXPECT_EQ(titles_of("bench_listen", all), (Strings{"listening on libgcc 16", "listening on libgcc 12"}));
  EXPECT_EQ(titles_of("bench_jitunwind", all), (Strings{"jitunwind", "jitunwind again", "jitunwind on libgcc 16",
                                                        "jitunwind on libgcc 16 again", "jitunwind on libgcc 12"}));
  EXPECT_EQ(titles_of("bench_nongnu", all), Strings{"nongnu of sid"});
}

TEST(Contenders, RegisterOnlyFewWhereThatTakesQuadraticTime) {
  const Unpacked unpacked(k_three_of_libgcc);
  unpacked.unpack_libgcc();
  std::map<std::string, std::size_t> most;
  for (const Peer& peer : peers(unpacked.releases())) most[peer.title] = peer.most_functions;
  EXPECT_EQ(most.at("libgcc 12"), 40'000u);
  EXPECT_EQ(most.at("libgcc 14"), 1'000'000u);
  EXPECT_EQ(most.at("listening on libgcc 12"), 1'000'000u);
}

TEST(Contenders, AreThoseOfTheList) {
  const std::string list = JITUNWIND_SOURCE_DIR "/bench/peers/packages";
  const jitunwind::test::TemporaryFolder nothing;
  const std::vector<Release> releases = read_releases(list, nothing.path());
  const std::vector<Peer> all = peers(releases);
  EXPECT_GE(releases.size(), 9u);
  for (const Release& release : releases)
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Peer& peer) { return peer.title == release.title(); }))
        << release.title() << " is measured by a program";
}

TEST(Contenders, AreMissingForAReason) {
  const Unpacked unpacked(k_three_of_libgcc);
  unpacked.unpack("libgcc/sid", "libgcc-s1 16.2.0-4\n");
  const std::filesystem::path folder = unpacked.folder().path();
  const std::vector<Peer> all = peers(unpacked.releases());
  const auto reason_of = [&](const std::string& title) {
    const auto peer = std::find_if(all.begin(), all.end(), [&](const Peer& one) { return one.title == title; });
    return peer == all.end() ? "there is none" : what_is_missing(*peer, folder);
  };
  EXPECT_EQ(reason_of("libgcc of trixie"),
            "libgcc of trixie: its packages are not in " + (unpacked.folder() / "libgcc/trixie"));
  EXPECT_EQ(reason_of("jitunwind on libgcc of bookworm"), reason_of("libgcc of bookworm")) << "a line each";
  EXPECT_EQ(reason_of("debugger"), "debugger: at build time there was no gdb");
}

/// This program needs libgcc_s, too.
TEST(Contenders, LoadTheLibrariesOfTheirReleaseOrAreMissing) {
  const Unpacked unpacked(k_three_of_libgcc);
  unpacked.unpack("libgcc/sid", "libgcc-s1 16.2.0-4\n");
  const std::filesystem::path folder = unpacked.folder().path();
  std::filesystem::create_symlink(std::filesystem::canonical("/proc/self/exe"), folder / "bench_libgcc");
  const Peer peer{"libgcc 16", "bench_libgcc", {}, "", unpacked.releases().front()};
  const std::string does_not = "libgcc 16: bench_libgcc does not load its libraries";
  EXPECT_EQ(what_is_missing(peer, folder), does_not) << "but this system's";

  Dl_info libgcc{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&_Unwind_GetIP), &libgcc), 0);
  const std::filesystem::path library = folder / "libgcc/sid/usr/lib/x86_64-linux-gnu/libgcc_s.so.1";
  std::filesystem::create_directories(library.parent_path());
  std::filesystem::copy_file(libgcc.dli_fname, library);
  EXPECT_EQ(what_is_missing(peer, folder), "");
  std::filesystem::resize_file(library, 0);
  EXPECT_EQ(what_is_missing(peer, folder), does_not);
}

/// The cells of the only row below the headings of the table that shows it.
Strings cells_of(const Results& results, const Others& others) {
  for (const TableOptions& table : tables(others)) {
    const Table shown = results.table(table);
    if (!shown.cells.empty()) return shown.cells.back();
  }
  return {};
}

TEST(Contenders, AreShownAllAndTargetsAreAboutTheNewest) {
  const Unpacked unpacked(k_three_of_libgcc);
  unpacked.unpack_libgcc();
  Results results;
  double nanoseconds = 1000;
  for (const char* const title : {"libgcc 16", "libgcc 14", "libgcc 12"}) {
    results.add("throw/static/50/0", {title, "libgcc_s"}, 0, nanoseconds);
    results.add("throw/static/50/0", {"jitunwind on " + std::string(title), "libgcc_s"}, 0, 1.5 * nanoseconds);
    nanoseconds *= 2;
  }
  const std::vector<Others> all = others(unpacked.releases());
  EXPECT_EQ(cells_of(results, all.front()), (Strings{"static/50/0", "1000", "1500", "2000", "3000", "4000", "6000", "",
                                                     "1.5 of libgcc 16 libgcc_s (1.03)!"}));
  std::map<std::string, double> ratios;
  for (const Others& one : all) ratios.merge(results.target_ratios(tables(one)));
  EXPECT_EQ(ratios, (std::map<std::string, double>{
                        {"throw/static/50/0: jitunwind on libgcc 12 libgcc_s to libgcc 12 libgcc_s", 1.5},
                        {"throw/static/50/0: jitunwind on libgcc 14 libgcc_s to libgcc 14 libgcc_s", 1.5},
                        {"throw/static/50/0: jitunwind on libgcc 16 libgcc_s to libgcc 16 libgcc_s", 1.5}}));
}

}  // namespace
}  // namespace bench
