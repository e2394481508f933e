#include "bench/report.h"

#include <algorithm>
#include <cstdio>

namespace bench {

namespace {

constexpr int k_row_width = 22;
constexpr int k_column_width = 20;

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

std::string right(const std::string& text) { return formatted("%*s", k_column_width, text.c_str()); }
std::string left(const std::string& text) { return formatted("%-*s", k_row_width, text.c_str()); }

/// Milliseconds where nanoseconds would not fit.
std::string duration(double nanoseconds) {
  if (nanoseconds >= 1e6) return formatted("%.1f ms", nanoseconds / 1e6);
  return formatted(nanoseconds < 100 ? "%.1f" : "%.0f", nanoseconds);
}

std::string ratio(double value) {
  if (value >= 10) return formatted("%.0fx", value);
  return formatted(value < 0.1 ? "%.4fx" : "%.2fx", value);
}

}  // namespace

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

Results::Rounds Results::ratios(const Row& row, const Contender& of, const Contender& to) {
  Rounds all;
  const auto a = row.find(of);
  const auto b = row.find(to);
  if (a == row.end() || b == row.end()) return all;
  for (std::size_t i = 0; i < std::min(a->second.size(), b->second.size()); ++i) {
    if (a->second[i] > 0 && b->second[i] > 0) all.push_back(a->second[i] / b->second[i]);
  }
  return all;
}

std::string Results::cell(const Row& row, const Contender& of, const Contender& reference) {
  const auto times = row.find(of);
  if (times == row.end()) return "-";
  const Rounds of_reference = ratios(row, of, reference);
  const std::string time = duration(median(times->second));
  return of == reference || of_reference.empty() ? time : time + " (" + ratio(median(of_reference)) + ")";
}

std::vector<Contender> Results::columns(const std::vector<std::string>& rows, const std::string& again) const {
  std::vector<Contender> used;
  for (const Contender& contender : contenders_) {
    const auto has_it = [&](const std::string& row) { return times_.at(row).count(contender) != 0; };
    if (contender.program != again && std::any_of(rows.begin(), rows.end(), has_it)) used.push_back(contender);
  }
  return used;
}

std::string Results::table(const TableOptions& options) const {
  std::vector<std::string> rows;
  for (const std::string& row : rows_) {
    if (row.rfind(options.row_prefix, 0) == 0) rows.push_back(row);
  }
  if (rows.empty()) return "";
  const std::vector<Contender> shown = columns(rows, options.again);
  std::string programs = left("");
  std::string ways = left("");
  for (const Contender& contender : shown) {
    programs += right(contender.program);
    ways += right(contender.way);
  }
  std::string text = options.title + "\n" + programs + right("the same") + "\n" + ways + right("again") + "\n";
  for (const std::string& name : rows) {
    const Row& row = times_.at(name);
    text += left(name.substr(options.row_prefix.size()));
    for (const Contender& contender : shown) text += right(cell(row, contender, options.reference));
    const Rounds spread = ratios(row, {options.again, options.reference.way}, options.reference);
    if (!spread.empty()) {
      const auto [least, most] = std::minmax_element(spread.begin(), spread.end());
      text += right(formatted("%.2fx-%.2fx", *least, *most));
    }
    text += "\n";
  }
  return text + "\n";
}

std::string Results::mistakes() const {
  std::string text;
  for (const std::string& mistake : mistakes_) text += "  " + mistake + "\n";
  return text;
}

}  // namespace bench
