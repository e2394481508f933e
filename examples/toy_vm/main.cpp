// toy_vm SCRIPT [ARGUMENT...]: runs the script's main() with the arguments, numbers where they look like numbers.
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>

#include "examples/toy_vm/machine.h"
#include "examples/toy_vm/natives.h"

namespace {

constexpr int k_uncaught = 1, k_cannot_run = 2;

toy::Value argument(toy::Machine& machine, std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number ? toy::Value::of(number) : machine.text(text);
}

bool read(const char* path, std::string& script) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "rb"), &std::fclose);
  std::array<char, 4096> buffer;
  if (!file) return false;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), file.get()))
    script.append(buffer.data(), count);
  return std::ferror(file.get()) == 0;
}

int run(toy::Machine& machine, std::span<char*> texts) {
  std::vector<toy::Value> arguments;
  for (const char* text : texts) arguments.push_back(argument(machine, text));
  std::string what = "an exception that is no std::exception";
  try {
    machine.run(arguments);
    return 0;
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
  }
  std::cout << std::flush;
  std::cerr << "uncaught: " << what << '\n' << machine.uncaught();
  return k_uncaught;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: toy_vm SCRIPT [ARGUMENT...]\n";
    return k_cannot_run;
  }
  const char* const path = argv[1];
  std::string script;
  if (!read(path, script)) {
    std::cerr << "toy_vm: cannot read " << path << ": " << std::strerror(errno) << '\n';
    return k_cannot_run;
  }
  toy::Machine machine(toy::standard_natives(), std::cout);
  try {
    machine.load(script, std::string_view(path).substr(std::string_view(path).rfind('/') + 1));
  } catch (const toy::SyntaxError& error) {
    std::cerr << path << ':' << error.what() << '\n';
    return k_cannot_run;
  }
  return run(machine, std::span(argv, static_cast<std::size_t>(argc)).subspan(2));
}
