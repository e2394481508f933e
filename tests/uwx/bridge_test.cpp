// Unwind Express and libunwind's accessors, each over the other: both walk one target, frame by frame.
#include <libunwind.h>
#include <uwx_libunwind.h>

#include <array>
#include <map>

#include "tests/support/jit_frame.h"
#include "tests/uwx/self_walks.h"
#include "tests/uwx/uwx_target.h"

namespace jitunwind::test {
namespace {

constexpr int k_rbp = UWX_REG_GR(6), k_rbx = UWX_REG_GR(3);

struct FrameSeen {
  std::uint64_t ip, sp, rbp, rbx;
  friend bool operator==(const FrameSeen&, const FrameSeen&) = default;
};
std::ostream& operator<<(std::ostream& out, const FrameSeen& f) {
  return out << std::hex << f.ip << " " << f.sp << " " << f.rbp << " " << f.rbx;
}

struct WalkSeen {
  std::vector<FrameSeen> frames;
  int last = 0;
};

WalkSeen by_uwx(uwx_env* env) {
  WalkSeen seen;
  do {
    std::array<std::uint64_t, 4> v{};
    const std::array<int, 4> ids{UWX_REG_IP, UWX_REG_SP, k_rbp, k_rbx};
    for (std::size_t i = 0; i < v.size(); ++i) EXPECT_EQ(uwx_get_reg(env, ids[i], &v[i]), UWX_OK) << i;
    seen.frames.push_back({v[0], v[1], v[2], v[3]});
  } while ((seen.last = uwx_step(env)) == UWX_OK && seen.frames.size() < 100);
  return seen;
}

WalkSeen by_libunwind(unw_accessors_t& accessors, void* argument) {
  WalkSeen seen;
  const unw_addr_space_t space = unw_create_addr_space(&accessors, 0);
  unw_cursor_t cursor;
  EXPECT_EQ(unw_init_remote(&cursor, space, argument), 0);
  do {
    std::array<unw_word_t, 4> v{};
    const std::array<int, 4> ids{UNW_REG_IP, UNW_REG_SP, UNW_X86_64_RBP, UNW_X86_64_RBX};
    for (std::size_t i = 0; i < v.size(); ++i) EXPECT_EQ(unw_get_reg(&cursor, ids[i], &v[i]), 0) << i;
    seen.frames.push_back({v[0], v[1], v[2], v[3]});
  } while ((seen.last = unw_step(&cursor)) > 0 && seen.frames.size() < 100);
  unw_destroy_addr_space(space);
  return seen;
}

/// A leaf that nothing knows, a frame that is described in place, and three frames of a table.
struct MixedTarget {
  static constexpr std::uint64_t k_leaf = 0x66'0000, k_jit = 0x77'0000, k_sp = ThreeFrames::k_stack - 0x100;

  MixedTarget() {
    target.put_word(k_sp, k_jit + 8);
    target.put_word(k_sp + 8 + 0x18, frames.ip_of(0));
    target.put_word(k_sp + 8 + 8, 0xbbb);
    target.answer = [this](const UwxTarget::Asked& asked) -> Given {
      if (asked.request != UWX_LKUP_LOOKUP)
        return {UWX_LKUP_SYMINFO, {UWX_KEY_FUNCSTART, asked.ip - 3}, {{UWX_KEY_FUNC, "name"}}};
      if (asked.ip == k_jit + 8)
        return {UWX_LKUP_FDESC,
                {UWX_KEY_FSIZE, 0x20, static_cast<std::uint64_t>(UWX_KEY_SPILL(k_rbx)), UWX_DISP_SPREL(8)}};
      return frames.look_up(asked);
    };
  }
  int begin() { return uwx_init_context(target.env, k_leaf, k_sp, 0, 0); }

