# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# The steps of the install test. The installation is moved after it was made, because a package
# that has its first folder written into it is broken in every other folder.
function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    string(JOIN " " text ${ARGN})
    message(FATAL_ERROR "failed (${status}): ${text}")
  endif()
endfunction()

file(REMOVE_RECURSE "${scratch}")
set(ENV{DESTDIR} "")
step("${CMAKE_COMMAND}" --install "${build}" --prefix "${scratch}/first")
file(RENAME "${scratch}/first" "${scratch}/prefix")

if(sanitize)
  string(APPEND flags " -fsanitize=${sanitize}")
endif()
# Unoptimised, and few units with SYCL's headers: what counts is that it compiles, links and runs.
step("${CMAKE_COMMAND}" -S "${source}" -B "${scratch}/build" -G "${generator}"
  "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_CXX_FLAGS=${flags}" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O0
  -DCMAKE_UNITY_BUILD=ON
  "-DCMAKE_PREFIX_PATH=${scratch}/prefix" "-DSUCL_EXAMPLES=${examples}"
  "-DSUCL_LAUNCH=${launch}")
step("${CMAKE_COMMAND}" --build "${scratch}/build" -j 2 --target all run)
step("${scratch}/build/core")
set(without)
if(venv)
  set(without --without "${venv}")
endif()
step("${python}" "${here}/run_paths.py" ${without} "${scratch}/prefix")

set(programs "${scratch}/build/core")
if(EXISTS "${scratch}/build/examples/usm_allreduce")
  list(APPEND programs "${scratch}/build/examples/usm_allreduce")
endif()
if(EXISTS "${scratch}/build/kernel")
  list(APPEND programs "${scratch}/build/kernel")
endif()

# For empty.sh.
list(JOIN programs "\n" text)
file(WRITE "${scratch}/programs" "${text}\n")
