// A target behind accessors that write down how they are called, and fail when they are told to. Included behind
// libunwind's header for the target, <libunwind.h> or <libunwind-CPU.h>.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <string>
#include <vector>

namespace jitunwind::test {

/// Copies of the host memory that an answer of find_proc_info refers to. They become garbage as soon as the answer is
/// put back.
class LentInfo {
 public:
  /// Makes the answer refer to the copies.
  explicit LentInfo(unw_proc_info_t& info) {
    // The answer of dwarf_search_unwind_table belongs to the library and leads to the target.
    if (info.flags >> UNW_PI_FLAG_FIRST_TDEP_BIT != 0) {
      as_put_back = info;
      as_put_back.unwind_info = nullptr;
      return;
    }
    if (info.unwind_info && info.unwind_info_size > 0) {
      const auto size = static_cast<std::size_t>(info.unwind_info_size);
      info.unwind_info = copy(info.unwind_info, size);
      if (info.format == UNW_INFO_FORMAT_DYNAMIC && size == sizeof(unw_dyn_proc_info_t))
        copy_regions(static_cast<unw_dyn_proc_info_t*>(info.unwind_info)->regions);
      if (info.format == UNW_INFO_FORMAT_TABLE && size == sizeof(unw_dyn_table_info_t)) {
        auto& table = *static_cast<unw_dyn_table_info_t*>(info.unwind_info);
        table.table_data = static_cast<unw_word_t*>(copy(table.table_data, table.table_len * sizeof(unw_word_t)));
      }
    }
    as_put_back = info;
  }
  void spoil() {
    for (auto& block : copies_) std::memset(block.data(), 0xdd, block.size() * sizeof(unw_word_t));
  }

  unw_proc_info_t as_put_back;

 private:
  void* copy(const void* from, std::size_t size) {
    auto& block = copies_.emplace_back((size + sizeof(unw_word_t) - 1) / sizeof(unw_word_t));
    std::memcpy(block.data(), from, size);
    return block.data();
  }
  void copy_regions(unw_dyn_region_info_t*& first) {
    for (unw_dyn_region_info_t** link = &first; *link; link = &(*link)->next)
      *link = static_cast<unw_dyn_region_info_t*>(copy(*link, _U_dyn_region_info_size((*link)->op_count)));
  }

  std::list<std::vector<unw_word_t>> copies_;
};

class RecordingTarget {
 public:
  static RecordingTarget& of(void* argument) { return *static_cast<RecordingTarget*>(argument); }

  struct Call {
    std::string what;
    unw_word_t at = 0;  ///< address, or register number
    bool write = false;
    bool operator==(const Call&) const = default;
  };

