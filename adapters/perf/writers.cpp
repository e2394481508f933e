#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <utility>

#include "jitunwind/adapters/perf/writers_p.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/dialects/jitdump.h"
#include "jitunwind/sdk/dialects/jitdump_format_internal.h"
#include "jitunwind/sdk/dialects/perf_map.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/emit/byte_writer.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/rows/dwarf_constants_internal.h"
#include "jitunwind/unwind_core/targets/process_folder_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"
namespace jitunwind {
namespace {

/// perf has to record by the same clock: `perf record -k mono`.
std::uint64_t now() noexcept { return static_cast<std::uint64_t>(nanoseconds_of(CLOCK_MONOTONIC)); }

std::uint32_t own_thread() noexcept { return static_cast<std::uint32_t>(::syscall(SYS_gettid)); }

/// A record in a vector that grows by what is written.
class Record {
 public:
  Record(std::vector<std::byte>& into, std::uint32_t kind) : into_(into), begin_(into.size()) {
    u32(kind), u32(0), u64(now());
  }
  void u8(std::uint64_t value) { number(value, 1); }
  void u32(std::uint64_t value) { number(value, 4); }
  void u64(std::uint64_t value) { number(value, 8); }
  void bytes(std::span<const std::byte> from) { into_.insert(into_.end(), from.begin(), from.end()); }
  void text(std::string_view text) { bytes(std::as_bytes(std::span(text))), u8(0); }
  void end() {
    ByteWriter size(std::span<std::byte>(into_).subspan(begin_ + 4), local_space().arch.big_endian);
    size.u32(into_.size() - begin_);
  }

 private:
  void number(std::uint64_t value, std::size_t size) {
    const std::size_t at = into_.size();
    into_.resize(at + size);
    ByteWriter(std::span<std::byte>(into_).subspan(at), local_space().arch.big_endian).unsigned_of(value, size);
  }

