# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Finds the SYCL implementation named by SUCL_SYCL and gives
#   sucl::sycl                 target with its headers, libraries and flags
#   sucl_enable_sycl(TARGET)   makes the sources of TARGET SYCL sources; call it after the last one
#   SUCL_SYCL_LIBRARY_DIR      folder of its runtime library
# Used by the build of SuCL and, installed beside suclConfig.cmake, by programs that use SuCL.

# What is missing, and what to do about it.
macro(sucl_sycl_missing)
  string(CONCAT sucl_sycl_reason ${ARGN})
  set(SuclSycl_FOUND FALSE)
  set(SuclSycl_NOT_FOUND_MESSAGE "${sucl_sycl_reason}")
  if(SuclSycl_FIND_REQUIRED)
    message(FATAL_ERROR "${sucl_sycl_reason}")
  endif()
  return()
endmacro()

if(TARGET sucl::sycl)
  set(SuclSycl_FOUND TRUE)
  return()
endif()

if(SUCL_SYCL STREQUAL "none")
  set(SuclSycl_FOUND TRUE)
  return()
endif()

if(SUCL_SYCL STREQUAL "pip")
  set(sucl_sycl_root "${SUCL_SYCL_ROOT}")
  if(NOT sucl_sycl_root)
    set(sucl_sycl_root "${SUCL_VENV}")
  endif()
  set(SUCL_SYCL_LIBRARY_DIR "${sucl_sycl_root}/lib")
  if(NOT EXISTS "${sucl_sycl_root}/include/sycl/sycl.hpp"
      OR NOT EXISTS "${SUCL_SYCL_LIBRARY_DIR}/libsycl.so")
    sucl_sycl_missing("There is no SYCL runtime in '${sucl_sycl_root}'. Run 'make setup' in SuCL's "
      "sources, or set SUCL_SYCL_ROOT to the virtual environment that holds intel-sycl-rt, or "
      "choose another implementation with SUCL_SYCL=adaptivecpp or SUCL_SYCL=icpx.")
  endif()
  # A shared library by its path, so that CMake gives every user the right run path.
  add_library(sucl::sycl_runtime SHARED IMPORTED GLOBAL)
  set_target_properties(sucl::sycl_runtime PROPERTIES
    IMPORTED_LOCATION "${SUCL_SYCL_LIBRARY_DIR}/libsycl.so")
  add_library(sucl::sycl INTERFACE IMPORTED GLOBAL)
  target_include_directories(sucl::sycl SYSTEM INTERFACE "${sucl_sycl_root}/include")
  # The headers warn about compilers that are not told to compile kernels; here none are.
  target_compile_definitions(sucl::sycl INTERFACE SYCL_DISABLE_FSYCL_SYCLHPP_WARNING
    SUCL_KERNELS_AT_RUN_TIME)
  target_link_libraries(sucl::sycl INTERFACE sucl::sycl_runtime)
  function(sucl_enable_sycl target)
    target_link_libraries(${target} PRIVATE sucl::sycl)
  endfunction()
elseif(SUCL_SYCL STREQUAL "adaptivecpp")
  find_program(SUCL_ACPP acpp HINTS "${SUCL_SYCL_ROOT}/bin")
  if(NOT SUCL_ACPP OR NOT EXISTS "${SUCL_ACPP}")
    sucl_sycl_missing("SUCL_SYCL is adaptivecpp, but there is no acpp (SUCL_ACPP is "
      "'${SUCL_ACPP}'). Set SUCL_ACPP to its path, put it on PATH, or use SUCL_SYCL=pip.")
  endif()
  file(REAL_PATH "${SUCL_ACPP}" sucl_acpp_path)
  cmake_path(GET sucl_acpp_path PARENT_PATH sucl_sycl_root)
  cmake_path(GET sucl_sycl_root PARENT_PATH sucl_sycl_root)
  list(LENGTH SUCL_ACPP_TARGETS sucl_acpp_target_count)
  if(sucl_acpp_target_count GREATER 1)
    # AdaptiveCpp's package puts quotes around several targets, in which a separator is lost.
    set(ACPP_EXTRA_ARGS "--acpp-targets='${SUCL_ACPP_TARGETS}'")
  elseif(NOT ACPP_TARGETS)
    set(ACPP_TARGETS "${SUCL_ACPP_TARGETS}")
  endif()
  find_package(AdaptiveCpp CONFIG QUIET HINTS "${sucl_sycl_root}/lib/cmake/AdaptiveCpp")
  if(NOT AdaptiveCpp_FOUND)
    sucl_sycl_missing("${SUCL_ACPP} has no CMake package in ${sucl_sycl_root}/lib/cmake. Install "
      "AdaptiveCpp completely, or set AdaptiveCpp_DIR.")
  endif()
  set(SUCL_SYCL_LIBRARY_DIR "${sucl_sycl_root}/lib")
  add_library(sucl::sycl INTERFACE IMPORTED GLOBAL)
  target_link_libraries(sucl::sycl INTERFACE AdaptiveCpp::acpp-rt)
  function(sucl_enable_sycl target)
    target_link_libraries(${target} PRIVATE sucl::sycl)
    add_sycl_to_target(TARGET ${target})
  endfunction()
elseif(SUCL_SYCL STREQUAL "icpx")
  include(CheckCXXCompilerFlag)
  set(CMAKE_REQUIRED_LINK_OPTIONS -fsycl)
  check_cxx_compiler_flag(-fsycl SUCL_COMPILER_HAS_FSYCL)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  if(NOT SUCL_COMPILER_HAS_FSYCL)
    sucl_sycl_missing("SUCL_SYCL is icpx, but ${CMAKE_CXX_COMPILER} does not take -fsycl. "
      "Configure with -DCMAKE_CXX_COMPILER=icpx in a new build folder, or use SUCL_SYCL=pip.")
  endif()
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=libsycl.so
    OUTPUT_VARIABLE sucl_libsycl OUTPUT_STRIP_TRAILING_WHITESPACE)
  cmake_path(GET sucl_libsycl PARENT_PATH SUCL_SYCL_LIBRARY_DIR)
  cmake_path(GET SUCL_SYCL_LIBRARY_DIR PARENT_PATH sucl_sycl_root)
  add_library(sucl::sycl INTERFACE IMPORTED GLOBAL)
  target_compile_options(sucl::sycl INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-fsycl>")
  target_link_options(sucl::sycl INTERFACE -fsycl "LINKER:-rpath,${SUCL_SYCL_LIBRARY_DIR}")
  function(sucl_enable_sycl target)
    target_link_libraries(${target} PRIVATE sucl::sycl)
  endfunction()
else()
  sucl_sycl_missing("SUCL_SYCL is '${SUCL_SYCL}'. Set it to pip, adaptivecpp or icpx.")
endif()

set(SUCL_SYCL_FOUND_ROOT "${sucl_sycl_root}")
set(SuclSycl_FOUND TRUE)
if(NOT SuclSycl_FIND_QUIETLY)
  message(STATUS "SuCL: SYCL from ${SUCL_SYCL}, ${sucl_sycl_root}")
endif()
