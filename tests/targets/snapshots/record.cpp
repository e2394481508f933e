// Makes a snapshot from the output of recorded.c, and adds the parts of the program that a walk reads.
//
// usage: record CPU little|big OUTPUT PROGRAM >SNAPSHOT
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

#include "jitunwind/unwind_core/page_internal.h"
#include "tests/targets/snapshots/snapshot.h"

namespace jitunwind::test {
namespace {

/// Records the bytes that were read.
class RecordingMemory final : public Memory {
 public:
  explicit RecordingMemory(const Memory& memory) : memory_(memory) {}
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override {
    const std::size_t size = memory_.read(at, into, window);
    for (std::size_t i = 0; i < size; ++i) read_[at + i] = into[i];
    return size;
  }
  std::vector<Snapshot::Part> parts() const {
    std::vector<Snapshot::Part> all;
    for (const auto& [at, byte] : read_) {
      if (all.empty() || all.back().at + all.back().bytes.size() != at) all.push_back({at, {}});
      all.back().bytes.push_back(byte);
    }
    return all;
  }

 private:
  const Memory& memory_;
  mutable std::map<Addr, std::byte> read_;
};

constexpr std::size_t k_piece = 32;

/// Splits parts into pieces of k_piece. A walk copies pages and needs only some of their bytes: pieces whose values do
/// not influence it become zeros.
std::vector<Snapshot::Part> needed(const Snapshot& snapshot, std::vector<Snapshot::Part> parts) {
  const SnapshotMemory memory(parts);
  std::vector<Snapshot::Part> pieces;
  for (Snapshot::Part& part : parts) {
    for (std::size_t i = 0; i < part.bytes.size(); i += k_piece) {
      const std::span piece = std::span(part.bytes).subspan(i, std::min(k_piece, part.bytes.size() - i));
      const std::vector<std::byte> before(piece.begin(), piece.end());
      std::ranges::fill(piece, std::byte{0});
      if (!walk_of(snapshot, memory).empty()) std::ranges::copy(before, piece.begin());
      pieces.push_back({part.at + i, {piece.begin(), piece.end()}});
    }
  }
  return pieces;
}

bool is_zero(const Snapshot::Part& part) {
  return std::ranges::all_of(part.bytes, [](std::byte b) { return b == std::byte{0}; });
}

void print(const std::vector<Snapshot::Part>& pieces) {
  for (auto piece = pieces.begin(); piece != pieces.end();) {
    const auto first = piece;
    Addr end = first->at;
    const bool zeros = is_zero(*first);
    for (; piece != pieces.end() && piece->at == end && is_zero(*piece) == zeros; ++piece) end += piece->bytes.size();
    std::printf("%s %llx ", zeros ? "zeros" : "memory", static_cast<unsigned long long>(first->at));
    if (zeros) std::printf("%llx", static_cast<unsigned long long>(end - first->at));
    for (auto p = first; p != piece && !zeros; ++p)
      for (const std::byte byte : p->bytes) std::printf("%02x", std::to_integer<unsigned>(byte));
    std::printf("\n");
  }
}

using Maps = std::map<Addr, std::string>;  ///< by where they begin

void add_map(AddrRange range, const char* permissions, const std::string& rest, Maps& maps) {
  const Addr begin = page_of(range.begin), end = page_of(range.end + k_page_size - 1);
  std::ostringstream line;
  line << std::hex << begin << "-" << end << " " << permissions << " " << rest << "\n";
  maps.emplace(begin, line.str());
}

/// Adds the program as it is loaded at its link address.
AddrRange add_program(const std::string& path, Snapshot& snapshot, Maps& maps) {
  ::elf_version(EV_CURRENT);
  const int file = ::open(path.c_str(), O_RDONLY);
  Elf* const elf = ::elf_begin(file, ELF_C_READ, nullptr);
  std::size_t count = 0, size = 0;
  const char* const bytes = elf ? ::elf_rawfile(elf, &size) : nullptr;
  if (!bytes || ::elf_getphdrnum(elf, &count) != 0) throw std::runtime_error(path + ": no ELF file");
  AddrRange all{~Addr{0}, 0};
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (!::gelf_getphdr(elf, static_cast<int>(i), &segment) || segment.p_type != PT_LOAD) continue;
    const auto* const from = reinterpret_cast<const std::byte*>(bytes) + segment.p_offset;
    std::vector<std::byte> loaded_bytes(from, from + segment.p_filesz);
    loaded_bytes.resize(segment.p_memsz);
    snapshot.memory.push_back({segment.p_vaddr, std::move(loaded_bytes)});
    std::ostringstream file;
    file << std::hex << page_of(segment.p_offset) << " 01:01 1 /program";
    const AddrRange range{segment.p_vaddr, segment.p_vaddr + segment.p_memsz};
    const bool is_written = (segment.p_flags & PF_W) != 0, is_code = (segment.p_flags & PF_X) != 0;
    add_map(range, is_code ? "r-xp" : is_written ? "rw-p" : "r--p", file.str(), maps);
    all = {std::min(all.begin, range.begin), std::max(all.end, range.end)};
  }
  return all;
}

/// Writes the program's changes into the loaded parts of its file.
bool write_over(const Snapshot::Part& written, std::vector<Snapshot::Part>& loaded) {
  for (Snapshot::Part& part : loaded) {
    const Addr end = part.at + part.bytes.size();
    if (written.at < part.at || written.at > end || written.bytes.size() > end - written.at) continue;
    std::ranges::copy(written.bytes, part.bytes.begin() + static_cast<std::ptrdiff_t>(written.at - part.at));
    return true;
  }
  return false;
}

int run(char** arguments) {
  std::ifstream output(arguments[3]);
  std::ostringstream kept, text;
  kept << "cpu " << arguments[1] << " " << arguments[2] << "\n";
  text << kept.str();
  Snapshot loaded;
  Maps maps;
  const AddrRange program = add_program(arguments[4], loaded, maps);
  for (std::string line; std::getline(output, line);) {
    std::istringstream words(line);
    std::string key, at, bytes;
    words >> key >> at >> bytes;
    if (key == "stack" || key == "written" || key == "trampoline" || key == "code") {
      text << "memory " << at << " " << bytes << "\n";
      const Addr begin = std::stoull(at, nullptr, 16);
      const AddrRange range{begin, begin + bytes.size() / 2};
      const bool is_data = key == "stack" || key == "written";
      if (!program.contains(begin)) add_map(range, is_data ? "rw-p" : "r-xp", "0 00:00 0", maps);
    } else if (!key.empty()) {
      text << line << "\n";
      kept << line << "\n";
    }
  }
  std::istringstream all(text.str());
  Snapshot snapshot = Snapshot::parse(all);
  std::erase_if(snapshot.memory, [&](const Snapshot::Part& part) { return write_over(part, loaded.memory); });
  std::ranges::move(loaded.memory, std::back_inserter(snapshot.memory));
  for (const auto& [begin, line] : maps) snapshot.maps += line;
  const SnapshotMemory memory(snapshot.memory);
  const RecordingMemory recorded(memory);
  const std::string wrong = walk_of(snapshot, recorded);
  std::fputs(wrong.c_str(), stderr);
  std::fputs(kept.str().c_str(), stdout);
  for (const auto& [begin, line] : maps) std::printf("map %s", line.c_str());
  print(needed(snapshot, recorded.parts()));
  return wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace jitunwind::test

int main(int argc, char** argv) {
  try {
    if (argc == 5) return jitunwind::test::run(argv);
    std::fprintf(stderr, "usage: record CPU little|big OUTPUT PROGRAM >SNAPSHOT\n");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "record: %s\n", e.what());
  }
  return 2;
}
