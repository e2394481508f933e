# Tests of another CPU. An emulator (CMAKE_CROSSCOMPILING_EMULATOR) runs them, or for x86 the machine itself. This file
# says which areas are built, and what of them is left out, with the reason.

# Debian packages GoogleTest for the machine's own CPU alone, but includes its sources.
set(googletest /usr/src/googletest CACHE PATH "GoogleTest's sources, where tests are for another CPU")
set(INSTALL_GTEST OFF)
set(BUILD_GMOCK OFF)
add_subdirectory(${googletest} ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
foreach(library IN ITEMS gtest gtest_main)
  target_compile_options(${library} PRIVATE -O0)  # halves the time to compile it; its own speed does not matter
endforeach()

jitunwind_not_tested("tests/{asmjit,orc,orc_versions,toy_vm}" "asmjit and LLVM are packages for the machine's own CPU")
jitunwind_not_tested("tests/xbyak" "xbyak writes code of x86-64")
jitunwind_not_tested("tests/check" "check_test.cpp reads code of AArch64 on every CPU, the others run that of x86-64")
jitunwind_not_tested("tests/musl" "musl-tools build for the machine's own CPU")
jitunwind_not_tested("tests/{core,jit_header}" "their programs have machine code of x86-64")
jitunwind_not_tested("tests/{exceptions,fallback,large,prove,resume,signal_handlers,single_step,tools,uwx}"
                     "their frames are of x86-64 code; tests/${JITUNWIND_CPU} has its own")
jitunwind_not_tested("tests/{bench,builders,cfi,dev,diagnostics,directives,examples,fuzz,image,install,perf,rows,rules,symbolizers,world_cfi}"
                     "nothing that they test depends on the CPU it runs on")
if(JITUNWIND_CPU STREQUAL "x86")
  jitunwind_not_tested("tests/address_spaces" "it names registers of CPUs with words of 8 bytes")
  jitunwind_not_tested("tests/aarch64" "it is another CPU's own")
  jitunwind_not_tested("tests/code_segments" "code of CPUs with words of 4 bytes is not published")
  jitunwind_not_tested("tests/{c_interface,listen}" "they name registers of x86-64 and AArch64, and run their code")
  set(emulated_areas x86 arch kept memory modules registry support walk)
  jitunwind_not_tested("tests/{debuggers,drop_in,jitstack,targets}" "they start programs of x86-64")
  jitunwind_not_tested("tests/libunwind" "it names registers of CPUs with words of 8 bytes, and runs their code")
else()
  set(emulated_areas ${JITUNWIND_CPU} address_spaces arch c_interface code_segments drop_in kept libunwind listen memory modules registry
                     support walk)
  jitunwind_not_tested("tests/x86" "it is another CPU's own")
  set(machine_areas ${JITUNWIND_CPU} c_interface kept memory modules registry targets walk)
  jitunwind_not_tested("tests/targets" "qemu-user emulates no ptrace: ./dev machine runs them")
  jitunwind_not_tested("tests/{debuggers,jitstack}" "ptrace is not emulated")
  jitunwind_not_tested("tests/drop_in/drop_in_test.cpp"
                       "it is of Debian's libunwind; the same programs, built here, are tests of their own")
  jitunwind_not_tested("tests/drop_in/{other_processes,tools}_test.cpp"
                       "ptrace is not emulated, and programs of Debian are for the machine's own CPU")
endif()

# jitunwind_expect_named(folder...): checks that every test program of these areas is built for this CPU or is named as
# not tested, by itself or with its area. jitunwind_not_tested() has such names: "tests/{one,other}" or
# "{one,other}_test, third".
function(jitunwind_expect_named)
  get_property(texts GLOBAL PROPERTY jitunwind_not_tested_names)
  set(named "")
  foreach(text IN LISTS texts)
    string(REPLACE ", " ";" parts "${text}")
    foreach(part IN LISTS parts)
      set(alternatives "${part}")
      if(part MATCHES "^([^{]*){([^}]*)}([^{]*)$")
        set(before "${CMAKE_MATCH_1}")
        set(behind "${CMAKE_MATCH_3}")
        string(REPLACE "," ";" alternatives "${CMAKE_MATCH_2}")
        list(TRANSFORM alternatives PREPEND "${before}")
        list(TRANSFORM alternatives APPEND "${behind}")
      endif()
      list(TRANSFORM alternatives REPLACE "^tests/|[.]cpp$" "")
      list(APPEND named ${alternatives})
    endforeach()
  endforeach()
  foreach(folder IN LISTS ARGN)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/tests OUTPUT_VARIABLE area)
    if(area IN_LIST named)
      continue()
    endif()
    set(sources "")
    get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target IN LISTS targets)
      get_target_property(of_target ${target} SOURCES)
      list(APPEND sources ${of_target})
    endforeach()
    file(GLOB programs RELATIVE ${folder} ${folder}/*_test.cpp)
    foreach(program IN LISTS programs)
      cmake_path(GET program STEM name)
      if(NOT program IN_LIST sources AND NOT name IN_LIST named AND NOT "${area}/${name}" IN_LIST named)
        message(SEND_ERROR "tests/${area}/${program} is neither built for ${JITUNWIND_CPU} nor named as not tested")
      endif()
    endforeach()
  endforeach()
endfunction()

# A machine of that CPU, emulated as a whole. It runs Debian's kernel, that of the installer, which is a package for
# every CPU. Each program is a test with the label machine, and the target jitunwind_machine builds it; ./dev machine
# runs them.
set(jitunwind_installer /usr/lib/debian-installer/images/12/arm64/text/debian-installer/arm64
    CACHE PATH "The folder of the installer's kernel and initrd.gz (debian-installer-12-netboot-arm64)")
add_custom_target(jitunwind_machine)
if(machine_areas)
  add_executable(machine_init EXCLUDE_FROM_ALL support/machine/init.c)
  target_link_options(machine_init PRIVATE -static)
  add_dependencies(jitunwind_machine machine_init)
endif()

# jitunwind_machine_test(name [LEFT_OUT filter]): runs the GoogleTest program of that name on the machine. It finds the
# files that the folder's variable jitunwind_machine_files names.
function(jitunwind_machine_test name)
  cmake_parse_arguments(arg "" "LEFT_OUT" "" ${ARGN})
  add_dependencies(jitunwind_machine ${name})
  list(TRANSFORM jitunwind_machine_files PREPEND "--file=" OUTPUT_VARIABLE files)
  add_test(NAME machine.${name}
           COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/support/machine/run.py --init=$<TARGET_FILE:machine_init>
                   --installer=${jitunwind_installer} --root=${CMAKE_FIND_ROOT_PATH} ${files} $<TARGET_FILE:${name}>
                   --gtest_filter=-${arg_LEFT_OUT})
  set_tests_properties(machine.${name} PROPERTIES LABELS machine TIMEOUT 600)
endfunction()
