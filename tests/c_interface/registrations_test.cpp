// Code that is registered, thrown through, shown and taken back by the C interface.
#include <cxxabi.h>
#include <gtest/gtest.h>
#include <jitunwind/c.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <typeinfo>

#include "tests/builders/placed_eh_frame.h"
#include "tests/c_interface/live.h"
#include "tests/listen/written_for_perf.h"
#include "tests/support/allowed_calls.h"

using namespace c_interface;

namespace {

TEST(CRegistrations, ComeAndGo) {
  const Code code;
  ju_description* const description = built(said("jit_call"));
  std::size_t before = 0, now = 0;
  ju_registered(&before, nullptr);
  ju_registration* registration = registered(description, code);
  ju_registered(&now, nullptr);
  EXPECT_EQ(now, before + 1);
  EXPECT_EQ(ju_may_be_registered(reinterpret_cast<std::uintptr_t>(code.at())), 1);
  std::uint64_t begin = 0, end = 0;
  EXPECT_EQ(ju_registration_range(registration, &begin, &end), JU_OK);
  EXPECT_EQ(begin, reinterpret_cast<std::uintptr_t>(code.at()));
  EXPECT_EQ(end, begin + sizeof k_call);
  EXPECT_GT(ju_registration_bytes(registration), 80u);
  EXPECT_EQ(ju_cancel(registration, nullptr), JU_OK);
  registration = registered(description, code);
  ju_ticket ticket;
  EXPECT_EQ(ju_retire(registration, &ticket, nullptr), JU_OK);
  EXPECT_EQ(ticket.skipped, 0u);
  for (int i = 0; i < 1000 && ju_reclaimed(&ticket) == 0; ++i) usleep(1000);
  EXPECT_EQ(ju_reclaimed(&ticket), 1);
  ju_registered(&now, nullptr);
  EXPECT_EQ(now, before);
  EXPECT_EQ(ju_description_free(description), JU_OK);
}

TEST(CRegistrations, AreHeldAgainstTheirCode) {
  const Code code;
  std::array<char, 200> text{"old"};
  std::size_t wrong = 1, untold = 1;
  ju_description* description = built(said("jit_call"));
  ju_registration* registration = registered(description, code);
  EXPECT_EQ(ju_check(registration, text.data(), text.size(), &wrong, &untold), JU_OK);
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(untold, 0u);
  EXPECT_STREQ(text.data(), "");
  EXPECT_EQ(ju_cancel(registration, nullptr), JU_OK);
  EXPECT_EQ(ju_description_free(description), JU_OK);

  ju_builder* leaf = nullptr;
  ASSERT_EQ(ju_describe(JU_CPU_HOST, "leaf", &leaf, nullptr), JU_OK);
  description = built(leaf);
  registration = registered(description, code);
  EXPECT_EQ(ju_check(registration, text.data(), text.size(), &wrong, nullptr), JU_CODE_DISAGREES);
  EXPECT_GT(wrong, 0u);
  EXPECT_NE(std::string(text.data()).find(": the row says "), std::string::npos) << text.data();
  EXPECT_EQ(ju_check(registration, text.data(), 4, nullptr, nullptr), JU_CODE_DISAGREES);
  EXPECT_STREQ(text.data(), "+0x");
  EXPECT_EQ(ju_check(registration, nullptr, 0, nullptr, nullptr), JU_CODE_DISAGREES);
  EXPECT_EQ(ju_check(registration, nullptr, 4, nullptr, nullptr), JU_NULL_POINTER);
  EXPECT_EQ(ju_check(nullptr, nullptr, 0, nullptr, nullptr), JU_NULL_POINTER);
  EXPECT_EQ(ju_cancel(registration, nullptr), JU_OK);
  EXPECT_EQ(ju_description_free(description), JU_OK);
}

TEST(CRegistrations, OfMarksThatServeOneProcedureAfterTheOther) {
  const Code code(2);
  ju_builder* marks = nullptr;
  ASSERT_EQ(ju_describe_marks(JU_CPU_HOST, &marks, nullptr), JU_OK);
  std::array<ju_registration*, 2> live{};
  for (std::size_t i = 0; i < live.size(); ++i) {
    Error error;
    ju_code place;
    ju_code_init(&place, code.at(i), sizeof k_call);
    place.name = "marked";
    describe_call(marks);
    ju_set_size(marks, sizeof k_call);
    ASSERT_EQ(ju_register_marks(marks, &place, &live[i], &error), JU_OK) << error.text;
    Seen seen;
    code.call(i)(walk_by_callback, &seen);
    EXPECT_TRUE(is_complete(seen)) << seen.why;
    EXPECT_EQ(std::count(seen.names.begin(), seen.names.end(), "marked"), 1);
    EXPECT_THROW(code.call(i)([](void*) { throw 7; }, nullptr), int);
  }
  for (ju_registration* registration : live) EXPECT_EQ(ju_cancel(registration, nullptr), JU_OK);
  EXPECT_EQ(ju_builder_free(marks), JU_OK);
}

/// Kills this process at system calls that test whether memory can be read.
void make_questions_deadly() {
  const std::array<unsigned, 2> questions{SYS_rt_sigprocmask, SYS_process_vm_readv};
  auto program = jitunwind::test::answers(questions, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW);
  if (!jitunwind::test::install(program)) ::_exit(2);
}

TEST(CRegistrations, AskTheKernelNothingAboutNames) {
  const Code code;
  ju_description* const description = built(said("jit_call"));
  ju_builder* marks = nullptr;
  ASSERT_EQ(ju_describe_marks(JU_CPU_HOST, &marks, nullptr), JU_OK);
  ju_code place;
  ju_code_init(&place, code.at(), sizeof k_call);
  const auto register_twice = [&] {
    ju_registration* live = nullptr;
    for (bool has_marks : {false, true}) {
      const std::string name(10000, 'n');
      place.name = name.c_str();
      if (has_marks) describe_call(marks), ju_set_size(marks, sizeof k_call);
      const ju_status made = has_marks ? ju_register_marks(marks, &place, &live, nullptr)
                                       : ju_register(description, &place, &live, nullptr);
      if (made != JU_OK || ju_cancel(live, nullptr) != JU_OK) ::_exit(3);
    }
  };
  register_twice();  // does first what a process does once
  const pid_t child = ::fork();
  if (child == 0) {
    make_questions_deadly();
    register_twice();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (CHECKS_HANDLES)
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) << status;
  else
    EXPECT_EQ(status, 0);
  EXPECT_EQ(ju_builder_free(marks), JU_OK);
  EXPECT_EQ(ju_description_free(description), JU_OK);
}

#ifdef __x86_64__
/// pop rbx; pop rbp; ret, at the end of a trace: the frame is that of the code that jumps here.
TEST(CRegistrations, OfMarksBeginWithAFrameThatIsBuiltElsewhere) {
  static constexpr unsigned char k_exit[] = {0x5b, 0x5d, 0xc3};
  ju_builder* marks = nullptr;
  ASSERT_EQ(ju_describe_marks(JU_CPU_HOST, &marks, nullptr), JU_OK);
  ju_code place;
  ju_code_init(&place, k_exit, sizeof k_exit);
  for (const bool by_frame_pointer : {false, true}) {
    if (by_frame_pointer)
      EXPECT_EQ(ju_entry_state_at(marks, "cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]", 24), JU_OK);
    else
      EXPECT_EQ(ju_entry_state(marks, "cfa=rsp+24 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]"), JU_OK);
    EXPECT_EQ(ju_pop(marks, 0, 1, JU_X86_64_RBX), JU_OK);
    EXPECT_EQ(ju_pop(marks, 1, 2, JU_X86_64_RBP), JU_OK);
    ju_registration* live = nullptr;
    Error error;
    ASSERT_EQ(ju_register_marks(marks, &place, &live, &error), JU_OK) << error.text;
    std::array<char, 200> text;
    size_t wrong = 1, untold = 1;
    EXPECT_EQ(ju_check(live, text.data(), text.size(), &wrong, &untold), JU_OK) << text.data();
    EXPECT_EQ(wrong, 0u) << text.data();
    EXPECT_EQ(untold, by_frame_pointer ? 2u : 0u) << text.data();  // only the row tells where SP is then
    EXPECT_EQ(ju_cancel(live, nullptr), JU_OK);
  }
  EXPECT_EQ(ju_builder_free(marks), JU_OK);
}
#endif

TEST(CRegistrations, OfMarksNameMistakesOnce) {
  const Code code;
  ju_builder* marks = nullptr;
  ju_builder* builder = nullptr;
  ju_registration* live = nullptr;
  ju_description* description = nullptr;
  Error error;
  ju_code place;
  ju_code_init(&place, code.at(), sizeof k_call);
  EXPECT_EQ(ju_describe_marks(static_cast<ju_cpu>(9999), &marks, &error), JU_BAD_VALUE);
  EXPECT_EQ(ju_describe_marks(JU_CPU_HOST, nullptr, &error), JU_NULL_POINTER);
  ASSERT_EQ(ju_describe_marks(JU_CPU_HOST, &marks, nullptr), JU_OK);
  ASSERT_EQ(ju_describe(JU_CPU_HOST, "built", &builder, nullptr), JU_OK);
  // Each kind has its own end.
  EXPECT_EQ(ju_register_marks(builder, &place, &live, &error), JU_BAD_VALUE);
  EXPECT_EQ(error.text, std::string("a builder of ju_describe() is built: use ju_build()"));
  EXPECT_EQ(ju_build(marks, &description, &error), JU_BAD_VALUE);
  EXPECT_EQ(error.text, std::string("marks are not built: use ju_register_marks()"));
  // The registration reports what marks cannot express, and forgets it.
  EXPECT_EQ(ju_row_at(marks, 0, "cfa=rsp+8 ra=[cfa-8]"), JU_BAD_VALUE);
  EXPECT_EQ(ju_region(marks, 4), JU_BAD_VALUE);
  EXPECT_EQ(ju_catches_all(marks), JU_BAD_VALUE);
  EXPECT_EQ(ju_register_marks(marks, &place, &live, &error), JU_BAD_VALUE);
  EXPECT_NE(std::string(error.text).find("ju_row_at: bad_value: marks have no such function"), std::string::npos)
      << error.text;
  ju_allocate(marks, 2, 2, 8);
  EXPECT_EQ(ju_register_marks(marks, &place, &live, &error), JU_E_RANGE);
  EXPECT_EQ(ju_register_marks(marks, nullptr, &live, &error), JU_NULL_POINTER);
  EXPECT_EQ(ju_register_marks(marks, &place, nullptr, &error), JU_NULL_POINTER);
  EXPECT_EQ(ju_register_marks(marks, &place, &live, &error), JU_OK) << error.text;
  EXPECT_EQ(ju_cancel(live, nullptr), JU_OK);
  EXPECT_EQ(ju_builder_free(builder), JU_OK);
  EXPECT_EQ(ju_builder_free(marks), JU_OK);
}

TEST(CRegistrations, InBatches) {
  const Code code(3);
  ju_description* const description = built(said("jit_call"));
  ju_batch* batch = nullptr;
  ASSERT_EQ(ju_batch_new(&batch, nullptr), JU_OK);
  const ju_description* descriptions[] = {description, description};
  ju_code places[2];
  ju_code_init(&places[0], code.at(0), 0);  // up to the next one
  const unsigned char* const second = code.at(0) + sizeof k_call;
  ju_code_init(&places[1], second, sizeof k_call);
  places[1].name = "second";
  ASSERT_EQ(ju_batch_register(batch, descriptions, places, 2, nullptr), JU_OK);
  ju_code_init(&places[0], code.at(2), sizeof k_call);
  ju_registration* third = nullptr;
  ASSERT_EQ(ju_register(description, &places[0], &third, nullptr), JU_OK);
  EXPECT_EQ(ju_batch_add(batch, third, nullptr), JU_OK);
  EXPECT_EQ(ju_batch_size(batch), 3u);
  char name[16];
  EXPECT_EQ(ju_symbolise(reinterpret_cast<std::uintptr_t>(second), 0, name, sizeof name, nullptr), JU_OK);
  EXPECT_STREQ(name, "second");
  EXPECT_EQ(ju_symbolise(reinterpret_cast<std::uintptr_t>(second) - 1, 0, name, sizeof name, nullptr), JU_OK);
  EXPECT_STREQ(name, "jit_call");
  EXPECT_EQ(ju_batch_cancel(batch, nullptr), JU_OK);
  EXPECT_EQ(ju_batch_size(batch), 0u);
  EXPECT_EQ(ju_symbolise(reinterpret_cast<std::uintptr_t>(second), 0, name, sizeof name, nullptr), JU_NO_INFO);
  ASSERT_EQ(ju_batch_register(batch, descriptions, places, 1, nullptr), JU_OK);
  ju_ticket ticket;
  EXPECT_EQ(ju_batch_retire(batch, &ticket, nullptr), JU_OK);
  EXPECT_EQ(ju_batch_free(batch, nullptr), JU_OK);
  EXPECT_EQ(ju_description_free(description), JU_OK);
}

TEST(CRegistrations, OfCodeWithCallFrameInformation) {
  using namespace jitunwind::test;
  const Code code;
  const auto at = reinterpret_cast<std::uintptr_t>(code.at());
  alignas(8) static std::byte memory[256];
  CfiSection section(reinterpret_cast<std::uintptr_t>(memory));
  section.fde(section.cie(host_cie()), at, sizeof k_call, saved_register());
  const auto& bytes = section.section().bytes;
  ASSERT_LE(bytes.size(), sizeof memory);
  std::memcpy(memory, bytes.data(), bytes.size());
  const ju_range range{at, at + 64};
  const ju_function functions[] = {{at, sizeof k_call, "described"}, {at + 48, 16, "a_name_alone"}};
  ju_object_code object{};
  object.struct_size = sizeof object;
  object.code = &range;
  object.code_count = 1;
  object.eh_frame = {reinterpret_cast<std::uintptr_t>(memory), reinterpret_cast<std::uintptr_t>(memory) + bytes.size()};
  object.functions = functions;
  object.function_count = 2;
  Error error;
  ju_object* handle = nullptr;
  ASSERT_EQ(ju_object_register(&object, &handle, &error), JU_OK) << error.text;
  std::size_t procedures = 0, undescribed = 0;
  EXPECT_EQ(ju_object_count(handle, &procedures, &undescribed), JU_OK);
  EXPECT_EQ(procedures, 2u);
  EXPECT_EQ(undescribed, 1u);
  ju_range of{};
  EXPECT_EQ(ju_object_range(handle, 0, &of), JU_OK);
  EXPECT_EQ(of.begin, at);
  EXPECT_EQ(ju_object_range(handle, 2, &of), JU_OUT_OF_RANGE);
  Seen seen;
  code.call()(walk_by_callback, &seen);
  ASSERT_GT(seen.names.size(), 2u);
  EXPECT_EQ(seen.names[1], "described");
  EXPECT_EQ(seen.frames[1].origin, JU_ORIGIN_TABLE);
  EXPECT_EQ(ju_object_cancel(handle, &error), JU_OK);
}

// Handlers.

struct Handled {
  std::vector<std::string> said;
  std::uint64_t saved = 0;
  int released = 0;
  void* exception = nullptr;
};

void decide(const ju_passed_frame* frame, ju_decision* decision, void* context) {
  Handled& handled = *static_cast<Handled*>(context);
  handled.said.emplace_back(frame->in_search ? "search" : "cleanup");
  EXPECT_EQ(frame->struct_size, sizeof *frame);
  handled.exception = frame->exception;
  EXPECT_EQ(frame->call_offset, k_after_call - 1);
  EXPECT_EQ(frame->forced, 0);
  EXPECT_EQ(frame->thrown_type, &typeid(std::runtime_error));
  EXPECT_NE(frame->thrown_object, nullptr);
  EXPECT_EQ(ju_passed_frame_get(frame, k_saved, &handled.saved), JU_OK);
  EXPECT_EQ(ju_passed_frame_get(frame, k_scratch, &handled.saved), JU_BAD_REGISTER);
  EXPECT_EQ(ju_passed_frame_get(frame, k_other_reg, &handled.saved), JU_OTHER_CPU);
  EXPECT_EQ(ju_land_with(decision, k_other_reg, 1), JU_OTHER_CPU);
  ju_catch_at(decision, frame->start + k_landing_pad);
}

TEST(CHandlers, DecideWhereAnExceptionLands) {
  const Code code;
  Handled handled;
  ju_builder* const builder = said("handled");
  EXPECT_EQ(ju_handled_by(builder, decide, &handled, [](void* of) { ++static_cast<Handled*>(of)->released; }), JU_OK);
  ju_description* const description = built(builder);
  ju_registration* const registration = registered(description, code);
  EXPECT_EQ(ju_description_free(description), JU_OK);
  EXPECT_EQ(handled.released, 0) << "the procedure has it";
  code.call()([](void*) { throw std::runtime_error("lands"); }, nullptr);
  EXPECT_EQ(handled.said, (std::vector<std::string>{"search", "cleanup"}));
  ASSERT_NE(handled.exception, nullptr);
  abi::__cxa_begin_catch(handled.exception);  // what the landing pad owns
  abi::__cxa_end_catch();
  EXPECT_EQ(ju_cancel(registration, nullptr), JU_OK);
  EXPECT_EQ(handled.released, 1);
}

struct CleanedUp {
  int times = 0;
  void* exception = nullptr;
} cleaned_up;

void clean_up_and_go_on(void*) {
  ++cleaned_up.times;
  _Unwind_Resume(static_cast<_Unwind_Exception*>(cleaned_up.exception));
}

TEST(CHandlers, CleanUpOnTheWay) {
  const Code code;
  ju_builder* const builder = said("cleaned up");
  const auto decide = [](const ju_passed_frame* frame, ju_decision* decision, void*) {
    EXPECT_EQ(frame->call_offset, k_after_call - 1);
    if (frame->in_search || cleaned_up.times != 0) return;
    cleaned_up.exception = frame->exception;
    ju_clean_up_at(decision, frame->start + k_call_of_scratch);
    EXPECT_EQ(ju_land_with(decision, k_scratch, reinterpret_cast<std::uintptr_t>(&clean_up_and_go_on)), JU_OK);
  };
  EXPECT_EQ(ju_handled_by(builder, decide, nullptr, nullptr), JU_OK);
  ju_description* const description = built(builder);
  ju_registration* const registration = registered(description, code);
  EXPECT_THROW(code.call()([](void*) { throw 7; }, nullptr), int);
  EXPECT_EQ(cleaned_up.times, 1);
  EXPECT_EQ(ju_cancel(registration, nullptr), JU_OK);
  EXPECT_EQ(ju_description_free(description), JU_OK);
}

TEST(CHandlers, LetPassWhatTheySayNothingOf) {
  const Code code;
  ju_builder* const builder = said("passes");
  EXPECT_EQ(ju_handled_by(
                builder, [](const ju_passed_frame*, ju_decision*, void*) {}, nullptr, nullptr),
            JU_OK);
  ju_description* const description = built(builder);
  ju_registration* const registration = registered(description, code);
  EXPECT_THROW(code.call()([](void*) { throw 7; }, nullptr), int);
  EXPECT_EQ(ju_cancel(registration, nullptr), JU_OK);
  EXPECT_EQ(ju_description_free(description), JU_OK);
  // No function is a mistake.
  ju_builder* const none = said("none");
  EXPECT_EQ(ju_handled_by(none, nullptr, nullptr, nullptr), JU_NULL_POINTER);
  ju_description* refused = nullptr;
  EXPECT_EQ(ju_build(none, &refused, nullptr), JU_NULL_POINTER);
  EXPECT_EQ(ju_builder_free(none), JU_OK);
}

// This process.

TEST(CProcess, CountsAndConsumers) {
  ju_statistics before, after;
  before.struct_size = after.struct_size = sizeof before;
  ASSERT_EQ(ju_statistics_get(&before, nullptr), JU_OK);
  { const Live live; }
  ASSERT_EQ(ju_statistics_get(&after, nullptr), JU_OK);
  EXPECT_EQ(after.registrations, before.registrations + 1);
  EXPECT_EQ(after.cancelled, before.cancelled + 1);
  std::size_t length = 0;
  EXPECT_EQ(ju_statistics_text(nullptr, 0, &length), JU_OK);
  EXPECT_GT(length, 100u);

  ju_unwinder_status status;
  status.struct_size = sizeof status;
  ASSERT_EQ(ju_unwinder_status_get(&status, nullptr), JU_OK);
  EXPECT_NE(status.path, JU_PATH_NONE) << status.why;
  EXPECT_STRNE(ju_unwinder_path_name(status.path), "");
  std::array<char, 200> why;
  EXPECT_EQ(ju_why_stopped(why.data(), why.size(), nullptr), JU_OK);

  EXPECT_EQ(ju_attach_gdb(nullptr), JU_OK);
  {
    const Live live;
    EXPECT_EQ(ju_flush_gdb(nullptr), JU_OK);
    ju_gdb_statistics shown;
    shown.struct_size = sizeof shown;
    ASSERT_EQ(ju_gdb_statistics_get(&shown, nullptr), JU_OK);
    EXPECT_NE(shown.attached, 0);
    EXPECT_GE(shown.procedures, 1u);
    EXPECT_EQ(shown.latest_refusal, JU_OK);
  }
  EXPECT_EQ(ju_detach_gdb(nullptr), JU_OK);
  EXPECT_EQ(ju_attach_perf(nullptr), JU_OK);
  {
    const Live live;
    ju_perf_statistics written;
    written.struct_size = sizeof written;
    ASSERT_EQ(ju_perf_statistics_get(&written, nullptr), JU_OK);
    EXPECT_TRUE(written.attached && written.has_map && written.has_dump);
    EXPECT_GE(written.procedures, 1u);
    EXPECT_EQ(written.latest_refusal, written.refused == 0 ? JU_OK : JU_UNREADABLE_MEMORY);
  }
  EXPECT_EQ(ju_detach_perf(nullptr), JU_OK);
  jitunwind::test::remove_written_for_perf(::getpid());
  EXPECT_EQ(ju_keep_at_least(1000), JU_OK);
  ju_forget_walked_stacks();
  ju_forget_rows(0, 1);
}

TEST(CProcess, DumpsAndLog) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Live live;
  EXPECT_EQ(ju_dump_registry(ends[1]), JU_OK);
  ju_cursor cursor;
  ASSERT_EQ(ju_cursor_here(&cursor, nullptr), JU_OK);
  EXPECT_EQ(ju_dump_walk(&cursor, ends[1]), JU_OK);
  const int fd = ju_log_fd();
  ju_set_log(JU_LOG_REGISTRY, ends[1]);
  EXPECT_EQ(ju_log_fd(), ends[1]);
  { const Live logged; }
  ju_set_log(0, fd);
  close(ends[1]);
  std::string text;
  std::array<char, 4096> part;
  for (ssize_t n; (n = read(ends[0], part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(n));
  close(ends[0]);
  EXPECT_NE(text.find("directives jit_call"), std::string::npos) << text;
  EXPECT_NE(text.find("ended: outermost"), std::string::npos) << text;
  EXPECT_NE(text.find("regist"), std::string::npos) << text;
}

}  // namespace
