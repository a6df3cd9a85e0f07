# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# The installed package: headers, libraries, modules, the program, CMake and pkg-config files.
include(CMakePackageConfigHelpers)

set(sucl_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/sucl")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

set(sucl_installed)
foreach(target sucl_core sucl)
  if(TARGET ${target})
    list(APPEND sucl_installed ${target})
  endif()
endforeach()
if(sucl_installed)
  install(TARGETS ${sucl_installed} EXPORT sucl-targets
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT sucl-targets NAMESPACE sucl:: DESTINATION "${sucl_package_dir}")
endif()
if(TARGET sucl_tool)
  install(TARGETS sucl_tool RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  list(APPEND sucl_installed sucl_tool)
endif()

# Manual pages, and completion for bash, zsh and fish: what the program says of itself.
if(TARGET sucl_tool AND NOT SUCL_WHEEL)
  set(share "${CMAKE_BINARY_DIR}/share")
  add_custom_command(OUTPUT "${share}/man/man1/sucl.1"
    COMMAND "${CMAKE_COMMAND}" -E rm -rf "${share}"
    COMMAND sucl_tool describe "${share}"
    DEPENDS sucl_tool sucl_program VERBATIM)
  add_custom_target(sucl_share ALL DEPENDS "${share}/man/man1/sucl.1")
  list(APPEND sucl_installed sucl_share)
  install(DIRECTORY "${share}/" DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}" OPTIONAL)
endif()

# All that is installed, and nothing else: what `make install` builds.
get_property(modules GLOBAL PROPERTY SUCL_INSTALLED)
add_custom_target(installed)
add_dependencies(installed ${sucl_installed} ${modules})

# Where the SYCL runtime is for programs that use the package.
sucl_in_runtime("${SUCL_SYCL_FOUND_ROOT}" "\${PACKAGE_PREFIX_DIR}/${SUCL_MODULE_INSTALL_DIR}/runtime"
  SUCL_PACKAGED_SYCL_ROOT)
if(SUCL_WHEEL)
  set(SUCL_PACKAGED_SYCL_ROOT "\${PACKAGE_PREFIX_DIR}/${SUCL_WHEEL_TO_ENVIRONMENT}")
endif()
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/templates/suclConfig.cmake.in"
  "${CMAKE_BINARY_DIR}/suclConfig.cmake" INSTALL_DESTINATION "${sucl_package_dir}"
  PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/suclConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${CMAKE_BINARY_DIR}/suclConfig.cmake"
  "${CMAKE_BINARY_DIR}/suclConfigVersion.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/FindSuclSycl.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/SuclKernels.cmake"
  DESTINATION "${sucl_package_dir}")

# The way from the folder of sucl.pc back to the prefix, so that the installation can be moved.
file(RELATIVE_PATH sucl_pc_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" sucl_pc_prefix "${sucl_pc_prefix}")
sucl_in_runtime("${SUCL_SYCL_FOUND_ROOT}" "\${prefix}/${SUCL_MODULE_INSTALL_DIR}/runtime"
  sucl_pc_sycl_root)
if(SUCL_WHEEL)
  set(sucl_pc_sycl_root "\${prefix}/${SUCL_WHEEL_TO_ENVIRONMENT}")
endif()
set(sucl_pc_cflags "")
set(sucl_pc_libs "")
if(SUCL_SYCL STREQUAL "pip")
  set(sucl_pc_cflags "-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING -DSUCL_KERNELS_AT_RUN_TIME -isystem \${sycl_root}/include")
  set(sucl_pc_libs "-L\${sycl_root}/lib -Wl,-rpath,\${sycl_root}/lib -lsycl")
elseif(SUCL_SYCL STREQUAL "icpx")
  set(sucl_pc_cflags "-fsycl")
  set(sucl_pc_libs "-fsycl")
endif()
configure_file("${CMAKE_CURRENT_LIST_DIR}/templates/sucl.pc.in" "${CMAKE_BINARY_DIR}/sucl.pc" @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/sucl.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# Packages of what was built: `make package`.
set(CPACK_GENERATOR DEB TZST)
set(CPACK_PACKAGE_VENDOR "The SuCL contributors")
set(CPACK_PACKAGE_CONTACT "The SuCL contributors <contributors@sucl.invalid>")
set(CPACK_PACKAGE_DIRECTORY "${CMAKE_BINARY_DIR}/packages")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX "/usr/local")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_THREADS 0)
# The SYCL runtime and MPI are part of the package, or where the build has found them, which may be
# of no package.
execute_process(COMMAND getconf GNU_LIBC_VERSION OUTPUT_VARIABLE libc ERROR_QUIET)
string(REGEX MATCH "[0-9.]+" libc "${libc}")
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= ${libc}), libstdc++6, zlib1g")
include(CPack)
