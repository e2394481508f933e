# The options that every target of the project is compiled with, and the functions that declare layers and libraries.
include(CheckCXXCompilerFlag)
include(CheckLinkerFlag)
include(CheckSymbolExists)
find_package(Threads REQUIRED)

# Headers are named from jitunwind/ on, by each other and by their users, here as in an installed copy. So a user's
# header that is called builders/instruction.h or gdb.h is never confused with one of these.
set(jitunwind_headers ${PROJECT_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${jitunwind_headers}/jitunwind)
foreach(folder IN ITEMS unwind_core dyn_info builders sdk adapters)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${folder} ${jitunwind_headers}/jitunwind/${folder} SYMBOLIC)
endforeach()
file(GLOB umbrellas CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/sdk/include/jitunwind/*.h
     ${PROJECT_SOURCE_DIR}/adapters/*/include/jitunwind/*.h)
foreach(header IN LISTS umbrellas)
  cmake_path(GET header FILENAME name)
  file(CREATE_LINK ${header} ${jitunwind_headers}/jitunwind/${name} SYMBOLIC)
endforeach()

# The number in the SONAMEs of all libraries and in the versions of their symbols: docs/stability.md.
set(JITUNWIND_ABI 1)
# project() in the main CMakeLists.txt is the one place of the version.
configure_file(${PROJECT_SOURCE_DIR}/sdk/version.h.in ${jitunwind_headers}/jitunwind/version.h @ONLY)

# The CPUs that the library knows, by the names that libunwind gives its targets.
set(cpu_list ${PROJECT_SOURCE_DIR}/unwind_core/arch/arch_list.def)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${cpu_list})
file(STRINGS ${cpu_list} JITUNWIND_CPUS REGEX "^JITUNWIND_ARCH")
list(TRANSFORM JITUNWIND_CPUS REPLACE "^JITUNWIND_ARCH.([a-z0-9_]+).*" "\\1")
# The CPU that the library is built for. A compiler of x86-64 may have been told -m32.
set(JITUNWIND_CPU ${CMAKE_SYSTEM_PROCESSOR})
if(JITUNWIND_CPU MATCHES "^(i[3-6]86|x86_64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 4)
  set(JITUNWIND_CPU x86)
endif()
if(NOT JITUNWIND_CPU OR NOT IS_DIRECTORY ${PROJECT_SOURCE_DIR}/unwind_core/arch/${JITUNWIND_CPU})
  message(FATAL_ERROR "jitunwind does not run on '${CMAKE_SYSTEM_PROCESSOR}': there is no folder of assembly for it in "
                      "unwind_core/arch. Targets of these CPUs can be walked from others: ${JITUNWIND_CPUS}.")
endif()
# The value goes into cmake/exports/jitunwind-listen.map: libgcc_s has functions that glibc once had, under the version
# that they had there. glibc for x86-64 never had them.
set(JITUNWIND_OLDER_FRAME_FUNCTIONS "")
if(NOT JITUNWIND_CPU STREQUAL "x86_64")
  set(JITUNWIND_OLDER_FRAME_FUNCTIONS "};\nGLIBC_2.0 {\n  global:")
endif()
# That map also has the versions that glibc has for backtrace_symbols, dladdr and dladdr1 on each CPU. The latter two
# have another one since glibc 2.34. On 64-bit CPUs the first is also that of mmap and its relatives, which the library
# defines there.
set(JITUNWIND_BACKTRACE_VERSION GLIBC_2.17)
set(JITUNWIND_DLADDR_VERSION GLIBC_2.17)
set(JITUNWIND_DLADDR1_VERSION GLIBC_2.17)
set(JITUNWIND_OLDER_DLADDR1 "")
if(JITUNWIND_CPU MATCHES "^x86")
  set(JITUNWIND_BACKTRACE_VERSION GLIBC_2.2.5)
  set(JITUNWIND_DLADDR_VERSION GLIBC_2.2.5)
  set(JITUNWIND_DLADDR1_VERSION GLIBC_2.3.3)
  set(JITUNWIND_OLDER_DLADDR1 "GLIBC_2.3.3 {\n};")
  if(JITUNWIND_CPU STREQUAL "x86")
    set(JITUNWIND_BACKTRACE_VERSION GLIBC_2.1)
    set(JITUNWIND_DLADDR_VERSION GLIBC_2.0)
  endif()
endif()

add_library(jitunwind_options INTERFACE)
target_compile_features(jitunwind_options INTERFACE cxx_std_20 c_std_11)
# Headers of LLVM 19 and older include <ciso646>, about which libstdc++ 16 has a #warning.
target_compile_options(jitunwind_options INTERFACE -Wall -Wextra -Wconversion -Wno-cpp $<$<BOOL:${JITUNWIND_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # gcc 12 warns of "text" + std::string when it inlines much (GCC bug 105651, fixed in 13).
  target_compile_options(jitunwind_options INTERFACE -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL Clang AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 15)
  # Clang warns of a function that std::stable_sort() of libstdc++ 12 uses. gcc and older clangs still report deprecated
  # functions in this project.
  target_compile_options(jitunwind_options INTERFACE -Wno-deprecated-declarations)
endif()
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
  target_compile_definitions(jitunwind_options INTERFACE _FILE_OFFSET_BITS=64)
endif()
# Tests, examples and the bench name their own headers from the root on.
target_include_directories(jitunwind_options INTERFACE ${jitunwind_headers} ${PROJECT_SOURCE_DIR})

if(JITUNWIND_SANITIZE)
  add_compile_options(-fsanitize=${JITUNWIND_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${JITUNWIND_SANITIZE})
  # LLVM's linker takes less than half the time for hundreds of programs. The plain build has the system's.
  check_linker_flag(CXX -fuse-ld=lld JITUNWIND_LINKS_BY_LLD)
  if(JITUNWIND_LINKS_BY_LLD)
    string(APPEND CMAKE_EXE_LINKER_FLAGS " -fuse-ld=lld")
  endif()
  if(JITUNWIND_SANITIZE MATCHES undefined AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # gcc compares the address of a thread-local with null by the flags of the addition that makes it. The linker makes
    # that addition an lea, which sets no flags. AddressSanitizer finds null pointers that are used.
    add_compile_options(-fno-sanitize=null)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # gcc warns of the standard library's own code when it has instrumented it (std::regex). The plain build has all
    # warnings.
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
  endif()
endif()
if(JITUNWIND_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# jitunwind_units(target [ALWAYS] [ALONE source...]): with JITUNWIND_UNITY, or always, all C++ of the target is one
# translation unit, except sources with names that another source has, too. Headers take most of the time of a
# compilation. LLVM's take so long that a source does not compile faster alone after a change.
function(jitunwind_units target)
  cmake_parse_arguments(arg "ALWAYS" "" "ALONE" ${ARGN})
  set(units ${JITUNWIND_UNITY})
  if(arg_ALWAYS)
    set(units ON)
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${units} UNITY_BUILD_BATCH_SIZE 0)
  if(arg_ALONE)
    set_source_files_properties(${arg_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# One object without shadow stacks and landing pads turns them off for all that it is linked with (x86-64 psABI,
# "Program Property"; ELF for the Arm 64-bit Architecture). So everything that users link has them and declares it,
# asked for or not. Clang takes the flag of the other CPU with a warning.
set(CMAKE_REQUIRED_FLAGS -Werror)
check_cxx_compiler_flag(-fcf-protection JITUNWIND_HAS_CF_PROTECTION)
check_cxx_compiler_flag(-mbranch-protection=standard JITUNWIND_HAS_BRANCH_PROTECTION)
unset(CMAKE_REQUIRED_FLAGS)
set(jitunwind_protection $<$<BOOL:${JITUNWIND_HAS_CF_PROTECTION}>:-fcf-protection>
                         $<$<BOOL:${JITUNWIND_HAS_BRANCH_PROTECTION}>:-mbranch-protection=standard>)
# On x86-64 the C library's own crti.o may lack such a note, and its _init a landing pad (Debian 12). A shared library
# needs neither, since its constructors are in .init_array. It has no _init and _fini if -init and -fini name no
# function.
set(jitunwind_shared_protection "")
if(JITUNWIND_HAS_CF_PROTECTION)
  check_linker_flag(CXX -Wl,-z,ibt,-z,shstk JITUNWIND_LINKS_PROTECTED)
  if(JITUNWIND_LINKS_PROTECTED)
    set(jitunwind_shared_protection -Wl,-z,ibt,-z,shstk,-init,jitunwind_no_init,-fini,jitunwind_no_fini)
  endif()
endif()
# jitunwind_protect(target...): applies these options to libraries that users link.
function(jitunwind_protect)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE ${jitunwind_protection})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "SHARED_LIBRARY")
      target_link_options(${target} PRIVATE ${jitunwind_shared_protection})
    endif()
  endforeach()
endfunction()

# jitunwind_layer(name SOURCES... [SMALL source...] [THIN source...] [READERS source...] [READERS_SMALL source...]
# [READERS_OF_GDB source...] [CORE source...] [CORE_SMALL source...] [SEAMS source...] [LINK library...] [INTO library]): OBJECT libraries for each
# folder. Their objects and what they link end up in `library`, jitunwind unless said otherwise. Visibility is hidden;
# public headers open their namespace below "#pragma GCC visibility push(default)". Thread-locals are initial-exec: the
# first access to a dynamic one allocates, which a walk in a signal handler must not. (musl allocates them while it
# loads a library or starts a thread, and opens no library that has initial-exec ones.) Functions of other libraries are
# bound when a program is loaded. Binding at the first call would take a kilobyte of a handler's stack and microseconds
# of the first walk. Two words that were just written are not read as one vector (gcc 12 does that at -O2), because
# processors cannot forward such a load from the two stores. gcc does not align targets of jumps, and functions to 8
# bytes alone, those of the core to 4, since no-operations are a 20th of the code. It does not guess which functions
# virtual calls of the core lead to, since guesses take 800 bytes and spare walks and throws no instruction. SMALL names
# sources that are not worth memory, since walks, registrations and exceptions of this process run them seldom or never:
# texts, files and rows of other processes, and reports to debuggers. They are optimised for size, in a library of their
# own, since unity builds cannot mix that (docs/notes/start.md "Size"). Sanitizers build them like the others.
#
# CORE names the sources of libjitunwind-core, on which the shared libjitunwind is built; its archive has these objects,
# too. They neither throw nor need the C++ run-time library: cmake/core_references.h. CORE_SMALL are those among them for
# size. SEAMS call functions that libjitunwind defines (unwind_core/above_internal.h): they are compiled once with weak
# references for the core, and once with others for the archive. THIN names sources of libjitunwind that
# libjitunwind-libunwind has as well, hidden, so that it needs the core alone. READERS and READERS_SMALL name those of
# libjitunwind-listen: they need the C++ run-time library, of which it has a part of its own. READERS_OF_GDB are those,
# for size, that libjitunwind-gdb has as well.
check_symbol_exists(__GLIBC__ features.h JITUNWIND_HAS_GLIBC)
set(jitunwind_tls $<$<BOOL:${JITUNWIND_HAS_GLIBC}>:-ftls-model=initial-exec>)
set(core_references ${PROJECT_SOURCE_DIR}/cmake/core_references.h)
# jitunwind_without_cxx(target...): compiles for libraries that are linked with the core and do not need the C++ run-time
# library. UBSan's check of objects' types reads the type information, which sanitized builds therefore have.
function(jitunwind_without_cxx)
  set(without -fno-exceptions -fno-rtti)
  if(JITUNWIND_SANITIZE)
    list(REMOVE_ITEM without -fno-rtti)
  endif()
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE
                           $<$<COMPILE_LANGUAGE:CXX>:${without};SHELL:-include ${core_references}>)
  endforeach()
endfunction()
function(jitunwind_layer name)
  cmake_parse_arguments(arg "" "INTO" "SOURCES;SMALL;THIN;READERS;READERS_SMALL;READERS_OF_GDB;CORE;CORE_SMALL;SEAMS;LINK" ${ARGN})
  if(NOT arg_INTO)
    set(arg_INTO jitunwind)
  endif()
  if(JITUNWIND_SANITIZE)
    list(APPEND arg_SOURCES ${arg_SMALL})
    list(APPEND arg_READERS ${arg_READERS_SMALL})
    list(APPEND arg_CORE ${arg_CORE_SMALL})
    set(arg_SMALL "")
    set(arg_READERS_SMALL "")
    set(arg_CORE_SMALL "")
  endif()
  set(arg_CORE_SEAMS ${arg_SEAMS})
  foreach(list IN ITEMS SOURCES CORE CORE_SMALL CORE_SEAMS SEAMS SMALL THIN READERS READERS_SMALL READERS_OF_GDB)
    set(sources ${arg_${list}})
    string(TOLOWER "_${list}" part)
    # These libraries get the objects: the core's archive and shared library, the shared library above that, and the
    # archive of everything.
    set(goes_to above archive)
    if(NOT sources)
      continue()
    elseif(list STREQUAL "SOURCES")
      set(part "")
    elseif(list STREQUAL "SEAMS")
      set(goes_to archive)
    elseif(list STREQUAL "CORE_SEAMS")
      set(goes_to core_archive core_above)
    elseif(list MATCHES "^CORE")
      set(goes_to core_archive core_above archive)
    elseif(list MATCHES "^THIN|^READERS")
      string(REGEX REPLACE "^_([a-z]+).*" "\\1" library ${part})
      list(APPEND goes_to ${library})
      if(list MATCHES "GDB")
        list(APPEND goes_to gdb)
      endif()
    endif()
    set(target jitunwind_${name}${part})
    add_library(${target} OBJECT ${sources})
    if(part MATCHES "small|gdb" AND NOT JITUNWIND_SANITIZE)
      target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-Os>)
    endif()
    set(align 8)
    if(part MATCHES "core")
      set(align 4)
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-inline-functions;-fno-devirtualize-speculatively>)
    endif()
    if(part MATCHES "core|thin")
      jitunwind_without_cxx(${target})
    endif()
    if(part MATCHES "thin|readers")
      target_compile_options(${target} PRIVATE -fno-sanitize=vptr)  # which refers to types of libjitunwind
    endif()
    if(list STREQUAL "CORE_SEAMS")
      target_compile_definitions(${target} PRIVATE JITUNWIND_CORE)
    endif()
    jitunwind_units(${target})
    jitunwind_protect(${target})
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden
                          CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    target_compile_options(${target} PRIVATE ${jitunwind_tls} $<$<NOT:$<COMPILE_LANGUAGE:ASM>>:-fno-plt;-fno-semantic-interposition;-fno-tree-slp-vectorize>
                           $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-falign-functions=${align};-falign-jumps=1;-falign-loops=1;-falign-labels=1>)
    target_compile_definitions(${target} PRIVATE $<$<BOOL:${JITUNWIND_COUNT}>:JITUNWIND_COUNT>)
    target_link_libraries(${target} PRIVATE jitunwind_options Threads::Threads ${arg_LINK})
    foreach(library IN LISTS goes_to)
      set_property(GLOBAL APPEND PROPERTY ${arg_INTO}_${library} $<TARGET_OBJECTS:${target}>)
    endforeach()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY ${arg_INTO}_links ${arg_LINK})
endfunction()

# jitunwind_adapter(name SOURCES...): jitunwind::name, a static library of its own, so that the others need nothing that
# it links. Users choose the kind of libjitunwind; the adapter only compiles against its headers.
function(jitunwind_adapter name)
  cmake_parse_arguments(arg "" "" "SOURCES" ${ARGN})
  set(target jitunwind_${name})
  add_library(${target} STATIC ${arg_SOURCES})
  jitunwind_protect(${target})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                        VISIBILITY_INLINES_HIDDEN ON)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${jitunwind_headers}>)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:jitunwind_options>)
  add_library(jitunwind::${name} ALIAS ${target})
endfunction()

# jitunwind::c_static, jitunwind::c_shared and jitunwind::c: libjitunwind for users that include <jitunwind/c.h> alone.
# They link it, and need no C++20.
function(jitunwind_c_interface)
  foreach(kind IN ITEMS static shared)
    add_library(jitunwind_c_${kind} INTERFACE)
    target_include_directories(jitunwind_c_${kind} INTERFACE $<BUILD_INTERFACE:${jitunwind_headers}>)
    target_link_libraries(jitunwind_c_${kind} INTERFACE $<LINK_ONLY:jitunwind_${kind}>)
    add_library(jitunwind::c_${kind} ALIAS jitunwind_c_${kind})
  endforeach()
  add_library(jitunwind::c ALIAS jitunwind_c_${jitunwind_default_kind})
endfunction()

set(jitunwind_large_last -Wl,-T,${PROJECT_SOURCE_DIR}/cmake/large_last.ld)
check_linker_flag(CXX ${jitunwind_large_last} JITUNWIND_LINKS_LARGE_LAST)  # not every linker knows INSERT

# jitunwind_library(name OUTPUT file [USES name...] [ABOVE name...] [INCLUDE dir...] [EXPORTS map]): makes name_static and
# name_shared of the layers that were declared INTO name so far. ABOVE names libraries whose objects the archive has as
# well: the shared library needs those libraries. They are jitunwind::<name without jitunwind_>_static and _shared,
# as from find_package. The name without a suffix is the one that BUILD_SHARED_LIBS asks for. If nobody says, in
# projects of others, it is the shared one, as from find_package. USES names libraries declared here that users of this
# one get, too. The shared one exports what cmake/exports/<file>.map lists, or the map that is given.
set(jitunwind_default_kind shared)
if(DEFINED BUILD_SHARED_LIBS AND NOT BUILD_SHARED_LIBS OR NOT DEFINED BUILD_SHARED_LIBS AND PROJECT_IS_TOP_LEVEL)
  set(jitunwind_default_kind static)
endif()
function(jitunwind_library name)
  cmake_parse_arguments(arg "" "OUTPUT;EXPORTS" "USES;ABOVE;INCLUDE" ${ARGN})
  get_property(static_objects GLOBAL PROPERTY ${name}_archive)
  get_property(shared_objects GLOBAL PROPERTY ${name}_above)
  get_property(links GLOBAL PROPERTY ${name}_links)
  list(REMOVE_DUPLICATES links)
  foreach(kind IN ITEMS static shared)
    set(target ${name}_${kind})
    string(TOUPPER ${kind} library_type)
    add_library(${target} ${library_type} ${${kind}_objects})
    jitunwind_protect(${target})
    list(TRANSFORM arg_USES APPEND _${kind} OUTPUT_VARIABLE uses)
    if(kind STREQUAL "shared")
      foreach(below IN LISTS arg_ABOVE)
        list(APPEND uses ${below}_shared)
      endforeach()
    endif()
    target_link_libraries(${target} PUBLIC ${uses} PRIVATE Threads::Threads ${links})
    target_include_directories(${target} INTERFACE "$<BUILD_INTERFACE:${arg_INCLUDE}>")
    if(NOT name STREQUAL "jitunwind_core")
      target_compile_features(${target} INTERFACE cxx_std_20)
    endif()
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${arg_OUTPUT} LINKER_LANGUAGE CXX)
  endforeach()
  string(REGEX REPLACE "^jitunwind_" "" alias ${name})
  add_library(jitunwind::${alias} ALIAS ${name}_${jitunwind_default_kind})
  foreach(kind IN ITEMS static shared)
    add_library(jitunwind::${alias}_${kind} ALIAS ${name}_${kind})
  endforeach()
  # C programs would otherwise be linked without the C++ run-time library, which the core does not need.
  if(NOT name STREQUAL "jitunwind_core")
    target_link_libraries(${name}_static INTERFACE "$<$<NOT:$<LINK_LANGUAGE:CXX>>:stdc++;m>")
  endif()
  set(exports ${PROJECT_SOURCE_DIR}/cmake/exports/${arg_OUTPUT}.map)
  if(arg_EXPORTS)
    set(exports ${arg_EXPORTS})
  endif()
  set(map ${PROJECT_BINARY_DIR}/exports/${arg_OUTPUT}.map)
  configure_file(${exports} ${map} @ONLY)
  set_target_properties(${name}_shared PROPERTIES VERSION ${JITUNWIND_ABI}.${PROJECT_VERSION} SOVERSION ${JITUNWIND_ABI}
                        LINK_DEPENDS ${map})
  target_link_options(${name}_shared PRIVATE -Wl,--version-script=${map} -Wl,-Bsymbolic-functions)
  if(name STREQUAL "jitunwind_core" AND JITUNWIND_LINKS_LARGE_LAST AND NOT JITUNWIND_SANITIZE)
    target_link_options(${name}_shared PRIVATE ${jitunwind_large_last})
    set_property(TARGET ${name}_shared APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/large_last.ld)
  endif()
  # Each library needs others of this project, or opens one, and these are in its folder. The run path is the same here
  # as when installed: CMake would pad another one with empty folders, and these mean the folder in which the program is
  # started.
  set_target_properties(${name}_shared PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
  # The library is never unmapped, because other copies, debuggers and the C++ run-time keep pointers into it. Clang
  # names libraries that are not used, such as libm, unless the linker is told to drop them.
  target_link_options(${name}_shared PRIVATE -Wl,-z,nodelete,-z,relro,-z,now -Wl,--as-needed)
  if(NOT JITUNWIND_SANITIZE)  # the program defines the sanitizers' own symbols
    target_link_options(${name}_shared PRIVATE -Wl,--no-undefined)
  endif()
endfunction()
