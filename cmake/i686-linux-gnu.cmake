# Debian's cross compiler for 32-bit x86 (g++-i686-linux-gnu). Machines of x86-64 run its programs, with the libraries
# that come with it. The libraries of another package need not be there. Each library names their folder, too: a library
# with a DT_RUNPATH of its own is not searched by the program's DT_RPATH (ld.so(8)).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR i686)
set(CMAKE_C_COMPILER i686-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER i686-linux-gnu-g++)
set(i686_libraries /usr/i686-linux-gnu/lib)
set(CMAKE_EXE_LINKER_FLAGS_INIT
    "-Wl,--dynamic-linker=${i686_libraries}/ld-linux.so.2 -Wl,-rpath,${i686_libraries},--disable-new-dtags")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-Wl,-rpath,${i686_libraries}")
set(CMAKE_MODULE_LINKER_FLAGS_INIT ${CMAKE_SHARED_LINKER_FLAGS_INIT})
set(CMAKE_FIND_ROOT_PATH /usr/i686-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
