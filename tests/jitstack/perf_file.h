// A perf.data file made by hand, record by record.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace jitunwind::test {

class PerfFile {
 public:
  static constexpr std::uint64_t k_sample_type =
      PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  static constexpr std::uint64_t k_registers = 0xff0fff;  // as perf asks for on x86-64

  /// What uname(2) says of the machine that it was recorded on; "": the file does not say.
  void machine(const std::string& name) { machine_ = name; }
  void registers(std::uint64_t wanted) { registers_ = wanted; }
  /// An event; the same fields for all of its samples.
  void event(std::uint64_t id, std::uint64_t more_fields = 0) { events_.push_back({id, k_sample_type | more_fields}); }

  void mapped(std::uint32_t process, std::uint64_t address, std::uint64_t size, std::uint64_t offset,
              const std::string& path, std::uint64_t time, bool executable = true) {
    Bytes body;
    body.u32(process), body.u32(process), body.u64(address), body.u64(size), body.u64(offset);
    body.text(path);
    record(PERF_RECORD_MMAP, executable ? 0 : PERF_RECORD_MISC_MMAP_DATA, body, process, time);
  }
  void named(std::uint32_t process, std::uint32_t thread, const std::string& name, bool exec, std::uint64_t time) {
    Bytes body;
    body.u32(process), body.u32(thread), body.text(name);
    record(PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0, body, process, time);
  }
  void forked(std::uint32_t process, std::uint32_t parent, std::uint32_t thread, std::uint32_t parent_thread,
              std::uint64_t time, std::uint32_t type = PERF_RECORD_FORK) {
    Bytes body;
    body.u32(process), body.u32(parent), body.u32(thread), body.u32(parent_thread), body.u64(time);
    record(type, 0, body, process, time);
  }
  /// `registers` in the order of perf's numbers. `more`: what the event's further fields are between time and
  /// registers.
  void sample(std::uint64_t id, std::uint32_t process, std::uint32_t thread, std::uint64_t time,
              const std::vector<std::uint64_t>& registers, const std::vector<std::uint64_t>& stack,
              const std::vector<std::uint64_t>& more = {}, std::uint64_t abi = PERF_SAMPLE_REGS_ABI_64) {
    Bytes body;
    body.u64(id), body.u32(process), body.u32(thread), body.u64(time);
    for (const std::uint64_t word : more) body.u64(word);
    body.u64(abi);
    if (abi != PERF_SAMPLE_REGS_ABI_NONE)
      for (const std::uint64_t word : registers) body.u64(word);
    body.u64(8 * stack.size());
    for (const std::uint64_t word : stack) body.u64(word);
    if (!stack.empty()) body.u64(8 * stack.size());
    head(PERF_RECORD_SAMPLE, 0, body.all.size());
    data_.all += body.all;
  }
  void raw(std::uint32_t type, const std::string& body) {
    head(type, 0, body.size());
    data_.all += body;
  }

  std::string bytes() const {
    constexpr std::uint64_t k_header = 104, k_attribute = 128, k_features = 72;
    const std::uint64_t attributes = k_header + 8 * events_.size();
    const std::uint64_t data = attributes + (k_attribute + 16) * events_.size();
    Bytes file;
    file.all = "PERFILE2";
    for (const std::uint64_t word : {k_header, k_attribute + 16, attributes, (k_attribute + 16) * events_.size(), data,
                                     std::uint64_t{data_.all.size()}, std::uint64_t{0}, std::uint64_t{0}})
      file.u64(word);
    file.all.resize(k_header);
    for (const Event& event : events_) file.u64(event.id);
    for (std::size_t i = 0; i < events_.size(); ++i) {
      std::string attribute(k_attribute, '\0');
      const auto put = [&](std::size_t at, std::uint64_t word) { std::memcpy(&attribute[at], &word, sizeof word); };
      put(24, events_[i].sample_type), put(40, std::uint64_t{1} << 18), put(80, registers_);
      file.all += attribute;
      file.u64(k_header + 8 * i), file.u64(8);
    }
    file.all += data_.all;
    if (machine_.empty()) return file.all;
    file.all[k_features] = 1 << 6;
    file.u64(file.all.size() + 16), file.u64(4 + machine_.size() + 1);
    file.u32(static_cast<std::uint32_t>(machine_.size() + 1));
    file.all += machine_ + '\0';
    return file.all;
  }

 private:
  struct Bytes {
    std::string all{};
    void u32(std::uint32_t word) { all.append(reinterpret_cast<const char*>(&word), sizeof word); }
    void u64(std::uint64_t word) { all.append(reinterpret_cast<const char*>(&word), sizeof word); }
    void text(const std::string& text) { all += text, all.append(8 - text.size() % 8, '\0'); }
  };
  struct Event {
    std::uint64_t id = 0, sample_type = 0;
  };

  void head(std::uint32_t type, std::uint32_t misc, std::size_t body) {
    data_.u32(type), data_.u32(misc | static_cast<std::uint32_t>(8 + body) << 16);
  }
  /// With what sample_id_all puts behind it.
  void record(std::uint32_t type, std::uint32_t misc, Bytes body, std::uint32_t process, std::uint64_t time) {
    body.u32(process), body.u32(process), body.u64(time), body.u64(events_.empty() ? 0 : events_[0].id);
    head(type, misc, body.all.size());
    data_.all += body.all;
  }

  std::string machine_;
  std::uint64_t registers_ = k_registers;
  std::vector<Event> events_;
  Bytes data_;
};

}  // namespace jitunwind::test