  UwxTarget target;
  ThreeFrames frames{target};
};

// covers: UX39
TEST(UwxBridge, AccessorsOverCallbacks) {
  MixedTarget mixed;
  ASSERT_EQ(mixed.begin(), UWX_OK);
  unw_accessors_t accessors;
  uwx_get_accessors(&accessors);
  const WalkSeen libunwind = by_libunwind(accessors, mixed.target.env);
  EXPECT_EQ(libunwind.last, 0);
  EXPECT_EQ(mixed.target.held(), 0u);
  EXPECT_EQ(mixed.target.ip(), mixed.k_leaf) << "the environment's own context stays";
  const WalkSeen uwx = by_uwx(mixed.target.env);
  EXPECT_EQ(uwx.last, UWX_BOTTOM);
  ASSERT_EQ(uwx.frames.size(), 5u);
  EXPECT_EQ(uwx.frames[2].rbx, 0xbbbu);
  EXPECT_EQ(libunwind.frames, uwx.frames);
}

// covers: UX39
TEST(UwxBridge, AccessorsHandErrorsAndNamesOn) {
  MixedTarget mixed;
  ASSERT_EQ(mixed.begin(), UWX_OK);
  unw_accessors_t accessors;
  uwx_get_accessors(&accessors);
  const unw_addr_space_t space = unw_create_addr_space(&accessors, 0);
  unw_cursor_t cursor;
  ASSERT_EQ(unw_init_remote(&cursor, space, mixed.target.env), 0);
  char name[32];
  unw_word_t offset = 0;
  EXPECT_EQ(unw_get_proc_name(&cursor, name, sizeof name, &offset), 0);
  EXPECT_STREQ(name, "name");
  EXPECT_EQ(offset, 3u);
  unw_proc_info_t info;
  ASSERT_GT(unw_step(&cursor), 0);
  ASSERT_GT(unw_step(&cursor), 0);
  ASSERT_EQ(unw_get_proc_info(&cursor, &info), 0);
  EXPECT_EQ(info.start_ip, mixed.frames.start_of(0));
  EXPECT_EQ(info.end_ip, mixed.frames.start_of(0) + ThreeFrames::k_size);
  mixed.target.answer = [](const UwxTarget::Asked&) { return Given{UWX_LKUP_ERR}; };
  EXPECT_EQ(unw_step(&cursor), -UNW_EUNSPEC);
  unw_destroy_addr_space(space);
}

/// A target of libunwind's: words, registers, and procedures in the formats of find_proc_info.
struct OwnedTarget {
  std::map<unw_word_t, unw_word_t> words;
  std::map<int, unw_word_t> registers;
  std::map<unw_word_t, unw_proc_info_t> procedures;  ///< by their start
  unsigned found = 0, put_back = 0;

  static OwnedTarget& of(void* argument) { return *static_cast<OwnedTarget*>(argument); }
  static int find(unw_addr_space_t, unw_word_t ip, unw_proc_info_t* info, int need, void* argument) {
    OwnedTarget& self = of(argument);
    for (const auto& [start, known] : self.procedures) {
      if (ip < known.start_ip || ip >= known.end_ip) continue;
      *info = known;
      self.found += need != 0;
      return 0;
    }
    return -UNW_ENOINFO;
  }
  static void put(unw_addr_space_t, unw_proc_info_t*, void* argument) { ++of(argument).put_back; }
  static int memory(unw_addr_space_t, unw_word_t at, unw_word_t* value, int write, void* argument) {
    EXPECT_EQ(at % 8, 0u);
    const auto known = of(argument).words.find(at);
    if (write || known == of(argument).words.end()) return -UNW_EINVAL;
    *value = known->second;
    return 0;
  }
  static int reg(unw_addr_space_t, unw_regnum_t number, unw_word_t* value, int write, void* argument) {
    const auto known = of(argument).registers.find(number);
    if (write || known == of(argument).registers.end()) return -UNW_EBADREG;
    *value = known->second;
    return 0;
  }
  static int name(unw_addr_space_t, unw_word_t, char* buffer, size_t size, unw_word_t* offset, void*) {
    std::snprintf(buffer, size, "owned");
    *offset = 5;
    return 0;
  }
  unw_accessors_t accessors() {
    unw_accessors_t a{};
    a.find_proc_info = &find;
    a.put_unwind_info = &put;
    a.access_mem = &memory;
    a.access_reg = &reg;
    a.get_proc_name = &name;
    return a;
  }
};

/// The callee `push %rbp; mov %rsp,%rbp; push %rbx` is described by directives, its caller by a table in the target;
/// there are no more callers.
struct TwoFormats {
  static constexpr unw_word_t k_code = 0x40'0000, k_stack = 0x7fff'0000, k_section = 0x50'0000, k_pairs = 0x51'0000;

