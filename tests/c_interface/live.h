// A procedure that calls its argument, described and registered by the C interface, and the view of walks from below
// it.
#pragma once

#include <gtest/gtest.h>
#include <jitunwind/c.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "c_call_code.h"

namespace c_interface {

struct Error : ju_error {
  Error() { ju_error_init(this); }
};

using Call = void (*)(void (*)(void*), void*);

/// Executable memory with a copy of the code for each of several procedures.
class Code {
 public:
  explicit Code(std::size_t copies = 1) {
    bytes_ = static_cast<unsigned char*>(
        mmap(nullptr, k_size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (std::size_t i = 0; i < copies; ++i) std::memcpy(bytes_ + k_apart * i, k_call, sizeof k_call);
    __builtin___clear_cache(reinterpret_cast<char*>(bytes_), reinterpret_cast<char*>(bytes_) + k_size);
  }
  ~Code() { munmap(bytes_, k_size); }
  const unsigned char* at(std::size_t i = 0) const { return bytes_ + k_apart * i; }
  Call call(std::size_t i = 0) const { return reinterpret_cast<Call>(bytes_ + k_apart * i); }

 private:
  static constexpr std::size_t k_size = 4096, k_apart = 48;
  static_assert(k_apart >= sizeof k_call);
  unsigned char* bytes_;
};

inline ju_builder* said(const char* name) {
  ju_builder* builder = nullptr;
  EXPECT_EQ(ju_describe(JU_CPU_HOST, name, &builder, nullptr), JU_OK);
  describe_call(builder);
  ju_set_size(builder, sizeof k_call);
  return builder;
}

inline ju_description* built(ju_builder* builder) {
  Error error;
  ju_description* description = nullptr;
  EXPECT_EQ(ju_build(builder, &description, &error), JU_OK) << error.text;
  EXPECT_EQ(ju_builder_free(builder), JU_OK);
  return description;
}

inline ju_registration* registered(const ju_description* description, const Code& code, void* user = nullptr) {
  Error error;
  ju_code place;
  ju_code_init(&place, code.at(), sizeof k_call);
  place.user = user;
  ju_registration* registration = nullptr;
  EXPECT_EQ(ju_register(description, &place, &registration, &error), JU_OK) << error.text;
  return registration;
}

/// The procedure `call`, described and registered.
struct Live {
  explicit Live(void* user = nullptr) : description(built(said("jit_call"))) {
    registration = registered(description, code, user);
  }
  ~Live() {
    EXPECT_EQ(ju_cancel(registration, nullptr), JU_OK);
    EXPECT_EQ(ju_description_free(description), JU_OK);
  }
  Code code;
  ju_description* description;
  ju_registration* registration = nullptr;
};

struct Seen {
  std::vector<std::string> names;
  std::vector<ju_frame> frames;
  void* user = nullptr;
  ju_status status = JU_UNSPECIFIED;
  std::string why;
};

inline void look_at(const ju_cursor* cursor, Seen& seen) {
  std::array<char, 200> name{};
  ju_frame frame;
  frame.struct_size = sizeof frame;
  EXPECT_EQ(ju_frame_get(cursor, &frame, nullptr), JU_OK);
  EXPECT_EQ(frame.pc, ju_frame_pc(cursor));
  EXPECT_EQ(frame.sp, ju_frame_sp(cursor));
  (void)ju_frame_demangled_name(cursor, name.data(), name.size(), nullptr);
  if (std::strcmp(name.data(), "jit_call") == 0) seen.user = ju_frame_user(cursor);
  seen.names.emplace_back(name.data());
  seen.frames.push_back(frame);
}

inline int on_frame(const ju_cursor* cursor, void* seen) {
  look_at(cursor, *static_cast<Seen*>(seen));
  return 0;
}

inline bool is_complete(const Seen& seen) {
  for (std::size_t i = 0; i < seen.frames.size(); ++i)
    if (seen.frames[i].depth != i) return false;
  return !seen.names.empty() && seen.names.back().find("start") != std::string::npos;
}

[[gnu::noinline]] inline void walk_by_callback(void* seen) {
  static_cast<Seen*>(seen)->status = ju_walk_here(on_frame, seen, nullptr);
  asm volatile("");
}

[[gnu::noinline]] inline void walk_by_cursor(void* argument) {
  Seen& seen = *static_cast<Seen*>(argument);
  ju_cursor cursor;
  ASSERT_EQ(ju_cursor_here(&cursor, nullptr), JU_OK);
  do look_at(&cursor, seen);
  while ((seen.status = ju_cursor_step(&cursor, nullptr)) == JU_OK);
  EXPECT_EQ(ju_cursor_stop_reason(&cursor), JU_STOP_OUTERMOST);
  std::array<char, 100> why;
  EXPECT_EQ(ju_cursor_why(&cursor, why.data(), why.size(), nullptr), JU_OK);
  seen.why = why.data();
}

}  // namespace c_interface
