# Programs of the other C++ run-time library, libc++, are compiled by the compiler that comes with it. A CMake project
# has one compiler, so these programs are built by commands. JITUNWIND_LIBCXX says whether there is such a compiler: the
# newest clang that has libc++ (Debian: clang-19, libc++-19-dev, libc++abi-19-dev). Programs with sanitizers are not
# built, because their run-time libraries are those of the other compiler.
include(JitunwindNewest)
set(JITUNWIND_LIBCXX FALSE)
set(program ${CMAKE_CURRENT_BINARY_DIR}/libcxx_program.cpp)
file(WRITE ${program} "#include <string>\nint main() { return std::string().size() != 0; }\n")
jitunwind_names_of_releases(compilers clang++)
foreach(compiler IN LISTS compilers ITEMS clang++)
  find_program(libcxx_${compiler} ${compiler})
  if(libcxx_${compiler})
    # A clang may find the headers of another release, but not its library.
    execute_process(COMMAND ${libcxx_${compiler}} -stdlib=libc++ ${program} -l:libc++abi.a -o /dev/null
                    RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
    if(status EQUAL 0)
      set(libcxx_compiler ${libcxx_${compiler}})
      set(JITUNWIND_LIBCXX TRUE)
      break()
    endif()
  endif()
endforeach()
if(JITUNWIND_SANITIZE)
  set(JITUNWIND_LIBCXX FALSE)
  jitunwind_not_tested("programs of libc++" "its compiler is not the one whose sanitizer is used")
elseif(NOT JITUNWIND_LIBCXX)
  jitunwind_not_tested("programs of libc++" "it was not found (Debian: clang-19, libc++-19-dev, libc++abi-19-dev)")
endif()

# jitunwind_libcxx_objects(variable SOURCES file...): compiles the files and puts the objects' paths into the variable.
function(jitunwind_libcxx_objects variable)
  cmake_parse_arguments(arg "" "" "SOURCES" ${ARGN})
  set(objects "")
  foreach(source IN LISTS arg_SOURCES)
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    cmake_path(GET source FILENAME name)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/libcxx/${name}.o)
    set(library_flags "")
    if(NOT name MATCHES "[.]S$")
      set(library_flags -stdlib=libc++ -std=c++20 -Wall -Wextra -Wconversion)
      if(JITUNWIND_WERROR)
        list(APPEND library_flags -Werror)
      endif()
    endif()
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/libcxx
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${libcxx_compiler} ${library_flags} -O2 -I${jitunwind_headers} -I${PROJECT_SOURCE_DIR}
              -I${PROJECT_SOURCE_DIR}/dyn_info -I${jitunwind_test_cpu} -MD -MF ${object}.d -MT ${object} -c ${source} -o ${object}
      DEPENDS ${source} DEPFILE ${object}.d
      COMMENT "Compiling ${name} with libc++" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()

# jitunwind_libcxx_program(name OBJECTS object... [LIBRARIES target...] [OPTIONS option...]): links
# ${CMAKE_CURRENT_BINARY_DIR}/<name>, with the options behind the libraries. The target <name>_built builds it.
function(jitunwind_libcxx_program name)
  cmake_parse_arguments(arg "" "" "OBJECTS;LIBRARIES;OPTIONS" ${ARGN})
  set(program ${CMAKE_CURRENT_BINARY_DIR}/${name})
  list(TRANSFORM arg_LIBRARIES REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE files)
  list(TRANSFORM arg_LIBRARIES REPLACE "(.+)" "-Wl,-rpath,$<TARGET_FILE_DIR:\\1>" OUTPUT_VARIABLE paths)
  add_custom_command(
    OUTPUT ${program}
    COMMAND ${libcxx_compiler} -stdlib=libc++ ${arg_OBJECTS} -o ${program} ${files} ${paths} ${arg_OPTIONS} -pthread
    DEPENDS ${arg_OBJECTS} ${arg_LIBRARIES}
    COMMENT "Linking ${name} with libc++" VERBATIM COMMAND_EXPAND_LISTS)
  add_custom_target(${name}_built ALL DEPENDS ${program})
endfunction()