  TwoFormats() {
    region.op[0] = jitunwind_make_dyn_op(UNW_DYN_ADD, _U_QP_TRUE, -1, UNW_X86_64_RSP, static_cast<unw_word_t>(-8));
    region.op[1] = jitunwind_make_dyn_op(UNW_DYN_SPILL_SP_REL, _U_QP_TRUE, -1, UNW_X86_64_RBP, 0);
    region.op[2] = jitunwind_make_dyn_op(UNW_DYN_SAVE_REG, _U_QP_TRUE, -1, UNW_X86_64_RSP, UNW_X86_64_RBP);
    region.op[3] = jitunwind_make_dyn_op(UNW_DYN_STOP, _U_QP_TRUE, 0, 0, 0);
    described.regions = reinterpret_cast<unw_dyn_region_info_t*>(&region);
    unw_proc_info_t& first = target.procedures[k_code];
    first.start_ip = k_code;
    first.end_ip = k_code + 0x40;
    first.format = UNW_INFO_FORMAT_DYNAMIC;
    first.unwind_info = &described;
    first.unwind_info_size = sizeof described;

    CfiSection section(k_section);
    const Addr cie = section.cie({});
    const Addr fde = section.fde(cie, k_code + 0x1000, 0x40, Bytes{0x0c, 7, 32});
    section.data().fill(64, 0);
    put(k_section, section.data());
    put(k_pairs, Bytes().u32(k_code + 0x1000 - k_section).u32(fde - k_section));
    table.segbase = k_section;
    table.table_len = 1;
    table.table_data = k_pairs;
    unw_proc_info_t& second = target.procedures[k_code + 0x1000];
    second.start_ip = k_code + 0x1000;
    second.end_ip = k_code + 0x1040;
    second.format = UNW_INFO_FORMAT_REMOTE_TABLE;
    second.unwind_info = &table;
    second.unwind_info_size = sizeof table;

    target.words[k_stack] = 0xb9;
    target.words[k_stack + 8] = k_code + 0x1020;
    target.words[k_stack + 16 + 24] = 0;
    target.registers = {
        {UNW_X86_64_RIP, k_code + 0x20}, {UNW_X86_64_RSP, k_stack}, {UNW_X86_64_RBP, k_stack}, {UNW_X86_64_RBX, 0xb3}};
  }
  void put(unw_word_t at, const Bytes& bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      unw_word_t& word = target.words[(at + i) & ~unw_word_t{7}];
      word |= std::to_integer<unw_word_t>(bytes.vector()[i]) << 8 * ((at + i) % 8);
    }
  }

