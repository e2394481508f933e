// A good module whose bytes are changed: four functions that call each other, described and named, as a loader has
// mapped the module and as its file is. A stack is walked through it and named, as in a program, and addresses in it
// are looked up. Input: a byte, the changed copy (0 memory and file, 1 memory, 2 file, 3 file, which is also cut); a
// byte, the place of the innermost function; then changes of five bytes: part of the file, two for the offset,
// operation, value. Checked: nothing faults, everything ends, and without changes everything is right. The loaded
// segments, which a loader itself relies on, are not changed.
#include <jitunwind/jitunwind.h>
#include <libunwind.h>

#include <elf.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_check.h"

using namespace jitunwind;
using jitunwind::fuzz::check;

namespace {

constexpr std::size_t k_page = 4096;
constexpr std::size_t k_stack_words = 16;
constexpr std::size_t k_innermost_size = 9;  // bytes
constexpr std::size_t k_most_frames = 64;
constexpr std::array<const char*, 4> k_functions{"innermost", "by_frame_pointer", "by_stack_pointer", "outermost"};
constexpr std::array<std::size_t, 4> k_calls_return{4, 9, 10, 5};  // bytes from the beginning; the first one calls none

using Bytes = std::vector<char>;

template <class T>
T at(const Bytes& bytes, std::size_t offset) {
  T value;
  check(offset + sizeof value <= bytes.size(), "the good module is whole");
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// A part of the file.
struct Part {
  std::size_t begin, size;
};

/// The unchanged module.
class GoodModule {
 public:
  GoodModule() {
    std::ifstream in(GOOD_MODULE, std::ios::binary);
    file_.assign(std::istreambuf_iterator<char>(in), {});
    const auto header = at<Elf64_Ehdr>(file_, 0);
    parts_.push_back({0, sizeof header});
    parts_.push_back({header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr)});
    parts_.push_back({header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr)});
    for (std::size_t i = 0; i < header.e_phnum; ++i)
      segments_.push_back(at<Elf64_Phdr>(file_, header.e_phoff + i * sizeof(Elf64_Phdr)));
    for (std::size_t i = 1; i < header.e_shnum; ++i) {
      const auto section = at<Elf64_Shdr>(file_, header.e_shoff + i * sizeof(Elf64_Shdr));
      if (section.sh_type != SHT_NOBITS && section.sh_size != 0) parts_.push_back({section.sh_offset, section.sh_size});
      if (section.sh_type == SHT_NOTE) build_id_ = section.sh_offset + sizeof(Elf64_Nhdr) + sizeof "GNU";
      if (section.sh_type == SHT_SYMTAB) find_functions(header, section);
    }
    for (const Elf64_Phdr& segment : segments_)
      if (segment.p_type == PT_LOAD) size_ = std::max(size_, segment.p_vaddr + segment.p_memsz);
    check(build_id_ != 0 && functions_[0] != 0 && size_ != 0, "a module");
  }

  const Bytes& file() const { return file_; }
  std::span<const Part> parts() const { return parts_; }
  std::span<const Elf64_Phdr> segments() const { return segments_; }
  std::size_t size() const { return size_; }
  std::size_t build_id() const { return build_id_; }
  Addr function(std::size_t i) const { return functions_[i]; }

 private:
  void find_functions(const Elf64_Ehdr& header, const Elf64_Shdr& table) {
    const auto strings = at<Elf64_Shdr>(file_, header.e_shoff + table.sh_link * sizeof(Elf64_Shdr));
    for (std::size_t i = 0; i < table.sh_size / sizeof(Elf64_Sym); ++i) {
      const auto symbol = at<Elf64_Sym>(file_, table.sh_offset + i * sizeof(Elf64_Sym));
      const auto known = std::ranges::find(k_functions, std::string(&file_[strings.sh_offset + symbol.st_name]));
      if (known != k_functions.end())
        functions_[static_cast<std::size_t>(known - k_functions.begin())] = symbol.st_value;
    }
  }

  Bytes file_;
  std::vector<Part> parts_;
  std::vector<Elf64_Phdr> segments_;
  std::size_t size_ = 0, build_id_ = 0;
  std::array<Addr, k_functions.size()> functions_{};
};

/// Changes some bytes. They are few: most of them must be right for the others to be reached.
void change(Bytes& file, std::span<const Part> parts, std::span<const std::uint8_t, 5> by) {
  constexpr std::array<std::uint64_t, 12> k_numbers{
      0, 1, 2, 8, 0x7f, 0xff, 0x7fffffff, 0x80000000, 0xffff, 0x1000, 0xffffffff, ~std::uint64_t{0}};
  const Part& part = parts[by[0] % parts.size()];
  const std::size_t offset = part.begin + (by[1] + std::size_t{by[2]} * 256) % part.size;
  const auto put = [&](std::uint64_t number, std::size_t size) {
    std::memcpy(file.data() + offset, &number, std::min(size, file.size() - offset));
  };
  switch (by[3] % 6) {
    case 0:
      return put(by[4], 1);
    case 1:
      return put(static_cast<std::uint8_t>(file[offset]) ^ 1u << by[4] % 8, 1);
    case 2:
      return put(static_cast<std::uint8_t>(file[offset]) + by[4], 1);
    case 3:
      return put(k_numbers[by[4] % k_numbers.size()], 2);
    case 4:
      return put(k_numbers[by[4] % k_numbers.size()], 4);
    default:
      return put(k_numbers[by[4] % k_numbers.size()], 8);
  }
}

