// A C program that calls any functions of the interface in any order: with handles that are good, freed, of another
// kind or none, with structures of wrong sizes, and with any numbers and texts. Input: a byte for the function, then
// its arguments. The library is one that checks handles. Checked: each call returns, with an existing status; an error
// has a code, a sentence and an end; all registrations are gone in the end.
//
// Mistakes that no library can see are left out: arrays have their stated length, memory is as large as it must be,
// registered code is not this program's, types are types, frames of this program get no other registers, and nothing is
// resumed.
#include <fcntl.h>
#include <jitunwind/c.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <iterator>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "tests/fuzz/fuzz_check.h"

using jitunwind::fuzz::check;

namespace {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool is_empty() const { return at_ >= size_; }
  unsigned byte() { return at_ < size_ ? data_[at_++] : 0; }
  std::size_t below(std::size_t count) { return byte() % count; }
  /// Returns a small number, one near the ends of arrays, or any other.
  std::uint64_t word() {
    const unsigned kind = byte();
    if (kind < 0x90) return kind;
    if (kind < 0xd0) return 0 - std::uint64_t{kind - 0x8f};
    if (kind < 0xe0) return std::uint64_t{1} << byte() % 64;
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return value;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

/// No size_t that is passed is greater, so no array is longer.
constexpr std::size_t k_most_items = 8;
constexpr std::size_t k_most_size = std::size_t{1} << 16;  // of a structure

/// Structures of any size, one behind the other, and code that is never run.
alignas(16) std::array<unsigned char, k_most_items * k_most_size> structures;
alignas(16) std::array<unsigned char, 4096> code_bytes;
std::array<char, 1 << 17> endless;

template <class T>
inline constexpr std::size_t k_handles = 4;
template <class T>
std::array<T*, k_handles<T>> handles{};
/// Freed handles, as long as they are remembered.
template <class T>
std::array<T*, k_handles<T>> gone{};

/// Memory that was never a handle: zeros, ones, and a cursor's copy with another beginning.
std::array<ju_cursor, 3> no_handles;
struct Cursor {
  ju_cursor cursor;
  bool is_begun = false;
  bool is_local = false;
};
std::array<Cursor, 4> cursors;

int nowhere = -1;

void* any_handle(Input& in) {
  switch (in.below(9)) {
    case 0:
      return handles<ju_builder>[in.below(4)];
    case 1:
      return handles<ju_description>[in.below(4)];
    case 2:
      return handles<ju_registration>[in.below(4)];
    case 3:
      return handles<ju_batch>[in.below(4)];
    case 4:
      return handles<ju_object>[in.below(4)];
    case 5:
      return handles<ju_target>[in.below(4)];
    case 6:
      return handles<ju_code_segments>[in.below(4)];
    case 7:
      return &no_handles[in.below(no_handles.size())];
    default:
      return reinterpret_cast<char*>(&no_handles[1]) + in.below(8);
  }
}

template <class T>
T* handle(Input& in) {
  const unsigned kind = in.byte();
  if (kind < 0xc0) return handles<T>[kind % k_handles<T>];
  if (kind < 0xe0) return gone<T>[kind % k_handles<T>];
  return kind < 0xf8 ? static_cast<T*>(any_handle(in)) : nullptr;
}

const char* text(Input& in) {
  static constexpr const char* k_texts[] = {"",
                                            "name",
                                            "cfa=rsp+8 ra=[cfa-8]",
                                            "cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]",
                                            "cfa=[rbp-8] rbx=[cfa-24] ra=[cfa-8]",
                                            "cfa=[expr",
                                            "rbx",
                                            "/nonexistent",
                                            "/dev/null",
                                            "/proc/self/exe",
                                            "1000-2000 r-xp 00000000 00:00 0\n"};
  const std::size_t which = in.below(std::size(k_texts) + 2);
  if (which < std::size(k_texts)) return k_texts[which];
  return which == std::size(k_texts) ? nullptr : endless.data();
}

ju_reg any_reg(Input& in) {
  const unsigned kind = in.byte();
  if (kind < 0xc0) return ju_register_number(JU_CPU_HOST, static_cast<std::uint16_t>(kind % 40));
  if (kind < 0xe0) return ju_register_number(JU_CPU_AARCH64, static_cast<std::uint16_t>(kind % 40));
  return static_cast<ju_reg>(in.word());
}

ju_range code_range(Input& in) {
  const auto code = reinterpret_cast<std::uintptr_t>(code_bytes.data());
  const unsigned kind = in.byte();
  const std::uint64_t begin = kind < 0xe0 ? code + 16 * (kind % 32) : in.byte();
  return {begin, begin + 16 * in.below(32)};
}

/// Returns a structure's size: its own, or a wrong one. All elements of an array have one size.
template <class T>
std::size_t size_of(Input& in) {
  const unsigned kind = in.byte();
  if (kind < 0xd0) return sizeof(T);
  return kind < 0xe8 ? sizeof(T) + kind - 0xd8 : kind < 0xf0 ? in.word() : in.word() % k_most_size;
}

void fill(ju_code& code, Input& in) {
  const ju_range range = code_range(in);
  code = {sizeof code, range.begin, range.end - range.begin, text(in), in.word(), in.word(), nullptr};
}
void fill(ju_object_code& object, Input& in) {
  static std::array<ju_range, k_most_items> ranges;
  static std::array<ju_function, k_most_items> functions;
  for (ju_range& range : ranges) range = code_range(in);
  for (ju_function& function : functions) {
    const ju_range range = code_range(in);
    function = {range.begin, range.end - range.begin, text(in)};
  }
  for (auto& byte : code_bytes) byte = static_cast<unsigned char>(in.byte());
  object = {sizeof object,
            in.byte() < 0xf0 ? ranges.data() : nullptr,
            in.below(k_most_items),
            in.byte() < 0x80 ? ju_range{} : code_range(in),
            in.byte() < 0xf0 ? functions.data() : nullptr,
            in.below(k_most_items)};
  const auto code = reinterpret_cast<std::uintptr_t>(code_bytes.data());
  if (object.eh_frame.begin < code) object.eh_frame = {};  // it is read
}
/// Segments are small, and code is never as large as one.
void fill(ju_code_options& options, Input& in) { options = {sizeof options, 1, in.below(8), in.below(2) != 0}; }
void fill(ju_folders& folders, Input& in) {
  static std::array<ju_mapped_file, k_most_items> files;
  for (ju_mapped_file& file : files) file = {in.word(), text(in)};
  folders = {sizeof folders, text(in), text(in), in.byte() < 0xf0 ? files.data() : nullptr, in.below(k_most_items)};
}
void fill(ju_sample& sample, Input& in) {
  static std::array<ju_reg_value, k_most_items> registers;
  for (ju_reg_value& one : registers) one = {any_reg(in), in.word()};
  sample = {sizeof sample,
            in.byte() < 0xf0 ? JU_CPU_HOST : static_cast<ju_cpu>(in.word() & 0x7fffffff),
            in.byte() < 0xf0 ? registers.data() : nullptr,
            in.below(k_most_items),
            in.word(),
            in.byte() < 0xf0 ? code_bytes.data() : nullptr,
            16 * in.below(32),
            text(in),
            static_cast<std::int32_t>(in.word()),
            static_cast<std::int32_t>(in.word())};
}
template <class T>
void fill(T& out, Input&) {
  out = T{};
}

/// Makes k_most_items structures, at the distance that the first one's size says.
template <class T>
T* array_of(Input& in) {
  if (in.byte() >= 0xf8) return nullptr;
  if constexpr (requires(T t) { t.struct_size; }) {
    const std::size_t size = size_of<T>(in);
    const std::size_t apart = size >= sizeof(T) && size < k_most_size && size % alignof(T) == 0 ? size : sizeof(T);
    for (std::size_t i = 0; i < k_most_items; ++i) {
      T one;
      fill(one, in);
      one.struct_size = size;
      std::memset(structures.data() + i * apart, 0, apart);
      std::memcpy(structures.data() + i * apart, &one, sizeof one);
    }
  }
  return reinterpret_cast<T*>(structures.data());
}

int see_frame(const ju_cursor* cursor, void* left) {
  std::array<char, 64> name;
  (void)ju_frame_pc(cursor);
  (void)ju_frame_name(cursor, name.data(), name.size(), nullptr);
  (void)ju_frame_user(cursor);
  return --*static_cast<int*>(left) <= 0 ? 1 : 0;
}
void let_pass(const ju_passed_frame*, ju_decision*, void*) {}

/// Makes an argument of the call by its type.
template <class T>
T argument(Input& in) {
  static int frames_left;
  if constexpr (std::is_same_v<T, ju_on_frame>) {
    return in.byte() < 0xf0 ? &see_frame : nullptr;
  } else if constexpr (std::is_same_v<T, ju_frame_handler>) {
    return in.byte() < 0xf0 ? &let_pass : nullptr;
  } else if constexpr (std::is_pointer_v<T> && std::is_function_v<std::remove_pointer_t<T>>) {
    return nullptr;
  } else if constexpr (std::is_same_v<T, const char*>) {
    return text(in);
  } else if constexpr (std::is_same_v<T, void*>) {
    frames_left = static_cast<int>(in.below(8));
    return &frames_left;
  } else if constexpr (std::is_same_v<T, const ju_description* const*>) {
    static std::array<const ju_description*, k_most_items> all;
    for (const ju_description*& one : all) one = handle<ju_description>(in);
    return in.byte() < 0xf0 ? all.data() : nullptr;
  } else if constexpr (std::is_same_v<T, const ju_source_line*>) {
    static std::array<ju_source_line, k_most_items> lines;
    for (ju_source_line& line : lines) line = {in.word(), text(in), in.byte()};
    return in.byte() < 0xf0 ? lines.data() : nullptr;
  } else if constexpr (std::is_same_v<T, const void* const*>) {
    static std::array<const void*, k_most_items> types;
    for (const void*& type : types) type = in.byte() < 0x80 ? &typeid(int) : nullptr;
    return in.byte() < 0xf0 ? types.data() : nullptr;
  } else if constexpr (std::is_same_v<T, const void*>) {
    // Returns a ucontext_t that was captured, or one of zeros; a type.
    alignas(16) static std::array<unsigned char, 2048> context;
    context.fill(0);
    if (in.byte() < 0x80) (void)jitunwind_capture_context(context.data());
    return in.byte() < 0xf0 ? context.data() : nullptr;
  } else if constexpr (std::is_pointer_v<T>) {
    return array_of<std::remove_cv_t<std::remove_pointer_t<T>>>(in);
  } else if constexpr (std::is_same_v<T, std::size_t>) {
    return in.below(k_most_items);
  } else if constexpr (std::is_same_v<T, ju_instruction>) {
    return {static_cast<std::int64_t>(in.word()), static_cast<std::int64_t>(in.word())};
  } else if constexpr (std::is_same_v<T, ju_reg>) {
    return any_reg(in);
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(in.word() & 0x7fffffff);  // what their _ANY has room for
  } else {
    return static_cast<T>(in.word());
  }
}

void check_answer(const char* function, ju_status status, const ju_error* error) {
  check(status == JU_UNSPECIFIED || std::string_view(ju_status_name(status)) != "unspecified", function);
  if (!error || status == JU_OK || status == JU_END || status == JU_BAD_STRUCT_SIZE) return;
  check(error->code == status, function);
  check(error->text[0] != '\0' && std::memchr(error->text, '\0', sizeof error->text) != nullptr, function);
  check(std::memchr(error->place, '\0', sizeof error->place) != nullptr && error->remedy != nullptr, function);
}

template <class T>
void forget(T* freed) {
  for (T*& one : handles<T>)
    if (one == freed) one = nullptr;
  for (std::size_t i = gone<T>.size() - 1; i > 0; --i) gone<T>[i] = gone<T>[i - 1];
  gone<T>[0] = freed;
}

/// Frees a handle to make room for another one. Freeing a batch or an object cannot be refused: no handler interrupts.
void free_one(ju_builder* one) { check(ju_builder_free(one) == JU_OK, "free"); }
void free_one(ju_description* one) { check(ju_description_free(one) == JU_OK, "free"); }
void free_one(ju_registration* one) { check(ju_cancel(one, nullptr) == JU_OK, "free"); }
void free_one(ju_batch* one) { check(ju_batch_free(one, nullptr) == JU_OK, "free"); }
void free_one(ju_object* one) { check(ju_object_cancel(one, nullptr) == JU_OK, "free"); }
void free_one(ju_target* one) { check(ju_target_free(one) == JU_OK, "free"); }
void free_one(ju_code_segments* one) { check(ju_code_free(one) == JU_OK, "free"); }

template <class T>
void take(T* made, Input& in) {
  T*& place = handles<T>[in.below(k_handles<T>)];
  T* const before = std::exchange(place, made);
  if (!before) return;
  free_one(before);
  forget(before);
}

/// Calls with a cursor, besides these arguments.
template <class Call>
void call_with_cursor(Input& in, Call call, bool is_beginning, bool is_of_target) {
  const unsigned kind = in.byte();
  if (kind >= 0xf0) {
    (void)call(kind < 0xf8 ? static_cast<ju_cursor*>(any_handle(in)) : nullptr);
    return;
  }
  Cursor& at = cursors[kind % cursors.size()];
  if (!is_beginning && !at.is_begun) std::memset(&at.cursor, static_cast<int>(kind), sizeof at.cursor);
  const bool good = call(&at.cursor);
  if (is_beginning && good) at.is_begun = true, at.is_local = !is_of_target;
}

template <auto function>
struct Call;
template <class Result, class... Taken, Result (*function)(Taken...)>
struct Call<function> {
  static void with(const char* name, Input& in) {
    const std::string_view of = name;
    if constexpr ((is_cursor<Taken> || ...)) {
      const bool is_beginning = of == "ju_cursor_here" || of == "ju_cursor_at" || of == "ju_target_cursor";
      const bool changes = of == "ju_frame_set_reg" || of == "ju_resume";
      call_with_cursor(
          in,
          [&](ju_cursor* cursor) {
            for (const Cursor& one : cursors)
              if (changes && &one.cursor == cursor && one.is_local) return false;
            return made(name, in, cursor);
          },
          is_beginning, of == "ju_target_cursor");
    } else {
      (void)made(name, in, nullptr);
    }
  }

 private:
  template <class T>
  static constexpr bool is_cursor = std::is_same_v<std::remove_cv_t<std::remove_pointer_t<T>>, ju_cursor>;
  template <class T>
  static constexpr bool is_handle =
      std::is_same_v<T, ju_builder> || std::is_same_v<T, ju_description> || std::is_same_v<T, ju_registration> ||
      std::is_same_v<T, ju_batch> || std::is_same_v<T, ju_object> || std::is_same_v<T, ju_target> ||
      std::is_same_v<T, ju_code_segments>;

  /// Makes one argument; `said` gets the place of the call's error, `out` the place for a handle.
  struct Place {
    ju_cursor* cursor;
    const ju_error* said = nullptr;
    void* out = nullptr;
  };
  template <class T>
  static T drawn(Input& in, Place& place) {
    if constexpr (is_cursor<T>) {
      return place.cursor;
    } else if constexpr (std::is_pointer_v<T>) {
      using Pointee = std::remove_cv_t<std::remove_pointer_t<T>>;
      if constexpr (is_handle<Pointee>) {
        return handle<Pointee>(in);
      } else if constexpr (std::is_same_v<Pointee, ju_error>) {
        static ju_error error;
        ju_error_init(&error);
        const unsigned kind = in.byte();
        if (kind >= 0xe0 && kind < 0xf0) error.struct_size = in.word();
        place.said = kind < 0xe0 ? &error : nullptr;
        return kind < 0xf0 ? &error : nullptr;
      } else if constexpr (std::is_pointer_v<Pointee> && is_handle<std::remove_pointer_t<Pointee>> &&
                           !std::is_const_v<std::remove_pointer_t<Pointee>>) {
        static Pointee written;
        written = nullptr;
        place.out = &written;
        if (in.byte() < 0xf8) return &written;
        return nullptr;
      } else {
        return argument<T>(in);
      }
    } else {
      return argument<T>(in);
    }
  }
  template <class T>
  static void take_made(Place& place, Input& in) {
    if constexpr (std::is_pointer_v<T> && std::is_pointer_v<std::remove_pointer_t<T>>) {
      using Made = std::remove_pointer_t<std::remove_pointer_t<T>>;
      if constexpr (is_handle<Made> && !std::is_const_v<Made>)
        if (Made* const made = *static_cast<Made**>(place.out)) take(made, in);
    }
  }

  static bool made(const char* name, Input& in, ju_cursor* cursor) {
    Place place{.cursor = cursor};
    std::tuple<Taken...> all{drawn<Taken>(in, place)...};
    limit(name, all);
    if constexpr (std::is_same_v<Result, ju_status>) {
      const ju_status status = std::apply(function, all);
      check_answer(name, status, place.said);
      (take_made<Taken>(place, in), ...);
      if (status == JU_OK) note_freed(name, all);
      return status == JU_OK;
    } else {
      (void)std::apply(function, all);
      return false;
    }
  }

  using First = std::tuple_element_t<0, std::tuple<Taken..., void>>;
  using Second = std::tuple_element_t<1, std::tuple<Taken..., void, void>>;

  /// Other processes and threads are left alone, nothing is waited for, and nothing is written.
  static void limit([[maybe_unused]] std::string_view name, [[maybe_unused]] std::tuple<Taken...>& all) {
    if constexpr (std::is_same_v<First, std::int32_t>)
      if (name.starts_with("ju_target_") || name == "ju_walk_thread") {
        std::int32_t& process = std::get<0>(all);
        process = process % 4 == 0 ? getpid() : process % 4 == 1 ? 0 : -1;
      }
    if constexpr (std::is_same_v<Second, const void*>)
      if ((name == "ju_catches" || name == "ju_selector") && std::get<1>(all)) std::get<1>(all) = &typeid(int);
    if constexpr (std::is_same_v<Second, std::uint64_t>)
      if (name == "ju_walk_thread") std::get<1>(all) = 1000;
    if constexpr ((0 + ... + int{std::is_same_v<Taken, int>}) == 1) {
      int& number = std::get<int>(all);
      if (name == "ju_dump_walk" || name == "ju_dump_registry" || name == "ju_set_log")
        number = number % 2 == 0 ? nowhere : -1;
      if (name == "ju_backtrace") number %= static_cast<int>(k_most_items);
    }
  }

  static void note_freed(std::string_view name, const std::tuple<Taken...>& all) {
    static constexpr std::string_view k_freeing[] = {"ju_builder_free", "ju_description_free", "ju_cancel",
                                                     "ju_retire",       "ju_batch_free",       "ju_object_cancel",
                                                     "ju_target_free",  "ju_code_free"};
    if constexpr (is_handle<std::remove_pointer_t<First>>)
      for (const std::string_view freeing : k_freeing)
        if (name == freeing && std::get<0>(all)) forget(std::get<0>(all));
    if constexpr ((std::is_same_v<Taken, ju_registration*> || ...))
      if (name == "ju_batch_add") forget(std::get<ju_registration*>(all));
  }
};

struct Function {
  const char* name;
  void (*call)(const char* name, Input& in);
};
constexpr Function k_functions[] = {
#define JITUNWIND_FUNCTION(name) {#name, &Call<&name>::with},
#include "jitunwind/sdk/c/every_function.def"
#undef JITUNWIND_FUNCTION
};

template <class T>
void free_all() {
  for (T*& one : handles<T>)
    if (T* const last = std::exchange(one, nullptr)) free_one(last);
  gone<T>.fill(nullptr);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (nowhere < 0) nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  endless.fill('x');
  code_bytes.fill(0);
  std::memset(&no_handles[0], 0, sizeof no_handles[0]);
  std::memset(&no_handles[1], 0xff, sizeof no_handles[1]);
  check(ju_cursor_here(&no_handles[2], nullptr) == JU_OK, "a cursor");
  ++no_handles[2].words[0];
  cursors = {};
  std::size_t before = 0, after = 0;
  ju_registered(&before, nullptr);
  Input in(data, size);
  for (int calls = 0; calls < 200 && !in.is_empty(); ++calls) {
    const Function& function = k_functions[in.below(std::size(k_functions))];
    function.call(function.name, in);
  }
  free_all<ju_registration>();
  free_all<ju_batch>();
  free_all<ju_object>();
  free_all<ju_description>();
  free_all<ju_builder>();
  free_all<ju_target>();
  free_all<ju_code_segments>();
  ju_registered(&after, nullptr);
  check(before == after, "what was registered is gone");
  ju_set_log(0, -1);
  (void)ju_detach_gdb(nullptr);
  (void)ju_detach_perf(nullptr);
  for (const char* const file : {"/tmp/perf-%d.map", "/tmp/jit-%d.dump"}) {
    std::array<char, 64> path;
    std::snprintf(path.data(), path.size(), file, getpid());
    unlink(path.data());
  }
  return 0;
}
