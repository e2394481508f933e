// A target behind the two callbacks of Unwind Express: bytes, registers, and answers that a test gives. Each answer is
// on its own page, together with its strings, which becomes unreadable once the answer was given back.
#pragma once

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <uwx.h>
#include "tests/support/cfi_assembler.h"

namespace jitunwind::test {

using Words = std::vector<std::uint64_t>;

/// A callback's answer: UWX_LKUP_*, pairs, and strings whose addresses become values.
struct Given {
  int kind = UWX_LKUP_NOTFOUND;
  Words pairs{};
  std::vector<std::pair<std::uint64_t, std::string>> strings{};
};

struct UwxTarget {
  struct Copyin {
    int request;
    std::uint64_t rem;
    int len;
  };
  struct Asked {
    int request;
    std::uint64_t ip;
    Words in;  ///< pairs, without the end

    std::optional<std::uint64_t> value_of(std::uint64_t key) const {
      for (std::size_t i = 0; i + 1 < in.size(); i += 2)
        if (in[i] == key) return in[i + 1];
      return std::nullopt;
    }
  };

  explicit UwxTarget(bool big = false) : big_endian(big), env(uwx_init()) {
    EXPECT_NE(env, nullptr);
    EXPECT_EQ(uwx_register_callbacks(env, token(), &copyin, &lookupip), UWX_OK);
  }
  ~UwxTarget() {
    EXPECT_EQ(uwx_free(env), UWX_OK);
    EXPECT_EQ(held(), 0u) << "answers that were not given back";
    for (const Page& page : pages) ::munmap(page.memory, k_page);
  }
  UwxTarget(const UwxTarget&) = delete;
  UwxTarget& operator=(const UwxTarget&) = delete;

  std::intptr_t token() { return reinterpret_cast<std::intptr_t>(this); }

  void put(std::uint64_t at, const Bytes& data) {
    for (std::size_t i = 0; i < data.size(); ++i) bytes[at + i] = data.vector()[i];
  }
  void put_word(std::uint64_t at, std::uint64_t value) { put(at, Bytes::in_order(big_endian).u64(value)); }
  std::size_t count(int request) const {
    std::size_t found = 0;
    for (const Asked& a : asked) found += a.request == request;
    return found;
  }
  std::size_t copied(int request) const {
    std::size_t found = 0;
    for (const Copyin& c : copies) found += c.request == request;
    return found;
  }
  /// Counts the answers that were not given back yet.
  std::size_t held() const {
    std::size_t found = 0;
    for (const Page& page : pages) found += !page.given_back;
    return found;
  }
  std::uint64_t reg(int regid) const {
    std::uint64_t values[2] = {0xdead, 0xdead};
    EXPECT_EQ(uwx_get_reg(env, regid, values), UWX_OK) << std::hex << regid;
    return values[0];
  }
  std::uint64_t ip() const { return reg(UWX_REG_IP); }
  std::uint64_t sp() const { return reg(UWX_REG_SP); }

  bool big_endian;
  std::map<std::uint64_t, std::byte> bytes;
  std::map<std::uint64_t, std::uint64_t> registers;
  std::function<Given(const Asked&)> answer = [](const Asked&) { return Given{}; };
  /// Replaces memory and registers: the callback returns the result of this.
  std::function<std::optional<int>(const Copyin&, char*)> copy_instead;
  std::vector<Copyin> copies;
  std::vector<Asked> asked;  ///< without FREE
  uwx_env* env;

  static int copyin(int request, char* loc, std::uint64_t rem, int len, std::intptr_t tok) {
    auto& self = *reinterpret_cast<UwxTarget*>(tok);
    self.copies.push_back({request, rem, len});
    const bool is_uinfo = request == UWX_COPYIN_UINFO;
    EXPECT_TRUE(len == 8 || (is_uinfo && len == 4)) << len;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(loc) % static_cast<std::size_t>(len), 0u);
    EXPECT_TRUE(request == UWX_COPYIN_REG || rem % static_cast<std::size_t>(len) == 0);
    EXPECT_NE(request, UWX_COPYIN_RSTACK);
    if (self.copy_instead)
      if (const auto returned = self.copy_instead(self.copies.back(), loc)) return *returned;
    if (request == UWX_COPYIN_REG) {
      const auto found = self.registers.find(rem);
      if (found == self.registers.end()) return 0;
      const Bytes value = Bytes::in_order(self.big_endian).u64(found->second);
      std::memcpy(loc, value.vector().data(), 8);
      return len;
    }
    for (int i = 0; i < len; ++i) {
      const auto found = self.bytes.find(rem + static_cast<std::uint64_t>(i));
      if (found == self.bytes.end()) return 0;
      loc[i] = static_cast<char>(found->second);
    }
    return len;
  }

