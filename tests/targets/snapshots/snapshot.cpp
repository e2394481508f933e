#include "tests/targets/snapshots/snapshot.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <istream>
#include <sstream>
#include <stdexcept>

#include "jitunwind/sdk/targets/target_space_p.h"
#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/walk/cursor.h"

namespace jitunwind::test {
namespace {

constexpr Addr k_most_zeros = 1 << 20;

std::vector<std::byte> bytes_of(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::string hex(Addr value) {
  std::ostringstream text;
  text << std::hex << value;
  return text.str();
}

/// On ARM, libgcc does not report a frame that cannot be left: the program's entry. This frame is it.
bool is_entry(Cursor& cursor, const Arch& arch) {
  if (arch.elf_machine != EM_ARM) return false;
  const auto moved = cursor.step();
  return moved && !*moved;
}

/// MIPS's C library has no unwind information for the program's entry.
bool is_undescribed_entry(const Error& error, const Arch& arch) {
  return arch.elf_machine == EM_MIPS && error.code == ErrorCode::no_info;
}

std::string pair(Addr ip, Addr sp) { return hex(ip) + " " + hex(sp); }

std::string name_at(const Cursor& cursor) {
  std::array<char, 64> name;
  const auto found = cursor.name(name);
  return found ? std::string(name.data()) : "no name (" + std::string(found.error().what) + ")";
}

/// Returns the differences in the frame's name and saved registers.
std::string differences(const Cursor& cursor, const SnapshotFrame& frame) {
  std::string wrong;
  const std::string where = "frame " + std::to_string(cursor.depth()) + ": ";
  if (!frame.name.empty() && name_at(cursor) != frame.name)
    wrong += where + name_at(cursor) + ", not " + frame.name + "\n";
  for (const auto& [reg, value] : frame.kept) {
    const auto now = cursor.get(reg);
    if (!now || *now != value)
      wrong += where + "register " + std::to_string(reg) + ": " + (now ? hex(*now) : now.error().what) + ", not " +
               hex(value) + "\n";
  }
  return wrong;
}

}  // namespace

Snapshot Snapshot::parse(std::istream& text) {
  Snapshot snapshot;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string key, name, order, digits;
    Addr first = 0, second = 0;
    words >> std::hex >> key;
    if (key == "cpu") {
      words >> name >> order;
      const Arch* const known = find_arch(name);
      if (!known) throw std::runtime_error("no CPU " + name);
      snapshot.arch = with_byte_order(*known, order == "big");
    } else if (key == "map") {
      snapshot.maps += line.substr(4) + "\n";
    } else if (key == "ucontext") {
      words >> digits;
      snapshot.ucontext = bytes_of(digits);
    } else if (key == "memory") {
      words >> first >> digits;
      snapshot.memory.push_back({first, bytes_of(digits)});
    } else if (key == "zeros") {
      words >> first >> second;
      if (second > k_most_zeros) throw std::runtime_error("snapshot: " + line);
      snapshot.memory.push_back({first, std::vector<std::byte>(static_cast<std::size_t>(second))});
    } else if (key == "frame") {
      words >> first >> second;
      // libgcc's CFA of the called frame equals SP here, except for the CPU's bias.
      const Addr bias = static_cast<Addr>(std::int64_t{snapshot.arch.caller_sp_bias});
      if (!words.fail() && !(words >> name)) words.clear();  // most have none
      snapshot.frames.push_back({first, second == 0 ? 0 : second + bias, name, {}});
    } else if (key == "kept" && !snapshot.frames.empty()) {
      words >> first >> second;
      snapshot.frames.back().kept.emplace_back(static_cast<RegNum>(first), second);
    } else if (key == "sp") {
      words >> first;
      snapshot.frames.push_back({0, first, "", {}});
    }
    if (words.fail()) throw std::runtime_error("snapshot: " + line.substr(0, 60));
  }
  return snapshot;
}

std::vector<std::string> snapshot_names() {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator(SNAPSHOTS))
    if (entry.path().extension() == ".snapshot") all.push_back(entry.path().stem().string());
  std::ranges::sort(all);
  return all;
}

Snapshot load_snapshot(const std::string& name) {
  std::ifstream text(SNAPSHOTS "/" + name + ".snapshot");
  return Snapshot::parse(text);
}

RegisterFile Snapshot::registers() const {
  RegisterFile registers;
  for (const RegisterInfo& reg : arch.registers) {
    if (reg.ucontext < 0) continue;
    ByteReader reader(ucontext, arch.big_endian);
    reader.skip(static_cast<std::uint64_t>(reg.ucontext));
    const std::uint64_t value = reader.unsigned_of(arch.word_size);
    if (!reader.ok()) throw std::runtime_error("a ucontext_t that is too short");
    registers.set_from_register(reg.column, value, reg.dwarf);
  }
  return registers;
}

std::size_t SnapshotMemory::read(Addr at, std::span<std::byte> into, MemoryWindow&) const noexcept {
  std::size_t done = 0;
  while (done < into.size()) {
    const Addr next = at + done;
    const auto part = std::ranges::find_if(
        parts_, [next](const Snapshot::Part& p) { return next >= p.at && next - p.at < p.bytes.size(); });
    if (part == parts_.end()) break;
    const std::size_t from = next - part->at;
    const std::size_t size = std::min(into.size() - done, part->bytes.size() - from);
    std::copy_n(part->bytes.begin() + static_cast<std::ptrdiff_t>(from), size,
                into.begin() + static_cast<std::ptrdiff_t>(done));
    done += size;
  }
  return done;
}

std::string walk_of(const Snapshot& snapshot, const Memory& memory) {
  const TargetSpace target(snapshot.arch, memory, Mappings::parse(snapshot.maps), TargetFiles::none());
  Cursor cursor(target.space(), snapshot.registers(), Cursor::Top::interrupted);
  std::string wrong;
  for (const SnapshotFrame& frame : snapshot.frames) {
    const Addr ip = frame.ip == 0 ? 0 : cursor.pc(), sp = frame.sp == 0 ? 0 : cursor.sp();
    if (ip != frame.ip || sp != frame.sp)
      wrong +=
          "frame " + std::to_string(cursor.depth()) + ": " + pair(ip, sp) + ", not " + pair(frame.ip, frame.sp) + "\n";
    wrong += differences(cursor, frame);
    const auto moved = cursor.step();
    if (!moved && &frame == &snapshot.frames.back() && is_undescribed_entry(moved.error(), snapshot.arch)) break;
    if (!moved) return wrong + "behind " + hex(cursor.pc()) + ": " + moved.error().what + "\n";
    if (!*moved && &frame != &snapshot.frames.back()) return wrong + "it ends behind " + hex(cursor.pc()) + "\n";
    if (*moved && &frame == &snapshot.frames.back() && !is_entry(cursor, snapshot.arch))
      return wrong + "it goes on to " + hex(cursor.pc()) + "\n";
  }
  return wrong;
}

}  // namespace jitunwind::test
