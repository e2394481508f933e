// Input: a byte, the number of function symbols, which are 16 bytes apart; then the bytes of .eh_frame. Code is 64 KiB
// away from the input.
#include <string>
#include <vector>

#include "jitunwind/builders/object_registration.h"
#include "tests/builders/registered_code.h"
#include "tests/fuzz/fuzz_check.h"

using namespace jitunwind;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::vector<std::uint8_t> bytes(data + 1, data + size);
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const AddrRange code[] = {{0x1000, 0x11000}, {begin + 0x10000, begin + 0x20000}};
  std::vector<ObjectFunction> functions;
  for (unsigned i = 0; i < data[0]; ++i) functions.push_back({code[i & 1].begin + 16 * (i / 2), i % 3 * 16, "f"});
  {
    auto object = register_object({code, {begin, begin + bytes.size()}, functions});
    if (!object) {
      fuzz::check(*object.error().what != 0, "an error says what");
    } else {
      fuzz::check(object->procedures().size() == registry_statistics().registered, "all of it is registered");
      const test::RegisteredCode known;
      for (const unw_dyn_info_t& info : object->procedures()) {
        fuzz::check(info.start_ip < info.end_ip, "a procedure has code");
        const bool inside = (info.start_ip >= code[0].begin && info.end_ip <= code[0].end) ||
                            (info.start_ip >= code[1].begin && info.end_ip <= code[1].end);
        fuzz::check(inside, "a procedure is the object's own");
        const std::string row = known.row_at(info.end_ip - 1);
        // Only a lookup keeps the expressions of a row, and has limited room for them.
        fuzz::check(!row.starts_with("error") || row == "error: expressions of a row", "what was accepted has rows");
      }
    }
  }
  fuzz::check(registry_statistics().registered == 0, "nothing stays");
  return 0;
}
