#include "jitunwind/sdk/jitstack/perf/perf_data_p.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <map>
#include <optional>

#include "jitunwind/unwind_core/byte_reader.h"

namespace jitunwind::jitstack {
namespace {

constexpr std::uint64_t k_magic = 0x32454c4946524550;  // "PERFILE2", least byte first
constexpr std::uint64_t k_swapped_magic = 0x50455246494c4532;
constexpr std::uint64_t k_pipe_header = 16;
// perf's own records and features (tools/perf/util/event.h, header.h).
constexpr std::uint32_t k_auxtrace = 71, k_compressed = 81;
constexpr unsigned k_build_id_feature = 2, k_arch_feature = 6;
constexpr std::uint16_t k_build_id_size = 1 << 15;  // PERF_RECORD_MISC_BUILD_ID_SIZE
constexpr std::size_t k_most_attributes = 4096;
constexpr std::uint64_t k_branch_index = std::uint64_t{1} << 17;  // PERF_SAMPLE_BRANCH_HW_INDEX

struct Section {
  std::uint64_t offset = 0, size = 0;
};
Section section(ByteReader& in) {
  const std::uint64_t offset = in.u64();
  return {offset, in.u64()};
}

struct Head {
  std::uint32_t type = 0;
  std::uint16_t misc = 0, size = 0;
};
Head head_of(ByteReader& in) {
  const std::uint32_t type = in.u32();
  const std::uint16_t misc = in.u16();
  return {type, misc, in.u16()};
}

bool is_kept(std::uint32_t type) {
  return type == PERF_RECORD_MMAP || type == PERF_RECORD_MMAP2 || type == PERF_RECORD_COMM ||
         type == PERF_RECORD_FORK || type == PERF_RECORD_EXIT || type == PERF_RECORD_SAMPLE;
}

pid_t id(ByteReader& in) { return static_cast<pid_t>(in.u32()); }

/// Counts the bits of `of` that are set in the sample type; each stands for a field of 8 bytes.
std::size_t fields(std::uint64_t sample_type, std::uint64_t of) {
  return static_cast<std::size_t>(std::popcount(sample_type & of));
}

Mapping mapping_of(ByteReader& in, const Head& head) {
  Mapping mapping;
  const std::uint64_t address = in.u64(), length = in.u64();
  mapping.range = {address, address + std::min(length, ~address)};
  mapping.offset = in.u64();
  if (head.type == PERF_RECORD_MMAP) {
    mapping.readable = true;
    mapping.executable = (head.misc & PERF_RECORD_MISC_MMAP_DATA) == 0;
  } else {
    if ((head.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0) {
      const std::size_t size = in.u8();
      in.skip(3);
      const auto bytes = in.bytes(20);
      const auto used = bytes.first(std::min(size, bytes.size()));
      mapping.build_id.assign(reinterpret_cast<const char*>(used.data()), used.size());
    } else {
      const std::uint64_t major = in.u32();
      mapping.device = major << 32 | in.u32();
      mapping.inode = in.u64();
      in.skip(8);
    }
    const std::uint32_t protection = in.u32();
    in.skip(4);
    mapping.readable = (protection & 1) != 0;
    mapping.writable = (protection & 2) != 0;
    mapping.executable = (protection & 4) != 0;
  }
  const std::string path(in.c_string());
  mapping.set_shown_path(path == "//anon" ? "" : path);
  return mapping;
}

void skip_read_values(ByteReader& in, std::uint64_t format) {
  const bool is_group = (format & PERF_FORMAT_GROUP) != 0;
  const std::uint64_t count = is_group ? in.u64() : 1;
  const std::uint64_t each = 1 + fields(format, PERF_FORMAT_ID | PERF_FORMAT_LOST);
  if (count > in.remaining() / 8) return in.fail(ErrorCode::truncated);
  in.skip(8 * fields(format, PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING));
  in.skip(8 * each * count);
}

void skip_array(ByteReader& in, std::uint64_t count, std::uint64_t each) {
  if (count > in.remaining() / each) return in.fail(ErrorCode::truncated);
  in.skip(count * each);
}

/// Finds the CPU by the machine name that uname(2) reports. The names ppc64 and mips64 do not tell the byte order;
/// files of big-endian machines are refused before.
const Arch* arch_called(std::string name) {
  const auto is_number = [](char c) { return c >= '0' && c <= '9'; };
  if (name.size() == 4 && name[0] == 'i' && is_number(name[1]) && name.ends_with("86")) name = "x86";
  if (name.starts_with("armv")) name = "arm";
  if (name == "ppc64le") name = "ppc64";
  std::ranges::replace(name, '_', '-');
  const Arch* const known = find_arch(name);
  return known ? find_arch(known->elf_machine, false) : nullptr;
}

}  // namespace

class PerfData::Parser {
 public:
  Parser(std::span<const std::byte> file, const std::string& name) : name_(name) { data_.file_ = file; }

