# Many small libraries from one function with small and with large frames, for programs that have loaded many libraries.
set(JITUNWIND_MANY_LIBRARIES 500)
set(JITUNWIND_LIBRARIES_FOLDER ${PROJECT_BINARY_DIR}/many_libraries)

set(objects "")
foreach(room IN ITEMS 240 1200)
  set(object jitunwind_library_frame_${room})
  add_library(${object} OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/libraries/library_frame.c)
  # Both frames' code has one length, so that one library may have return addresses where another had them.
  set_target_properties(${object} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${object} PRIVATE -O2 -fomit-frame-pointer -fasynchronous-unwind-tables -fno-sanitize=all)
  target_compile_definitions(${object} PRIVATE ROOM=${room})
  list(APPEND objects $<TARGET_OBJECTS:${object}>)
endforeach()
list(GET objects 0 even)
list(GET objects 1 odd)
add_custom_command(
  OUTPUT ${JITUNWIND_LIBRARIES_FOLDER}/made
  COMMAND ${CMAKE_COMMAND} -DLINKER=${CMAKE_LINKER} -DEVEN=${even} -DODD=${odd}
          -DFOLDER=${JITUNWIND_LIBRARIES_FOLDER} -DCOUNT=${JITUNWIND_MANY_LIBRARIES}
          -P ${PROJECT_SOURCE_DIR}/bench/libraries/link_libraries.cmake
  COMMAND ${CMAKE_COMMAND} -E touch ${JITUNWIND_LIBRARIES_FOLDER}/made
  DEPENDS jitunwind_library_frame_240 jitunwind_library_frame_1200 ${objects}
          ${PROJECT_SOURCE_DIR}/bench/libraries/link_libraries.cmake
  COMMENT "Linking ${JITUNWIND_MANY_LIBRARIES} libraries" VERBATIM)
add_custom_target(jitunwind_many_libraries DEPENDS ${JITUNWIND_LIBRARIES_FOLDER}/made)

# jitunwind_uses_many_libraries(target): defines MANY_LIBRARIES as their folder and MANY_LIBRARIES_COUNT as their
# number.
function(jitunwind_uses_many_libraries target)
  target_compile_definitions(${target} PRIVATE MANY_LIBRARIES="${JITUNWIND_LIBRARIES_FOLDER}"
                             MANY_LIBRARIES_COUNT=${JITUNWIND_MANY_LIBRARIES})
  target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
  add_dependencies(${target} jitunwind_many_libraries)
endfunction()
