# jitunwind_llvm_header_options(variable): the compiler options, as one text, that include the headers of the LLVM that
# was found. Debian's folder of them has headers of other projects, too, such as <cxxabi.h> of libc++. So the compiler's
# own headers come first, unless these are another LLVM's (Fedora).
function(jitunwind_llvm_header_options variable)
  set(option "-idirafter ")
  if(EXISTS /usr/include/llvm/Config/llvm-config.h)
    set(option "-isystem ")
  endif()
  list(TRANSFORM LLVM_INCLUDE_DIRS PREPEND ${option} OUTPUT_VARIABLE options)
  list(JOIN options " " options)
  set(${variable} "${options}" PARENT_SCOPE)
endfunction()
