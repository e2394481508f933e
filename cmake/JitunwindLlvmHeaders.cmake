# jitunwind_llvm_header_options(variable): compiler options, one text, by which the headers of the LLVM that was found are
# included. Debian's folder of them has other projects' headers, too, such as the <cxxabi.h> of libc++: the compiler's own
# come first. Unless these are another LLVM's (Fedora).
function(jitunwind_llvm_header_options variable)
  set(option "-idirafter ")
  if(EXISTS /usr/include/llvm/Config/llvm-config.h)
    set(option "-isystem ")
  endif()
  list(TRANSFORM LLVM_INCLUDE_DIRS PREPEND ${option} OUTPUT_VARIABLE options)
  list(JOIN options " " options)
  set(${variable} "${options}" PARENT_SCOPE)
endfunction()
