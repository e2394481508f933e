#include "bench/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <regex>

namespace bench {

namespace {

constexpr double k_width = 800, k_height = 420;
constexpr double k_left = 70, k_right = 290, k_top = 40, k_bottom = 50;
// Colours that colour-blind readers can tell apart, too (Okabe and Ito, "Color universal design", 2008).
constexpr std::array<const char*, 8> k_colours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                               "#e69f00", "#56b4e9", "#000000", "#999999"};

/// An axis over the powers of ten around all its values.
class Axis {
 public:
  void see(double value) {
    least_ = std::min(least_, std::log10(value));
    most_ = std::max(most_, std::log10(value));
  }
  void close() {
    first_ = std::floor(least_);
    last_ = std::max(std::ceil(most_), first_ + 1);
  }
  double at(double value) const { return (std::log10(value) - first_) / (last_ - first_); }
  int first() const { return static_cast<int>(first_); }
  int last() const { return static_cast<int>(last_); }

 private:
  double least_ = std::numeric_limits<double>::max();
  double most_ = std::numeric_limits<double>::lowest();
  double first_ = 0, last_ = 1;
};

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, format, values...);
  return buffer;
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return formatted("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor) + text + "</text>\n";
}

/// Whether logarithmic axes can show the point.
bool has_place(double x, double y) { return x > 0 && y > 0; }

struct Frame {
  Axis x, y;
  double px(double value) const { return k_left + x.at(value) * (k_width - k_left - k_right); }
  double py(double value) const { return k_height - k_bottom - y.at(value) * (k_height - k_top - k_bottom); }
};

std::string grid(const Frame& frame, const std::string& x_title) {
  std::string out;
  const auto line = [&](double x1, double y1, double x2, double y2) {
    out += formatted("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ccc\"/>\n", x1, y1, x2, y2);
  };
  for (int power = frame.y.first(); power <= frame.y.last(); ++power) {
    const double value = std::pow(10, power);
    line(k_left, frame.py(value), k_width - k_right, frame.py(value));
    out += text_at(k_left - 6, frame.py(value) + 4, "end", formatted("%g", value));
  }
  for (int power = frame.x.first(); power <= frame.x.last(); ++power) {
    const double value = std::pow(10, power);
    line(frame.px(value), k_top, frame.px(value), k_height - k_bottom);
    out += text_at(frame.px(value), k_height - k_bottom + 16, "middle", formatted("%g", value));
  }
  return out + text_at((k_left + k_width - k_right) / 2, k_height - 12, "middle", x_title);
}

/// Returns a line's name without numbers: "libgcc 16 libgcc_s" and "libgcc 12 libgcc_s" are of one kind.
std::string kind_of(const Line& line) {
  static const std::regex release("\\b[0-9.]+\\b");
  return std::regex_replace(line.name, release, "");
}

struct Stroke {
  std::string colour;
  std::string dashes;  ///< attribute
  std::string text() const { return "stroke=\"" + colour + "\" stroke-width=\"2\"" + dashes; }
};

/// Kinds differ by colour, and also by a long dash if there are more kinds than colours. Releases of a kind differ by
/// the dashes behind it; the last and newest one has none.
Stroke stroke_of(const std::vector<Line>& lines, std::size_t number) {
  static constexpr std::array<const char*, 3> k_dashes{"", "4 3 ", "1 3 "};
  std::vector<std::string> kinds;
  std::size_t newer = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string kind = kind_of(lines[i]);
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
    if (i > number && kind == kind_of(lines[number])) ++newer;
  }
  const auto kind =
      static_cast<std::size_t>(std::find(kinds.begin(), kinds.end(), kind_of(lines[number])) - kinds.begin());
  const std::string dashes = (kind < k_colours.size() ? "" : "10 3 ") + std::string(k_dashes[newer % k_dashes.size()]);
  return {k_colours[kind % k_colours.size()], dashes.empty() ? "" : " stroke-dasharray=\"" + dashes + "\""};
}

std::string curve(const Frame& frame, const Line& line, std::size_t number, const Stroke& stroke) {
  std::string points;
  std::string out;
  for (const auto& [x, y] : line.points) {
    if (!has_place(x, y)) continue;
    points += formatted("%.1f,%.1f ", frame.px(x), frame.py(y));
    out += formatted("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", frame.px(x), frame.py(y),
                     stroke.colour.c_str());
  }
  const double y = k_top + 10 + 18 * static_cast<double>(number);
  out += "<polyline fill=\"none\" " + stroke.text() + " points=\"" + points + "\"/>\n";
  out += formatted("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" ", k_width - k_right + 10, y,
                   k_width - k_right + 36, y) +
         stroke.text() + "/>\n";
  return out + text_at(k_width - k_right + 40, y + 4, "start", line.name);
}

}  // namespace

std::string svg_plot(const std::string& title, const std::string& x_title, const std::vector<Line>& lines) {
  Frame frame;
  bool any = false;
  for (const Line& line : lines) {
    for (const auto& [x, y] : line.points) {
      if (!has_place(x, y)) continue;
      frame.x.see(x);
      frame.y.see(y);
      any = true;
    }
  }
  if (!any) return "";
  frame.x.close();
  frame.y.close();
  std::string out = formatted(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      k_width, k_height);
  out += text_at(k_left, 22, "start", title) + grid(frame, x_title);
  for (std::size_t i = 0; i < lines.size(); ++i) out += curve(frame, lines[i], i, stroke_of(lines, i));
  return out + "</svg>\n";
}

}  // namespace bench
