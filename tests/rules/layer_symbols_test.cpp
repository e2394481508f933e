// The calls between layers by the symbols of their objects: includes do not show a function that is declared below and
// defined above.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/rules/source_tree.h"
#include "tests/support/command.h"

namespace {

using jitunwind::test::Groups, jitunwind::test::lines_of, jitunwind::test::output_of, jitunwind::test::Pattern,
    jitunwind::test::text_of_file;
using Names = std::set<std::string>;

struct LayerSymbols {
  std::string layer;
  Names defined;
  Names used;
};

/// Reads nm's lines "value type name" and "type name".
void read_symbols(const std::string& nm_output, LayerSymbols& into) {
  for (const std::string& line : lines_of(nm_output)) {
    static const Pattern used(R"(\s+[Uw] (.+))"), defined(R"([0-9a-f]+ [A-Z] (.+))");
    Groups match;
    if (matches(line, match, used)) into.used.insert(match[1]);
    if (matches(line, match, defined)) into.defined.insert(match[1]);
  }
}

/// Functions of the C library that libjitunwind-listen defines in front of it. Lower layers call the C library's.
const Names k_of_c_library{"_exit", "mmap", "mprotect", "mremap", "munmap"};

/// Returns "dyn_info calls f() of adapters" for each function that only layers behind its user define.
Names upward_calls(const std::vector<LayerSymbols>& layers) {
  Names found;
  Names below;
  for (std::size_t own = 0; own < layers.size(); ++own) {
    below.insert(layers[own].defined.begin(), layers[own].defined.end());
    for (std::size_t other = own + 1; other < layers.size(); ++other) {
      for (const std::string& name : layers[own].used)
        if (below.count(name) == 0 && k_of_c_library.count(name) == 0 && layers[other].defined.count(name) != 0)
          found.insert(layers[own].layer + " calls " + name + " of " + layers[other].layer);
    }
  }
  return found;
}

/// Returns the layer of an object: the top folder of its source, if a target has sources of another layer.
std::string layer_of(const std::string& object, const std::string& layer_of_target) {
  static const Pattern elsewhere(R"(.*\.dir/(?:\./)?(?:__/)+(\w+)/.*)");
  Groups match;
  return matches(object, match, elsewhere) ? match[1] : layer_of_target;
}

/// Reads lines "layer object object ..." of the build, lowest layer first.
std::vector<LayerSymbols> layers_of_the_build() {
  std::vector<LayerSymbols> layers;
  std::map<std::string, std::string> objects;
  for (const std::string& line : lines_of(text_of_file(JITUNWIND_LAYER_OBJECTS))) {
    std::istringstream words(line);
    words >> layers.emplace_back().layer;
    for (std::string object; words >> object;) objects[layer_of(object, layers.back().layer)] += ' ' + object;
  }
  for (LayerSymbols& layer : layers) {
    read_symbols(output_of("nm -C --no-recurse-limit" + objects[layer.layer]), layer);
    objects.erase(layer.layer);
  }
  EXPECT_TRUE(objects.empty()) << "objects of no layer: " << objects.begin()->second;
  return layers;
}

/// Reads the table in docs/architecture.md whose lines are "| `layer` | `function` | `layer` | why |".
Names documented_calls() {
  Names found;
  const Pattern row(R"(\| `(\w+)` \| `([^`]+)` \| `(\w+)` \|.*)");
  for (const std::string& line : rules::read_file("docs/architecture.md").lines) {
    Groups match;
    if (matches(line, match, row)) found.insert(match[1] + " calls " + match[2] + " of " + match[3]);
  }
  return found;
}

std::string lines_of(const Names& names) { return rules::joined({names.begin(), names.end()}); }

TEST(LayerSymbols, AnUpwardCallIsNoticed) {
  std::vector<LayerSymbols> layers(2);
  layers[0].layer = "below";
  layers[1].layer = "above";
  read_symbols("                 U over()\n0000000000000010 T under()\n", layers[0]);
  read_symbols("0000000000000000 T over()\n                 U under()\n                 U abort\n", layers[1]);
  EXPECT_EQ(upward_calls(layers), Names{"below calls over() of above"});
}

TEST(LayerSymbols, ObjectsAreOfTheLayerOfTheirSource) {
  EXPECT_EQ(layer_of("sdk/CMakeFiles/jitunwind_sdk.dir/walk.cpp.o", "sdk"), "sdk");
  EXPECT_EQ(layer_of("sdk/CMakeFiles/jitunwind_sdk.dir/__/unwind_core/arch/x86_64/backtrace.S.o", "sdk"),
            "unwind_core");
  EXPECT_EQ(layer_of("sdk/e/CMakeFiles/jitunwind_e.dir/./__/__/__/unwind_core/arch/e.S.o", "sdk"), "unwind_core");
}

TEST(LayerSymbols, OnlyWhatTheArchitectureNamesCallsUpwards) {
  const std::vector<LayerSymbols> layers = layers_of_the_build();
  ASSERT_EQ(layers.size(), 5u);
  for (const LayerSymbols& layer : layers) ASSERT_GT(layer.defined.size(), 50u) << layer.layer;
  const Names found = upward_calls(layers);
  EXPECT_EQ(found, documented_calls()) << "found:\n" << lines_of(found);
}

}  // namespace
