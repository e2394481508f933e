// The owner of a target whose answers are the bytes of the input, one after the other. Input: a byte, the callbacks
// that are null; a byte, bit 0: the answers begin again at their end, otherwise the owner then only fails. Checked:
// each call returns after a bounded number of callbacks, answers are put back once, names end, errors are negative.
#include <libunwind.h>

#include <array>
#include <cstring>

#include "tests/fuzz/fuzz_check.h"

using jitunwind::fuzz::check;

namespace {

constexpr std::size_t k_most_calls = 1u << 25;  // of one function of the interface
constexpr std::size_t k_patience = 50'000;      // of the owner, so that inputs are played quickly

class Owner {
 public:
  Owner(const std::uint8_t* data, std::size_t size) : answers_(data + 2, size - 2), begins_again_((data[1] & 1) != 0) {}
  static Owner& of(void* argument) { return *static_cast<Owner*>(argument); }

  /// Returns 0, or an error this once.
  int enter() {
    ++calls;
    check(++calls_of_function <= k_most_calls, "a bounded number of callbacks");
    const unsigned kind = byte();
    if (calls > k_patience || exhausted_) return -UNW_EUNSPEC;
    return kind < 0xf0 ? 0 : static_cast<int>(kind) - 0xfe;  // one is a positive mistake
  }
  unsigned byte() {
    if (at_ == answers_.size()) {
      exhausted_ = !begins_again_ || answers_.empty();
      at_ = 0;
    }
    return exhausted_ ? 0 : answers_[at_++];
  }
  /// Returns small numbers, addresses near each other, and any other number.
  unw_word_t word() {
    const unsigned kind = byte();
    if (kind < 0x60) return kind;
    if (kind < 0xd0) return 0x10000 + 8 * (kind + 256u * byte());
    unw_word_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return value;
  }

  void describe(unw_word_t ip, unw_proc_info_t* info) {
    std::memset(info, 0, sizeof *info);
    info->start_ip = ip - word();
    info->end_ip = info->start_ip + word();
    info->lsda = word();
    info->flags = byte() & 0x3f;
    info->format = static_cast<int>(byte() % 8) - 1;
    constexpr std::array sizes{static_cast<int>(sizeof(unw_dyn_proc_info_t)), 0, -1, 31};
    info->unwind_info_size = sizes[byte() % 8 < 5 ? 0 : byte() % sizes.size()];
    info->unwind_info = &described_;
    if (info->format == UNW_INFO_FORMAT_DYNAMIC) {
      described_.pi = {};
      described_.pi.regions = write_regions();
    } else {
      described_.rti.name_ptr = 0;
      described_.rti.segbase = word();
      described_.rti.table_len = word();
      described_.rti.table_data = word();
    }
  }

  std::size_t calls = 0, calls_of_function = 0;
  std::size_t found = 0, put_back = 0;

 private:
  static constexpr std::size_t k_regions = 4, k_ops = 6;
  struct Region {
    alignas(8) std::array<std::byte, sizeof(unw_dyn_region_info_t) + k_ops * sizeof(unw_dyn_op_t)> room;
    unw_dyn_region_info_t* get() { return reinterpret_cast<unw_dyn_region_info_t*>(room.data()); }
  };

  unw_dyn_region_info_t* write_regions() {
    const std::size_t count = byte() % (k_regions + 1);
    for (std::size_t i = 0; i < count; ++i) {
      unw_dyn_region_info_t* const region = regions_[i].get();
      // The chain ends, continues with the next region, or forms a circle.
      const std::size_t next = byte() % 8 == 0 ? byte() % k_regions : i + 1;
      region->next = next < count ? regions_[next].get() : nullptr;
      region->insn_count = static_cast<std::int8_t>(byte());
      region->op_count =
          byte() % 16 == 0 ? static_cast<std::uint32_t>(word()) : static_cast<std::uint32_t>(byte() % (k_ops + 1));
      for (std::size_t op = 0; op < k_ops; ++op)
        region->op[op] = _U_dyn_op(static_cast<unw_dyn_operation_t>(byte() % 10), 0, static_cast<std::int8_t>(byte()),
                                   static_cast<std::int16_t>(byte() % 40), word());
    }
    return count == 0 ? nullptr : regions_[0].get();
  }

