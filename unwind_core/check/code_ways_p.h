// Ways from code into other code that is checked beside it, with the state that each brings there.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "jitunwind/unwind_core/check/check.h"
#include "jitunwind/unwind_core/check/code_values_p.h"

namespace jitunwind {

class CheckedParts::Ways {
 public:
  struct Way {
    Addr target = 0;
    bool is_pad = false;  ///< the target is a landing pad of a call, which may not throw
    check_code::CodeValues values;
  };

  /// Begins the check of a part. True: it waits for a later round, when more ways into it are known.
  bool waits(AddrRange part, bool begins_as_entry);
  /// Calls visit(way) for each way into the part that is known, those with a frame first.
  template <class Visitor>
  void visit_ways_into(AddrRange part, const check_code::Machine& machine, Visitor visitor) {
    waiting_.erase(part.begin);
    const auto end = framed_.lower_bound(part.end);
    for (auto at = framed_.lower_bound(part.begin); at != end; ++at) {
      at->second.is_new = false;
      Way way = at->second.way;
      way.values.count_from(0 - static_cast<std::uint32_t>(part.begin));
      visitor(way);
    }
    const auto last = called_.lower_bound(part.end);
    for (auto at = called_.lower_bound(part.begin); at != last; ++at) {
      at->second = false;
      visitor({at->first, false, check_code::CodeValues::at_entry(machine)});
    }
  }
  /// A call, or a jump with the state of a procedure's entry.
  void add_call(Addr target) {
    Addr& last = last_calls_[static_cast<std::size_t>(target >> 4) % last_calls_.size()];
    if (last != target) calls_.push_back(last = target);
  }
  /// A way out of the part that begins at `start`.
  void add(Way way, Addr start, const check_code::Machine& machine);

  bool begin_round();
  bool is_due(AddrRange part) const noexcept { return due_.contains(part.begin); }

 private:
  struct Part {
    AddrRange range;
    bool begins_as_entry;
  };
  struct Framed {
    Way way;  // the places of instructions count from 0
    bool is_new;
  };
  const Part* part_at(Addr target) const noexcept;

  std::vector<Part> parts_;              // ascending behind the first round
  std::multimap<Addr, Framed> framed_;   // by target
  std::map<Addr, bool> called_;          // places that are no begin with the row of an entry, and whether they are new
  std::vector<Addr> calls_;              // of this round
  std::array<Addr, 1024> last_calls_{};  // of these, most are of few targets
  std::set<Addr> due_, waiting_;         // begins of parts
  unsigned rounds_ = 0;
};

}  // namespace jitunwind
