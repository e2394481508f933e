// The folder of this process's files in a folder that others may share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {

/// `why`: with static storage.
inline Error not_published(const char* why) noexcept { return {ErrorCode::io, 0, why}; }
inline constexpr const char* k_disk_full = "the folder's disk is full";

/// Error io, for a program that changed its identity: its user must not decide where its files are.
Status may_publish() noexcept;

/// A file that did not exist, of this user alone: to read and write. Not open: errno says why.
ReadableFile new_file(int folder, const char* name) noexcept;
/// Behind the name that a file will have when it is whole. Nobody looks for this one, so nobody reads less than a whole
/// file, whatever becomes of the process or the disk meanwhile.
inline constexpr const char* k_unfinished = ".part";
/// Writes all of it there. False: errno says why not.
bool write_whole(int file, std::span<const std::byte> bytes, std::size_t at) noexcept;

/// The fate of files, of this process's own and of those of processes that are gone.
enum class FilesAtEnd : std::uint8_t { removed, kept };

/// The settings of the environment for files.
struct CodePlaces {
  std::vector<std::string> paths;  ///< of folders, the first one that serves counts
  FilesAtEnd files = FilesAtEnd::removed;

  /// No other thread may change the environment meanwhile: getenv(3). Throws std::bad_alloc.
  static CodePlaces of_environment();
};

inline constexpr std::string_view k_code_folder_prefix = "jitunwind-code-";

/// "PLACE/jitunwind-code-NAMESPACE-PID-START.PROGRAM": of mode 0700, and this user's. The start time tells the
/// processes of one number apart, the namespace tells whose numbers they are, and the last number is of the program
/// that the process has executed: all copies of this library in it have one folder.
struct CodeFolder {
  std::string path;
  ReadableFile file;

  /// How often the folder is made. Another thread, whose last file goes, may remove it before there is one in it.
  static constexpr unsigned k_most_tries = 10;

  /// Makes it if it does not exist, and then removes those of processes that are gone. Error io, whose text says why:
  /// code is loaded from there, so nobody else may have access, nor replace the folder by another one. Throws
  /// std::bad_alloc.
  static Result<CodeFolder> open(const std::string& place, FilesAtEnd files);
};

}  // namespace jitunwind
