// The project's own source files, for rules about all of them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace rules {

inline const std::filesystem::path k_root = JITUNWIND_SOURCE_DIR;
inline const std::string k_prefix = "jitunwind/";  ///< of includes
/// The most words from one stop to the next, in documents and comments. Sentences have some 25; a colon or semicolon is
/// a stop, too.
inline constexpr std::size_t k_most_words = 36;

struct SourceFile {
  std::string path;  ///< from the repository's root
  std::vector<std::string> lines;

  std::string folder() const;                       ///< first part of the path
  bool has_extension(const char* extension) const;  ///< ".h"
  bool is_private() const;                          ///< not installed
  bool is_of_one_layer() const;                     ///< ..._p.h
  bool is_internal() const;                         ///< ..._internal.h
};

/// C, C++ and assembly files of the top-level folders.
std::vector<SourceFile> source_files();

/// Files whose comments begin with '#': those of CMake and Python, and scripts.
std::vector<SourceFile> script_files();

/// The project's pages: every .md file, and nothing of build folders.
std::vector<SourceFile> documents();

/// Any file of the tree, by its path from the root.
SourceFile read_file(const std::string& path);

/// A row of the table of rooms in docs/architecture.md.
struct Room {
  std::size_t place;             ///< among the rooms, lowest first
  std::set<std::string> layers;  ///< that include headers ..._internal.h of the room
};
/// Rooms by the folders ("sdk/c/") and headers in them.
using Rooms = std::map<std::string, Room>;

/// Reads the table, whose lines are "| `folder/` `header` | contents | `layer` `layer` |", lowest room first.
Rooms documented_rooms();

/// Returns the room that names the header of this file, else that of its folder in the layer; null: none does.
const Room* room_of(const std::string& path, const Rooms& rooms);

/// Returns the file that `#include "x"` or `#include <x>` names; "" if the line includes nothing.
std::string included_file(const std::string& line);

/// Removes blanks and tabs at both ends.
std::string trimmed(const std::string& line);

/// `"path:line: text"` a line.
std::string joined(const std::vector<std::string>& findings);

}  // namespace rules
