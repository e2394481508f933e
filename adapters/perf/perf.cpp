#include "jitunwind/adapters/perf/perf.h"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

#include "jitunwind/adapters/perf/writers_p.h"
#include "jitunwind/dyn_info/registry/observers_internal.h"
#include "jitunwind/sdk/c/answer_internal.h"
#include "jitunwind/sdk/c/process.h"
#include "jitunwind/sdk/exceptions/copied_procedure_internal.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/trace/log.h"

namespace jitunwind {
namespace {

constexpr Error k_no_memory{ErrorCode::out_of_memory, 0, "no memory for perf's files"};

std::string folder_of_dumps() {
  const char* const told = ::secure_getenv("JITDUMPDIR");
  return told != nullptr && *told != '\0' ? told : "/tmp";
}

class PerfFiles final : public RegistryObserver {
 public:
  Status open(const PerfOptions& options) {
    process_ = ::getpid();
    procedures_ = refused_ = 0;
    const Status map = map_.open(options.most_bytes);
    if (!map) end(map_.file(), "perf's map", map.error());
    const std::string folder = options.folder.empty() ? folder_of_dumps() : options.folder;
    const Status dump = dump_.open(folder, options.most_bytes);
    if (!dump) end(dump_.file(), "perf's dump", dump.error());
    return map_.file().is_open() || dump_.file().is_open() ? Status(Done{}) : Status(latest_refusal_);
  }
  void close() noexcept {
    dump_.close(!is_own_process());
    map_.file().close();
  }
  /// A child has its parent's files, and must not write to them. A system call is asked each time, since not every
  /// child comes by fork(3).
  bool is_own_process() const noexcept { return process_ == ::getpid(); }

  void registered(std::span<const RegisteredProcedure> procedures) noexcept override {
    const ErrnoKeeper keep_errno;
    if (!is_own_process()) return close();
    for (const RegisteredProcedure& procedure : procedures) {
      try {
        write(procedure);
      } catch (const std::bad_alloc&) {
        refuse(k_no_memory);
      }
    }
  }
  // Neither file can say that code is gone. perf takes the newest entry of an address at the time of a sample.
  void cancelled(std::span<unw_dyn_info_t* const>) noexcept override {}
  void retired() noexcept override {}

  void write_lines(const AddrRange& code, std::span<const ToldLine> lines) {
    if (!is_own_process() || !dump_.file().is_open()) return;
    if (const Status written = dump_.write_lines(code, lines); !written) end_dump(written.error());
  }

  PerfStatistics statistics(bool attached) const {
    return {
        attached && is_own_process(), map_.file().path(), dump_.file().path(), procedures_, refused_, latest_refusal_};
  }

 private:
  void write(const RegisteredProcedure& procedure) {
    if (!map_.file().is_open() && !dump_.file().is_open()) return;
    const auto code = copy_registered(procedure, CfiPointers::from_behind_the_code);
    if (!code) return;
    if (map_.file().is_open()) write_to_map(*code);
    if (is_written_anew_) return;
    if (dump_.file().is_open()) write_to_dump(*code);
    if (code->not_encoded) refuse(*code->not_encoded);
    ++procedures_;
  }

  void write_to_map(const CopiedProcedure& code) {
    const Status written = map_.write(code);
    if (written || (map_.file().is_full() && !is_written_anew_ && write_map_anew())) return;
    if (map_.file().is_open()) end(map_.file(), "perf's map", written.error());  // it may have ended meanwhile
  }

  /// Lines of code that is gone go, those of the procedures that are written at the moment come. Returns false if that
  /// is not worth it.
  bool write_map_anew() noexcept {
    if (!map_.file().clear()) return false;
    is_written_anew_ = true;
    const bool is_told = tell_of_all(*this);
    is_written_anew_ = false;
    return is_told && map_.file().is_open() && map_.file().written() <= map_.file().most_bytes() / 2;
  }

  void write_to_dump(const CopiedProcedure& code) {
    const Status written = dump_.write(code);
    if (written) return;
    if (written.error().code == ErrorCode::io) return end_dump(written.error());
    refuse(written.error());
  }

  void end_dump(const Error& why) noexcept {
    end(dump_.file(), "perf's dump", why);
    dump_.close(false);
  }
  /// The text is written once for each file, because a file ends once.
  void end(OutputFile& file, const char* what, const Error& why) noexcept {
    refuse(why);
    Line line;
    line.text("jitunwind: ").text(what).text(" ").foreign(file.path()).text(" ends: ").text(why.what);
    line.write_to(STDERR_FILENO);
    file.close();
  }
  void refuse(const Error& error) noexcept {
    ++refused_;
    latest_refusal_ = error;
  }