/// A changed module: mapped, in a file, and listed.
class Loaded {
 public:
  explicit Loaded(const GoodModule& good) : good_(good), size_((good.size() + k_page - 1) & ~(k_page - 1)) {
    void* const memory =
        ::mmap(nullptr, size_ + k_page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(memory != MAP_FAILED, "a mapping");
    memory_ = static_cast<std::byte*>(memory);
    ::mprotect(memory_ + size_, k_page, PROT_NONE);
    descriptor_ = ::memfd_create("module", 0);
    path_ = "/proc/self/fd/" + std::to_string(descriptor_);
  }

  Addr base() const { return reinterpret_cast<std::uintptr_t>(memory_); }

  void load(const Bytes& in_memory, const Bytes& in_file) {
    std::memset(memory_, 0, size_);
    for (const Elf64_Phdr& segment : good_.segments())
      if (segment.p_type == PT_LOAD)
        std::memcpy(memory_ + segment.p_vaddr, in_memory.data() + segment.p_offset, segment.p_filesz);
    check(::ftruncate(descriptor_, 0) == 0 &&
              ::pwrite(descriptor_, in_file.data(), in_file.size(), 0) == static_cast<ssize_t>(in_file.size()),
          "a file");
    const std::size_t headers = at<Elf64_Ehdr>(good_.file(), 0).e_phoff;
    segments_.assign(good_.segments().begin(), good_.segments().end());
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      const auto changed = at<Elf64_Phdr>(in_memory, headers + i * sizeof(Elf64_Phdr));
      if (segments_[i].p_type != PT_LOAD && changed.p_type != PT_LOAD) segments_[i] = changed;
    }
  }
  int list(unw_iterate_phdr_callback_t callback, void* data) const {
    dl_phdr_info info{};
    info.dlpi_addr = base();
    info.dlpi_name = path_.c_str();
    info.dlpi_phdr = segments_.data();
    info.dlpi_phnum = static_cast<Elf64_Half>(segments_.size());
    return callback(&info, sizeof info, data);
  }

 private:
  const GoodModule& good_;
  std::size_t size_;
  std::byte* memory_ = nullptr;
  int descriptor_ = -1;
  std::string path_;
  std::vector<Elf64_Phdr> segments_;
};

const GoodModule& good() {
  static const GoodModule module;
  return module;
}
Loaded& loaded() {
  static Loaded module(good());
  return module;
}
int list_it(unw_iterate_phdr_callback_t callback, void* data) { return loaded().list(callback, data); }

Addr address(std::size_t function, std::size_t offset) { return loaded().base() + good().function(function) + offset; }

/// The innermost function was called by the others in turn.
class Stack {
 public:
  explicit Stack(std::size_t offset) {
    words_[0] = address(1, k_calls_return[1]);  // SP of the innermost one
    words_[2] = 0x1234;                         // saved by the one with the frame pointer
    words_[3] = address(2, k_calls_return[2]);
    words_[7] = address(3, k_calls_return[3]);  // behind room of 16 bytes and a register
    check(unw_getcontext(&context) == 0, "a context");
    auto& registers = context.uc_mcontext.gregs;
    registers[REG_RIP] = static_cast<greg_t>(address(0, offset));
    registers[REG_RSP] = reinterpret_cast<greg_t>(words_.data());
    registers[REG_RBP] = reinterpret_cast<greg_t>(words_.data() + 2);
  }
  ucontext_t context;

 private:
  std::array<Addr, k_stack_words> words_{};
};

/// C++ walks use the dynamic linker's list.
Cursor cursor_in_listed_modules(const ucontext_t& context) {
  const Arch& arch = *host_arch();
  RegisterFile registers;
  const auto set = [&](RegNum reg, greg_t value) { registers.set(arch.column(reg), static_cast<Addr>(value)); };
  set(arch.pc, context.uc_mcontext.gregs[REG_RIP]);
  set(arch.sp, context.uc_mcontext.gregs[REG_RSP]);
  set(x86_64::rbp.dwarf(), context.uc_mcontext.gregs[REG_RBP]);
  return {local_space_of_listed_modules(), registers, Cursor::Top::interrupted};
}

