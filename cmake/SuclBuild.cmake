# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# How everything is compiled: standard, warnings, visibility, folders, sanitizers.
include(GNUInstallDirs)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
# Modules lie beside libsucl_core.so in a folder of their own, built or installed.
set(SUCL_MODULE_OUTPUT_DIR "${CMAKE_BINARY_DIR}/lib/sucl")
set(SUCL_MODULE_INSTALL_DIR "${CMAKE_INSTALL_LIBDIR}/sucl")

set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)

# sucl_set_run_path(TARGET PATH...): what is installed has one run path, built and installed, of the
# same folders. CMake would pad that of the build with ':' to have room for the other one, and an
# empty entry is the working directory, from which no library may be slipped in. The first folder is
# that of SuCL's libraries, as $ORIGIN says it. What is installed with them is found from there: see
# SuclRuntime.cmake. In a wheel that is the user's: see SuclWheel.cmake.
function(sucl_set_run_path target)
  if(SUCL_WHEEL)
    list(FILTER ARGN INCLUDE REGEX "^[$]ORIGIN")
    list(GET ARGN 0 to_own_libraries)
    list(APPEND ARGN "${to_own_libraries}/${SUCL_WHEEL_TO_LIBRARIES}")
  endif()
  list(GET ARGN 0 to_own_libraries)
  set(folders)
  foreach(folder IN LISTS ARGN)
    sucl_in_runtime("${folder}" "${to_own_libraries}/sucl/runtime" folder)
    list(APPEND folders "${folder}")
  endforeach()
  list(REMOVE_DUPLICATES folders)
  set_target_properties(${target} PROPERTIES
    BUILD_WITH_INSTALL_RPATH ON
    INSTALL_RPATH "${folders}")
endfunction()

if(SUCL_BUILD_REPRODUCIBLE)
  # Debug information and __FILE__, so that the bytes are the same wherever the sources are.
  add_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}=sucl-${PROJECT_VERSION}")
endif()

find_program(SUCL_CCACHE ccache)
mark_as_advanced(SUCL_CCACHE)
if(SUCL_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache keeps what is compiled with a precompiled header only if it is told that it may.
  set(CMAKE_C_COMPILER_LAUNCHER "${SUCL_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros "${SUCL_CCACHE}")
endif()

find_package(Threads REQUIRED)

# The headers of the standard library that plain sources include most.
set(SUCL_STANDARD_HEADERS <algorithm> <array> <atomic> <chrono> <condition_variable> <functional> <map>
  <memory> <mutex> <numeric> <optional> <set> <string> <string_view> <thread> <utility> <vector>)

# sucl_precompile(TARGET HEADER... | REUSE_FROM TARGET): large headers that most sources include. Not with
# AdaptiveCpp's driver, which compiles a source several times with different flags.
function(sucl_precompile target)
  if(NOT SUCL_SYCL STREQUAL "adaptivecpp")
    if(ARGV1 STREQUAL "REUSE_FROM")
      target_precompile_headers(${target} ${ARGN})
    else()
      target_precompile_headers(${target} PRIVATE ${ARGN})
    endif()
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # The first is for ccache. In a precompiled header GCC does not know the system's headers as such,
      # and gives the false alarms in std::string that it keeps quiet about otherwise.
      target_compile_options(${target} PRIVATE
        $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess;-Wno-array-bounds;-Wno-restrict;-Wno-stringop-overflow>)
    endif()
  endif()
endfunction()

# Linked by every target of the project, seen by none outside it.
add_library(sucl_options INTERFACE)
target_include_directories(sucl_options INTERFACE
  "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
target_compile_options(sucl_options INTERFACE -Wall -Wextra)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  # GCC takes a reference to what one argument holds for one into another, which is a temporary.
  target_compile_options(sucl_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-dangling-reference>)
endif()
if(SUCL_BUILD_WERROR)
  target_compile_options(sucl_options INTERFACE -Werror)
endif()
target_link_libraries(sucl_options INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC takes the types of sources that are put together for those of headers.
  target_compile_options(sucl_options INTERFACE -Wno-subobject-linkage)
endif()
set(SUCL_HAS_LIBFUZZER OFF)
if(SUCL_BUILD_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer)
  check_cxx_source_compiles(
    "extern \"C\" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }"
    SUCL_COMPILES_FUZZERS)
  unset(CMAKE_REQUIRED_FLAGS)
  if(SUCL_COMPILES_FUZZERS)
    set(SUCL_HAS_LIBFUZZER ON)
  endif()
endif()
if(SUCL_BUILD_SANITIZE)
  set(sucl_sanitize "-fsanitize=${SUCL_BUILD_SANITIZE}")
  target_compile_options(sucl_options INTERFACE
    ${sucl_sanitize} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(sucl_options INTERFACE ${sucl_sanitize})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # What GCC predefines.
    foreach(sanitizer IN ITEMS address thread)
      if(SUCL_BUILD_SANITIZE MATCHES "${sanitizer}")
        string(TOUPPER "__SANITIZE_${sanitizer}__" macro)
        target_compile_definitions(sucl_options INTERFACE "${macro}=1")
      endif()
    endforeach()
  endif()
else()
  # A library that leaves a symbol undefined is found when it is linked, not by its first user.
  add_link_options("LINKER:--no-undefined")
endif()