  std::span<const std::uint8_t> answers_;
  std::size_t at_ = 0;
  bool begins_again_;
  bool exhausted_ = false;
  decltype(unw_dyn_info_t::u) described_{};
  std::array<Region, k_regions> regions_{};
};

unw_accessors_t accessors_without(unsigned null) {
  unw_accessors_t a{};
  if ((null & 1) == 0)
    a.find_proc_info = [](unw_addr_space_t, unw_word_t ip, unw_proc_info_t* info, int need, void* of) {
      Owner& owner = Owner::of(of);
      if (const int failed = owner.enter()) return failed;
      owner.describe(ip, info);
      owner.found += need != 0;
      return 0;
    };
  a.put_unwind_info = [](unw_addr_space_t, unw_proc_info_t*, void* of) { ++Owner::of(of).put_back; };
  if ((null & 2) == 0)
    a.get_dyn_info_list_addr = [](unw_addr_space_t, unw_word_t* list, void* of) {
      *list = Owner::of(of).word();
      return Owner::of(of).enter();
    };
  if ((null & 4) == 0)
    a.access_mem = [](unw_addr_space_t, unw_word_t at, unw_word_t* value, int write, void* of) {
      check(at % sizeof *value == 0, "aligned words");
      if (write == 0) *value = Owner::of(of).word();
      return Owner::of(of).enter();
    };
  a.access_reg = [](unw_addr_space_t, unw_regnum_t, unw_word_t* value, int write, void* of) {
    if (write == 0) *value = Owner::of(of).word();
    return Owner::of(of).enter();
  };
  if ((null & 8) == 0) a.resume = [](unw_addr_space_t, unw_cursor_t*, void* of) { return Owner::of(of).enter(); };
  if ((null & 16) == 0)
    a.get_proc_name = [](unw_addr_space_t, unw_word_t, char* buffer, std::size_t size, unw_word_t* offset, void* of) {
      std::memset(buffer, static_cast<int>(Owner::of(of).byte()), size);
      *offset = Owner::of(of).word();
      return Owner::of(of).enter();
    };
  if ((null & 32) == 0)
    a.get_elf_filename = [](unw_addr_space_t, unw_word_t, char* buffer, std::size_t size, unw_word_t*, void* of) {
      std::memset(buffer, 'f', size);
      return Owner::of(of).enter();
    };
  return a;
}

/// Calls all functions of the interface for a frame of such a target.
void ask_everything(unw_cursor_t& cursor, Owner& owner) {
  const auto call = [&](int returned) {
    owner.calls_of_function = 0;
    check(returned <= 1, "0, 1 or an error");
    return returned;
  };
  std::array<char, 24> text;
  unw_word_t value = 0;
  unw_proc_info_t info;
  unw_save_loc_t place;
  call(unw_get_proc_info(&cursor, &info));
  text.fill('?');
  call(unw_get_proc_name(&cursor, text.data(), 16, &value));
  check(std::memchr(text.data(), '\0', 16) != nullptr && text[16] == '?', "names end in their buffer");
  call(unw_get_elf_filename(&cursor, text.data(), 16, &value));
  check(std::memchr(text.data(), '\0', 16) != nullptr && text[16] == '?', "paths end in their buffer");
  for (int reg = -1; reg <= UNW_REG_LAST + 1; ++reg) {
    call(unw_get_reg(&cursor, reg, &value));
    call(unw_get_save_loc(&cursor, reg, &place));
  }
  call(unw_is_signal_frame(&cursor));
  call(unw_is_guess(&cursor));
  call(unw_is_plt_entry(&cursor));
  const auto apply = [](void* from, void* data, std::size_t, unw_word_t, unw_word_t) {
    unw_cursor_t copy = *static_cast<unw_cursor_t*>(from);
    (void)unw_apply_reg_state(&copy, data);
    return 1;  // no more of them
  };
  call(unw_reg_states_iterate(&cursor, apply, &cursor));
  call(unw_set_reg(&cursor, static_cast<int>(owner.byte() % 20), value));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  Owner owner(data, size);
  unw_accessors_t accessors = accessors_without(data[0]);
  const unw_addr_space_t space = unw_create_addr_space(&accessors, 0);
  check(space != nullptr, "a space");
  unw_cursor_t cursor;
  if (unw_init_remote(&cursor, space, &owner) == 0) {
    for (int frames = 0; frames < 32; ++frames) {
      ask_everything(cursor, owner);
      if (unw_step(&cursor) <= 0) break;
    }
    check(unw_resume(&cursor) <= 0, "resume: 0 or an error");
  }
  check(owner.found == owner.put_back, "what was found is put back once");
  unw_destroy_addr_space(space);
  return 0;
}