  Result<PerfData, TargetError> parse() {
    ByteReader in(data_.file_, false);
    const std::uint64_t magic = in.u64(), size = in.u64(), attribute_size = in.u64();
    const Section attributes = section(in), data = section(in);
    (void)section(in);
    const std::uint64_t features = in.u64();
    if (magic == k_swapped_magic) return wrong("was recorded on a machine of another byte order.", "");
    if (magic != k_magic || (!in.ok() && size != k_pipe_header))
      return wrong("is no file of perf's.", "perf record --call-graph dwarf -o FILE makes one.");
    if (size == k_pipe_header)
      return wrong("was recorded into a pipe.", "Record into a file: perf record --call-graph dwarf -o FILE.");
    take_attributes(attributes, attribute_size);
    const auto is_dwarf = [](const Attributes& each) {
      constexpr std::uint64_t k_needed = PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
      return (each.sample_type & k_needed) == k_needed;
    };
    if (data_.attributes_.empty()) return wrong("has no events that can be read.", "It may be cut off.");
    if (!std::ranges::all_of(data_.attributes_, is_dwarf))
      return wrong("has samples without registers and stacks.", "perf record --call-graph dwarf keeps them.");
    if (!is_told_apart())
      return wrong("has several events whose samples cannot be told apart.", "Record one event: perf record -e NAME.");
    data_.arch_ = host_arch();
    take_arch(data, features);
    take_build_ids(data, features);
    if (!data_.arch_)
      return wrong("is of a CPU that is not known here: " + (machine_.empty() ? "this machine's" : machine_) + ".", "");
    if (auto failed = take_records(data)) return std::move(*failed);
    std::ranges::stable_sort(data_.records_, {}, &Record::time);
    return std::move(data_);
  }

 private:
  TargetError wrong(const std::string& what, const std::string& remedy) const {
    return {TargetError::Reason::no_samples, "'" + name_ + "' " + what, remedy};
  }

  /// Reads the attributes: each is a perf_event_attr followed by offset and size of its ids.
  void take_attributes(const Section& section, std::uint64_t each) {
    ByteReader in(data_.file_, false);
    in.seek(std::min<std::uint64_t>(section.offset, data_.file_.size()));
    // The structure has 64 bytes in its first version, and 92 up to sample_stack_user.
    if (each < 92 + 16) return;
    const std::uint64_t count = std::min<std::uint64_t>(section.size / each, k_most_attributes);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto bytes = in.bytes(each);
      if (bytes.empty()) return;
      ByteReader at(bytes, false);
      const auto word = [&](std::size_t offset) { return at.seek(offset), at.u64(); };
      Attributes attributes{.sample_type = word(24),
                            .read_format = word(32),
                            .branch_sample_type = word(72),
                            .registers = word(80),
                            .sample_id_all = (word(40) >> 18 & 1) != 0};
      const Section ids{word(each - 16), word(each - 8)};
      ByteReader id(data_.file_, false);
      id.seek(std::min<std::uint64_t>(ids.offset, data_.file_.size()));
      for (std::uint64_t left = std::min<std::uint64_t>(ids.size, id.remaining()) / 8; left != 0; --left)
        by_id_.emplace(id.u64(), data_.attributes_.size());
      data_.attributes_.push_back(std::move(attributes));
    }
  }

  /// Returns whether each record can be assigned to its attributes. PERF_SAMPLE_IDENTIFIER puts the id in a fixed
  /// place; without it all records must have one layout.
  bool is_told_apart() {
    const auto& all = data_.attributes_;
    has_identifiers_ = std::ranges::all_of(
        all, [](const Attributes& each) { return (each.sample_type & PERF_SAMPLE_IDENTIFIER) != 0; });
    if (has_identifiers_ || all.size() == 1) return true;
    return std::ranges::all_of(all, [&](const Attributes& each) {
      return each.sample_type == all[0].sample_type && each.registers == all[0].registers &&
             each.read_format == all[0].read_format && each.branch_sample_type == all[0].branch_sample_type &&
             each.sample_id_all == all[0].sample_id_all;
    });
  }

