#include "jitunwind/sdk/jitstack/profile/flame_graph_p.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "jitunwind/sdk/jitstack/escaped_p.h"

namespace jitunwind::jitstack {
namespace {

// Sizes in pixels.
constexpr double k_width = 1200;
constexpr double k_margin = 12;
constexpr double k_row = 18;
constexpr double k_head = 66;
constexpr double k_foot = 40;
constexpr double k_narrowest = 0.33;
constexpr double k_font = 11.5;
constexpr double k_letter = 0.6021 * k_font;  // the widest of the usual monospaced fonts; they have 0.55 to 0.6021
constexpr std::uint32_t k_most_rows = 1000;

struct Kind {
  FrameKind kind;
  const char* what;
  std::array<int, 3> hue_saturation_lightness;
};
constexpr Kind k_kinds[] = {
    {FrameKind::thread, "thread", {215, 16, 78}},  {FrameKind::program, "program", {24, 86, 68}},
    {FrameKind::library, "library", {44, 82, 71}}, {FrameKind::jit, "JIT", {142, 48, 62}},
    {FrameKind::guess, "guess", {280, 36, 78}},    {FrameKind::cut_short, "cut short", {0, 0, 62}},
};

/// A name always has the same colour; other names of the same kind differ a little.
std::string colour_of(const FrameLabel& label) {
  const Kind* const kind = std::ranges::find(k_kinds, label.kind, &Kind::kind);
  const auto& [hue, saturation, lightness] = kind->hue_saturation_lightness;
  std::uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : label.name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  const int turn = static_cast<int>(hash >> 8) % 13 - 6, lighter = static_cast<int>(hash >> 16) % 9 - 4;
  char text[48];
  std::snprintf(text, sizeof text, "hsl(%d,%d%%,%d%%)", (hue + turn + 360) % 360, saturation, lightness + lighter);
  return text;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%",
                whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return text;
}

/// Returns the beginning of a name that fits, in whole UTF-8 characters and with an ellipsis; "" if less than three
/// characters would remain.
std::string fitted(const std::string& name, double room) {
  const auto letters = static_cast<std::size_t>(std::max(room / k_letter, 0.0));
  const auto begins_letter = [](char c) { return (c & 0xc0) != 0x80; };
  const auto length = static_cast<std::size_t>(std::ranges::count_if(name, begins_letter));
  if (length <= letters) return name;
  if (letters < 4) return "";
  std::size_t kept = 0, at = 0;
  while (at < name.size() && kept < letters - 1) {
    do ++at;
    while (at < name.size() && !begins_letter(name[at]));
    ++kept;
  }
  return name.substr(0, at) + "\xe2\x80\xa6";
}

struct Place {
  double x = 0;
  double width = 0;
  std::uint32_t row = 0;
};

class Drawing {
 public:
  explicit Drawing(const Profile& profile) : profile_(profile), places_(profile.nodes().size()) { place(); }

  std::string svg(const std::string& title, const std::string& subtitle) {
    const double height = k_head + (rows_ + 1) * k_row + k_foot;
    text_ =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
        number(k_width) + "\" height=\"" + number(height) + "\" viewBox=\"0 0 " + number(k_width) + " " +
        number(height) +
        "\">\n<style>\n"
        "  text { font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace; font-size: 11.5px; fill: #1c1c1c; }\n"
        "  .title { font-family: 'DejaVu Sans', Helvetica, Arial, sans-serif; font-size: 17px; }\n"
        "  .note { font-family: 'DejaVu Sans', Helvetica, Arial, sans-serif; font-size: 12px; fill: #555; }\n"
        "  .frame rect { stroke: #fff; stroke-width: 0.6; }\n"
        "  .frame:hover rect { stroke: #000; stroke-width: 1.2; }\n"
        "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fdfdfb\"/>\n";
    note("title", k_margin, 28, title);
    note("note", k_margin, 49, subtitle);
    for (std::size_t i = 0; i < places_.size(); ++i)
      if (places_[i].width >= k_narrowest && places_[i].row <= k_most_rows) frame(i);
    legend(height - 15);
    return std::move(text_ += "</svg>\n");
  }

 private:
  /// One pass suffices, without recursion, because every node comes after its parent.
  void place() {
    const auto nodes = profile_.nodes();
    places_[0] = {k_margin, k_width - 2 * k_margin, 0};
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      double x = places_[i].x;
      if (nodes[i].count == 0) continue;
      const double each = places_[i].width / static_cast<double>(nodes[i].count);
      if (places_[i].width >= k_narrowest) rows_ = std::max(rows_, std::min(places_[i].row, k_most_rows));
      for (const auto& [label, callee] : nodes[i].callees) {
        places_[callee] = {x, each * static_cast<double>(nodes[callee].count), places_[i].row + 1};
        x += places_[callee].width;
      }
    }
  }

  void note(const char* style, double x, double y, const std::string& text) {
    text_ += std::string("<text class=\"") + style + "\" x=\"" + number(x) + "\" y=\"" + number(y) + "\">" +
             escaped_for_xml(text) + "</text>\n";
  }

  void frame(std::size_t index) {
    const Profile::Node& node = profile_.nodes()[index];
    const Place& place = places_[index];
    const double y = k_head + (rows_ - place.row) * k_row;
    const bool is_root = index == 0;
    const std::string name = is_root ? "all" : escaped(node.label.name);
    std::string told = name;
    if (!node.label.module.empty()) told += " (" + escaped(node.label.module) + ")";
    told += ": " + std::to_string(node.count) + " of " + std::to_string(profile_.stacks()) + " stacks, " +
            percent(node.count, profile_.stacks());
    if (node.label.kind == FrameKind::guess) told += ", guessed";
    text_ += "<g class=\"frame\"><title>" + escaped_for_xml(told) + "</title><rect x=\"" + number(place.x) + "\" y=\"" +
             number(y) + "\" width=\"" + number(place.width) + "\" height=\"" + number(k_row - 1) +
             "\" rx=\"1.5\" fill=\"" + (is_root ? "hsl(215,14%,86%)" : colour_of(node.label)) + "\"/>";
    if (const std::string shown = fitted(name, place.width - 8); !shown.empty())
      text_ += "<text x=\"" + number(place.x + 4) + "\" y=\"" + number(y + 12.5) + "\">" + escaped_for_xml(shown) +
               "</text>";
    text_ += "</g>\n";
  }

  void legend(double y) {
    double x = k_margin;
    for (const Kind& kind : k_kinds) {
      text_ += "<rect x=\"" + number(x) + "\" y=\"" + number(y - 10) +
               "\" width=\"13\" height=\"13\" rx=\"2\" fill=\"" + colour_of({kind.kind, "", ""}) + "\"/>\n";
      note("note", x + 19, y + 1, kind.what);
      x += 38 + 7.2 * static_cast<double>(std::string(kind.what).size());
    }
  }

  const Profile& profile_;
  std::vector<Place> places_;
  std::uint32_t rows_ = 0;
  std::string text_;
};

}  // namespace

std::string flame_graph(const Profile& profile, const std::string& title, const std::string& subtitle) {
  return Drawing(profile).svg(title, subtitle);
}

}  // namespace jitunwind::jitstack
