# Tests of another CPU, run by an emulator (CMAKE_CROSSCOMPILING_EMULATOR) or, those of x86, by the machine itself.
# Which areas are built, and what of them is left out, with the reason.

# Debian has GoogleTest for the machine's own CPU alone, but its sources with it.
set(googletest /usr/src/googletest CACHE PATH "GoogleTest's sources, where tests are for another CPU")
set(INSTALL_GTEST OFF)
set(BUILD_GMOCK OFF)
add_subdirectory(${googletest} ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)

jitunwind_not_tested("tests/{asmjit,orc,orc_versions,toy_vm}" "asmjit and LLVM are packages for the machine's own CPU")
jitunwind_not_tested("tests/{exceptions,fallback,large,prove,resume,signal_handlers,single_step,uwx}"
                     "their frames are of x86-64 code; tests/${JITUNWIND_CPU} has its own")
jitunwind_not_tested("tests/{bench,builders,cfi,dev,diagnostics,directives,examples,fuzz,image,install,rows,rules,world_cfi}"
                     "nothing that they test depends on the CPU it runs on")
jitunwind_not_tested("tests/{address_spaces,c_interface,listen}"
                     "they name registers of x86-64, and run its code")
if(JITUNWIND_CPU STREQUAL "x86")
  set(emulated_areas x86 arch kept memory modules registry support walk)
  jitunwind_not_tested("tests/{debuggers,drop_in,jitstack,targets}" "they start programs of x86-64")
  jitunwind_not_tested("tests/libunwind" "it names registers of CPUs with words of 8 bytes, and runs their code")
else()
  set(emulated_areas ${JITUNWIND_CPU} arch drop_in kept libunwind memory modules registry support walk)
  jitunwind_not_tested("tests/{debuggers,jitstack,targets}" "ptrace is not emulated")
  jitunwind_not_tested("tests/drop_in/{other_processes,tools}_test.cpp"
                       "ptrace is not emulated, and programs of Debian are for the machine's own CPU")
endif()
