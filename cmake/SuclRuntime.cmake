# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# What SuCL runs with and `make setup` has put into the virtual environment, the SYCL runtime and
# MPI libraries, is part of an installation: lib/sucl/runtime. In the build tree that is a link to
# the environment, so that run paths and environment.toml are the same in both, and name no folder
# outside. What is elsewhere stays there.
#   SUCL_RUNTIME_PARTS  what comes from the environment: sycl, and prefixes as mpi/openmpi

set(SUCL_RUNTIME_PARTS)
if(SUCL_INSTALL_RUNTIME AND NOT SUCL_WHEEL)
  if(SUCL_SYCL STREQUAL "pip" AND SUCL_SYCL_FOUND_ROOT STREQUAL SUCL_VENV)
    list(APPEND SUCL_RUNTIME_PARTS sycl)
  endif()
  foreach(flavour IN LISTS SUCL_MPI_FLAVOURS)
    cmake_path(GET SUCL_MPI_${flavour}_WRAPPER PARENT_PATH bin)
    cmake_path(GET bin PARENT_PATH prefix)
    cmake_path(RELATIVE_PATH prefix BASE_DIRECTORY "${SUCL_VENV}")
    if(prefix MATCHES "^mpi/[^/]+$")
      list(APPEND SUCL_RUNTIME_PARTS "${prefix}")
    endif()
  endforeach()
endif()

file(REMOVE "${SUCL_MODULE_OUTPUT_DIR}/runtime")
if(SUCL_RUNTIME_PARTS)
  file(MAKE_DIRECTORY "${SUCL_MODULE_OUTPUT_DIR}")
  file(CREATE_LINK "${SUCL_VENV}" "${SUCL_MODULE_OUTPUT_DIR}/runtime" SYMBOLIC)
endif()

# sucl_in_runtime(PATH RUNTIME RESULT): PATH, below RUNTIME if it is below the environment.
function(sucl_in_runtime path runtime result)
  string(FIND "${path}/" "${SUCL_VENV}/" at)
  if(SUCL_RUNTIME_PARTS AND at EQUAL 0)
    string(LENGTH "${SUCL_VENV}" length)
    string(SUBSTRING "${path}" ${length} -1 rest)
    set(path "${runtime}${rest}")
  endif()
  set(${result} "${path}" PARENT_SCOPE)
endfunction()

if(SUCL_RUNTIME_PARTS)
  install(CODE "set(sucl_venv [==[${SUCL_VENV}]==])
set(sucl_runtime [==[${SUCL_MODULE_INSTALL_DIR}/runtime]==])
set(sucl_runtime_parts [==[${SUCL_RUNTIME_PARTS}]==])")
  install(SCRIPT "${CMAKE_CURRENT_LIST_DIR}/install_runtime.cmake")
endif()
