# libgcc_s as other distributions and bundles have it, made from the objects of the compiler's static one. The code is
# the same, and its names are shown again. A hidden name stays hidden, so each shown name is a jump to the hidden one
# under another name.
set(variants ${CMAKE_CURRENT_BINARY_DIR}/libgcc_variants)
file(MAKE_DIRECTORY ${variants}/objects)
foreach(archive IN ITEMS libgcc_eh libgcc)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=${archive}.a OUTPUT_VARIABLE ${archive}
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
endforeach()

file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/libgcc_s.map shown REGEX "^    [_a-zA-Z0-9]+;$")
set(stubs "        .text\n")
set(new_names "")
foreach(name IN LISTS shown)
  string(REGEX MATCH "[_a-zA-Z0-9]+" name "${name}")
  string(APPEND stubs "        .globl ${name}\n        .type ${name}, @function\n${name}: endbr64\n        jmp hidden_${name}\n")
  string(APPEND new_names "${name} hidden_${name}\n")
endforeach()
string(APPEND stubs "        .section .note.GNU-stack, \"\", @progbits\n")
file(CONFIGURE OUTPUT ${variants}/stubs.S CONTENT "${stubs}")
file(CONFIGURE OUTPUT ${variants}/new_names CONTENT "${new_names}")
string(REPLACE "_Unwind_Find_FDE hidden__Unwind_Find_FDE\n" "" new_names "${new_names}")
file(CONFIGURE OUTPUT ${variants}/new_names_of_caller CONTENT "${new_names}")

set(callers unwind-dw2.o)  # calls _Unwind_Find_FDE
set(others unwind-dw2-fde-dip.o unwind-c.o)
set(arithmetic _udivdi3.o _udivmoddi4.o _popcountsi2.o eqtf2.o getf2.o letf2.o unordtf2.o)
set(objects ${callers} ${others} ${arithmetic})
set(renamed "")
set(commands "")
foreach(object IN LISTS objects)
  set(names ${variants}/new_names)
  if(object IN_LIST callers)
    set(names ${variants}/new_names_of_caller)
  endif()
  list(APPEND commands COMMAND ${CMAKE_OBJCOPY} --redefine-syms=${names} ${object} renamed-${object})
  list(APPEND renamed ${variants}/objects/renamed-${object})
endforeach()
add_custom_command(
  OUTPUT ${renamed}
  COMMAND ${CMAKE_AR} x ${libgcc_eh} ${callers} ${others}
  COMMAND ${CMAKE_AR} x ${libgcc} ${arithmetic}
  ${commands}
  DEPENDS ${variants}/new_names ${variants}/new_names_of_caller
  WORKING_DIRECTORY ${variants}/objects VERBATIM)
add_custom_target(links_libgcc_objects DEPENDS ${renamed})

# links_libgcc(name option...): makes a folder of that name with a libgcc_s.so.1.
function(links_libgcc name)
  add_library(links_libgcc_${name} SHARED ${variants}/stubs.S)
  add_dependencies(links_libgcc_${name} links_libgcc_objects)
  set_target_properties(links_libgcc_${name} PROPERTIES OUTPUT_NAME gcc_s SOVERSION 1 LINKER_LANGUAGE C
                        LIBRARY_OUTPUT_DIRECTORY ${variants}/${name}
                        LINK_DEPENDS "${renamed};${CMAKE_CURRENT_SOURCE_DIR}/libgcc_s.map")
  target_link_options(links_libgcc_${name} PRIVATE -nostdlib ${renamed}
                      -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/libgcc_s.map ${ARGN} ${libgcc} -lc)
endfunction()
links_libgcc(lazy -Wl,-z,relro,-z,lazy)
links_libgcc(now -Wl,-z,relro,-z,now)
links_libgcc(old_hash -Wl,-z,relro,-z,lazy,--hash-style=sysv)
links_libgcc(without_slot -Wl,-Bsymbolic-functions)
