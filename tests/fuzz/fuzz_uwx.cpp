// A client of Unwind Express whose answers are the bytes of the input, one after the other. Input: a byte, bit 0:
// AArch64, bit 1: its other byte order, bit 2: the answers begin again at their end, otherwise the client then only
// fails; bit 3: vector registers are left out. Checked: each step returns after a bounded number of callbacks, with an
// existing status; an error changes neither IP nor SP; answers are given back once; strings end.
#include <elf.h>
#include <uwx.h>

#include <array>
#include <cstring>

#include "tests/fuzz/fuzz_check.h"

using jitunwind::fuzz::check;

namespace {

constexpr std::size_t k_most_calls = 1u << 23;  // of one function of the interface
constexpr std::size_t k_patience = 20'000;      // of the client, so that inputs are played quickly

class Client {
 public:
  Client(const std::uint8_t* data, std::size_t size)
      : answers_(data + 1, size - 1), begins_again_((data[0] & 4) != 0) {}

  unsigned byte() {
    if (at_ == answers_.size()) {
      exhausted_ = !begins_again_ || answers_.empty();
      at_ = 0;
    }
    return exhausted_ ? 0 : answers_[at_++];
  }
  /// Returns small numbers, addresses near each other, and any other number.
  std::uint64_t word() {
    const unsigned kind = byte();
    if (kind < 0x60) return kind;
    if (kind < 0xd0) return 0x10000 + 8 * (kind + 256u * byte());
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return value;
  }
  bool gives_up() {
    check(++calls_of_function <= k_most_calls, "a bounded number of callbacks");
    return ++calls_ > k_patience || exhausted_;
  }

  static int copyin(int request, char* loc, std::uint64_t rem, int len, std::intptr_t tok) {
    Client& client = *reinterpret_cast<Client*>(tok);
    const bool is_uinfo = request == UWX_COPYIN_UINFO;
    check(is_uinfo || request == UWX_COPYIN_MSTACK || request == UWX_COPYIN_REG, "a request that there is");
    check(len == 8 || (is_uinfo && len == 4), "a size that there is");
    check(reinterpret_cast<std::uintptr_t>(loc) % static_cast<unsigned>(len) == 0, "an aligned place");
    check(request == UWX_COPYIN_REG || rem % static_cast<unsigned>(len) == 0, "an aligned address");
    if (client.gives_up()) return 0;
    const unsigned kind = client.byte();
    if (kind >= 0xf8) return static_cast<int>(kind) - 0xfc;
    std::array<std::uint8_t, 8> bytes;
    if (kind < 0xa0) {
      const std::uint64_t value = client.word();
      std::memcpy(bytes.data(), &value, sizeof value);
    } else {
      for (auto& b : bytes) b = static_cast<std::uint8_t>(client.byte());
    }
    std::memcpy(loc, bytes.data(), static_cast<std::size_t>(len));
    return len;
  }

  static int lookupip(int request, std::uint64_t, std::intptr_t tok, std::uint64_t** resultp) {
    Client& client = *reinterpret_cast<Client*>(tok);
    if (request == UWX_LKUP_FREE) return client.take_back(*resultp), 0;
    check((*resultp)[0] == UWX_KEY_VERSION && (*resultp)[1] == 3, "the version of the interface");
    if (client.gives_up()) return UWX_LKUP_NOTFOUND;
    return client.answer(request, resultp);
  }

  std::size_t calls_of_function = 0;
  std::size_t given = 0, taken_back = 0;

 private:
  static constexpr std::size_t k_pairs = 12, k_vectors = 4;
  using Vector = std::array<std::uint64_t, 2 * k_pairs + 2>;

  int answer(int request, std::uint64_t** resultp) {
    static constexpr std::array k_kinds{UWX_LKUP_UTABLE, UWX_LKUP_UTABLE,   UWX_LKUP_FDESC,
                                        UWX_LKUP_FDESC,  UWX_LKUP_UINFO,    UWX_LKUP_REMAP,
                                        UWX_LKUP_ERR,    UWX_LKUP_NOTFOUND, UWX_LKUP_SYMINFO};
    const unsigned choice = byte();
    const bool names = request != UWX_LKUP_LOOKUP && choice < 0xc0;
    const int kind = names           ? UWX_LKUP_SYMINFO
                     : choice < 0xf8 ? k_kinds[choice % k_kinds.size()]
                                     : static_cast<int>(choice) - 0xfc;
    if (kind == UWX_LKUP_NOTFOUND || kind == UWX_LKUP_ERR || kind < 0 || kind > 6) return kind;
    if (byte() >= 0xf8) return kind;  // and gives nothing
    Vector& vector = vectors_[given % k_vectors];
    write(kind, vector);
    *resultp = vector.data();
    ++given;
    return kind;
  }

