# Programs with functions in a segment, made by one adapter each, run commands that look at them. The commands know
# nothing of this library; they see the whole stack, with names.
set(published_folder ${CMAKE_CURRENT_LIST_DIR})

# Sets published_gdb, published_eu_stack and published_strace; the first one is empty if there is nothing to be seen by.
set(published_gdb)
if(JITUNWIND_SANITIZE)
  jitunwind_not_tested("other programs' view of code segments" "sanitizers' run-time libraries are not traced")
elseif(NOT CMAKE_CROSSCOMPILING AND NOT CMAKE_SIZEOF_VOID_P EQUAL 4)
  find_program(gdb_program gdb)
  find_program(eu_stack_program eu-stack)
  find_program(strace_program strace)
  if(gdb_program AND eu_stack_program AND strace_program)
    set(published_gdb "${gdb_program} -nx -q -batch -iex 'set debuginfod enabled off' -iex 'set auto-load off'")
    set(published_eu_stack ${eu_stack_program})
    set(published_strace ${strace_program})
  else()
    jitunwind_not_tested("other programs' view of code segments"
                         "gdb, eu-stack or strace was not found (Debian: gdb, elfutils, strace)")
  endif()
endif()

# published_program(name library SOURCES... [LINK library...] [DEFINITIONS definition...])
function(published_program name library)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "SOURCES;LINK;DEFINITIONS")
  add_executable(${name} ${published_folder}/published_program.cpp ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE jitunwind_options ${arg_LINK} ${library})
  target_compile_definitions(${name} PRIVATE ${arg_DEFINITIONS})
  target_compile_options(${name} PRIVATE -g1 -O1)
endfunction()

# seen_by(by tool command): a command that prints the stack of the process PID of the program PROGRAM.
function(seen_by by tool command)
  string(REPLACE PROGRAM $<TARGET_FILE:published_by_${by}> command "${command}")
  jitunwind_output_test(code_segments.${tool}.${by} PRINTS "look.*jit_inner.*go_on.*jit_outer.*main.*\\nreturned\\n\\z"
                        COMMAND $<TARGET_FILE:published_by_${by}> "${command}")
endfunction()

# seen_by_perf(by name [command]): perf reads the files when it reports, so they are kept. The command runs the program.
function(seen_by_perf by name)
  jitunwind_find_perf(cpu-clock "perf's view of code segments")
  if(NOT jitunwind_perf)
    return()
  endif()
  set(place ${CMAKE_CURRENT_BINARY_DIR}/perf_place_${name})
  # A cache of its own: in the user's one, files without a build-id may have the symbols of others.
  set(perf "${jitunwind_perf} --buildid-dir ${place}/cache")
  set(record "${perf} record -N -e cpu-clock --call-graph dwarf -o ${place}/data ${ARGN} $<TARGET_FILE:published_by_${by}> burn")
  jitunwind_output_test(code_segments.perf.${name}
    PRINTS "look[^\\n]*\\n[^\\n]*jit_inner[^\\n]*\\n[^\\n]*(call[^\\n]*\\n[^\\n]*)?go_on[^\\n]*\\n[^\\n]*jit_outer.*main"
    COMMAND sh -c "rm -rf ${place} && mkdir ${place} && JITUNWIND_CODE_DIR=${place} JITUNWIND_CODE_FILES=keep ${record} >/dev/null 2>&1 && ${perf} script -i ${place}/data 2>/dev/null")
endfunction()

# seen_by_strace(by): the stack of a system call.
function(seen_by_strace by)
  jitunwind_output_test(code_segments.strace.${by} PRINTS "look.*jit_inner.*go_on.*jit_outer.*main"
                        COMMAND ${published_strace} -k -e trace=getppid $<TARGET_FILE:published_by_${by}>)
endfunction()

# published_by(by SOURCES... [LINK library...] [DEFINITIONS definition...]): the sources define make_functions().
function(published_by by)
  published_program(published_by_${by} jitunwind_static ${ARGN})
  if(NOT published_gdb)
    return()
  endif()
  set(core ${CMAKE_CURRENT_BINARY_DIR}/core-PID)
  set(write_core "${published_gdb} -p PID -ex 'gcore ${core}' >/dev/null 2>&1")
  seen_by(${by} gdb "${published_gdb} -p PID -ex backtrace 2>&1")
  seen_by(${by} gdb_core "${write_core} && ${published_gdb} PROGRAM ${core} -ex backtrace 2>&1 && rm ${core}")
  seen_by(${by} eu-stack "${published_eu_stack} -p PID")
  seen_by(${by} eu-stack_core "${write_core} && ${published_eu_stack} --core=${core} -e PROGRAM && rm ${core}")
  seen_by_perf(${by} ${by})
  jitunwind_output_test(code_segments.backtrace_symbols.${by}
    PRINTS "/code-[^\\n]*\\(jit_inner\\+0x[^\\n]*\\n([^\\n]*\\n)+[^\\n]*/code-[^\\n]*\\(jit_outer\\+0x"
    COMMAND $<TARGET_FILE:published_by_${by}> names)
  # The exception runtime in this program looks at loaded objects, and reaches no other definition than its own.
  published_program(throws_by_${by} jitunwind_shared ${ARGN})
  # Its personality routine is of the same runtime, also for code that looks it up.
  target_link_options(throws_by_${by} PRIVATE -static-libgcc -static-libstdc++ -Wl,-u,_Unwind_Find_FDE -l:libgcc_eh.a
                      -Wl,--export-dynamic-symbol=__gxx_personality_v0)
  jitunwind_output_test(code_segments.throw.${by} PRINTS "\\nthrown\\nreturned\\n\\z"
                        COMMAND $<TARGET_FILE:throws_by_${by}> throw)
endfunction()
