// A perf.data file made by hand, record by record.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/bytes.h"

namespace jitunwind::test {

class PerfFile {
 public:
  static constexpr std::uint64_t k_sample_type =
      PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  static constexpr std::uint64_t k_registers = 0xff0fff;  // as perf asks for on x86-64

  /// Sets uname(2)'s name of the recorded machine; "": the file does not have it.
  void machine(const std::string& name) { machine_ = name; }
  /// The build id of a file, 20 bytes of which the first `size` count.
  void build_id(const std::string& path, const std::string& id, std::size_t size = 20) {
    const Bytes body = Bytes().u32(4711).characters(id).fill(24 - id.size(), 0).text(path).align(8);
    const std::uint64_t misc = PERF_RECORD_MISC_USER | 1 << 15;
    build_ids_.u32(67).u32(misc | (8 + body.size()) << 16).add(Bytes(body).put(4 + 20, size, 1));
  }
  void registers(std::uint64_t wanted) { registers_ = wanted; }
  /// Adds an event, whose samples all have the same fields.
  void event(std::uint64_t id, std::uint64_t more_fields = 0) { events_.push_back({id, k_sample_type | more_fields}); }

  void mapped(std::uint32_t process, std::uint64_t address, std::uint64_t size, std::uint64_t offset,
              const std::string& path, std::uint64_t time, bool executable = true) {
    const Bytes body = Bytes().u32(process).u32(process).u64(address).u64(size).u64(offset).text(path).align(8);
    record(PERF_RECORD_MMAP, executable ? 0 : PERF_RECORD_MISC_MMAP_DATA, body, process, time);
  }
  void named(std::uint32_t process, std::uint32_t thread, const std::string& name, bool exec, std::uint64_t time) {
    const Bytes body = Bytes().u32(process).u32(thread).text(name).align(8);
    record(PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0, body, process, time);
  }
  void forked(std::uint32_t process, std::uint32_t parent, std::uint32_t thread, std::uint32_t parent_thread,
              std::uint64_t time, std::uint32_t type = PERF_RECORD_FORK) {
    record(type, 0, Bytes().u32(process).u32(parent).u32(thread).u32(parent_thread).u64(time), process, time);
  }
  /// Adds a sample. `registers` are in the order of perf's numbers; `more` has the event's further fields between time
  /// and registers.
  void sample(std::uint64_t id, std::uint32_t process, std::uint32_t thread, std::uint64_t time,
              const std::vector<std::uint64_t>& registers, const std::vector<std::uint64_t>& stack,
              const std::vector<std::uint64_t>& more = {}, std::uint64_t abi = PERF_SAMPLE_REGS_ABI_64) {
    Bytes body = Bytes().u64(id).u32(process).u32(thread).u64(time);
    for (const std::uint64_t word : more) body.u64(word);
    body.u64(abi);
    if (abi != PERF_SAMPLE_REGS_ABI_NONE)
      for (const std::uint64_t word : registers) body.u64(word);
    body.u64(8 * stack.size());
    for (const std::uint64_t word : stack) body.u64(word);
    if (!stack.empty()) body.u64(8 * stack.size());
    put(PERF_RECORD_SAMPLE, 0, body);
  }
  void raw(std::uint32_t type, const std::string& body) { put(type, 0, Bytes().characters(body)); }

  std::string bytes() const {
    constexpr std::uint64_t k_header = 104, k_attribute = 128, k_features = 72;
    const std::uint64_t attributes = k_header + 8 * events_.size();
    const std::uint64_t data = attributes + (k_attribute + 16) * events_.size();
    Bytes file = Bytes().characters("PERFILE2");
    for (const std::uint64_t word : {k_header, k_attribute + 16, attributes, (k_attribute + 16) * events_.size(), data,
                                     std::uint64_t{data_.size()}, std::uint64_t{0}, std::uint64_t{0}})
      file.u64(word);
    file.fill(k_header - file.size(), 0);
    for (const Event& event : events_) file.u64(event.id);
    for (std::size_t i = 0; i < events_.size(); ++i) {
      Bytes attribute = Bytes().fill(k_attribute, 0).put(24, events_[i].sample_type, 8);
      attribute.put(40, std::uint64_t{1} << 18, 8).put(80, registers_, 8);
      file.add(attribute).u64(k_header + 8 * i).u64(8);
    }
    file.add(data_);
    // Features, by their bits.
    std::vector<Bytes> features;
    unsigned bits = 0;
    const auto has = [&](unsigned bit, const Bytes& contents) { features.push_back(contents), bits |= 1u << bit; };
    if (build_ids_.size() != 0) has(2, build_ids_);
    if (!machine_.empty()) has(6, Bytes().u32(machine_.size() + 1).text(machine_));
    file.put(k_features, bits, 1);
    std::uint64_t at = file.size() + 16 * features.size();
    for (const Bytes& feature : features) {
      file.u64(at).u64(feature.size());
      at += feature.size();
    }
    for (const Bytes& feature : features) file.add(feature);
    return file.string();
  }

 private:
  struct Event {
    std::uint64_t id = 0, sample_type = 0;
  };

  void put(std::uint32_t type, std::uint32_t misc, const Bytes& body) {
    data_.u32(type).u32(misc | (8 + body.size()) << 16).add(body);
  }
  /// Appends a record with the fields of sample_id_all behind it.
  void record(std::uint32_t type, std::uint32_t misc, Bytes body, std::uint32_t process, std::uint64_t time) {
    put(type, misc, body.u32(process).u32(process).u64(time).u64(events_.empty() ? 0 : events_[0].id));
  }

  std::string machine_;
  Bytes build_ids_;
  std::uint64_t registers_ = k_registers;
  std::vector<Event> events_;
  Bytes data_;
};

}  // namespace jitunwind::test