  void write(int kind, Vector& vector) {
    std::size_t used = 0;
    const auto add = [&](std::uint64_t key, std::uint64_t value) {
      vector[used++] = key;
      vector[used++] = value;
    };
    if (kind == UWX_LKUP_UTABLE) {
      const std::uint64_t begin = word();
      add(UWX_KEY_TBASE, 0x10000);
      add(UWX_KEY_USTART, begin);
      add(UWX_KEY_UEND, byte() < 0xf0 ? begin + (byte() << (byte() % 24)) : word());
      if ((byte() & 1) != 0) add(UWX_KEY_UFLAGS, byte() % 4);
    }
    if (kind == UWX_LKUP_UINFO) add(UWX_KEY_UINFO, word());
    if (kind == UWX_LKUP_REMAP) add(UWX_KEY_NEWIP, word());
    for (std::size_t more = byte() % (k_pairs - 4); more > 0; --more) {
      const unsigned key = byte();
      if (kind == UWX_LKUP_FDESC && key < 0xc0) {
        const std::uint64_t id = key < 8 ? key : 0x100 + key % 34;
        add(key < 0x20 ? key % 4 : 2 | id << 4, disposition());
      } else {
        add(key % 28 == 0 ? 1 : key % 28, byte() < 0xc0 ? reinterpret_cast<std::uintptr_t>(text_.data()) : word());
      }
    }
    add(byte() < 0xfc ? 0 : 1, 0);
    vector.back() = vector[vector.size() - 2] = 0;
  }

  std::uint64_t disposition() {
    const std::uint64_t offset = word() & ~std::uint64_t{7};
    const unsigned kind = byte() % 9;
    if (kind == 4) return 4 | (0x100u + byte() % 36) << 4;
    if (kind == 7) return UWX_DISP_REGREL(0x100 + byte() % 36, offset);
    return kind == 8 ? word() : offset | kind;
  }

  void take_back(const std::uint64_t* vector) {
    ++taken_back;
    check(taken_back <= given, "given back what was given");
    bool is_ours = false;
    for (const Vector& v : vectors_) is_ours = is_ours || v.data() == vector;
    check(is_ours, "the vector that was given");
  }

  std::span<const std::uint8_t> answers_;
  bool begins_again_;
  std::size_t at_ = 0, calls_ = 0;
  bool exhausted_ = false;
  std::array<Vector, k_vectors> vectors_{};
  std::array<char, 64> text_{"a name"};
};

void check_status(int status) { check(status >= UWX_ERR_NOSYM && status <= UWX_ABI_FRAME, "a status that there is"); }

void ask(Client& client, uwx_env* env) {
  const auto expect = [&](int status) {
    check_status(status);
    check(client.given == client.taken_back, "given back before the function returns");
    client.calls_of_function = 0;
  };
  std::uint64_t words[2] = {};
  char *one = nullptr, *two = nullptr;
  int line = 0, context = 0;
  switch (client.byte() % 9) {
    case 0:
      return expect(uwx_get_reg(env, static_cast<int>(0x100 + client.byte() % 40), words));
    case 1:
      return expect(uwx_get_reg(env, static_cast<int>(client.byte() % 16), words));
    case 2:
      return expect(uwx_get_spill_loc(env, static_cast<int>(client.byte() % 2 * 0xfc + client.byte() % 40), words));
    case 3:
      expect(uwx_get_sym_info(env, &one, &two, words));
      break;
    case 4:
      expect(uwx_get_source_info(env, &one, &two, &line, &context));
      if (context != 0) expect(uwx_step_inline(env, context));
      break;
    case 5:
      expect(uwx_get_module_info(env, &one, words));
      break;
    case 6:
      return expect(uwx_get_funcstart(env, words));
    case 7:
      return expect(uwx_set_reg(env, static_cast<int>(0x100 + client.byte() % 40), client.word()));
    default:
      return;
  }
  for (const char* const text : {one, two})
    if (text) check(std::strlen(text) <= 1u << 16, "a string that ends");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  Client client(data, size);
  uwx_env* const env = uwx_init();
  if ((data[0] & 1) != 0) check(uwx_set_target(env, EM_AARCH64) == UWX_OK, "a CPU that is known");
  if ((data[0] & 3) == 3) check(uwx_set_remote(env, 1) == UWX_OK, "a byte order of it");
  if ((data[0] & 8) != 0) check(uwx_set_nofr(env) == UWX_OK, "registers left out");
  (void)uwx_register_callbacks(env, reinterpret_cast<std::intptr_t>(&client), &Client::copyin, &Client::lookupip);
  (void)uwx_init_context(env, client.word(), client.word(), 0, 0);
  for (int steps = 0; steps < 64; ++steps) {
    ask(client, env);
    std::uint64_t ip = 0, sp = 0, ip_then = 0, sp_then = 0;
    check(uwx_get_reg(env, UWX_REG_IP, &ip) == UWX_OK && uwx_get_reg(env, UWX_REG_SP, &sp) == UWX_OK, "IP and SP");
    const int status = uwx_step(env);
    client.calls_of_function = 0;
    check_status(status);
    check(client.given == client.taken_back, "given back before the step returns");
    check(uwx_get_reg(env, UWX_REG_IP, &ip_then) == UWX_OK && uwx_get_reg(env, UWX_REG_SP, &sp_then) == UWX_OK,
          "IP and SP of every frame");
    check(status == UWX_OK || (ip == ip_then && sp == sp_then), "a context that stays");
    check((uwx_get_abi_context_code(env) != 0) == (status == UWX_ABI_FRAME), "a code where there is a context frame");
    if (status == UWX_BOTTOM) break;
  }
  check(uwx_free(env) == UWX_OK, "freed");
  return 0;
}