  static int lookupip(int request, std::uint64_t ip, std::intptr_t tok, std::uint64_t** resultp) {
    auto& self = *reinterpret_cast<UwxTarget*>(tok);
    if (request == UWX_LKUP_FREE) return self.take_back(*resultp);
    Asked asked{request, ip, {}};
    for (const std::uint64_t* pair = *resultp; pair[0] != UWX_KEY_END; pair += 2)
      asked.in.insert(asked.in.end(), {pair[0], pair[1]});
    self.asked.push_back(asked);
    const Given given = self.answer(asked);
    if (given.kind != UWX_LKUP_NOTFOUND && given.kind != UWX_LKUP_ERR) *resultp = self.write(given);
    return given.kind;
  }

 private:
  static constexpr std::size_t k_page = 1 << 17;
  struct Page {
    void* memory;
    bool given_back = false;
  };

  std::uint64_t* write(const Given& given) {
    void* const memory = ::mmap(nullptr, k_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    pages.push_back({memory});
    auto* const words = static_cast<std::uint64_t*>(memory);
    std::size_t used = 0;
    for (const std::uint64_t word : given.pairs) words[used++] = word;
    char* text = static_cast<char*>(memory) + 8192;
    for (const auto& [key, string] : given.strings) {
      words[used++] = key;
      words[used++] = reinterpret_cast<std::uintptr_t>(text);
      std::memcpy(text, string.c_str(), string.size() + 1);
      text += string.size() + 1;
    }
    return words;
  }
  int take_back(std::uint64_t* vector) {
    for (Page& page : pages) {
      if (page.memory != vector) continue;
      EXPECT_FALSE(page.given_back) << "given back twice";
      page.given_back = true;
      EXPECT_EQ(::mprotect(page.memory, k_page, PROT_NONE), 0);
      return UWX_OK;
    }
    ADD_FAILURE() << "given back, and never given";
    return UWX_OK;
  }

  std::vector<Page> pages;
};

/// Three functions of x86-64 with `push %rbp; mov %rsp,%rbp` behind them, each called by the next; the last has no
/// caller. Their .eh_frame has a table with entries of 4 bytes, or of 8.
struct ThreeFrames {
  static constexpr std::uint64_t k_code = 0x40'0000, k_hdr = 0x50'0000, k_stack = 0x7fff'0000, k_size = 0x40;
  static constexpr int k_rbp = UWX_REG_GR(6), k_rbx = UWX_REG_GR(3);

  explicit ThreeFrames(UwxTarget& t, unsigned entry_size = 4) : target(t), entry(entry_size) {
    for (unsigned i = 0; i < 3; ++i) {
      target.put_word(rbp_of(i), i == 2 ? 0 : rbp_of(i + 1));
      target.put_word(rbp_of(i) + 8, i == 2 ? 0 : ip_of(i + 1));
    }
    put_table();
    target.registers = {{k_rbp, rbp_of(0)}, {k_rbx, 0xb3}};
    target.answer = [this](const UwxTarget::Asked& asked) { return look_up(asked); };
  }
  static std::uint64_t start_of(unsigned frame) { return k_code + 0x1000 * frame; }
  static std::uint64_t ip_of(unsigned frame) { return start_of(frame) + 0x20; }
  static std::uint64_t rbp_of(unsigned frame) { return k_stack + 0x40 + 0x100 * frame; }

  Given table() const {
    return {UWX_LKUP_UTABLE, {UWX_KEY_TBASE, k_code, UWX_KEY_USTART, k_hdr, UWX_KEY_UEND, k_hdr + hdr_size}};
  }
  Given look_up(const UwxTarget::Asked& asked) const {
    if (asked.request != UWX_LKUP_LOOKUP) return {};
    return asked.ip >= k_code && asked.ip < k_code + 0x3000 ? table() : Given{};
  }
  int begin() const { return uwx_init_context(target.env, ip_of(0), k_stack, 0, 0); }

  UwxTarget& target;
  unsigned entry;
  std::uint64_t hdr_size = 0;
  std::uint64_t eh_frame = 0, eh_frame_size = 0;
  std::uint64_t first_fde = 0;

 private:
  void put_table() {
    constexpr std::uint64_t k_section = k_hdr + 0x1000;
    CfiSection section(k_section, CfiContext::Format::eh_frame, false, target.big_endian);
    const Addr cie = section.cie({});
    Bytes hdr = section.bytes().u8(1).u8(0x04).u8(0x03).u8(entry == 4 ? 0x3b : 0x3c).u64(k_section).u32(3);
    for (unsigned i = 0; i < 3; ++i) {
      const Addr fde = section.fde(cie, start_of(i), k_size, Bytes{0x0c, 6, 16, 0x86, 2});
      if (i == 0) first_fde = fde;
      hdr.number(start_of(i) - k_hdr, entry).number(fde - k_hdr, entry);
    }
    section.terminator();
    eh_frame = k_section;
    eh_frame_size = section.data().size();
    hdr_size = hdr.size();
    target.put(k_hdr, hdr);
    target.put(k_section, section.data());
  }
};

}  // namespace jitunwind::test
