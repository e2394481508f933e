#include "tests/rows/case_space.h"

#include <gtest/gtest.h>

namespace jitunwind::rows {

CaseSpace::CaseSpace(const CaseFile& file, const Arch& arch)
    : file_(file), space_{arch, memory_, modules_, sources_, {}} {
  for (const RowCase& c : file.cases) procedures_.emplace_back(c);
}

const CaseProcedure& CaseSpace::procedure(const RowCase& wanted) const {
  std::size_t i = 0;
  while (&file_.cases[i] != &wanted) ++i;
  return procedures_[i];
}

Status CaseSpace::find(CodeAddress at, FrameRow& out) const {
  MemoryWindow window;
  Lookup lookup(space_, at, window);
  const Found found = space_.find_row(lookup, out);
  if (!found) return found.error();
  if (!*found) return Error{ErrorCode::no_info, at.value(), "no case there"};
  return Done{};
}

Found CaseSpace::find_row(Lookup& lookup, FrameRow& out) const noexcept {
  for (const RowCase& c : file_.cases) {
    if (c.range.contains(lookup.at.lookup())) {
      const Status status = directive_row(procedure(c).info(), *c.arch, lookup.at, &lookup, out);
      return status ? Found(true) : status.error();
    }
    for (const StaticCode& code : c.statics)
      for (const ParsedRow& parsed : code.rows)
        if (code.range.begin + *parsed.offset == lookup.at.lookup()) {
          out = parsed.row;
          out.origin = RowOrigin::eh_frame;
          out.keeps_by = KeepsBy::module;
          return true;
        }
  }
  return false;
}

void expect_case(const RowCase& c, const CaseSpace& space, const std::string& file) {
  const ::testing::ScopedTrace trace(file.c_str(), c.line, c.name);
  const unw_dyn_info_t& info = space.procedure(c).info();
  std::set<std::string> findings;
  std::string texts;
  const CodeFacts facts{c.call_ends, c.ends_without_return};
  for (const Finding& f : validate(info, *c.arch, facts)) {
    findings.insert(finding_name(f.code));
    texts += "\n" + f.text();
  }
  for (const Expectation& expected : c.expectations) {
    const Addr address = c.range.begin + expected.offset;
    FrameRow row;
    const Status status =
        space.find(expected.of_call ? CodeAddress::returned_to(address) : CodeAddress::interrupted(address), row);
    const bool wants_row = expected.error == ErrorCode::unspecified;
    const Status wanted = wants_row ? Status(Done{}) : Status(Error{expected.error, 0, ""});
    const bool same = wants_row ? status && row == expected.row : !status && status.error().code == expected.error;
    EXPECT_TRUE(same) << (expected.of_call ? "call +" : "+") << std::hex << expected.offset << ": "
                      << outcome_text(status, row, *c.arch) << "\n  expected "
                      << outcome_text(wanted, expected.row, *c.arch);
    // The check finds every reason why a walk ends, except for those behind an ALIAS.
    if (!status && status.error().code != ErrorCode::no_info) {
      EXPECT_TRUE(findings.count(finding_name(status.error().code))) << finding_name(status.error().code) << texts;
    }
  }
  EXPECT_EQ(findings, c.findings) << texts;
}

void expect_cases(const std::string& path, std::size_t least) {
  const auto file = load_cases(path);
  EXPECT_GE(file->cases.size(), least);
  for (const Arch* arch : all_arches()) {
    const CaseSpace space(*file, *arch);
    for (const RowCase& c : file->cases)
      if (c.arch == arch) expect_case(c, space, path);
  }
}

}  // namespace jitunwind::rows
