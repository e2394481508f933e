// Times of several contenders in several rounds -> tables of medians and of ratios within a round.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

namespace bench {

struct Contender {
  std::string program;
  std::string way;  ///< of walking or registering; a program may have several
  friend auto operator<=>(const Contender&, const Contender&) = default;
};

/// What a table shows: rows by the beginning of their names, times of all contenders, ratios to one of them. The
/// program `again` is the reference's, run a second time in each round: its ratios say what a difference is worth.
struct TableOptions {
  std::string title;
  std::string row_prefix;
  Contender reference;
  std::string again;
};

/// Only ratios within one round count: the machine's speed drifts.
class Results {
 public:
  /// `row` is what is measured, "walk/static/10".
  void add(const std::string& row, const Contender& contender, std::size_t round, double nanoseconds);
  void add_mistake(const std::string& row, const Contender& contender, const std::string& text);

  /// Median times and median ratios; rows and columns in the order in which they came. "" without rows.
  std::string table(const TableOptions& options) const;
  /// A line each; "" when every contender did what it was asked.
  std::string mistakes() const;

 private:
  using Rounds = std::vector<double>;  // 0: not measured in this round
  using Row = std::map<Contender, Rounds>;

  static Rounds ratios(const Row& row, const Contender& of, const Contender& to);
  static std::string cell(const Row& row, const Contender& of, const Contender& reference);
  std::vector<Contender> columns(const std::vector<std::string>& rows, const std::string& again) const;

  std::vector<std::string> rows_;
  std::vector<Contender> contenders_;
  std::map<std::string, Row> times_;
  std::vector<std::string> mistakes_;
};

}  // namespace bench
