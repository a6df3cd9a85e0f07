# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0

# Compiles SOURCE with COMMAND, which must fail because of each line marked WRONG and of no other.
execute_process(COMMAND ${COMMAND} "${SOURCE}" ERROR_VARIABLE errors OUTPUT_VARIABLE errors
  RESULT_VARIABLE status)
if(status STREQUAL "0")
  message(FATAL_ERROR "It compiles.")
endif()
cmake_path(GET SOURCE FILENAME name)
file(READ "${SOURCE}" text)
string(REGEX REPLACE "[][;]" " " text "${text}")
string(REPLACE "\n" ";" lines "${text}")
set(number 0)
set(problems)
foreach(line IN LISTS lines)
  math(EXPR number "${number} + 1")
  string(REGEX MATCH "${name}:${number}:" found "${errors}")
  if(line MATCHES "// WRONG" AND NOT found)
    string(APPEND problems "line ${number} compiles: ${line}\n")
  elseif(found AND NOT line MATCHES "// WRONG" AND NOT line MATCHES "^#include")
    string(APPEND problems "line ${number} does not compile: ${line}\n")
  endif()
endforeach()
if(problems)
  message(FATAL_ERROR "${problems}${errors}")
endif()