void walk(const ucontext_t& context, bool is_good) {
  std::size_t frames = 0;
  Walk walk(cursor_in_listed_modules(context));
  for (const Frame& frame : walk) {
    check(frames < k_most_frames, "a walk ends");
    FrameRow row;
    std::array<char, 32> name{};
    const auto named = frame.raw_name(name);
    const Status has_row = frame.row(row);
    const auto procedure = frame.procedure();
    for (RegNum reg = 0; reg < 17; ++reg) (void)frame.get(reg);
    if (is_good) {
      check(named && frames < k_functions.size() && std::strcmp(name.data(), k_functions[frames]) == 0, "its name");
      check(has_row && procedure && procedure->range.begin == address(frames, 0), "its procedure");
    }
    ++frames;
  }
  if (is_good) check(frames == k_functions.size() && walk.stop_reason() == StopReason::outermost, "the whole stack");
}

void walk_as_libunwind(ucontext_t& context, bool is_good) {
  std::array<void*, k_most_frames> listed;
  const int count = unw_backtrace2(listed.data(), k_most_frames, &context, UNW_INIT_SIGNAL_FRAME);
  check(!is_good || count == static_cast<int>(k_functions.size()), "the whole stack");
  unw_cursor_t cursor;
  check(unw_init_local2(&cursor, &context, UNW_INIT_SIGNAL_FRAME) == 0, "a cursor");
  const auto states = [](void* left, void*, std::size_t, unw_word_t, unw_word_t) {
    return --*static_cast<unsigned*>(left) == 0 ? 1 : 0;
  };
  std::size_t frames = 0;
  do {
    check(frames++ < k_most_frames, "steps end");
    std::array<char, 32> text;
    unw_word_t offset = 0;
    unw_proc_info_t info;
    unsigned left = 1000;
    (void)unw_get_proc_info(&cursor, &info);
    (void)unw_get_proc_name(&cursor, text.data(), text.size(), &offset);
    (void)unw_get_elf_filename(&cursor, text.data(), text.size(), &offset);
    (void)unw_is_signal_frame(&cursor);
    (void)unw_is_plt_entry(&cursor);
    (void)unw_reg_states_iterate(&cursor, states, &left);
  } while (unw_step(&cursor) > 0);
}

void ask_addresses(bool is_good) {
  for (std::size_t i = 0; i < k_functions.size(); ++i) {
    std::array<char, 32> name{};
    unw_word_t offset = 0;
    unw_proc_info_t info;
    const Addr pc = address(i, k_calls_return[i] - 1);
    const int named = unw_get_proc_name_by_ip(unw_local_addr_space, pc, name.data(), name.size(), &offset, nullptr);
    const int told = unw_get_proc_info_by_ip(unw_local_addr_space, pc, &info, nullptr);
    (void)unw_get_elf_filename_by_ip(unw_local_addr_space, pc, name.data() + 31, 1, &offset, nullptr);
    if (is_good) check(named == 0 && std::strcmp(name.data(), k_functions[i]) == 0, "the name of an address");
    if (is_good) check(told == 0 && info.start_ip == address(i, 0), "the procedure of an address");
  }
}

/// Files are kept by build id: each input has another.
void renew_build_id(Bytes& file) {
  static std::uint64_t inputs = 0;
  ++inputs;
  std::memcpy(file.data() + good().build_id(), &inputs, sizeof inputs);
}

// A changed entry may lead to AddressSanitizer's own memory. That memory can be read, but not by instrumented code,
// which first reads shadow memory that does not exist there. Such inputs are abandoned.
sigjmp_buf left_input;
struct sigaction reports;

void leave_or_report(int, siginfo_t* info, void*) {
  constexpr Addr k_begin = 0x7fff8000, k_end = 0x10007fff8000;  // AddressSanitizerAlgorithm, "64-bit"
  const Addr at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (at >= k_begin && at < k_end) siglongjmp(left_input, 1);
  ::sigaction(SIGSEGV, &reports, nullptr);  // and again
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool k_has_address_sanitizer = true;
#elif defined(__has_feature)
constexpr bool k_has_address_sanitizer = __has_feature(address_sanitizer);
#else
constexpr bool k_has_address_sanitizer = false;
#endif

void watch_for_faults() {
  if (!k_has_address_sanitizer) return;
  struct sigaction action {};
  action.sa_sigaction = &leave_or_report;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGSEGV, &action, &reports);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static std::once_flag watches;
  std::call_once(watches, &watch_for_faults);
  unw_set_iterate_phdr_function(unw_local_addr_space, &list_it);
  const unsigned what = data[0] % 4;
  Bytes changed = good().file(), unchanged = good().file();
  renew_build_id(unchanged);
  std::memcpy(changed.data() + good().build_id(), unchanged.data() + good().build_id(), sizeof(std::uint64_t));
  std::span changes(data + 2, size - 2);
  const bool is_good = changes.size() < 5 && what != 3;
  for (; changes.size() >= 5; changes = changes.subspan(5)) change(changed, good().parts(), changes.first<5>());
  if (what == 3) changed.resize(changed.size() * data[1] / 256);
  loaded().load(what < 2 ? changed : unchanged, what == 1 ? unchanged : changed);
  if (sigsetjmp(left_input, 1) != 0) return 0;
  Stack stack(data[1] % k_innermost_size);
  walk(stack.context, is_good);
  walk_as_libunwind(stack.context, is_good);
  ask_addresses(is_good);
  return 0;
}
