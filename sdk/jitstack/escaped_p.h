// Escapes a target's names for output: the target chooses its names, and terminals and browsers obey what is in them.
#pragma once

#include <string>
#include <string_view>

namespace jitunwind::jitstack {

/// Returns UTF-8 without anything that a terminal obeys. Control characters (C0, DEL, C1), characters that change the
/// direction of writing, and bytes that are not UTF-8 become "\xNN" each. The result is text that XML 1.0
/// ("Characters") allows.
std::string escaped(std::string_view foreign);

/// Escapes in addition & < > " ' as references, for the content and the attributes of XML.
std::string escaped_for_xml(std::string_view foreign);

}  // namespace jitunwind::jitstack
