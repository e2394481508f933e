// Names of a target in output: a target chooses its names, and a terminal or a browser obeys what is in them.
#pragma once

#include <string>
#include <string_view>

namespace jitunwind::jitstack {

/// UTF-8 without anything that a terminal obeys: control characters (C0, DEL, C1), characters that change the direction
/// of writing, and bytes that are no UTF-8 are "\xNN" each. The result is text that XML 1.0 ("Characters") allows.
std::string escaped(std::string_view foreign);

/// The same as content or attribute of XML: & < > " ' are references.
std::string escaped_for_xml(std::string_view foreign);

}  // namespace jitunwind::jitstack
