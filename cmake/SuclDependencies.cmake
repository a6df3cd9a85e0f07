# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Header-only libraries that SuCL's own sources use; none shows in its public headers.

# sucl_install_line(RESULT): what installs the packages of this system; empty if that is not known.
function(sucl_install_line result)
  execute_process(COMMAND "${PROJECT_SOURCE_DIR}/scripts/setup.sh" packages
    OUTPUT_VARIABLE line ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(${result} "${line}" PARENT_SCOPE)
endfunction()

# sucl_header_library(NAME HEADER PACKAGE): the target sucl::NAME, or an error with the cure.
function(sucl_header_library name header package)
  string(TOUPPER "SUCL_${name}_INCLUDE_DIR" variable)
  find_path(${variable} "${header}")
  mark_as_advanced(${variable})
  if(NOT ${variable})
    sucl_install_line(line)
    message(FATAL_ERROR "The header <${header}> was not found. Run 'make setup', or install it "
      "(Debian: ${package}), or set ${variable} to the folder that holds it. "
      "All packages of this system: ${line}")
  endif()
  add_library(sucl::${name} INTERFACE IMPORTED GLOBAL)
  target_include_directories(sucl::${name} SYSTEM INTERFACE "${${variable}}")
endfunction()

sucl_header_library(toml "toml++/toml.h" libtomlplusplus-dev)
target_compile_definitions(sucl::toml INTERFACE TOML_HEADER_ONLY=1)
sucl_header_library(cli "CLI/CLI.hpp" libcli11-dev)
sucl_header_library(json "nlohmann/json.hpp" nlohmann-json3-dev)

if(SUCL_BUILD_TESTS)
  find_package(GTest QUIET)
  if(NOT GTest_FOUND)
    sucl_install_line(line)
    message(FATAL_ERROR "GoogleTest was not found. Run 'make setup', or install it "
      "(Debian: libgtest-dev), or configure with -DSUCL_BUILD_TESTS=OFF. "
      "All packages of this system: ${line}")
  endif()
endif()
