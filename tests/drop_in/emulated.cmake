# The programs are built for another CPU and run under an emulator. Debian's library and tools are for the machine's own CPU, so
# what the programs print is written here.

# libunwind.so.8 of 1.6 as a linker sees it: the names that the programs use, without versions.
set(names "void* _UL${JITUNWIND_CPU}_local_addr_space;\n")
foreach(name IN ITEMS _U${JITUNWIND_CPU}_getcontext _U${JITUNWIND_CPU}_setcontext _UL${JITUNWIND_CPU}_init_local
                      _UL${JITUNWIND_CPU}_init_local2 _UL${JITUNWIND_CPU}_step _UL${JITUNWIND_CPU}_get_reg
                      _UL${JITUNWIND_CPU}_get_proc_name _UL${JITUNWIND_CPU}_is_signal_frame
                      _UL${JITUNWIND_CPU}_set_caching_policy unw_backtrace backtrace _U_dyn_register _U_dyn_cancel
                      _U_dyn_info_list_addr _ReadULEB _ReadSLEB __libunwind_Unwind_RaiseException
                      __libunwind_Unwind_Backtrace __libunwind_Unwind_GetRegionStart __libunwind_Unwind_GetIP
                      __libunwind_Unwind_FindEnclosingFunction __libunwind_Unwind_GetBSP)
  string(APPEND names "void ${name}(void);\nvoid ${name}(void) {}\n")
endforeach()
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/names.c "${names}")
add_library(drop_in_names SHARED ${CMAKE_CURRENT_BINARY_DIR}/names.c)
target_compile_options(drop_in_names PRIVATE -fno-builtin)
set_target_properties(drop_in_names PROPERTIES OUTPUT_NAME unwind SOVERSION 8)

set(DROP_IN_C walking setjmp cleanup frames others)
set(DROP_IN_CPP exception registering thread_exit)
foreach(name IN LISTS DROP_IN_C DROP_IN_CPP)
  set(target drop_in_${name})
  set(extension c)
  if(name IN_LIST DROP_IN_CPP)
    set(extension cpp)
  endif()
  add_executable(${target} ${name}_program.${extension})
  target_link_libraries(${target} PRIVATE jitunwind_options -Wl,--no-as-needed drop_in_names -Wl,--as-needed
                        ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON BUILD_WITH_INSTALL_RPATH ON
                        INSTALL_RPATH "${PROJECT_BINARY_DIR}/drop_in;${PROJECT_BINARY_DIR}/tests/support")
  add_dependencies(${target} jitunwind_drop_in_generic jitunwind_drop_in_setjmp)
endforeach()
target_link_libraries(drop_in_frames PRIVATE jitunwind_stripped_frames)

# drop_in_output(name program PRINTS regex [STATUS status] [PRELOAD library] [ARGUMENTS argument...]): compares the
# output of a program.
function(drop_in_output name program)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "PRINTS;STATUS;PRELOAD" "ARGUMENTS")
  set(preload "")
  if(arg_PRELOAD)
    set(preload -E LD_PRELOAD=${arg_PRELOAD})
  endif()
  if(NOT DEFINED arg_STATUS)
    set(arg_STATUS 0)
  endif()
  jitunwind_output_test(DropIn.${name} STATUS ${arg_STATUS} PRINTS "${arg_PRINTS}"
                        COMMAND ${CMAKE_CROSSCOMPILING_EMULATOR} ${preload} $<TARGET_FILE:drop_in_${program}>
                                ${arg_ARGUMENTS})
endfunction()

set(setjmp $<TARGET_FILE:jitunwind_drop_in_setjmp>)
include(jumps.cmake)
drop_in_output(ProgramsOfRelease16SeeCodeMadeAtRunTime walking ARGUMENTS twice
  PRINTS "\\Awalk\\nmade_at_run_time\\nmain\\nsame lists\\nbacktrace of libunwind.so.8\\n\\Z")
drop_in_output(JumpsOfTheCLibrary setjmp PRINTS ${jumps})
drop_in_output(JumpsAreThoseOfTheCLibrary setjmp PRELOAD ${setjmp} PRINTS ${jumps})
drop_in_output(JumpsAreMadeByThisLibrary setjmp PRELOAD ${setjmp} ARGUMENTS never_set STATUS 134
  PRINTS "jitunwind: longjmp: the buffer was never set\\n")
drop_in_output(CleanupsOfCAreRun cleanup PRELOAD ${setjmp}
  PRINTS ${cleanups})
string(CONCAT ends "\\Adestructor of the function that called pthread_exit\\ndestructor of the thread\\nended\\n"
                   "destructor of the function that was cancelled\\ndestructor of the thread\\ncancelled\\n\\Z")
drop_in_output(ThreadsEndAsTheyDoWithoutLibunwind thread_exit PRINTS ${ends})
string(CONCAT frames "\\Ahandler[+][0-9]+, signal frame 0, in .\\n[^\\n]*, signal frame 0[^\\n]*\\n"
                     "faults[+]0, signal frame 1, in faults\\nstripped_before[+][^\\n]*\\n.*\\n"
                     "from the context\\nfaults[+]0, signal frame 0, [^\\n]*\\n\\Z")
drop_in_output(FramesAreWhatProgramsOfRelease16Expect frames PRINTS ${frames})
drop_in_output(DescriptorThatTwoThreadsRegisterAtOnceIsRegisteredOnce registering
  PRINTS "\\A0 times not registered once\\n0 listed in the end\\n\\Z")
drop_in_output(TheOtherFunctionsAreThoseOfLibunwind others ARGUMENTS go
  PRINTS "3 3: 98765 624485\\n(.*\\n)*here 1\\nhere 2\\nhere 3\\n\\Z")
drop_in_output(OtherNamesOfTheExceptionAbiThrowAsOnLibunwind exception
  PRINTS "\\Awalked 5\\nmain\\ndestructor\\ncaught\\ncleaned up\\n\\Z")
