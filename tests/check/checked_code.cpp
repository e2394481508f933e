#include "tests/check/checked_code.h"

#include <sstream>

namespace jitunwind::test {

std::vector<std::byte> code_bytes(std::string_view text) {
  std::vector<std::byte> bytes;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    for (std::string word;
         words >> word && word.size() == 2 && word.find_first_not_of("0123456789abcdef") == word.npos;)
      bytes.push_back(static_cast<std::byte>(std::stoul(word, nullptr, 16)));
  }
  return bytes;
}

std::vector<std::string> findings_of(const CheckReport& report, const Arch& arch) {
  std::vector<std::string> all;
  for (CheckFinding finding : report.findings) {
    finding.range = {finding.range.begin - k_code, finding.range.end - k_code};
    if (finding.cause) *finding.cause -= k_code;
    all.push_back(text(finding, arch));
  }
  return all;
}

CheckReport check_text(const Arch& arch, std::string_view code, std::string_view rows, std::string_view data,
                       bool has_lsda) {
  const std::vector<std::byte> bytes = code_bytes(code), beside = code_bytes(data);
  const AddrRange range{k_code, k_code + bytes.size()};
  const BytesMemory memory({{k_code, bytes}, {k_data, beside}});
  const TextRows described(range, rows, arch);
  const NoModules modules;
  const AddressSpace space{arch, memory, modules, {}, {}};
  MemoryWindow window;
  return check({arch, range, memory, has_lsda ? k_data : 0}, [&](Addr at, FrameRow& out) {
    Lookup lookup(space, CodeAddress::interrupted(at), window);
    return described.find_row(lookup, out);
  });
}

}  // namespace jitunwind::test