  static unw_accessors_t accessors() {
    unw_accessors_t a{};
    a.find_proc_info = [](unw_addr_space_t as, unw_word_t ip, unw_proc_info_t* info, int need, void* argument) {
      RecordingTarget& t = of(argument);
      if (const int failed = t.enter(as, {need ? "find" : "find without", ip, false})) return failed;
      if (!t.find) return -UNW_ENOINFO;
      std::memset(info, 0x5a, sizeof *info);
      const int returned = t.find(ip, info, need);
      if (returned == 0 && need) t.held.emplace_back(*info);
      return returned;
    };
    a.put_unwind_info = [](unw_addr_space_t as, unw_proc_info_t* info, void* argument) {
      RecordingTarget& t = of(argument);
      (void)t.enter(as, {"put", info->start_ip, false});
      if (t.held.empty() || std::memcmp(&t.held.back().as_put_back, info, sizeof *info) != 0) {
        t.mistakes += "put of what was not found; ";
        return;
      }
      t.held.back().spoil();
      t.put_back.splice(t.put_back.end(), t.held, std::prev(t.held.end()));
    };
    a.get_dyn_info_list_addr = [](unw_addr_space_t as, unw_word_t* list, void* argument) {
      RecordingTarget& t = of(argument);
      if (const int failed = t.enter(as, {"list", 0, false})) return failed;
      *list = t.list;
      return 0;
    };
    a.access_mem = [](unw_addr_space_t as, unw_word_t at, unw_word_t* value, int write, void* argument) {
      RecordingTarget& t = of(argument);
      if (at % sizeof *value != 0) t.mistakes += "memory that is not aligned; ";
      if (const int failed = t.enter(as, {"mem", at, write != 0})) return failed;
      if (write) return t.memory[at] = *value, 0;
      const auto found = t.memory.find(at);
      if (found == t.memory.end()) return t.unreadable;
      *value = found->second;
      return 0;
    };
    a.access_reg = [](unw_addr_space_t as, unw_regnum_t reg, unw_word_t* value, int write, void* argument) {
      RecordingTarget& t = of(argument);
      if (const int failed = t.enter(as, {"reg", static_cast<unw_word_t>(reg), write != 0})) return failed;
      if (write) return t.registers[reg] = *value, 0;
      const auto found = t.registers.find(reg);
      if (found == t.registers.end()) return -UNW_EBADREG;
      *value = found->second;
      return 0;
    };
    a.access_fpreg = [](unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t* value, int write, void* argument) {
      RecordingTarget& t = of(argument);
      if (const int failed = t.enter(as, {"fpreg", static_cast<unw_word_t>(reg), write != 0})) return failed;
      const auto found = t.fp_registers.find(reg);
      if (found == t.fp_registers.end()) return -UNW_EBADREG;
      static_assert(sizeof *value == sizeof found->second);
      if (write)
        std::memcpy(&found->second, value, sizeof *value);
      else
        std::memcpy(value, &found->second, sizeof *value);
      return 0;
    };
    a.resume = [](unw_addr_space_t as, unw_cursor_t*, void* argument) {
      return of(argument).enter(as, {"resume", 0, false});
    };
    a.get_proc_name = [](unw_addr_space_t as, unw_word_t at, char* buffer, size_t size, unw_word_t* offset,
                         void* argument) {
      RecordingTarget& t = of(argument);
      if (const int failed = t.enter(as, {"name", at, false})) return failed;
      if (t.name.empty()) return -UNW_ENOINFO;
      *offset = at - t.name_at;
      const bool fits = t.name.size() < size;
      const std::size_t kept = fits ? t.name.size() : size - 1;
      std::memcpy(buffer, t.name.data(), kept);
      buffer[kept] = '\0';
      return fits ? 0 : -UNW_ENOMEM;
    };
    return a;
  }

  std::size_t count(const std::string& what, bool write = false) const {
    std::size_t n = 0;
    for (const Call& call : calls) n += call.what == what && call.write == write;
    return n;
  }

  unw_addr_space_t expected_space = nullptr;
  std::map<unw_word_t, unw_word_t> memory;  ///< words
  int unreadable = -UNW_EINVAL;
  std::map<int, unw_word_t> registers;
  std::map<int, std::array<std::uint64_t, 2>> fp_registers;
  std::function<int(unw_word_t, unw_proc_info_t*, int)> find;
  unw_word_t list = 0;
  std::string name;
  unw_word_t name_at = 0;
  std::map<std::string, int> failures;  ///< what the callback of a name returns

  std::vector<Call> calls;
  std::list<LentInfo> held;
  std::list<LentInfo> put_back;  ///< what they led to is still there, and garbage
  std::string mistakes;

 private:
  int enter(unw_addr_space_t space, const Call& call) {
    if (space != expected_space) mistakes += call.what + " with another space; ";
    calls.push_back(call);
    const auto failure = failures.find(call.what);
    return failure == failures.end() ? 0 : failure->second;
  }
};

/// A list of registered procedures in the target, of one without a frame.
struct WrittenList {
  explicit WrittenList(RecordingTarget& target, unw_word_t start, unw_word_t end) {
    // unw_dyn_info_t and, behind it, its name; the target has our word size and byte order.
    constexpr unw_word_t k_descriptor = 0x20000;
    const std::array<unw_word_t, 10> words{0, 0, start, end, 0, UNW_INFO_FORMAT_DYNAMIC, k_descriptor + 80, 0, 0, 0};
    for (std::size_t i = 0; i < words.size(); ++i) target.memory[k_descriptor + 8 * i] = words[i];
    std::memcpy(&target.memory[k_descriptor + 80], "listed", 7);
    target.memory[k_head] = 1;
    target.memory[k_head + 8] = k_descriptor;
    target.list = k_head;
  }
  static constexpr unw_word_t k_head = 0x21000;
};

}  // namespace jitunwind::test
