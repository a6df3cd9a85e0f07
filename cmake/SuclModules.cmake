# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Helpers for the kinds of target there are.

# sucl_add_part(NAME SOURCES... [LINK ...]): the static library sucl_NAME of one folder of src that
# needs no SYCL and no MPI. All parts together make libsucl_core.so.
function(sucl_add_part name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  add_library(sucl_${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(sucl_${name} PUBLIC sucl_options ${arg_LINK})
  sucl_precompile(sucl_${name} REUSE_FROM sucl_plain_headers)
  set_property(GLOBAL APPEND PROPERTY SUCL_PARTS sucl_${name})
endfunction()

# Before 1.0 a minor version may break programs, as the CMake package says too (SameMinorVersion).
set(SUCL_SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
configure_file("${CMAKE_CURRENT_LIST_DIR}/templates/exports.map.in" "${PROJECT_BINARY_DIR}/exports.map" @ONLY)

# sucl_add_library(NAME SOURCES...): a shared library that is installed and exported.
function(sucl_add_library name)
  add_library(${name} SHARED ${ARGN})
  target_link_libraries(${name} PRIVATE sucl_options)
  # What it exports is not for others to replace: its own calls need no look-up.
  target_link_options(${name} PRIVATE "LINKER:-Bsymbolic-functions"
    "LINKER:--version-script=${PROJECT_BINARY_DIR}/exports.map")
  set_target_properties(${name} PROPERTIES LINK_DEPENDS "${PROJECT_BINARY_DIR}/exports.map")
  string(REGEX REPLACE "^sucl_" "" alias "${name}")
  add_library(sucl::${alias} ALIAS ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME "${alias}")
  target_compile_features(${name} INTERFACE cxx_std_17)
  target_include_directories(${name} INTERFACE
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>")
  # A wheel has no links, and each of its libraries once.
  if(NOT SUCL_WHEEL)
    set_target_properties(${name} PROPERTIES
      VERSION ${PROJECT_VERSION}
      SOVERSION ${SUCL_SOVERSION})
  endif()
  sucl_set_run_path(${name} "$ORIGIN")
endfunction()

# sucl_add_module(NAME SOURCES... [LINK ...] [NO_INSTALL]): a module libNAME.so, loaded at run time.
function(sucl_add_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_INSTALL" "" "LINK")
  add_library(${name} MODULE ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE sucl_options ${arg_LINK})
  # What a module links statically stays its own.
  target_link_options(${name} PRIVATE "LINKER:--exclude-libs,ALL")
  set_target_properties(${name} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${SUCL_MODULE_OUTPUT_DIR}")
  sucl_set_run_path(${name} "$ORIGIN/..")
  if(NOT arg_NO_INSTALL)
    install(TARGETS ${name} LIBRARY DESTINATION "${SUCL_MODULE_INSTALL_DIR}")
    set_property(GLOBAL APPEND PROPERTY SUCL_INSTALLED ${name})
  endif()
endfunction()

# sucl_add_mpi_module(NAME SOURCES... [LINK ...]): a module NAME_<flavour> for every MPI flavour, and
# NAME_abi for the standard ABI.
# SUCL_MPI_FLAVOUR is defined as the flavour's name, a string.
function(sucl_add_mpi_module name)
  foreach(flavour IN LISTS SUCL_MPI_MODULES)
    sucl_add_module(${name}_${flavour} ${ARGN})
    target_link_libraries(${name}_${flavour} PRIVATE sucl::mpi_${flavour})
    sucl_precompile(${name}_${flavour} REUSE_FROM sucl_plain_headers)
    sucl_set_run_path(${name}_${flavour} "$ORIGIN/.." ${SUCL_MPI_${flavour}_RUN_PATH})
    # Together where it is not the first: what a source forgets to include is found there.
    if(NOT flavour STREQUAL sucl_default_flavour)
      set_target_properties(${name}_${flavour} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
      if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        # Of what is local to a source and used by its types.
        target_compile_options(${name}_${flavour} PRIVATE -Wno-subobject-linkage)
      endif()
    endif()
    target_compile_definitions(${name}_${flavour} PRIVATE SUCL_MPI_FLAVOUR="${flavour}")
  endforeach()
endfunction()
