# cmake -DLINKER=... -DEVEN=... -DODD=... -DFOLDER=... -DCOUNT=... -P link_libraries.cmake: links two objects in turn
# into COUNT libraries, FOLDER/N.so from N = 0 on, which differ in their build ids.
file(MAKE_DIRECTORY ${FOLDER})
math(EXPR last "${COUNT} - 1")
foreach(number RANGE ${last})
  math(EXPR is_odd "${number} % 2")
  if(is_odd)
    set(object ${ODD})
  else()
    set(object ${EVEN})
  endif()
  set(id 000000000000000000000000000000000000${number})
  string(LENGTH ${id} length)
  math(EXPR surplus "${length} - 36")
  string(SUBSTRING ${id} ${surplus} 36 id)
  execute_process(COMMAND ${LINKER} -shared ${object} -o ${FOLDER}/${number}.so --build-id=0x4a544c42${id} --hash-style=gnu
                          --eh-frame-hdr COMMAND_ERROR_IS_FATAL ANY)
endforeach()
