// Turns the times of several contenders in several rounds into tables of medians and of ratios within a round.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

namespace bench {

struct Contender {
  std::string program;
  std::string way;  ///< a way to walk or register; a program may have several
  friend auto operator<=>(const Contender&, const Contender&) = default;
};

/// The name of a measurement in a program: "walk/unw_step/static/10" is of row "walk/static/10" and way "unw_step".
struct MeasurementName {
  explicit MeasurementName(const std::string& name);
  std::string row;
  std::string way;
};

/// Whether a filter, a regular expression, selects a measurement: by its name or by its row.
bool is_selected(const std::string& name, const std::string& filter);

/// Each matching row has a limit: the time of `of` must not exceed `at_most` times the time of `to` in the same round.
struct Target {
  Contender of;
  Contender to;
  double at_most;
  std::string rows = ".*";  ///< regular expression
  std::string to_row = "";  ///< the row of `to`, if it differs
};
/// Stands for `to` in a target that is no ratio, but a time in nanoseconds or a number of page faults.
inline const Contender k_time{"", "ns"};
inline const Contender k_page_faults{"", "page faults"};

/// The title of a program's second run in each round. Its ratios to the first run show how much a difference means.
std::string again(const std::string& program);
bool is_again(const std::string& program);

/// The contents of a table: rows selected by the beginning of their names, times of all contenders, ratios to one of
/// them.
struct TableOptions {
  std::string title;
  std::string row_prefix;
  Contender reference;
  std::vector<Target> targets{};
};

/// A table in its printed form.
struct Table {
  std::string title;
  std::vector<std::vector<std::string>> cells;  ///< two rows of headings first

  std::string text() const;
  std::string markdown() const;
};

/// A line of a plot: a contender's times over the numbers at the end of the names of rows of one kind.
struct Line {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

/// Compares only within one round, because the machine's speed drifts.
class Results {
 public:
  /// `row` names the measurement, for example "walk/static/10".
  void add(const std::string& row, const Contender& contender, std::size_t round, double nanoseconds);
  void add_mistake(const std::string& row, const Contender& contender, const std::string& text);

  /// Returns median times and median ratios. Rows and columns are in the order in which they were added. The table has
  /// no cells when there are no rows.
  Table table(const TableOptions& options) const;
  /// Returns the lines of the rows whose names are the prefix and a number.
  std::vector<Line> lines(const std::string& row_prefix) const;
  /// Returns a line for each mistake, or "" when every contender did what it was asked.
  std::string mistakes() const;
  /// Returns the ratios of each row's targets: "walk/static/10: jitunwind backtrace to nongnu unw_backtrace" -> 0.57.
  /// Page faults are included unchanged, because they are the same on any machine; times are not included.
  std::map<std::string, double> target_ratios(const std::vector<TableOptions>& tables) const;

 private:
  using Rounds = std::vector<double>;  // 0 if not measured in this round
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
