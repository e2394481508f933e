# Two targets. jitunwind_reference builds the reference of C++ and C by Doxygen in the build folder's reference/html.
# jitunwind_man_pages builds a manual page for each function of the C interface; the pages are installed.
find_package(Python3 QUIET COMPONENTS Interpreter)
if(NOT Python3_FOUND)
  message(STATUS "The manual pages of the C interface are not made: Python was not found (Debian: python3)")
  return()
endif()
file(GLOB c_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/sdk/c/*.h)
list(FILTER c_headers EXCLUDE REGEX "_p\\.h$")
list(PREPEND c_headers ${jitunwind_headers}/jitunwind/version.h)
set(man_pages ${PROJECT_BINARY_DIR}/man/man3)
add_custom_command(OUTPUT ${man_pages}/jitunwind.3 DEPENDS ${c_headers} ${PROJECT_SOURCE_DIR}/docs/man_pages.py
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${man_pages}
  COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/docs/man_pages.py ${PROJECT_VERSION} ${man_pages} ${c_headers}
  COMMENT "Making the manual pages: ${man_pages}" VERBATIM)
if(JITUNWIND_INSTALL)
  add_custom_target(jitunwind_man_pages ALL DEPENDS ${man_pages}/jitunwind.3)
  install(DIRECTORY ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT jitunwind_dev)
else()
  add_custom_target(jitunwind_man_pages DEPENDS ${man_pages}/jitunwind.3)
endif()

find_program(doxygen_program doxygen)
if(NOT doxygen_program)
  return()
endif()
configure_file(${PROJECT_SOURCE_DIR}/docs/Doxyfile.in ${PROJECT_BINARY_DIR}/Doxyfile @ONLY)
add_custom_target(jitunwind_reference COMMAND ${doxygen_program} ${PROJECT_BINARY_DIR}/Doxyfile
                  COMMENT "Making the reference: ${PROJECT_BINARY_DIR}/reference/html/index.html" VERBATIM)
