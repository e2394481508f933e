# The target jitunwind_reference: the C++ reference by Doxygen, in the build folder's reference/html.
find_program(doxygen_program doxygen)
find_package(Python3 QUIET COMPONENTS Interpreter)
if(NOT doxygen_program OR NOT Python3_FOUND)
  return()
endif()
configure_file(${PROJECT_SOURCE_DIR}/docs/Doxyfile.in ${PROJECT_BINARY_DIR}/Doxyfile @ONLY)
add_custom_target(jitunwind_reference COMMAND ${doxygen_program} ${PROJECT_BINARY_DIR}/Doxyfile
                  COMMENT "Making the C++ reference: ${PROJECT_BINARY_DIR}/reference/html/index.html" VERBATIM)
