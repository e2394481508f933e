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

/// In the rows that match, the time of `of` is to be at most that many times the time of `to`, in the same round.
struct Target {
  Contender of;
  Contender to;
  double at_most;
  std::string rows = ".*";  ///< regular expression
  std::string to_row = "";  ///< of `to` in another row than the same
};
/// `to` of a target that is no ratio, but a time in nanoseconds, or a number of page faults.
inline const Contender k_time{"", "ns"};
inline const Contender k_page_faults{"", "page faults"};

/// A program that is run a second time in each round: its ratios to the first time say what a difference is worth.
std::string again(const std::string& program);
bool is_again(const std::string& program);

/// What a table shows: rows by the beginning of their names, times of all contenders, ratios to one of them.
struct TableOptions {
  std::string title;
  std::string row_prefix;
  Contender reference;
  std::vector<Target> targets{};
};

/// A table as it is printed.
struct Table {
  std::string title;
  std::vector<std::vector<std::string>> cells;  ///< two rows of headings first

  std::string text() const;
  std::string markdown() const;
};

/// A line of a plot: what a contender takes, by the number that rows of one kind end with.
struct Line {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

/// Only ratios within one round count: the machine's speed drifts.
class Results {
 public:
  /// `row` is what is measured, "walk/static/10".
  void add(const std::string& row, const Contender& contender, std::size_t round, double nanoseconds);
  void add_mistake(const std::string& row, const Contender& contender, const std::string& text);

  /// Median times and median ratios; rows and columns in the order in which they came. No cells without rows.
  Table table(const TableOptions& options) const;
  /// Of the rows that are the prefix and a number.
  std::vector<Line> lines(const std::string& row_prefix) const;
  /// A line each; "" when every contender did what it was asked.
  std::string mistakes() const;
  /// Ratios of each row's targets: "walk/static/10: jitunwind backtrace to nongnu unw_backtrace" -> 0.57. Page faults,
  /// which are the same on any machine, as they are; no times.
  std::map<std::string, double> target_ratios(const std::vector<TableOptions>& tables) const;

 private:
  using Rounds = std::vector<double>;  // 0: not measured in this round
  using Row = std::map<Contender, Rounds>;

  static Rounds ratios(const Row& row, const Contender& of, const Row& to_row, const Contender& to);
  Rounds measured(const std::string& name, const Target& target) const;
  static std::string cell(const Row& row, const Contender& of, const Contender& reference, const char* million);
  std::string against(const std::string& name, const std::vector<Target>& targets) const;
  std::vector<std::string> rows_of(const std::string& prefix) const;
  std::vector<Contender> columns(const std::vector<std::string>& rows) const;

  std::vector<std::string> rows_;
  std::vector<Contender> contenders_;
  std::map<std::string, Row> times_;
  std::vector<std::string> mistakes_;
};

}  // namespace bench
