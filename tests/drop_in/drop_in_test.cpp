// Programs that know nothing of this library run on the drop-in libraries.
#include <gtest/gtest.h>

#include <unistd.h>

#include <string>

#include "tests/support/command.h"

namespace jitunwind::test {
namespace {

const std::string k_path = "LD_LIBRARY_PATH='" DROP_IN_FOLDER "' ";

// covers: LU25
TEST(DropIn, ProgramsOfRelease16SeeCodeMadeAtRunTime) {
  EXPECT_EQ(output_of(WALKING_PROGRAM).find("main"), std::string::npos) << "libunwind 1.6 passes it itself";
  EXPECT_EQ(output_of(k_path + WALKING_PROGRAM " twice"), "walk\nmade_at_run_time\nmain\nsame length\n");
}

/// The program is linked with Debian's library: nothing of ours is in it.
TEST(DropIn, TheProgramNeedsLibunwindAlone) {
  const std::string needed = output_of("readelf -dW '" WALKING_PROGRAM "' | grep NEEDED");
  EXPECT_NE(needed.find("[libunwind.so.8]"), std::string::npos) << needed;
  EXPECT_EQ(needed.find("jitunwind"), std::string::npos) << needed;
  const std::string loaded = output_of(k_path + "ldd '" WALKING_PROGRAM "'");
  EXPECT_NE(loaded.find("libjitunwind-libunwind.so.0"), std::string::npos) << loaded;
}

/// What Debian's library of the name has and programs of Debian import is there, too.
TEST(DropIn, NamesOfDebiansLibraryAreThere) {
  const std::string names =
      output_of("nm -D --defined-only '" DROP_IN_FOLDER "/libunwind.so.8' '" LIBUNWIND_SHARED "'");
  for (const char* name : {"_Ux86_64_getcontext",
                           "_ULx86_64_init_local",
                           "_ULx86_64_init_local2",
                           "_ULx86_64_step",
                           "_ULx86_64_get_reg",
                           "_ULx86_64_get_proc_name",
                           "_ULx86_64_get_proc_info",
                           "_Ux86_64_strerror",
                           "unw_backtrace",
                           "_ULx86_64_local_addr_space",
                           "_ULx86_64_set_cache_size",
                           "_ULx86_64_set_caching_policy",
                           "_Ux86_64_flush_cache",
                           "_Ux86_64_step",
                           "_Ux86_64_get_reg",
                           "_Ux86_64_get_proc_name",
                           "_Ux86_64_create_addr_space",
                           "_Ux86_64_init_remote",
                           "_Ux86_64_init_local",
                           "_Ux86_64_set_caching_policy",
                           "_Ux86_64_destroy_addr_space",
                           "_Ux86_64_get_proc_info",
                           "_Ux86_64_dwarf_search_unwind_table",
                           "_Ux86_64_is_signal_frame",
                           "_ULx86_64_reg_states_iterate",
                           "_ULx86_64_apply_reg_state",
                           "_Ux86_64_get_accessors",
                           "_Ux86_64_is_fpreg",
                           "_Ux86_64_regname",
                           "_Ux86_64_setcontext",
                           "_U_dyn_register",
                           "_U_dyn_cancel",
                           "_U_dyn_info_list_addr",
                           "_ReadSLEB",
                           "_ReadULEB",
                           "_ULx86_64_resume",
                           "_ULx86_64_get_proc_info_by_ip"})
    EXPECT_NE(names.find(std::string(" ") + name + "\n"), std::string::npos) << name;
  EXPECT_NE(names.find(" W backtrace\n"), std::string::npos);
  EXPECT_EQ(names.find(" T _Unwind_Resume\n"), std::string::npos) << "exceptions stay with libgcc_s";
}

// covers: HL13
TEST(DropIn, JumpsAreThoseOfTheCLibrary) {
  const std::string expected = output_of(SETJMP_PROGRAM);
  EXPECT_NE(expected.find("jumped with 0: 1, registers kept\n"), std::string::npos) << expected;
  const std::string preload = "LD_PRELOAD='" DROP_IN_FOLDER "/libunwind-setjmp.so.0' ";
  EXPECT_EQ(output_of(k_path + preload + SETJMP_PROGRAM), expected);
  const std::string bound = output_of(k_path + preload + "LD_DEBUG=bindings " SETJMP_PROGRAM " 2>&1 | grep longjmp");
  EXPECT_NE(bound.find("libunwind-setjmp.so.0"), std::string::npos) << bound;
}

TEST(DropIn, JumpsByBuffersThatWereNotSetEndTheProgram) {
  const std::string preload = "LD_PRELOAD='" DROP_IN_FOLDER "/libunwind-setjmp.so.0' ";
  const std::string said = output_of("{ " + k_path + preload + SETJMP_PROGRAM " garbage; echo \"status $?\"; } 2>&1");
  EXPECT_NE(said.find("jitunwind: longjmp: the buffer was set by another library's setjmp, or not at all\n"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("status 134"), std::string::npos) << said;
}

/// The exception ABI is libgcc_s's, whose functions the C library names itself. libunwind 1.6 has functions of the same
/// names, which cannot read that one's contexts: there the program crashes.
TEST(DropIn, ThreadsEndAsTheyDoWithoutLibunwind) {
  EXPECT_EQ(output_of(k_path + THREAD_EXIT_PROGRAM),
            "destructor of the function that called pthread_exit\ndestructor of the thread\nended\n"
            "destructor of the function that was cancelled\ndestructor of the thread\ncancelled\n");
}

}  // namespace
}  // namespace jitunwind::test
