# Finds the newest of several installed releases: programs with a release behind their name, and LLVM.

# jitunwind_names_of_releases(variable name): the names of all programs of that name with a release behind it, such as
# name-19, name19 or name8.4, newest first.
function(jitunwind_names_of_releases variable name)
  set(${variable} "")
  string(REPLACE "+" "[+]" pattern ${name})
  foreach(folder IN ITEMS /usr/local/bin /usr/bin)
    file(GLOB found RELATIVE ${folder} ${folder}/${name}[-0-9]*)
    list(FILTER found INCLUDE REGEX "^${pattern}-?[0-9]+([.][0-9]+)*$")
    list(APPEND ${variable} ${found})
  endforeach()
  list(REMOVE_DUPLICATES ${variable})
  list(SORT ${variable} COMPARE NATURAL ORDER DESCENDING)
  return(PROPAGATE ${variable})
endfunction()

# jitunwind_find_newest(variable name): finds, as find_program() does, the program of the newest release, or else the
# one with the name alone.
function(jitunwind_find_newest variable name)
  if(NOT ${variable})
    jitunwind_names_of_releases(names ${name})
    find_program(${variable} NAMES ${names} ${name})
  endif()
endfunction()

# jitunwind_llvm_folders(variable): the folders with the LLVMConfig.cmake of every LLVM, newest first, in the layouts of
# Debian, Fedora, Arch, Alpine and openSUSE. The list `${variable}_releases` has their releases in the same order.
function(jitunwind_llvm_folders variable)
  file(GLOB configs /usr/lib/llvm-*/lib/cmake/llvm/LLVMConfigVersion.cmake
       /usr/lib{,64}/llvm*/lib{,64}/cmake/llvm/LLVMConfigVersion.cmake
       /usr{,/local}/lib{,64}{,/*}/cmake/llvm/LLVMConfigVersion.cmake)
  set(found "")
  foreach(config IN LISTS configs)
    file(REAL_PATH ${config} config)
    file(STRINGS ${config} line REGEX "PACKAGE_VERSION \"[0-9.]+" LIMIT_COUNT 1)
    if(line MATCHES "\"([0-9]+[0-9.]*)" AND EXISTS ${config})
      cmake_path(GET config PARENT_PATH folder)
      list(APPEND found "${CMAKE_MATCH_1}|${folder}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES found)
  list(SORT found COMPARE NATURAL ORDER DESCENDING)
  list(TRANSFORM found REPLACE "^.*[|]" "" OUTPUT_VARIABLE ${variable})
  list(TRANSFORM found REPLACE "[.].*" "" OUTPUT_VARIABLE ${variable}_releases)
  return(PROPAGATE ${variable} ${variable}_releases)
endfunction()

# jitunwind_missing_llvm_file(variable folder): a file that the LLVM in this folder of CMake's claims to have but lacks.
# Loading such an LLVM ends a configuration with an error.
function(jitunwind_missing_llvm_file variable folder)
  set(${variable} "")
  cmake_path(APPEND folder ../../.. OUTPUT_VARIABLE prefix)
  cmake_path(NORMAL_PATH prefix)
  file(GLOB exports ${folder}/LLVMExports-*.cmake)
  foreach(file IN LISTS exports)
    file(STRINGS ${file} lines REGEX "^ *list[(]APPEND _(cmake_import_check_files_for|IMPORT_CHECK_FILES_FOR)_")
    foreach(line IN LISTS lines)
      string(REGEX MATCHALL "_IMPORT_PREFIX}/[^\"]+" files "${line}")
      foreach(name IN LISTS files)
        string(REPLACE "_IMPORT_PREFIX}/" "${prefix}" name "${name}")
        if(NOT EXISTS ${name})
          set(${variable} ${name})
        endif()
      endforeach()
    endforeach()
  endforeach()
  return(PROPAGATE ${variable})
endfunction()