  struct {
    unw_dyn_region_info_t* next = nullptr;
    std::int32_t insn_count = 0x40;
    std::uint32_t op_count = 4;
    unw_dyn_op_t op[4]{};
  } region;
  unw_dyn_proc_info_t described{};
  unw_dyn_remote_table_info_t table{};
  OwnedTarget target;
};

struct OverAccessors {
  OverAccessors(const unw_accessors_t& accessors, void* argument, uwx_env* of = uwx_init())
      : env(of), info(uwx_accessor_init_info(env, nullptr, &accessors, argument)) {
    EXPECT_EQ(uwx_register_callbacks(env, reinterpret_cast<std::intptr_t>(info), &uwx_accessor_copyin,
                                     &uwx_accessor_lookupip),
              UWX_OK);
  }
  ~OverAccessors() {
    EXPECT_EQ(uwx_accessor_free_info(info), UWX_OK);
    EXPECT_EQ(uwx_free(env), UWX_OK);
  }
  OverAccessors(const OverAccessors&) = delete;
  OverAccessors& operator=(const OverAccessors&) = delete;
  uwx_env* env;
  uwx_accessor_info* info;
};

// covers: UX39
TEST(UwxBridge, CallbacksOverAccessors) {
  TwoFormats two;
  unw_accessors_t accessors = two.target.accessors();
  const WalkSeen libunwind = by_libunwind(accessors, &two.target);
  EXPECT_EQ(libunwind.last, 0);
  ASSERT_EQ(libunwind.frames.size(), 2u);
  EXPECT_EQ(libunwind.frames[1].ip, TwoFormats::k_code + 0x1020);
  const OverAccessors over(accessors, &two.target);
  ASSERT_EQ(uwx_accessor_init_context(over.env, over.info), UWX_OK);
  const WalkSeen uwx = by_uwx(over.env);
  EXPECT_EQ(uwx.last, UWX_BOTTOM);
  EXPECT_EQ(uwx.frames, libunwind.frames);
  EXPECT_EQ(two.target.found, two.target.put_back);
  EXPECT_GT(two.target.found, 2u);
  char* name = nullptr;
  std::uint64_t offset = 0;
  EXPECT_EQ(uwx_get_sym_info(over.env, nullptr, &name, &offset), UWX_OK);
  EXPECT_STREQ(name, "owned");
  EXPECT_EQ(uwx_get_module_info(over.env, nullptr, nullptr), UWX_ERR_NOSYM);
}

/// Accessors give words in this machine's byte order, copies have the target's, which is that of the environment. The
/// target is AArch64; its first frame is stp x29, x30, [sp, #-32]!, and its second one is the last.
// covers: UX39
TEST(UwxBridge, CallbacksOverAccessorsOfAnotherCpuInEachByteOrder) {
  constexpr int k_x19 = 19, k_x29 = 29, k_x30 = 30, k_sp = 31, k_pc = 32;  // <libunwind-aarch64.h>
  for (const bool big : {false, true}) {
    TwoFormats two;
    two.region.op[0] = jitunwind_make_dyn_op(UNW_DYN_ADD, _U_QP_TRUE, -1, k_sp, static_cast<unw_word_t>(-32));
    two.region.op[1] = jitunwind_make_dyn_op(UNW_DYN_SPILL_SP_REL, _U_QP_TRUE, -1, k_x29, 0);
    two.region.op[2] = jitunwind_make_dyn_op(UNW_DYN_SPILL_SP_REL, _U_QP_TRUE, -1, k_x30, 8);
    two.target.words = {{TwoFormats::k_stack, 0x2900}, {TwoFormats::k_stack + 8, TwoFormats::k_code + 0x20}};
    two.target.words.insert({{TwoFormats::k_stack + 32, 0x2901}, {TwoFormats::k_stack + 40, 0}});
    two.target.registers = {{k_pc, TwoFormats::k_code + 0x20}, {k_sp, TwoFormats::k_stack}, {k_x19, 0x1122'3344}};
    uwx_env* const env = uwx_init();
    ASSERT_EQ(uwx_set_target(env, EM_AARCH64), UWX_OK);
    ASSERT_EQ(uwx_set_remote(env, big), UWX_OK);
    const OverAccessors over(two.target.accessors(), &two.target, env);
    ASSERT_EQ(uwx_accessor_init_context(over.env, over.info), UWX_OK);
    const auto expect = [&](int id, std::uint64_t wanted) {
      std::uint64_t value = 0;
      EXPECT_EQ(uwx_get_reg(over.env, id, &value), UWX_OK) << id;
      EXPECT_EQ(value, wanted) << id << (big ? " big" : " little");
    };
    expect(UWX_REG_GR(k_x19), 0x1122'3344);
    ASSERT_EQ(uwx_step(over.env), UWX_OK);
    expect(UWX_REG_IP, TwoFormats::k_code + 0x20);
    expect(UWX_REG_SP, TwoFormats::k_stack + 32);
    expect(UWX_REG_GR(k_x29), 0x2900);
    EXPECT_EQ(uwx_step(over.env), UWX_BOTTOM);
    EXPECT_EQ(two.target.found, two.target.put_back);
  }
}

/// Each one reads the entry that the other lends.
// covers: UX39
TEST(UwxBridge, EachOverTheOther) {
  MixedTarget mixed;
  ASSERT_EQ(mixed.begin(), UWX_OK);
  unw_accessors_t accessors;
  uwx_get_accessors(&accessors);
  const OverAccessors over(accessors, mixed.target.env);
  ASSERT_EQ(uwx_accessor_init_context(over.env, over.info), UWX_OK);
  const WalkSeen twice = by_uwx(over.env);
  const WalkSeen once = by_uwx(mixed.target.env);
  EXPECT_EQ(twice.last, UWX_BOTTOM);
  ASSERT_EQ(once.frames.size(), 5u);
  EXPECT_EQ(twice.frames, once.frames);
}

/// libunwind's accessors for this process, with a context of this thread as the token.
// covers: UX39
TEST(UwxBridge, ThisProcessThroughItsOwnAccessors) {
  const JitFrame frame;
  (void)frame(
      [](void*) -> void* {
        unw_context_t context;
        unw_getcontext(&context);
        ListedFrames by_local, by_bridge;
        unw_cursor_t cursor;
        EXPECT_EQ(unw_init_local(&cursor, &context), 0);
        do {
          unw_word_t ip = 0, sp = 0;
          unw_get_reg(&cursor, UNW_REG_IP, &ip);
          unw_get_reg(&cursor, UNW_REG_SP, &sp);
          by_local.add(ip, sp);
        } while (unw_step(&cursor) > 0);
        const OverAccessors over(*unw_get_accessors(unw_local_addr_space), &context);
        EXPECT_EQ(uwx_accessor_init_context(over.env, over.info), UWX_OK);
        int status = UWX_OK;
        do {
          std::uint64_t ip = 0, sp = 0;
          uwx_get_reg(over.env, UWX_REG_IP, &ip);
          uwx_get_reg(over.env, UWX_REG_SP, &sp);
          by_bridge.add(ip, sp);
        } while ((status = uwx_step(over.env)) == UWX_OK);
        EXPECT_EQ(status, UWX_BOTTOM);
        EXPECT_GT(by_local.count, 5u);
        expect_same(by_local, by_bridge);
        return nullptr;
      },
      nullptr);
}

// covers: UX39
TEST(UwxBridge, NeedsWhatItIsOver) {
  unw_accessors_t none{};
  EXPECT_EQ(uwx_accessor_init_info(nullptr, nullptr, &none, nullptr), nullptr);
  const OverAccessors over(none, nullptr);
  EXPECT_EQ(uwx_accessor_init_info(over.env, nullptr, nullptr, nullptr), nullptr);
  EXPECT_EQ(uwx_accessor_init_context(nullptr, over.info), UWX_ERR_NOENV);
  EXPECT_EQ(uwx_accessor_init_context(over.env, over.info), UWX_ERR_COPYIN_REG);
  EXPECT_EQ(uwx_accessor_init_context(over.env, nullptr), UWX_ERR_COPYIN_REG);
  EXPECT_EQ(uwx_accessor_free_info(nullptr), UWX_OK);
  ASSERT_EQ(uwx_init_context(over.env, 0x1000, 0x2000, 0, 0), UWX_OK);
  EXPECT_EQ(uwx_step(over.env), UWX_ERR_COPYIN_MSTK) << "a leaf without a stack";
}

}  // namespace
}  // namespace jitunwind::test
