# An installed copy has headers below include/jitunwind/<folder>/, static and shared libraries, the CMake package and
# the pkg-config modules. Users include <jitunwind/jitunwind.h>; the headers name each other from jitunwind/ on. Nothing
# in the copy names the prefix, so it may be moved.
#
# The components for `cmake --install --component` are jitunwind_core (that library, libjitunwind-gdb, which it opens, and
# GDB's script), jitunwind_runtime, jitunwind_drop_ins (libraries in place of others'), jitunwind_tools, jitunwind_dev
# (headers, archives, packages, manual pages of functions) and jitunwind_docs.
# An install() without a component belongs to jitunwind_dev.
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME jitunwind_dev)
set(as_library LIBRARY COMPONENT jitunwind_runtime NAMELINK_COMPONENT jitunwind_dev)
set(generated ${PROJECT_BINARY_DIR}/package)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/jitunwind)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set(include_dir ${CMAKE_INSTALL_INCLUDEDIR})

# install_headers(from to): installs the public headers below the folder `from` of the source tree, except those of
# folders that are installed elsewhere. install(DIRECTORY) would make a folder for each one without headers, too.
function(install_headers from to)
  set(root ${PROJECT_SOURCE_DIR}/${from})
  file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE ${root} ${root}/*.h ${root}/*.def)
  list(FILTER found EXCLUDE REGEX "(_p|_internal)\\.(h|def)$|^(.*/)?(include|compat|uwx)/")
  foreach(header IN LISTS found)
    cmake_path(GET header PARENT_PATH folder)
    cmake_path(APPEND include_dir ${to} ${folder} OUTPUT_VARIABLE destination)
    cmake_path(NORMAL_PATH destination)
    string(REGEX REPLACE "/$" "" destination ${destination})
    install(FILES ${root}/${header} DESTINATION ${destination})
  endforeach()
endfunction()

foreach(folder IN ITEMS unwind_core dyn_info builders sdk)
  install_headers(${folder} jitunwind/${folder})
endforeach()
install_headers(sdk/include .)
install(FILES ${jitunwind_headers}/jitunwind/version.h DESTINATION ${include_dir}/jitunwind)
install_headers(sdk/compat/include jitunwind/compat)
install_headers(sdk/uwx/include jitunwind/uwx)
install(FILES ${PROJECT_BINARY_DIR}/sdk/compat/include/libunwind.h ${PROJECT_SOURCE_DIR}/dyn_info/libunwind-dynamic.h
        DESTINATION ${include_dir}/jitunwind/compat)

# The libraries with libunwind's interface.
set(libunwind_libraries ${JITUNWIND_CROSS_TARGETS})
list(TRANSFORM libunwind_libraries PREPEND jitunwind_libunwind_)
list(PREPEND libunwind_libraries jitunwind_libunwind jitunwind_ptrace jitunwind_coredump)

set(own_libraries jitunwind_listen)
if(TARGET jitunwind_eh_static)
  list(APPEND own_libraries jitunwind_eh)
endif()

# Each kind of library has an export set. The package's configuration reads the set that is asked for.
foreach(kind IN ITEMS static shared)
  foreach(name IN ITEMS jitunwind_core jitunwind_gdb jitunwind jitunwind_uwx LISTS own_libraries libunwind_libraries)
    string(REGEX REPLACE "^jitunwind_" "" export_name ${name})
    set_target_properties(${name}_${kind} PROPERTIES EXPORT_NAME ${export_name}_${kind})
  endforeach()
  set_target_properties(jitunwind_c_${kind} PROPERTIES EXPORT_NAME c_${kind})
  foreach(name IN ITEMS jitunwind_core jitunwind jitunwind_c)
    target_include_directories(${name}_${kind} INTERFACE $<INSTALL_INTERFACE:${include_dir}>)
  endforeach()
  list(TRANSFORM own_libraries APPEND _${kind} OUTPUT_VARIABLE libraries)
  install(TARGETS ${libraries} jitunwind_c_${kind} EXPORT jitunwind-${kind} ${as_library})
  install(TARGETS jitunwind_${kind} EXPORT jitunwind-${kind} LIBRARY COMPONENT jitunwind_runtime NAMELINK_SKIP)
  install(TARGETS jitunwind_core_${kind} jitunwind_gdb_${kind} EXPORT jitunwind-${kind} LIBRARY COMPONENT jitunwind_core
          NAMELINK_COMPONENT jitunwind_dev)
  foreach(name IN LISTS libunwind_libraries)
    target_include_directories(${name}_${kind} INTERFACE $<INSTALL_INTERFACE:${include_dir}/jitunwind/compat>)
    install(TARGETS ${name}_${kind} EXPORT jitunwind-${kind} ${as_library})
  endforeach()
  target_include_directories(jitunwind_uwx_${kind} INTERFACE $<INSTALL_INTERFACE:${include_dir}/jitunwind/uwx>)
  install(TARGETS jitunwind_uwx_${kind} EXPORT jitunwind-${kind} ${as_library})
  install(EXPORT jitunwind-${kind} NAMESPACE jitunwind:: DESTINATION ${package_dir})
