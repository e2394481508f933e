#include "tests/prove/storm_libgcc.h"

#include <libunwind.h>

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>

namespace jitunwind::storm {
namespace {

// __builtin_eh_return: mov rsp, rcx; pop rcx; jmp rcx
constexpr std::array<std::uint8_t, 6> k_jump{0x48, 0x89, 0xcc, 0x59, 0xff, 0xe1};
constexpr std::uint8_t k_call = 0xe8;
constexpr std::size_t k_call_size = 5;

/// The code that lands: the end of each landing function, and the functions that it calls there.
std::array<AddrRange, 12> landings;
std::size_t landing_count = 0;

AddrRange function_at(Addr pc) {
  unw_proc_info_t info{};
  if (unw_get_proc_info_by_ip(unw_local_addr_space, pc, &info, nullptr) != 0) return {};
  return {info.start_ip, info.end_ip};
}

/// Returns the last call before `end` to the beginning of a function of libgcc_s.
Addr call_before(Addr end, AddrRange function, AddrRange library, AddrRange& called) {
  for (Addr at = end - k_call_size; at > function.begin; --at) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(static_cast<std::uintptr_t>(at));
    std::int32_t displacement = 0;
    std::memcpy(&displacement, bytes + 1, sizeof displacement);
    const Addr target = at + k_call_size + static_cast<Addr>(std::int64_t{displacement});
    if (*bytes != k_call || !library.contains(target)) continue;
    called = function_at(target);
    if (called.begin == target) return at;
  }
  throw std::runtime_error("libgcc_s is another one");
}

void find_landing_of(void* library, const char* name) {
  void* const function = ::dlsym(library, name);
  dl_find_object object;
  if (function == nullptr || ::_dl_find_object(function, &object) != 0) throw std::runtime_error(name);
  const AddrRange all{reinterpret_cast<std::uintptr_t>(object.dlfo_map_start),
                      reinterpret_cast<std::uintptr_t>(object.dlfo_map_end)};
  const AddrRange code = function_at(reinterpret_cast<std::uintptr_t>(function));
  const auto* const begin = static_cast<const std::uint8_t*>(function);
  const std::span bytes(begin, static_cast<std::size_t>(code.size()));
  const auto jump = std::search(bytes.begin(), bytes.end(), k_jump.begin(), k_jump.end());
  if (jump == bytes.end()) throw std::runtime_error(std::string("no landing in ") + name);
  const Addr end = code.begin + static_cast<Addr>(jump - bytes.begin()) + k_jump.size();
  AddrRange told, installs;
  const Addr tells = call_before(end, code, all, told);  // _Unwind_DebugHook, for debuggers
  const Addr install = call_before(tells, code, all, installs);
  for (const AddrRange range : {told, installs, AddrRange{install + k_call_size, end}})
    landings.at(landing_count++) = range;
  std::printf("%s lands from +%#lx to +%#lx\n", name, install - code.begin, end - code.begin);
}

}  // namespace

void find_where_libgcc_lands() {
  void* const library = ::dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) throw std::runtime_error("libgcc_s is not there");
  for (const char* const name :
       {"_Unwind_RaiseException", "_Unwind_ForcedUnwind", "_Unwind_Resume", "_Unwind_Resume_or_Rethrow"})
    find_landing_of(library, name);
}

bool is_where_libgcc_lands(Addr pc) noexcept {
  const auto all = std::span(landings).first(landing_count);
  return std::ranges::any_of(all, [&](AddrRange range) { return range.contains(pc); });
}

}  // namespace jitunwind::storm
