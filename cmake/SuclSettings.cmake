# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Settings that may come from a cache variable or from an environment variable of the same name.

# sucl_setting(NAME TYPE DEFAULT DOC): the cache variable NAME, first taken from the environment.
function(sucl_setting name type default doc)
  set(value "${default}")
  if(NOT "$ENV{${name}}" STREQUAL "")
    set(value "$ENV{${name}}")
  endif()
  set(${name} "${value}" CACHE ${type} "${doc}")
endfunction()

sucl_setting(SUCL_SYCL STRING pip "SYCL implementation: pip, adaptivecpp, icpx, or none")
sucl_setting(SUCL_VENV PATH "${CMAKE_CURRENT_SOURCE_DIR}/.venv"
  "Virtual environment that 'make setup' made")
sucl_setting(SUCL_SYCL_ROOT PATH "" "Where the SYCL implementation is; empty: found by itself")
sucl_setting(SUCL_ACPP FILEPATH "" "AdaptiveCpp's compiler driver; empty: acpp on PATH")
sucl_setting(SUCL_ACPP_TARGETS STRING omp "Targets to compile for with AdaptiveCpp")
sucl_setting(SUCL_MPI STRING ""
  "MPIs to build modules for: flavour, flavour=wrapper or wrapper; empty: those of 'make setup'")
sucl_setting(SUCL_INSTALL_RUNTIME BOOL ON
  "Install what SuCL runs with and 'make setup' has put into SUCL_VENV")
sucl_setting(SUCL_BUILD_WERROR BOOL OFF "Treat warnings as errors")
sucl_setting(SUCL_BUILD_REPRODUCIBLE BOOL OFF
  "Name files in what is compiled as if the sources were in sucl-VERSION, wherever they are")
sucl_setting(SUCL_BUILD_SANITIZE STRING "" "Sanitizers, as for -fsanitize=")
string(COMPARE EQUAL "${CMAKE_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}" sucl_is_top_level)
option(SUCL_BUILD_TESTS "Build the tests" ${sucl_is_top_level})
option(SUCL_BUILD_EXAMPLES "Build the examples" ${sucl_is_top_level})

set(SUCL_PROFILE all CACHE STRING
  "all, or bench: what 'make bench' needs; one MPI, no tests, no examples, no Python package")
set_property(CACHE SUCL_PROFILE PROPERTY STRINGS all bench)
if(NOT SUCL_PROFILE MATCHES "^(all|bench)$")
  message(FATAL_ERROR "SUCL_PROFILE is '${SUCL_PROFILE}'. Set it to all or bench.")
endif()
if(SUCL_PROFILE STREQUAL "bench")
  # Not in the cache: what follows may be all.
  set(SUCL_BUILD_TESTS OFF)
  set(SUCL_BUILD_EXAMPLES OFF)
endif()

set_property(CACHE SUCL_SYCL PROPERTY STRINGS pip adaptivecpp icpx none)
if(NOT SUCL_SYCL MATCHES "^(pip|adaptivecpp|icpx|none)$")
  message(FATAL_ERROR "SUCL_SYCL is '${SUCL_SYCL}'. Set it to pip, adaptivecpp, icpx or none.")
endif()
# With AdaptiveCpp only who asks for it gets the Python package: its tests are of DPC++.
set(sucl_has_python "${sucl_is_top_level}")
if(NOT SUCL_SYCL STREQUAL "pip")
  set(sucl_has_python OFF)
endif()
option(SUCL_BUILD_PYTHON "Build the Python package; SUCL_SYCL is pip or adaptivecpp" ${sucl_has_python})
if(SUCL_PROFILE STREQUAL "bench" OR (SUCL_BUILD_PYTHON AND NOT SUCL_SYCL MATCHES "^(pip|adaptivecpp)$"))
  set(SUCL_BUILD_PYTHON OFF)
endif()
# A relative path means the same on the command line of make and of cmake.
cmake_path(ABSOLUTE_PATH SUCL_VENV BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
string(REGEX REPLACE "/$" "" SUCL_VENV "${SUCL_VENV}")

# The compiler has to be known before the languages are enabled.
if(SUCL_SYCL STREQUAL "icpx" AND NOT CMAKE_CXX_COMPILER)
  find_program(SUCL_ICPX icpx HINTS "${SUCL_SYCL_ROOT}/bin")
  if(NOT SUCL_ICPX)
    message(FATAL_ERROR "SUCL_SYCL is icpx, but icpx is not on PATH. Source the compiler's "
      "setvars.sh, set SUCL_SYCL_ROOT to its folder, or use SUCL_SYCL=pip.")
  endif()
  set(CMAKE_CXX_COMPILER "${SUCL_ICPX}" CACHE FILEPATH "C++ compiler")
endif()