endforeach()
# Linkers take -ljitunwind for that library and for the core below it, which only programs that call it will need.
file(WRITE ${generated}/libjitunwind.so
     "/* GNU ld script */ INPUT(libjitunwind.so.${JITUNWIND_ABI} AS_NEEDED(libjitunwind-core.so.${JITUNWIND_ABI}))\n")
install(FILES ${generated}/libjitunwind.so DESTINATION ${CMAKE_INSTALL_LIBDIR})
# Engines load it by its path; nothing links it.
install(TARGETS jitunwind_itt_shared LIBRARY COMPONENT jitunwind_runtime NAMELINK_SKIP)

install(FILES ${PROJECT_SOURCE_DIR}/sdk/bindings/python/jitunwind.py DESTINATION ${CMAKE_INSTALL_DATADIR}/jitunwind/python)
foreach(adapter IN ITEMS code_segments system_unwinder gdb_jit perf jit_header listen)
  install_headers(adapters/${adapter} jitunwind/adapters/${adapter})
  install_headers(adapters/${adapter}/include .)
endforeach()
foreach(adapter IN ITEMS asmjit llvm_orc testing xbyak)
  if(NOT TARGET jitunwind_${adapter})
    continue()
  endif()
  install_headers(adapters/${adapter} jitunwind/adapters/${adapter})
  install_headers(adapters/${adapter}/include .)
  set_target_properties(jitunwind_${adapter} PROPERTIES EXPORT_NAME ${adapter} OUTPUT_NAME jitunwind-${adapter})
  install(TARGETS jitunwind_${adapter} EXPORT jitunwind-${adapter})
  install(EXPORT jitunwind-${adapter} NAMESPACE jitunwind:: DESTINATION ${package_dir})
endforeach()

# The asmjit adapter as sources, for projects with an asmjit of their own, whose names have its version.
set(asmjit_source_dir ${CMAKE_INSTALL_DATADIR}/jitunwind/asmjit)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/adapters/asmjit DESTINATION ${asmjit_source_dir}/jitunwind/adapters
        FILES_MATCHING PATTERN "*.h" PATTERN "*.cpp" PATTERN include EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/adapters/asmjit/include/ DESTINATION ${asmjit_source_dir})
install(FILES ${PROJECT_SOURCE_DIR}/builders/draft/row_pool_internal.h
        DESTINATION ${asmjit_source_dir}/jitunwind/builders/draft)
install(FILES ${PROJECT_SOURCE_DIR}/dyn_info/directives/region_list_internal.h
        DESTINATION ${asmjit_source_dir}/jitunwind/dyn_info/directives)

if(TARGET jitunwind_llvm_orc)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/JitunwindLlvmHeaders.cmake DESTINATION ${package_dir})
endif()

# The examples of the C interface are installed with the pages.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT jitunwind_docs
        FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/c DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT jitunwind_docs
        FILES_MATCHING PATTERN "*.c")

# GDB walks and names registered procedures by this script. GDB looks for it beside the core, which all other
# libraries load, and in GDB's own folder, which it trusts, for libraries that are installed below /usr.
set(gdb_script ${PROJECT_SOURCE_DIR}/adapters/gdb_jit/script)
set(gdb_script_dir ${CMAKE_INSTALL_DATADIR}/jitunwind/gdb)
install(FILES ${gdb_script}/jitunwind-gdb.py DESTINATION ${gdb_script_dir} COMPONENT jitunwind_core)
install(DIRECTORY ${gdb_script}/jitunwind_gdb DESTINATION ${gdb_script_dir} COMPONENT jitunwind_core
        FILES_MATCHING PATTERN "*.py")
set(gdb_auto_load_dir ${CMAKE_INSTALL_LIBDIR})
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(gdb_auto_load_dir ${CMAKE_INSTALL_DATADIR}/gdb/auto-load${CMAKE_INSTALL_FULL_LIBDIR})
endif()
cmake_path(RELATIVE_PATH gdb_script_dir BASE_DIRECTORY ${gdb_auto_load_dir} OUTPUT_VARIABLE JITUNWIND_GDB_SCRIPT_FOLDER)
configure_file(${gdb_script}/load-jitunwind-gdb.py.in ${generated}/load-jitunwind-gdb.py @ONLY)
install(FILES ${generated}/load-jitunwind-gdb.py DESTINATION ${gdb_auto_load_dir} COMPONENT jitunwind_core
        RENAME libjitunwind-core.so.${JITUNWIND_ABI}.${PROJECT_VERSION}-gdb.py)