  /// Finds a feature's section. Sections follow the data, one for each feature bit that is set, in ascending order.
  /// Empty: the file does not have the feature.
  std::span<const std::byte> feature(const Section& data, std::uint64_t features, unsigned bit) const {
    const std::size_t size = data_.file_.size();
    if ((features >> bit & 1) == 0 || data.offset > size || data.size > size - data.offset) return {};
    const auto before = static_cast<std::uint64_t>(std::popcount(features & ((std::uint64_t{1} << bit) - 1)));
    ByteReader in(data_.file_, false);
    in.seek(static_cast<std::size_t>(data.offset + data.size));
    in.skip(16 * before);
    const Section where = section(in);
    if (!in.ok() || where.offset > size) return {};
    const std::uint64_t most = size - where.offset;
    return data_.file_.subspan(static_cast<std::size_t>(where.offset),
                               static_cast<std::size_t>(std::min(where.size, most)));
  }

  void take_arch(const Section& data, std::uint64_t features) {
    const auto bytes = feature(data, features, k_arch_feature);
    if (bytes.empty()) return;
    ByteReader in(bytes, false);
    in.skip(4);
    const std::string_view name = in.c_string();
    if (!in.ok()) return;
    const auto is_of_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; };
    machine_ = name.size() < 64 && std::ranges::all_of(name, is_of_name) ? name : "a name that is none";
    data_.arch_ = arch_called(machine_);
  }

  /// Reads build_id_event records: head, process, 20 bytes for the id, one byte with the id's size, and the path.
  void take_build_ids(const Section& data, std::uint64_t features) {
    const auto all = feature(data, features, k_build_id_feature);
    for (std::size_t at = 0; at < all.size();) {
      ByteReader in(all.subspan(at), false);
      const Head head = head_of(in);
      if (!in.ok() || head.size < 8 || head.size > all.size() - at) return;
      in = ByteReader(all.subspan(at, head.size), false);
      in.skip(8 + 4);
      const auto id = in.bytes(20);
      const std::size_t told = in.u8();
      in.skip(3);
      const std::string_view path = in.c_string();
      const std::size_t size = (head.misc & k_build_id_size) != 0 ? told : id.size();
      if (in.ok() && size <= id.size())
        data_.build_ids_.try_emplace(std::string(path), reinterpret_cast<const char*>(id.data()), size);
      at += head.size;
    }
  }

  std::optional<TargetError> take_records(const Section& section) {
    const std::size_t size = data_.file_.size();
    if (section.offset > size) return wrong("has no data.", "It may be cut off.");
    // A size of 0 means that perf was killed before it could write the size.
    const std::uint64_t told = section.size == 0 ? size - section.offset : section.size;
    const auto end = static_cast<std::size_t>(section.offset + std::min<std::uint64_t>(told, size - section.offset));
    if (told > size - section.offset) data_.end_reason_ = "the file is cut off";
    for (auto at = static_cast<std::size_t>(section.offset); at < end;) {
      ByteReader in(data_.file_.first(end).subspan(at), false);
      const Head head = head_of(in);
      if (!in.ok() || head.size < 8 || head.size > end - at) {
        data_.end_reason_ = "a record is cut off";
        break;
      }
      if (head.type == k_compressed) return wrong("is compressed.", "Record without -z.");
      if (is_kept(head.type)) take_record(head, at);
      at += head.size;
      if (head.type != k_auxtrace) continue;
      // The head is followed by the size of the data behind the record.
      const std::uint64_t more = in.u64();
      if (more > end - at) break;
      at += static_cast<std::size_t>(more);
    }
    return std::nullopt;
  }

  void take_record(const Head& head, std::size_t at) {
    const auto record = data_.file_.subspan(at, head.size);
    const bool is_sample = head.type == PERF_RECORD_SAMPLE;
    std::uint32_t index = 0;
    if (has_identifiers_ && data_.attributes_.size() > 1) {
      if (record.size() < 16) return;
      ByteReader in(record, false);
      in.seek(is_sample ? 8 : record.size() - 8);
      // Records that perf itself has made have the id 0.
      const auto found = by_id_.find(in.u64());
      if (found == by_id_.end() && is_sample) return;
      if (found != by_id_.end()) index = static_cast<std::uint32_t>(found->second);
    }
    data_.records_.push_back({time_of(head, record, data_.attributes_[index]), at, index});
    data_.samples_ += is_sample;
  }

