# musl in place of glibc, by Debian's musl-tools, whose programs run on this machine. musl-gcc compiles C++, too, and links
# it without libstdc++: Debian has none for musl. So of the libraries only libjitunwind-core can be linked, which needs the
# C library alone. Headers of libstdc++ that it includes are those for glibc; the folder musl has what they ask of glibc.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER musl-gcc)
set(CMAKE_CXX_COMPILER musl-gcc)

set(kernel_headers ${CMAKE_BINARY_DIR}/kernel_headers)
file(MAKE_DIRECTORY ${kernel_headers})
file(CREATE_LINK /usr/include/linux ${kernel_headers}/linux SYMBOLIC)
file(CREATE_LINK /usr/include/asm-generic ${kernel_headers}/asm-generic SYMBOLIC)
file(CREATE_LINK /usr/include/x86_64-linux-gnu/asm ${kernel_headers}/asm SYMBOLIC)

# g++ names the folders that it searches, each on a line of its own.
execute_process(COMMAND g++ -E -v -x c++ /dev/null OUTPUT_QUIET ERROR_VARIABLE searched)
string(REGEX MATCHALL "\n /[^\n ]*/c[+][+]/[^\n ]*" cxx_headers "${searched}")
execute_process(COMMAND g++ -print-file-name=include OUTPUT_VARIABLE compiler_headers)
set(folders ${CMAKE_CURRENT_LIST_DIR}/musl ${cxx_headers} /usr/include/x86_64-linux-musl ${compiler_headers} ${kernel_headers})
list(TRANSFORM folders STRIP)
list(JOIN folders " -isystem " folders)
# musl-gcc's linker makes no table of the call frame information, and no build id, unless it is told to.
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-Wl,--eh-frame-hdr -Wl,--build-id")
set(CMAKE_C_FLAGS_INIT "-isystem ${kernel_headers}")
set(CMAKE_CXX_FLAGS_INIT "-nostdinc -isystem ${folders}")
