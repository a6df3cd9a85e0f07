# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# The example backend, built as its author would build it: against an installed SuCL, out of tree.
function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    string(JOIN " " text ${ARGN})
    message(FATAL_ERROR "failed (${status}): ${text}")
  endif()
endfunction()

file(REMOVE_RECURSE "${scratch}")
set(ENV{DESTDIR} "")
step("${CMAKE_COMMAND}" --install "${build}" --prefix "${scratch}/prefix")
# A copy, so that nothing of SuCL's tree is near.
file(COPY "${source}/" DESTINATION "${scratch}/source")
step("${CMAKE_COMMAND}" -S "${scratch}/source" -B "${scratch}/build" -G "${generator}"
  "-DCMAKE_C_COMPILER=${c_compiler}" "-DCMAKE_CXX_COMPILER=${cxx_compiler}"
  "-DCMAKE_C_FLAGS=-Werror -pedantic" "-DCMAKE_PREFIX_PATH=${scratch}/prefix")
step("${CMAKE_COMMAND}" --build "${scratch}/build")
step("${check}" "${scratch}/build/libsucl_backend_relay.so")
