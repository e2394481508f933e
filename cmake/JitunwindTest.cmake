# Functions that declare tests: programs, commands, long proofs and fuzz targets. They also list what is left out.

# jitunwind_not_tested(what reason): lists what the tests leave out, with the reason, behind their results.
function(jitunwind_not_tested what reason)
  message(STATUS "Not tested: ${what}: ${reason}")
  set_property(GLOBAL APPEND_STRING PROPERTY jitunwind_not_tested "${what}: ${reason}\n")
  set_property(GLOBAL APPEND PROPERTY jitunwind_not_tested_names "${what}")
endfunction()

# jitunwind_write_not_tested(): writes for ./dev what is listed by then, and what is left to ./dev test --all.
function(jitunwind_write_not_tested)
  get_property(not_tested GLOBAL PROPERTY jitunwind_not_tested)
  file(WRITE ${PROJECT_BINARY_DIR}/not_tested.txt "${not_tested}")
  get_property(left_to_all GLOBAL PROPERTY jitunwind_left_to_all)
  list(JOIN left_to_all ", " left_to_all)
  file(WRITE ${PROJECT_BINARY_DIR}/left_to_all.txt "${left_to_all}")
endfunction()

# jitunwind_find_perf(event what): sets jitunwind_perf to perf if this machine lets it record the event. Otherwise it is
# empty, and `what` is listed as not tested. Sets jitunwind_perf_follows_files to whether this perf finds callers through
# files whose first segment is not at their begin: those that it makes of a dump, and published pages. libunwind does,
# libdw does not.
function(jitunwind_find_perf event what)
  find_program(JITUNWIND_PERF_PROGRAM perf)
  set(jitunwind_perf "")
  set(options "")
  if(JITUNWIND_PERF_PROGRAM)
    execute_process(COMMAND ${JITUNWIND_PERF_PROGRAM} record -e ${event} --call-graph dwarf
                            -o ${CMAKE_CURRENT_BINARY_DIR}/perf.data true
                    RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
    if(status EQUAL 0)
      set(jitunwind_perf ${JITUNWIND_PERF_PROGRAM})
      execute_process(COMMAND ${jitunwind_perf} version --build-options OUTPUT_VARIABLE options ERROR_QUIET)
    endif()
  endif()
  if(NOT jitunwind_perf)
    jitunwind_not_tested("${what}" "perf was not found or may not record (Debian: linux-perf)")
  endif()
  set(jitunwind_perf "${jitunwind_perf}" PARENT_SCOPE)
  string(REGEX MATCH "libunwind: \\[ on" follows "${options}")
  set(jitunwind_perf_follows_files "${follows}" PARENT_SCOPE)
endfunction()

# jitunwind_find_unshare(what options...): sets jitunwind_unshare to the command of util-linux, with these options, that
# runs another one in a mount namespace of its own. A mount namespace begins with a root that passes nothing on to
# others; if the root folder is no mount point, there is none to tell. Otherwise the variable is empty, and `what` is
# listed as not tested.
function(jitunwind_find_unshare what)
  list(JOIN ARGN " " options)
  find_program(unshare_program unshare)
  set(command "${unshare_program} $(test $(id -u) = 0 || echo --user --map-root-user) --mount ${options}")
  set(status 1)
  set(said "")
  if(unshare_program)
    execute_process(COMMAND sh -c "${command} true" RESULT_VARIABLE status ERROR_VARIABLE said)
  endif()
  if(NOT status EQUAL 0)
    string(STRIP "${said}" said)
    jitunwind_not_tested("${what}" "${said} (a chroot whose root is no mount point, or no unshare?)")
    set(command "")
  endif()
  set(jitunwind_unshare "${command}" PARENT_SCOPE)
endfunction()

# jitunwind_libgcc_has_tree(variable library): whether that library of the compiler's is of libgcc 13 or newer, which
# keeps a tree of the frames that __register_frame was given. An archive has the tree's name, and the shared library has
# its own version.
function(jitunwind_libgcc_has_tree variable library)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=${library} OUTPUT_VARIABLE path
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  file(STRINGS ${path} ${variable} REGEX "registered_frames|GCC_13[.]0[.]0" LIMIT_COUNT 1)
  return(PROPAGATE ${variable})
endfunction()

# jitunwind_precompiled(name HEADERS header... [LINK lib...] [OPTIONS option...]): compiles headers that many
# translation units read once for all of them. The options must be the same. gcc reports a difference, but not one of
# -O, at which it crashes.
function(jitunwind_precompiled name)
  cmake_parse_arguments(arg "" "" "HEADERS;LINK;OPTIONS" ${ARGN})
  set(unit ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${unit} CONTENT "// A target has a source.\n")
  add_library(${name} OBJECT ${unit})
  target_link_libraries(${name} PRIVATE jitunwind_options ${arg_LINK})
  target_compile_options(${name} PRIVATE ${arg_OPTIONS})
  list(TRANSFORM arg_HEADERS REPLACE "(.+)" "<\\1>")
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
  jitunwind_pch_options(${name})
endfunction()

# -fpch-preprocess tells ccache what gcc read. gcc 12's optimiser reports warnings in precompiled code of the standard
# library that it hides elsewhere (-O2: string + string reads behind a string). Clang judges the code of the tests, too.
function(jitunwind_pch_options name)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(options -fpch-preprocess -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-maybe-uninitialized)
    target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${options}>")
  endif()
endfunction()

# jitunwind_use_precompiled(name): uses the headers that the folder's variable jitunwind_test_headers names, if it is
# set.
function(jitunwind_use_precompiled name)
  if(jitunwind_test_headers)
    target_precompile_headers(${name} REUSE_FROM ${jitunwind_test_headers})
    jitunwind_pch_options(${name})
    get_target_property(sources ${name} SOURCES)
    list(FILTER sources INCLUDE REGEX "\\.c$")
    # The headers are C++.
    set_source_files_properties(${sources} PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# jitunwind_always_optimised(source...): optimises sources whose own frames are measured or walked, even if tests are
# not optimised.
function(jitunwind_always_optimised)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O2> SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# jitunwind_left_to_all(what...): these tests need more time than a change has. They are declared with
# JITUNWIND_ALL_TESTS alone; otherwise they are named behind the results. The function sets jitunwind_all in the
# caller's scope, which says whether they are declared.
function(jitunwind_left_to_all)
  if(NOT JITUNWIND_ALL_TESTS)
    set_property(GLOBAL APPEND PROPERTY jitunwind_left_to_all ${ARGN})
  endif()
  set(jitunwind_all ${JITUNWIND_ALL_TESTS} PARENT_SCOPE)
endfunction()

# jitunwind_lacks(reason library...): these libraries that tests link are missing. Tests that link them are not built,
# and are named.
function(jitunwind_lacks reason)
  foreach(library IN LISTS ARGN)
    set_property(GLOBAL APPEND PROPERTY jitunwind_lacking ${library})
    set_property(GLOBAL PROPERTY jitunwind_lacking_${library} "${reason}")
  endforeach()
endfunction()

# jitunwind_lacks_any(variable name library...): whether the program links a library that is missing. Such a program is
# only declared, so that later commands may name it.
function(jitunwind_lacks_any variable name)
  get_property(lacking GLOBAL PROPERTY jitunwind_lacking)
  set(${variable} FALSE)
  foreach(library IN LISTS ARGN)
    if(library IN_LIST lacking)
      get_property(reason GLOBAL PROPERTY jitunwind_lacking_${library})
      jitunwind_not_tested(${name} "${reason}")
      set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
      set(${variable} TRUE)
      break()
    endif()
  endforeach()
  return(PROPAGATE ${variable})
endfunction()

function(jitunwind_test_settings name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;DEFINITIONS" ${ARGN})
  target_link_libraries(${name} PRIVATE jitunwind_options jitunwind_test_support jitunwind_static ${arg_LINK})
  target_compile_definitions(${name} PRIVATE ${arg_DEFINITIONS}
                             JITUNWIND_SOURCE_DIR="${PROJECT_SOURCE_DIR}" JITUNWIND_BINARY_DIR="${PROJECT_BINARY_DIR}")
endfunction()

# jitunwind_test(name [ALL] [ONE_THREAD] [WITH program] SOURCES... [LINK lib...] [DEFINITIONS def...]
#                [NOT_EMULATED filter reason] [NEEDS_A_MACHINE filter reason]): a GoogleTest program against the static
# library. Each of its tests is a test of ctest, in a process of its own. WITH: the sources are a part of that program,
# which was declared before, except for an emulated CPU, for which each program is one test. ALL: the program is left to
# ./dev test --all, and only declared elsewhere. ONE_THREAD: it makes no threads, so that ThreadSanitizer would see
# nothing, and the program is only declared there. Tests that the first filter names (--gtest_filter) do not run if a
# CPU is emulated. Those that the second filter names run if the emulator is a whole machine with a kernel
# (machine_areas, JitunwindEmulated.cmake).
function(jitunwind_test name)
  cmake_parse_arguments(arg "ALL;ONE_THREAD" "WITH" "SOURCES;LINK;DEFINITIONS;NOT_EMULATED;NEEDS_A_MACHINE" ${ARGN})
  if(arg_WITH AND NOT CMAKE_CROSSCOMPILING)
    if(arg_ONE_THREAD AND JITUNWIND_SANITIZE MATCHES thread)
      jitunwind_not_tested(${name} "it makes no threads")
      return()
    endif()
    target_sources(${arg_WITH} PRIVATE ${arg_SOURCES})
    target_link_libraries(${arg_WITH} PRIVATE ${arg_LINK})
    target_compile_definitions(${arg_WITH} PRIVATE ${arg_DEFINITIONS})
    if(jitunwind_test_units)
      jitunwind_units(${arg_WITH} ALWAYS)
    endif()
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  if(arg_ONE_THREAD AND JITUNWIND_SANITIZE MATCHES thread)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    jitunwind_not_tested(${name} "it makes no threads")
    return()
  endif()
  if(arg_ALL)
    jitunwind_left_to_all(${name})
    if(NOT jitunwind_all)
      set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
      return()
    endif()
  endif()
  jitunwind_lacks_any(lacks ${name} ${arg_LINK})
  if(lacks)
    return()
  endif()
  jitunwind_test_settings(${name} LINK ${arg_LINK} DEFINITIONS ${arg_DEFINITIONS})
  list(FILTER arg_SOURCES INCLUDE REGEX "\\.cpp$")
  list(LENGTH arg_SOURCES number)
  if(jitunwind_test_units AND number GREATER 1)
    jitunwind_units(${name} ALWAYS)
  endif()
  jitunwind_use_precompiled(${name})
  target_link_libraries(${name} PRIVATE GTest::gtest_main)
  if(NOT CMAKE_CROSSCOMPILING)
    gtest_discover_tests(${name} NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
    return()
  endif()
  # Each program is one test, because an emulator takes longer to start than most tests take.
  set(left_out "")
  set(left_out_of_machine "")
  foreach(why IN ITEMS NOT_EMULATED NEEDS_A_MACHINE)
    if(arg_${why} AND CMAKE_CROSSCOMPILING_EMULATOR)
      list(GET arg_${why} 0 filter)
      list(GET arg_${why} 1 reason)
      list(APPEND left_out ${filter})
      if(why STREQUAL "NOT_EMULATED")
        set(left_out_of_machine "${filter}")
      endif()
      jitunwind_not_tested("${filter}" "${reason}")
    endif()
  endforeach()
  list(JOIN left_out ":" left_out)
  if(NOT jitunwind_needs_a_machine)
    add_test(NAME ${name} COMMAND ${name} --gtest_filter=-${left_out})
    set_tests_properties(${name} PROPERTIES TIMEOUT 300)
  endif()
  if(jitunwind_runs_on_a_machine)
    jitunwind_machine_test(${name} LEFT_OUT "${left_out_of_machine}")
  endif()
endfunction()

# jitunwind_counted_test(name program): a test whose program callgrind counts, from name.cpp and program.cpp. It
# gets the path of valgrind and that of the program, the latter by its name in capital letters.
function(jitunwind_counted_test name program)
  if(JITUNWIND_SANITIZE OR NOT JITUNWIND_VALGRIND OR NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    jitunwind_not_tested("${name}" "sanitizers add instructions of their own, or valgrind was not found for this CPU")
    return()
  endif()
  string(TOUPPER ${program} definition)
  add_executable(${program} ${program}.cpp)
  target_link_libraries(${program} PRIVATE jitunwind_options jitunwind_static)
  jitunwind_test(${name} SOURCES ${name}.cpp
                 DEFINITIONS VALGRIND="${JITUNWIND_VALGRIND}" ${definition}="$<TARGET_FILE:${program}>")
  add_dependencies(${name} ${program})
endfunction()

# jitunwind_only_by_emulate(program... [TEST test...]): `./dev test`, whose time is scarce, neither builds nor runs
# these programs for an emulated CPU, though `./dev emulate` does. The tests have the programs' names unless they are
# given.
function(jitunwind_only_by_emulate)
  if(CMAKE_CROSSCOMPILING)
    cmake_parse_arguments(arg "" "" "TEST" ${ARGN})
    if(NOT arg_TEST)
      set(arg_TEST ${arg_UNPARSED_ARGUMENTS})
    endif()
    set_target_properties(${arg_UNPARSED_ARGUMENTS} PROPERTIES JITUNWIND_ONLY_BY_EMULATE ON)
    set_tests_properties(${arg_TEST} PROPERTIES LABELS only_by_emulate)
  endif()
endfunction()

# jitunwind_counts_allocations(name): adds tests/support/counted_allocations.h to a program against static libraries.
function(jitunwind_counts_allocations name)
  target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/counted_allocations.cpp)
  target_link_options(${name} PRIVATE -Wl,--wrap=malloc,--wrap=free)
endfunction()

# jitunwind_whole_test(name SOURCES... [LINK lib...] [DEFINITIONS def...] TEST test): does the same, with all cases of
# the program as one test.
function(jitunwind_whole_test name)
  cmake_parse_arguments(arg "" "TEST" "SOURCES;LINK;DEFINITIONS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  jitunwind_test_settings(${name} LINK ${arg_LINK} DEFINITIONS ${arg_DEFINITIONS})
  target_link_libraries(${name} PRIVATE GTest::gtest_main)
  add_test(NAME ${arg_TEST} COMMAND ${name})
  set_tests_properties(${arg_TEST} PROPERTIES TIMEOUT 300 SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
endfunction()

# jitunwind_output_test(name [STATUS status] PRINTS regex COMMAND...): passes if the command ends with exit status 0, or
# the given one, and prints text that matches. tests/support/check_output compares. CMake's own PASS_REGULAR_EXPRESSION
# ignores how a command ended.
function(jitunwind_output_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PRINTS;STATUS" "COMMAND")
  if(NOT DEFINED arg_STATUS)
    set(arg_STATUS 0)
  endif()
  add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/tests/support/check_output "${arg_STATUS}" "${arg_PRINTS}" ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 120)
endfunction()

# jitunwind_proof(name SOURCES... [LINK lib...] [DEFINITIONS def...] [ARGS arg...]): a program with a main() of its own
# that prints its figures and fails by its exit status. `./dev prove` runs it (ctest label prove), `./dev test` does
# not. The target jitunwind_proofs builds it, the target all does not.
add_custom_target(jitunwind_proofs)
function(jitunwind_proof name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;DEFINITIONS;ARGS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${arg_SOURCES})
  jitunwind_lacks_any(lacks ${name} ${arg_LINK})
  if(lacks)
    return()
  endif()
  jitunwind_test_settings(${name} SOURCES ${arg_SOURCES} LINK ${arg_LINK} DEFINITIONS ${arg_DEFINITIONS})
  add_dependencies(jitunwind_proofs ${name})
  add_test(NAME ${name} COMMAND ${name} ${arg_ARGS})
  set_tests_properties(${name} PROPERTIES LABELS prove TIMEOUT 7200)
endfunction()

# jitunwind_fuzzer(name SOURCES... [LINK lib...]): the source defines LLVMFuzzerTestOneInput. It becomes
# the libFuzzer program fuzz_<name>, which `./dev fuzz` runs, if JITUNWIND_FUZZ is set. Otherwise it becomes the test fuzz_<name>, which
# plays the kept corpus, tests/fuzz/corpus/<name>, through the same function. The target jitunwind_fuzzers builds all of
# them.
add_custom_target(jitunwind_fuzzers)
function(jitunwind_fuzzer name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;DEFINITIONS" ${ARGN})
  set(target fuzz_${name})
  add_executable(${target} ${arg_SOURCES})
  jitunwind_test_settings(${target} ${ARGN})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/fuzz)
  add_dependencies(jitunwind_fuzzers ${target})
  if(JITUNWIND_FUZZ)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  else()
    if(NOT TARGET jitunwind_replay)
      add_library(jitunwind_replay OBJECT ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cpp)
      target_link_libraries(jitunwind_replay PRIVATE jitunwind_options)
    endif()
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:jitunwind_replay>)
    add_test(NAME ${target} COMMAND ${target} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
  endif()
endfunction()