  /// Returns 0 for a record without time, which sorts it before all others.
  static std::uint64_t time_of(const Head& head, std::span<const std::byte> record, const Attributes& attributes) {
    const std::uint64_t type = attributes.sample_type;
    if ((type & PERF_SAMPLE_TIME) == 0) return 0;
    ByteReader in(record, false);
    if (head.type == PERF_RECORD_SAMPLE) {
      in.seek(8);
      in.skip(8 * fields(type, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID));
      return in.u64();
    }
    if (!attributes.sample_id_all) return 0;
    const std::size_t trailer = 8 * fields(type, PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
                                                     PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER);
    if (trailer > record.size()) return 0;
    in.seek(record.size() - trailer);
    in.skip(8 * fields(type, PERF_SAMPLE_TID));
    return in.u64();
  }

  const std::string& name_;
  std::string machine_;  // as the file calls it; "": it does not
  PerfData data_;
  std::map<std::uint64_t, std::size_t> by_id_;
  bool has_identifiers_ = false;
};

Result<PerfData, TargetError> PerfData::parse(std::span<const std::byte> file, const std::string& name) {
  return Parser(file, name).parse();
}

Result<PerfEvent> PerfData::event(std::size_t index) const {
  const Record& record = records_[index];
  ByteReader in(file_.subspan(record.offset), false, record.offset);
  const Head head = head_of(in);
  const auto bytes = file_.subspan(record.offset, head.size);
  if (head.type == PERF_RECORD_SAMPLE) return sample(bytes, record.offset, attributes_[record.attributes]);
  in = ByteReader(bytes, false, record.offset);
  in.skip(8);
  const pid_t process = id(in), second = id(in);
  const auto told = [&](PerfEvent event) -> Result<PerfEvent> {
    if (!in.ok()) return in.error("record of perf's");
    return event;
  };
  switch (head.type) {
    case PERF_RECORD_COMM: {
      const bool is_new_program = (head.misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
      return told(PerfNamed{process, second, std::string(in.c_string()), is_new_program});
    }
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT: {
      const pid_t thread = id(in), parent_thread = id(in);
      if (head.type == PERF_RECORD_EXIT) return told(PerfEnded{process, thread});
      return told(PerfForked{process, second, thread, parent_thread});
    }
    default: {
      Mapping mapping = mapping_of(in, head);
      const auto known = build_ids_.find(mapping.path);
      if (mapping.build_id.empty() && known != build_ids_.end()) mapping.build_id = known->second;
      return told(PerfMapped{process, std::move(mapping)});
    }
  }
}

/// Reads the fields in the order that perf_event_open(2) gives for PERF_RECORD_SAMPLE.
Result<PerfEvent> PerfData::sample(std::span<const std::byte> record, std::size_t offset,
                                   const Attributes& attributes) const {
  const std::uint64_t type = attributes.sample_type;
  const auto has = [&](std::uint64_t field) { return (type & field) != 0; };
  PerfSample sample;
  ByteReader in(record, false, offset);
  in.skip(8 + 8 * fields(type, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP));
  sample.process = id(in);
  sample.thread = id(in);
  if (has(PERF_SAMPLE_TIME)) sample.time = in.u64();
  in.skip(8 * fields(type,
                     PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD));
  if (has(PERF_SAMPLE_READ)) skip_read_values(in, attributes.read_format);
  if (has(PERF_SAMPLE_CALLCHAIN)) skip_array(in, in.u64(), 8);
  if (has(PERF_SAMPLE_RAW)) in.skip(in.u32());
  if (has(PERF_SAMPLE_BRANCH_STACK)) {
    const std::uint64_t count = in.u64();
    if ((attributes.branch_sample_type & k_branch_index) != 0) in.skip(8);
    skip_array(in, count, 24);
  }
  const std::uint64_t abi = in.u64();
  const std::uint64_t wanted = arch_->word_size == 8 ? PERF_SAMPLE_REGS_ABI_64 : PERF_SAMPLE_REGS_ABI_32;
  sample.has_registers = abi == wanted;
  if (abi != PERF_SAMPLE_REGS_ABI_NONE)
    for (int number = 0; number < 64; ++number) {
      if ((attributes.registers >> number & 1) == 0) continue;
      const std::uint64_t value = in.u64();
      const RegisterInfo* const reg = arch_->by_perf(number);
      if (sample.has_registers && reg && reg->column >= 0)
        sample.registers.set_from_register(reg->column, value, reg->dwarf);
    }
  const std::uint64_t room = in.u64();
  sample.stack = in.bytes(room);
  // The kernel copied only this part of the room.
  if (room != 0) {
    const std::uint64_t used = in.u64();
    if (used > room) in.fail(ErrorCode::bad_encoding);
    sample.stack = sample.stack.first(in.ok() ? static_cast<std::size_t>(used) : 0);
  }
  if (!in.ok()) return in.error("sample of perf's");
  return PerfEvent(std::move(sample));
}

void PerfProcesses::take(const PerfEvent& event) {
  if (const auto* const mapped = std::get_if<PerfMapped>(&event)) {
    // The process -1 is the kernel.
    if (mapped->process >= 0) map(all_[mapped->process], mapped->mapping);
  } else if (const auto* const named = std::get_if<PerfNamed>(&event)) {
    Process& process = all_[named->process];
    if (named->is_new_program) forget_mappings(process);
    process.names[named->thread] = named->name;
  } else if (const auto* const forked = std::get_if<PerfForked>(&event)) {
    fork(*forked);
  } else if (const auto* const ended = std::get_if<PerfEnded>(&event)) {
    const auto process = all_.find(ended->process);
    if (process == all_.end()) return;
    process->second.names.erase(ended->thread);
    if (ended->thread != ended->process) return;
    forget_mappings(process->second);
    all_.erase(process);
  }
}

/// A mapping replaces what was mapped in its range, as mmap(2) with MAP_FIXED does.
void PerfProcesses::map(Process& process, const Mapping& mapping) {
  if (mapping.range.begin >= mapping.range.end) return;
  unmap(process, mapping.range);
  if (mappings_ >= k_most_mappings) {
    has_left_out_ = true;
    return;
  }
  mappings_ += process.mapped.insert_or_assign(mapping.range.begin, mapping).second;
}

void PerfProcesses::unmap(Process& process, AddrRange range) {
  process.is_mapped_as_before = false;
  auto at = process.mapped.lower_bound(range.begin);
  if (at != process.mapped.begin() && std::prev(at)->second.range.end > range.begin) --at;
  while (at != process.mapped.end() && at->first < range.end) {
    Mapping old = std::move(at->second);
    at = process.mapped.erase(at);
    --mappings_;
    if (old.range.begin < range.begin) {
      Mapping before = old;
      before.range.end = range.begin;
      mappings_ += process.mapped.insert_or_assign(before.range.begin, before).second;
    }
    if (old.range.end > range.end) {
      old.offset += range.end - old.range.begin;
      old.range.begin = range.end;
      mappings_ += process.mapped.insert_or_assign(old.range.begin, old).second;
    }
  }
}

void PerfProcesses::forget_mappings(Process& process) {
  mappings_ -= process.mapped.size();
  process.mapped.clear();
  process.target.reset();
  process.is_mapped_as_before = false;
}

void PerfProcesses::fork(const PerfForked& forked) {
  const auto parent = all_.find(forked.parent);
  if (parent == all_.end()) return;
  const auto name = parent->second.names.find(forked.parent_thread);
  std::string inherited = name == parent->second.names.end() ? "" : name->second;
  if (forked.process == forked.parent) {
    parent->second.names[forked.thread] = std::move(inherited);
    return;
  }
  Process& child = all_[forked.process];
  forget_mappings(child);
  child.names[forked.thread] = std::move(inherited);
  if (parent->second.mapped.size() > k_most_mappings - mappings_) {
    has_left_out_ = true;
    return;
  }
  child.mapped = parent->second.mapped;
  mappings_ += child.mapped.size();
}

Result<const Target*, TargetError> PerfProcesses::target_of(const PerfSample& taken) {
  Process& process = all_[taken.process];
  Sample sample{.arch = &arch_,
                .registers = taken.registers,
                .stack = taken.stack,
                .process = taken.process,
                .thread = taken.thread};
  sample.stack_address = taken.registers.get(arch_.column(arch_.sp)).value_or(0);
  if (process.mapped.empty()) process.target.reset();  // without mappings renew() would keep the earlier ones
  if (!process.target || !process.is_mapped_as_before) {
    sample.mappings.reserve(process.mapped.size());
    for (const auto& [begin, mapping] : process.mapped) sample.mappings.push_back(mapping);
  }
  process.is_mapped_as_before = true;
  if (process.target) {
    if (auto renewed = process.target->renew(std::move(sample)); !renewed) return TargetError(renewed.error());
  } else {
    auto target = Target::from_sample(std::move(sample), folders_);
    if (!target) return TargetError(target.error());
    process.target.emplace(std::move(*target));
  }
  return &*process.target;
}

std::string PerfProcesses::name_of(const PerfSample& sample) const {
  const auto process = all_.find(sample.process);
  if (process == all_.end()) return "";
  const auto name = process->second.names.find(sample.thread);
  return name == process->second.names.end() ? "" : name->second;
}

}  // namespace jitunwind::jitstack