  MapWriter map_;
  DumpWriter dump_;
  pid_t process_ = 0;
  bool is_written_anew_ = false;
  std::uint64_t procedures_ = 0;
  std::uint64_t refused_ = 0;
  Error latest_refusal_{};
};

// The observers' lock guards everything below.

/// Never destroyed, because foreign static objects register at exit.
PerfFiles* perf_files = nullptr;
alignas(PerfFiles) std::byte perf_files_memory[sizeof(PerfFiles)];
constinit bool is_attached = false;

void detach_in_scope() noexcept {
  if (!std::exchange(is_attached, false)) return;
  (void)observers.remove(*perf_files);
  perf_files->close();
}

Status attach_in_writer(const PerfOptions& options) noexcept {
  const ObserversScope scope;
  const ErrnoKeeper keep_errno;
  if (is_attached && perf_files->is_own_process()) return Done{};
  detach_in_scope();
  try {
    if (perf_files == nullptr) perf_files = new (perf_files_memory) PerfFiles;
    if (const Status opened = perf_files->open(options); !opened) return opened;
  } catch (const std::bad_alloc&) {
    return k_no_memory;
  }
  is_attached = true;
  const Status attached = attach_in_scope(*perf_files);
  if (!attached) detach_in_scope();
  return attached;
}

/// Calls `use` inside the locks. Nothing is changed in a signal handler that interrupted a change on its own thread.
template <class Use>
Status in_scope(Use use) noexcept {
  if (WritingScope::active()) return refused_to_interrupter();
  const WritingScope writing;
  const ObserversScope scope;
  try {
    use();
  } catch (const std::bad_alloc&) {
    return k_no_memory;
  }
  return Done{};
}

/// Runs after the destructors of static objects, which may register.
[[gnu::destructor(101)]] void leave() {
  if (perf_files != nullptr) (void)detach_perf();
}

}  // namespace

Status attach_perf_in_writer() noexcept { return attach_in_writer({}); }

Status attach_perf(const PerfOptions& options) noexcept {
  if (WritingScope::active()) return refused_to_interrupter();
  const WritingScope writing;
  return attach_in_writer(options);
}

Status detach_perf() noexcept { return in_scope(detach_in_scope); }

Status tell_perf_lines(const AddrRange& code, std::span<const ToldLine> lines) noexcept {
  if (lines.size() > SourceLines::k_most) return Error{ErrorCode::invalid_argument, lines.size(), "too many lines"};
  return in_scope([&] {
    if (is_attached && !lines.empty()) perf_files->write_lines(code, lines);
  });
}

PerfStatistics perf_statistics() {
  PerfStatistics statistics;
  (void)in_scope([&] {
    if (perf_files != nullptr) statistics = perf_files->statistics(is_attached);
  });
  return statistics;
}

}  // namespace jitunwind

// Perf's files in the C interface; sdk/c/process.h.

using jitunwind::c::answer;
using jitunwind::c::tell;

ju_status ju_attach_perf(ju_error* error) {
  return answer(error, [&] { return tell(error, jitunwind::attach_perf()); });
}
ju_status ju_detach_perf(ju_error* error) {
  return answer(error, [&] { return tell(error, jitunwind::detach_perf()); });
}

ju_status ju_tell_perf_lines(const void* start, size_t size, const ju_source_line* lines, size_t count,
                             ju_error* error) {
  return answer(error, [&] {
    if (!start) return tell(error, JU_NULL_POINTER, "start");
    if (!lines && count != 0) return tell(error, JU_NULL_POINTER, "lines");
    if (count > jitunwind::SourceLines::k_most) return tell(error, JU_INVALID_ARGUMENT, "lines", count);
    std::vector<jitunwind::ToldLine> told(count);
    for (size_t i = 0; i < count; ++i) {
      told[i].offset = lines[i].offset;
      told[i].line = lines[i].line;
      if (!jitunwind::c::read_string(lines[i].file, told[i].file)) return tell(error, JU_BAD_STRING, "lines", i);
    }
    const jitunwind::Addr begin = reinterpret_cast<std::uintptr_t>(start);
    return tell(error, jitunwind::tell_perf_lines({begin, begin + size}, told), "lines");
  });
}

ju_status ju_perf_statistics_get(ju_perf_statistics* statistics, ju_error* error) {
  const jitunwind::PerfStatistics now = jitunwind::perf_statistics();
  ju_perf_statistics out{};
  out.attached = now.attached;
  out.has_map = !now.map.empty();
  out.has_dump = !now.dump.empty();
  out.procedures = now.procedures;
  out.refused = now.refused;
  out.latest_refusal = jitunwind::c::latest_refusal(now);
  return jitunwind::c::write_struct(out, statistics, "statistics", error);
}
