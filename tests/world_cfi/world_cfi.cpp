// Compares every FDE of every ELF file below the given folders, or of the system's library folders, with readelf and
// llvm-dwarfdump. Prints figures; exits with 1 if a difference is not explained.
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/world_cfi/compare.h"

namespace {

using namespace jitunwind::world;
namespace fs = std::filesystem;

struct File {
  std::string path;
  std::uintmax_t size;
};

bool is_elf(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  char magic[4] = {};
  return in.read(magic, 4) && std::memcmp(magic, "\177ELF", 4) == 0;
}

/// Lists every ELF file once, however many names it has; the largest first, so that the threads end together.
std::vector<File> elf_files(const std::vector<std::string>& places) {
  std::vector<File> files;
  std::set<std::pair<dev_t, ino_t>> seen;
  const auto add = [&](const fs::path& path) {
    struct stat info;
    if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || !is_elf(path)) return;
    if (seen.emplace(info.st_dev, info.st_ino).second)
      files.push_back({path.string(), static_cast<std::uintmax_t>(info.st_size)});
  };
  for (const std::string& place : places) {
    std::error_code error;
    if (!fs::is_directory(place, error)) {
      add(place);
      continue;
    }
    const auto options = fs::directory_options::skip_permission_denied;
    for (auto it = fs::recursive_directory_iterator(place, options, error); it != fs::end(it); it.increment(error)) {
      if (error) break;
      if (it->is_regular_file(error)) add(it->path());
    }
  }
  std::ranges::sort(files, std::greater<>{}, &File::size);
  return files;
}

struct Totals {
  Figures own;
  Figures readelf;
  Figures dwarfdump;
};

void work(const std::vector<File>& files, std::atomic<std::size_t>& next, std::mutex& mutex, Totals& totals) {
  for (std::size_t i = next++; i < files.size(); i = next++) {
    const Figures own = check_file(files[i].path);
    const Figures readelf = compare_file(files[i].path, Tool::readelf);
    const Figures dwarfdump = compare_file(files[i].path, Tool::dwarfdump);
    const std::lock_guard lock(mutex);
    totals.own.add(own);
    totals.readelf.add(readelf);
    totals.dwarfdump.add(dwarfdump);
    if (i % 100 == 0 || files[i].size > (std::uintmax_t{32} << 20))
      std::fprintf(stderr, "%zu/%zu files, %llu FDEs, %llu rows  %s\n", i + 1, files.size(),
                   static_cast<unsigned long long>(totals.readelf.fdes),
                   static_cast<unsigned long long>(totals.readelf.rows), files[i].path.c_str());
  }
}

void print(const char* title, const Figures& figures) {
  const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
  std::printf("%s: %llu files, %llu FDEs, %llu rows, %llu unexplained differences\n", title, number(figures.files),
              number(figures.fdes), number(figures.rows), number(figures.unexplained));
  for (const auto& [kind, e] : figures.explained)
    std::printf("  explained: %llu %s (first: %s)\n", number(e.count), kind.c_str(), e.witness.c_str());
  for (const std::string& message : figures.messages) std::printf("  %s\n", message.c_str());
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> places(argv + 1, argv + argc);
  if (places.empty())
    places = {"/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/libexec", "/usr/local/lib"};
  const std::vector<File> files = elf_files(places);
  if (files.empty()) throw std::runtime_error("no ELF files there");

  Totals totals;
  std::mutex mutex;
  std::atomic<std::size_t> next = 0;
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
      threads.emplace_back([&] { work(files, next, mutex, totals); });
  }
  print("against readelf", totals.readelf);
  print("against llvm-dwarfdump", totals.dwarfdump);
  print("own checks", totals.own);
  std::printf(
      "  %llu FDEs found through .eh_frame_hdr, %llu FDEs encoded and read back, %llu by a known CIE, %llu expressions "
      "evaluated\n",
      static_cast<unsigned long long>(totals.own.found), static_cast<unsigned long long>(totals.own.encoded),
      static_cast<unsigned long long>(totals.own.quick), static_cast<unsigned long long>(totals.own.expressions));
  const bool compared = totals.readelf.rows > 0 && totals.dwarfdump.rows > 0;
  const bool clean = totals.readelf.unexplained + totals.dwarfdump.unexplained + totals.own.unexplained == 0;
  return compared && clean ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "world_cfi: %s\n", e.what());
  return 1;
}
