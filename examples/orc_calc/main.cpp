// orc_calc [--asmjit] [FILE]: runs the program in the file; if there is none, each line that is typed. --asmjit calls
// natives through code that asmjit makes.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>

#include "examples/orc_calc/calculator.h"
#include "examples/orc_calc/thunks.h"

namespace {

constexpr int k_uncaught = 1, k_cannot_run = 2;

/// 0, or the number of the error; its text goes to standard error, after all former output.
int run(calc::Calculator& calculator, const std::string& program, const std::string& name) {
  const auto say = [](const std::string& text) {
    std::fflush(stdout);
    std::cerr << text << std::endl;
  };
  try {
    calculator.run(program);
    std::fflush(stdout);
    return 0;
  } catch (const calc::SyntaxError& error) {
    say(name + ":" + error.what());
    return k_cannot_run;
  } catch (const calc::CalculationError& error) {
    say(std::string("uncaught: ") + error.what());
    for (const std::string& line : error.stack()) std::cerr << line << '\n';
  } catch (const std::exception& error) {
    say(std::string("uncaught: ") + error.what());
  }
  return k_uncaught;
}

int prompt(calc::Calculator& calculator) {
  for (std::string line; std::cout << "> " << std::flush && std::getline(std::cin, line);)
    (void)run(calculator, line, "line");
  std::cout << std::endl;
  return 0;
}

int run_file(calc::Calculator& calculator, const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string program{std::istreambuf_iterator<char>(file), {}};
  if (file.is_open() && !file.bad()) return run(calculator, program, path);
  std::cerr << "orc_calc: cannot read " << path << ": " << std::strerror(errno) << '\n';
  return k_cannot_run;
}

int main_of(std::span<char*> arguments) {
  const bool with_thunks = !arguments.empty() && arguments[0] == std::string_view("--asmjit");
  if (with_thunks) arguments = arguments.subspan(1);
  if (arguments.size() > 1 || (!arguments.empty() && arguments[0][0] == '-')) {
    std::cerr << "usage: orc_calc [--asmjit] [FILE]\n";
    return k_cannot_run;
  }
  if (with_thunks && !calc::have_thunks()) {
    std::cerr << "orc_calc: was built without asmjit\n";
    return k_cannot_run;
  }
  auto calculator = calc::Calculator::create(
      with_thunks ? &calc::thunk_of : [](const calc::Native& native) -> std::uint64_t { return native.address; });
  if (!calculator) {
    std::cerr << "orc_calc: " << llvm::toString(calculator.takeError()) << '\n';
    return k_cannot_run;
  }
  return arguments.empty() ? prompt(**calculator) : run_file(**calculator, arguments[0]);
}

}  // namespace

int main(int argc, char** argv) { return main_of(std::span(argv, static_cast<std::size_t>(argc)).subspan(1)); }