install(CODE "set(libraries \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}\")" COMPONENT jitunwind_core)
install(CODE [[
  if(NOT libraries MATCHES "^/usr/lib")
    message(STATUS "For GDB, once in ~/.gdbinit: add-auto-load-safe-path ${libraries}")
  endif()]] COMPONENT jitunwind_core)

# The other packages that the static libraries need, in the words of each packaging system.
get_property(links GLOBAL PROPERTY jitunwind_links)
list(REMOVE_DUPLICATES links)
set(static_packages Threads)
set(static_flags -Wl,--eh-frame-hdr -pthread ${jitunwind_archive_needs})
foreach(link IN LISTS links)
  string(REGEX REPLACE "::.*" "" package ${link})
  list(APPEND static_packages ${package})
endforeach()
list(JOIN static_flags " " static_flags)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/jitunwind-config.cmake.in ${generated}/jitunwind-config.cmake
                              INSTALL_DESTINATION ${package_dir} PATH_VARS asmjit_source_dir NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${generated}/jitunwind-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${generated}/jitunwind-config.cmake ${generated}/jitunwind-config-version.cmake
        DESTINATION ${package_dir})

file(RELATIVE_PATH prefix_from_pkgconfig /${pkgconfig_dir} /)
string(REGEX REPLACE "/$" "" prefix_from_pkgconfig ${prefix_from_pkgconfig})
foreach(module IN ITEMS jitunwind jitunwind-core jitunwind-gdb jitunwind-libunwind jitunwind-uwx jitunwind-eh jitunwind-listen jitunwind-asmjit jitunwind-llvm_orc jitunwind-testing jitunwind-xbyak)
  string(REPLACE - _ target ${module})
  if(NOT TARGET ${target} AND NOT TARGET ${target}_static)
    continue()
  endif()
  set(PKGCONFIG_MODULE ${module})  # for the files that several modules share
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${module}.pc.in ${generated}/${module}.pc @ONLY)
  install(FILES ${generated}/${module}.pc DESTINATION ${pkgconfig_dir})
endforeach()
foreach(helper IN ITEMS ptrace coredump)
  set(PKGCONFIG_MODULE jitunwind-${helper})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/jitunwind-helper.pc.in ${generated}/${PKGCONFIG_MODULE}.pc @ONLY)
  install(FILES ${generated}/${PKGCONFIG_MODULE}.pc DESTINATION ${pkgconfig_dir})
endforeach()

# libunwind's own names for linkers and pkg-config lie beside the libraries that take its place. A program that links by
# these names gets the libraries of this project.
if(TARGET jitunwind_drop_in)
  set(drop_in_dir ${CMAKE_INSTALL_LIBDIR}/jitunwind-drop-in)
  file(RELATIVE_PATH prefix_from_drop_in /${drop_in_dir}/pkgconfig /)
  string(REGEX REPLACE "/$" "" prefix_from_drop_in ${prefix_from_drop_in})
  list(TRANSFORM JITUNWIND_CPUS PREPEND unwind- OUTPUT_VARIABLE platforms)
  foreach(name IN ITEMS unwind unwind-generic unwind-ptrace unwind-coredump unwind-setjmp LISTS platforms)
    string(REPLACE unwind- "" linked ${name})
    set(DROP_IN_MODULE lib${name})
    if(linked MATCHES "ptrace|coredump")
      set(linked "-ljitunwind-${linked} -ljitunwind-libunwind")
    elseif(linked STREQUAL "setjmp")
      set(linked libunwind-setjmp.so.0)
    elseif(linked IN_LIST JITUNWIND_CROSS_TARGETS)
      set(linked -ljitunwind-libunwind-${linked})
    else()
      set(linked -ljitunwind-libunwind)
    endif()
    file(WRITE ${generated}/lib${name}.so "/* GNU ld script */ INPUT(${linked})\n")
    set(DROP_IN_LINK -l${name})
    configure_file(${PROJECT_SOURCE_DIR}/cmake/drop-in.pc.in ${generated}/lib${name}.pc @ONLY)
    install(FILES ${generated}/lib${name}.so DESTINATION ${drop_in_dir})
    install(FILES ${generated}/lib${name}.pc DESTINATION ${drop_in_dir}/pkgconfig)
  endforeach()
endif()
foreach(target IN LISTS JITUNWIND_CROSS_TARGETS)
  set(PKGCONFIG_MODULE jitunwind-libunwind-${target})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/jitunwind-libunwind.pc.in ${generated}/${PKGCONFIG_MODULE}.pc @ONLY)
  install(FILES ${generated}/${PKGCONFIG_MODULE}.pc DESTINATION ${pkgconfig_dir})
endforeach()
