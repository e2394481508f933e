// Input: two bytes, the length of a perf map; the map; then a jitdump, which a target has mapped.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "jitunwind/sdk/targets/jit_names_p.h"
#include "tests/fuzz/fuzz_memory.h"
#include "tests/support/fake_space.h"

using namespace jitunwind;

namespace {

/// The folder is the root of the target: names lead to nothing outside of it.
class Root {
 public:
  Root() {
    std::string name = (std::filesystem::temp_directory_path() / "fuzz_XXXXXX").string();
    fuzz::check(::mkdtemp(name.data()) != nullptr, "there is room for files");
    path_ = name;
  }
  ~Root() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  void write(const char* name, std::span<const std::byte> bytes) const {
    std::ofstream(path_ + "/" + name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::string path_;
};

struct Named {
  AddrRange code{};
  std::string name{};
  bool has_frames = false;
};

/// All names in the order of the files, read without an index.
std::vector<Named> read_in_order(std::span<const std::byte> map, std::span<const std::byte> dump) {
  std::vector<Named> all;
  PerfMapReader lines;
  lines.read({reinterpret_cast<const char*>(map.data()), map.size()}, [&](const NamedCode& said) {
    all.push_back({said.code, std::string(said.name)});
  });
  JitDumpReader records;
  (void)records.read(dump, [&](const JitDumpRecord& record) {
    if (record.kind == JitDumpRecord::Kind::load && (!record.name.empty() || !record.frames.empty()))
      all.push_back({record.code, std::string(record.name), record.frames.size() > record.header_size});
    if (record.kind != JitDumpRecord::Kind::move) return;
    const auto moved =
        std::find_if(all.rbegin(), all.rend(), [&](const Named& named) { return named.code.begin == record.from; });
    if (moved == all.rend()) return;
    Named there = *moved;
    there.code = record.code;
    all.push_back(std::move(there));
  });
  return all;
}

void ask(const JitNames& names, const std::vector<Named>& all, Addr at) {
  static const test::FakeSpace space(*all_arches()[0]);
  MemoryWindow window;
  Lookup lookup(space.space, CodeAddress::interrupted(at), window);
  const auto last = std::find_if(all.rbegin(), all.rend(), [&](const Named& named) { return named.code.contains(at); });
  std::array<char, 64> into{};
  ProcedureName name;
  const Found found = names.find_name(lookup, into, name);
  const bool is_named = last != all.rend() && !last->name.empty();
  fuzz::check(found && *found == is_named, "the last name counts");
  if (is_named)
    fuzz::check(name.start == last->code.begin && last->name.starts_with(into.data()), "it is that of the code");
  FrameRow row;
  ProcedureInfo procedure;
  const Found has_row = names.find_row(lookup, row), has_procedure = names.find_procedure(lookup, procedure);
  fuzz::check(has_row || *has_row.error().what != 0, "an error says what");
  if (has_row && *has_row)
    fuzz::check(last != all.rend() && last->has_frames && row.range.contains(at), "a row is of it");
  if (has_procedure && *has_procedure) fuzz::check(procedure.range.contains(at), "a procedure covers it");
  (void)names.find_line(at);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static const Root root;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(2);
  const std::size_t length = std::min(data[0] + std::size_t{256} * data[1], bytes.size());
  const auto map = bytes.first(length), dump = bytes.subspan(length);
  root.write("perf-1.map", map);
  root.write("jit-1.dump", dump);
  const std::vector<Named> all = read_in_order(map, dump);
  static const Mappings mappings(
      {{.range = {0x1000, 0x2000}, .path = "/jit-1.dump", .inode = 1, .readable = true, .executable = true}});
  static const TargetFiles files(root.path());
  const fuzz::MemoryLimit limit(size);
  JitNames names(*all_arches()[0], mappings, files);
  names.set_process("/perf-1.map", ::geteuid());
  for (int times = 0; times < 2; ++times) {
    for (const Named& named : std::span(all).first(std::min<std::size_t>(all.size(), 64)))
      for (const Addr at : {named.code.begin - 1, named.code.begin, named.code.end - 1, named.code.end})
        ask(names, all, at);
    names.forget();
  }
  return 0;
}
