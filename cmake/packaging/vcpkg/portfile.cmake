# An overlay port. It takes the sources from the tree that it lies in, or from the folder that JITUNWIND_SOURCE_PATH
# names.
if(DEFINED ENV{JITUNWIND_SOURCE_PATH})
  set(SOURCE_PATH "$ENV{JITUNWIND_SOURCE_PATH}")
else()
  cmake_path(ABSOLUTE_PATH CMAKE_CURRENT_LIST_DIR NORMALIZE OUTPUT_VARIABLE port)
  cmake_path(GET port PARENT_PATH packaging)
  cmake_path(GET packaging PARENT_PATH cmake)
  cmake_path(GET cmake PARENT_PATH SOURCE_PATH)
endif()

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS FEATURES asmjit JITUNWIND_ASMJIT tools JITUNWIND_TOOLS)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${FEATURE_OPTIONS} -DJITUNWIND_WERROR=OFF -DJITUNWIND_TESTS=OFF -DJITUNWIND_EXAMPLES=OFF
          -DJITUNWIND_LLVM=OFF -DJITUNWIND_STEPPING=OFF -DJITUNWIND_XBYAK=OFF -DJITUNWIND_INSTALL=ON)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME jitunwind CONFIG_PATH lib/cmake/jitunwind)
# Its check would look for those of the drop-in libraries, which have a folder of their own.
vcpkg_fixup_pkgconfig(SKIP_CHECK)
if("tools" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES jitstack AUTO_CLEAN)
endif()
# GDB's script is in the folder that goes.
file(GLOB loads_script "${CURRENT_PACKAGES_DIR}/debug/lib/*-gdb.py")
file(REMOVE ${loads_script})
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
