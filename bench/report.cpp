#include "bench/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <regex>
#include <sstream>
#include <string_view>

namespace bench {

namespace {

template <class T>
void note(std::vector<T>& all, const T& one) {
  if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
}

double median(std::vector<double> values) {
  values.erase(std::remove(values.begin(), values.end(), 0.0), values.end());
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char buffer[128];
  std::snprintf(buffer, sizeof buffer, format, values...);
  return buffer;
}

/// Formats nanoseconds or instructions; `million` is the unit for large values.
std::string amount(double value, const char* million) {
  if (value >= 1e6) return formatted("%.1f %s", value / 1e6, million);
  return formatted(value < 100 ? "%.1f" : "%.0f", value);
}

bool is_absolute(const Target& target) { return target.to.program.empty(); }

std::string ratio(double value) {
  if (value >= 10) return formatted("%.0fx", value);
  if (value < 0.1) return formatted("%.4fx", value);
  return formatted(std::abs(value - 1) < 0.02 ? "%.3fx" : "%.2fx", value);
}

constexpr std::string_view k_again = " again";

}  // namespace

MeasurementName::MeasurementName(const std::string& name) {
  std::istringstream in(name);
  std::getline(in, row, '/');
  std::getline(in, way, '/');
  for (std::string part; std::getline(in, part, '/');)
    if (part != "manual_time" && part.rfind("iterations:", 0) != 0) row += "/" + part;  // parts of Google Benchmark
}

bool is_selected(const std::string& name, const std::string& filter) {
  const std::regex selects(filter);
  return std::regex_search(name, selects) || std::regex_search(MeasurementName(name).row, selects);
}

std::string again(const std::string& program) { return program + std::string(k_again); }
bool is_again(const std::string& program) { return program.ends_with(k_again); }

void Results::add(const std::string& row, const Contender& contender, std::size_t round, double nanoseconds) {
  note(rows_, row);
  note(contenders_, contender);
  Rounds& rounds = times_[row][contender];
  rounds.resize(std::max(rounds.size(), round + 1));
  rounds[round] = nanoseconds;
}

void Results::add_mistake(const std::string& row, const Contender& contender, const std::string& text) {
  note(mistakes_, contender.program + " " + contender.way + ", " + row + ": " + text);
}

Results::Rounds Results::ratios(const Row& row, const Contender& of, const Row& to_row, const Contender& to) {
  Rounds all;
  const auto a = row.find(of);
  const auto b = to_row.find(to);
  if (a == row.end() || b == to_row.end()) return all;
  for (std::size_t i = 0; i < std::min(a->second.size(), b->second.size()); ++i) {
    if (a->second[i] > 0 && b->second[i] > 0) all.push_back(a->second[i] / b->second[i]);
  }
  return all;
}

std::string Results::cell(const Row& row, const Contender& of, const Contender& reference, const char* million) {
  const auto times = row.find(of);
  if (times == row.end()) return "-";
  const Rounds of_reference = ratios(row, of, row, reference);
  const std::string time = amount(median(times->second), million);
  return of == reference || of_reference.empty() ? time : time + " (" + ratio(median(of_reference)) + ")";
}

std::vector<Contender> Results::columns(const std::vector<std::string>& rows) const {
  std::vector<Contender> used;
  for (const Contender& contender : contenders_) {
    const auto has_it = [&](const std::string& row) { return times_.at(row).count(contender) != 0; };
    if (!is_again(contender.program) && std::any_of(rows.begin(), rows.end(), has_it)) used.push_back(contender);
  }
  return used;
}

std::vector<std::string> Results::rows_of(const std::string& prefix) const {
  std::vector<std::string> found;
  for (const std::string& row : rows_) {
    if (row.rfind(prefix, 0) == 0) found.push_back(row);
  }
  return found;
}

/// Returns the value that the target limits, for each round. Returns nothing when the target does not apply to the row.
Results::Rounds Results::measured(const std::string& name, const Target& target) const {
  if (!std::regex_match(name, std::regex(target.rows))) return {};
  const Row& row = times_.at(name);
  if (is_absolute(target)) {
    const auto times = row.find(target.of);
    return times == row.end() ? Rounds{} : times->second;
  }
  const auto to_row = target.to_row.empty() ? times_.find(name) : times_.find(target.to_row);
  return to_row == times_.end() ? Rounds{} : ratios(row, target.of, to_row->second, target.to);
}

/// Returns a text such as "0.57 of nongnu 1.8.1 unw_backtrace (0.6)" or "47 ns (50)", with "!" if the target is missed.
std::string Results::against(const std::string& name, const std::vector<Target>& targets) const {
  std::string text;
  for (const Target& target : targets) {
    const double value = median(measured(name, target));
    if (value <= 0) continue;
    const bool is_of_another = !is_absolute(target) && target.to.program != target.of.program;
    const std::string to =
        target.to_row.empty() ? (is_of_another ? target.to.program + " " : "") + target.to.way : target.to_row;
    text += formatted("%s%.4g %s%s (%.3g)%s", text.empty() ? "" : ", ", value, is_absolute(target) ? "" : "of ",
                      to.c_str(), target.at_most, value > target.at_most ? "!" : "");
  }
  return text;
}

Table Results::table(const TableOptions& options) const {
  const std::vector<std::string> rows = rows_of(options.row_prefix);
  const char* const million = options.row_prefix.rfind("instructions/", 0) == 0 ? "M" : "ms";
  Table made{options.title, {}};
  if (rows.empty()) return made;
  const std::vector<Contender> shown = columns(rows);
  std::vector<std::string> programs{""};
  std::vector<std::string> ways{""};
  for (const Contender& contender : shown) {
    programs.push_back(contender.program);
    ways.push_back(contender.way);
  }
  programs.insert(programs.end(), {"the same", "target"});
  ways.insert(ways.end(), {"again", "(at most)"});
  made.cells = {programs, ways};
  for (const std::string& name : rows) {
    const Row& row = times_.at(name);
    std::vector<std::string> cells{name.substr(options.row_prefix.size())};
    for (const Contender& contender : shown) cells.push_back(cell(row, contender, options.reference, million));
    const Rounds spread =
        ratios(row, {again(options.reference.program), options.reference.way}, row, options.reference);
    const auto [least, most] = std::minmax_element(spread.begin(), spread.end());
    cells.push_back(spread.empty() ? "" : formatted("%.2fx-%.2fx", *least, *most));
    cells.push_back(against(name, options.targets));
    made.cells.push_back(cells);
  }
  return made;
}

std::vector<Line> Results::lines(const std::string& row_prefix) const {
  std::map<Contender, Line> found;
  for (const std::string& name : rows_of(row_prefix)) {
    char* end = nullptr;
    const std::string rest = name.substr(row_prefix.size());
    const double x = std::strtod(rest.c_str(), &end);
    if (end == rest.c_str() || *end != 0) continue;
    for (const auto& [contender, times] : times_.at(name)) {
      if (is_again(contender.program) || median(times) <= 0) continue;
      Line& line = found[contender];
      line.name = contender.program + " " + contender.way;
      line.points.emplace_back(x, median(times));
    }
  }
  std::vector<Line> all;
  for (auto& [contender, line] : found) all.push_back(line);
  return all;
}

std::map<std::string, double> Results::target_ratios(const std::vector<TableOptions>& tables) const {
  std::map<std::string, double> all;
  for (const TableOptions& options : tables) {
    for (const std::string& name : rows_of(options.row_prefix)) {
      for (const Target& target : options.targets) {
        const double value = target.to == k_time ? 0 : median(measured(name, target));
        const std::string to = (is_absolute(target) ? "" : target.to.program + " ") + target.to.way;
        if (value > 0)
          all[name + ": " + target.of.program + " " + target.of.way + " to " + to +
              (target.to_row.empty() ? "" : " of " + target.to_row)] = value;
      }
    }
  }
  return all;
}

std::string Table::text() const {
  if (cells.empty()) return "";
  std::vector<std::size_t> widths(cells.front().size());
  for (const auto& row : cells)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out = title + "\n";
  for (const auto& row : cells) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - row[i].size(), ' ');
      out += i == 0 ? row[i] + space : "  " + space + row[i];
    }
    out += "\n";
  }
  return out + "\n";
}

std::string Table::markdown() const {
  if (cells.empty()) return "";
  std::string out = "## " + title + "\n\n";
  const auto line = [&](const auto& cell_at, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) out += "| " + cell_at(i) + " ";
    out += "|\n";
  };
  const std::size_t size = cells.front().size();
  line([&](std::size_t i) { return cells[0][i] + (cells[1][i].empty() ? "" : "<br>" + cells[1][i]); }, size);
  line([&](std::size_t i) { return std::string(i == 0 ? ":--" : "--:"); }, size);
  for (std::size_t row = 2; row < cells.size(); ++row) line([&](std::size_t i) { return cells[row][i]; }, size);
  return out + "\n";
}

std::string Results::mistakes() const {
  std::string text;
  for (const std::string& mistake : mistakes_) text += "  " + mistake + "\n";
  return text;
}

}  // namespace bench