  std::vector<std::byte>& into_;
  const std::size_t begin_;
};

constexpr std::size_t k_table_head = 12;
constexpr std::size_t k_table_entry = 8;

/// .eh_frame_hdr (LSB 5.0 core, 10.6.2) directly behind `frames` bytes of .eh_frame, which begin at `place`.
void put_search_table(Record& record, const CopiedProcedure& code, std::size_t frames, Addr place) {
  record.u8(1);
  record.u8(dwarf::pe_pcrel | dwarf::pe_sdata4);
  record.u8(dwarf::pe_udata4);
  record.u8(dwarf::pe_datarel | dwarf::pe_sdata4);
  record.u32(std::uint64_t{0} - frames - 4);
  record.u32(code.entries.size());
  for (const CopiedProcedure::Entry& entry : code.entries) {
    record.u32(entry.begin - (place + frames));
    record.u32(entry.fde - frames);
  }
}

/// The size of the mapping behind the code by which perf finds the code's frames: it maps its file over both.
/// Registered code has a file of its own, so that there is no room if some is there; stacks end at this code then. Code
/// that is registered later takes the room away.
std::uint64_t room_behind(const AddrRange& code, std::uint64_t wanted) noexcept {
  constexpr std::uint64_t k_most = 4096, k_unit = 16;  // code begins at multiples of it
  const Addr begin = jitdump::frames_behind(code.begin, code.end);
  if (wanted > k_most) return 0;
  for (Addr at = begin; at < begin + wanted; at = (at / k_unit + 1) * k_unit)
    if (may_be_registered(at)) return 0;
  return wanted;
}

/// The call frame information of code that is loaded next.
void put_frames(std::vector<std::byte>& into, const CopiedProcedure& code) {
  constexpr std::size_t k_end_mark = 4;
  const std::size_t frames = code.cfi.size() + k_end_mark;
  const std::size_t table = k_table_head + k_table_entry * code.entries.size();
  Record record(into, jitdump::k_unwinding_info);
  record.u64(frames + table);
  record.u64(table);
  record.u64(room_behind(code.code, frames + table));
  record.bytes(code.cfi);
  record.u32(0);
  put_search_table(record, code, frames, jitdump::frames_behind(code.code.begin, code.code.end));
  record.end();
}

// Files that are mapped have to be open for reading.
constexpr int k_appending = O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

Error not_written(const char* why) noexcept { return {ErrorCode::io, static_cast<Addr>(errno), why}; }

/// Whether the file was changed before this process began, by the clock of files. A second is between the two, since
/// the kernel rounds both.
bool is_of_earlier_process(const struct stat& status) {
  timespec now, since_boot;
  ::clock_gettime(CLOCK_REALTIME, &now);
  ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  const std::string text = ProcessFolder::own().start_time();
  long ticks = 0;
  std::from_chars(text.data(), text.data() + text.size(), ticks);
  const long age = since_boot.tv_sec - ticks / ::sysconf(_SC_CLK_TCK);
  return status.st_mtim.tv_sec < now.tv_sec - age - 1;
}

bool is_own(const struct stat& status) noexcept {
  return S_ISREG(status.st_mode) && status.st_uid == ::geteuid() && status.st_nlink == 1;
}

}  // namespace

std::string perf_name(std::string_view name) {
  if (name.empty()) return "[jit]";
  std::string text(name);
  const auto is_control = [](unsigned char byte) { return byte < 0x20 || byte == 0x7f; };
  std::replace_if(text.begin(), text.end(), is_control, '?');
  return text;
}

Status MapWriter::open(std::uint64_t most_bytes) {
  return file_.open("/tmp/perf-" + std::to_string(::getpid()) + ".map", most_bytes, IfBegun::continue_it);
}

Status MapWriter::write(const CopiedProcedure& code) {
  std::array<char, 40> numbers;
  const int size = std::snprintf(numbers.data(), numbers.size(), "%c%" PRIx64 " %c%" PRIx64 " ", k_own_digit,
                                 code.code.begin, k_own_digit, code.code.size());
  std::string name = perf_name(code.name) + "\n";
  const std::array<iovec, 2> line{iovec{numbers.data(), static_cast<std::size_t>(size)}, {name.data(), name.size()}};
  return file_.append(line);
}

Status DumpWriter::open(std::string folder, std::uint64_t most_bytes) {
  process_ = static_cast<std::uint32_t>(::getpid());
  folder += "/jit-" + std::to_string(process_) + ".dump";
  if (const Status opened = file_.open(std::move(folder), most_bytes, IfBegun::refuse); !opened) return opened;
  marker_ = ::mmap(nullptr, k_page_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file_.number(), 0);
  if (marker_ == MAP_FAILED) {
    marker_ = nullptr;
    ::unlink(file_.path().c_str());
    return Error{ErrorCode::io, 0, "the dump cannot be mapped as code, which would lead perf to it"};
  }
  std::array<std::byte, jitdump::k_header> header;
  ByteWriter out(header, local_space().arch.big_endian);
  out.u32(jitdump::k_magic), out.u32(jitdump::k_version), out.u32(jitdump::k_header);
  out.u32(local_space().arch.elf_machine), out.u32(jitdump::k_own_padding), out.u32(process_);
  out.u64(now()), out.u64(0);
  const Status begun = append(header);
  if (!begun) {
    ::munmap(std::exchange(marker_, nullptr), k_page_size);
    ::unlink(file_.path().c_str());
  }
  return begun;
}

Status DumpWriter::append(std::span<const std::byte> bytes) noexcept {
  const std::array<iovec, 1> piece{iovec{const_cast<std::byte*>(bytes.data()), bytes.size()}};
  return file_.append(piece);
}

Status DumpWriter::write(const CopiedProcedure& code) {
  constexpr std::size_t k_most_beside = std::size_t{1} << 20;
  const std::uint64_t size = code.code.size();
  if (size > JitDumpReader::k_longest - k_most_beside)
    return Error{ErrorCode::e_range, code.code.begin, "more code than a record of a dump has"};
  record_.clear();
  if (!code.cfi.empty() && code.cfi.size() < k_most_beside) put_frames(record_, code);
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  MemoryWindow window;
  const AddressSpace& space = local_space().for_addresses();  // the code may be unmapped meanwhile
  if (space.memory.read(code.code.begin, bytes, window) != bytes.size())
    return Error{ErrorCode::unreadable_memory, code.code.begin, "code for a dump"};
  Record record(record_, jitdump::k_load);
  record.u32(process_), record.u32(own_thread());
  record.u64(code.code.begin), record.u64(code.code.begin), record.u64(size), record.u64(index_++);
  record.text(perf_name(code.name));
  record.bytes(bytes);
  record.end();
  return append(record_);
}

/// perf ends its table at the last entry.
Status DumpWriter::write_lines(const AddrRange& code, std::span<const ToldLine> lines) {
  record_.clear();
  Record record(record_, jitdump::k_debug_info);
  record.u64(code.begin), record.u64(lines.size() + 1);
  const auto put = [&](Addr at, const ToldLine& line) {
    record.u64(at), record.u32(line.line), record.u32(0);
    record.text(line.file);
  };
  for (const ToldLine& line : lines) put(code.begin + line.offset, line);
  put(code.end, lines.back());
  record.end();
  return append(record_);
}

void DumpWriter::close(bool is_child) noexcept {
  if (file_.is_open() && !is_child) {
    std::array<std::byte, jitdump::k_prefix> prefix;
    ByteWriter out(prefix, local_space().arch.big_endian);
    out.u32(jitdump::k_close), out.u32(prefix.size()), out.u64(now());
    (void)append(prefix);
  }
  if (marker_ != nullptr) ::munmap(std::exchange(marker_, nullptr), k_page_size);
  file_.close();
}

Status OutputFile::open(std::string path, std::uint64_t most_bytes, IfBegun if_begun) {
  path_ = std::move(path);
  most_bytes_ = most_bytes;
  return make(if_begun);
}

Status OutputFile::make(IfBegun if_begun) noexcept {
  struct stat status;
  for (int attempts = 0; attempts != 2; ++attempts) {
    file_ = ReadableFile(path_.c_str(), k_appending | O_CREAT | O_EXCL);
    const bool is_new = file_.is_open();
    if (!is_new && errno != EEXIST) return not_written("the file cannot be made");
    if (!is_new) file_ = ReadableFile(path_.c_str(), k_appending);
    if (!file_.is_open() || ::fstat(file_.number(), &status) != 0 || !is_own(status))
      return not_written("the file is somebody else's, or is no file");
    device_ = status.st_dev;
    inode_ = status.st_ino;
    if (is_new && ::fchmod(file_.number(), S_IRUSR | S_IWUSR) == 0) return Done{};
    if (!is_of_earlier_process(status))
      return if_begun == IfBegun::continue_it ? Status(Done{}) : Status(not_written("this process has begun it"));
    if (::unlink(path_.c_str()) != 0) return not_written("an older file cannot be removed");
  }
  return not_written("the file cannot be made");
}

/// Finds the state of the same file, which the program may have closed or removed.
Status OutputFile::check(struct stat& status) noexcept {
  const auto is_it = [&] {
    return ::fstat(file_.number(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
  };
  const bool is_open = is_it();
  if (is_open && status.st_nlink != 0) return Done{};
  if (!is_open) (void)file_.release();  // the number is somebody else's, or nobody's
  file_ = ReadableFile(path_.c_str(), k_appending);
  if (file_.is_open() && is_it()) return Done{};
  return not_written("the file was removed or replaced");
}

Status OutputFile::append(std::span<const iovec> pieces) noexcept {
  struct stat status;
  if (const Status same = check(status); !same) return same;
  std::uint64_t size = 0;
  for (const iovec& piece : pieces) size += piece.iov_len;
  const auto before = static_cast<std::uint64_t>(status.st_size);
  is_full_ = before + size > std::min(most_bytes_, largest_file());
  if (is_full_) return Error{ErrorCode::io, before, "the file would be larger than it may be"};
  const long written = ::syscall(SYS_writev, file_.number(), pieces.data(), pieces.size());
  if (written == static_cast<long>(size)) {
    written_ += size;
    return Done{};
  }
  const Error error = not_written("the file cannot be written");
  // Others may have appended meanwhile, whose entries stay.
  if (written > 0 && ::fstat(file_.number(), &status) == 0 &&
      static_cast<std::uint64_t>(status.st_size) == before + static_cast<std::uint64_t>(written))
    (void)!::ftruncate(file_.number(), static_cast<off_t>(before));
  return error;
}

Status OutputFile::clear() noexcept {
  struct stat status;
  if (const Status same = check(status); !same) return same;
  if (static_cast<std::uint64_t>(status.st_size) != written_) return not_written("others write the file, too");
  if (::ftruncate(file_.number(), 0) != 0) return not_written("the file cannot be made empty");
  written_ = 0;
  return Done{};
}

}  // namespace jitunwind
