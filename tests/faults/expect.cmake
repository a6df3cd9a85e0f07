# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0

# Runs COMMAND, which has to fail on every rank, and looks for each of EXPECT in its errors. The
# launcher may end the others before they have printed theirs.
execute_process(COMMAND ${COMMAND} OUTPUT_VARIABLE text ERROR_VARIABLE errors RESULT_VARIABLE status)
set(text "${text}${errors}")
if(status STREQUAL "0")
  message(FATAL_ERROR "The program ended without an error:\n${text}")
endif()
if(text MATCHES "failures")
  message(FATAL_ERROR "A rank went on:\n${text}")
endif()
foreach(words IN LISTS EXPECT)
  # Each rank prints its error in one line that begins so.
  string(REGEX REPLACE "[][;]" "," lines "${text}")
  string(REPLACE "\n" ";" lines "${lines}")
  set(found 0)
  foreach(line IN LISTS lines)
    string(FIND "${line}" "${words}" at)
    if(line MATCHES "^sucl: " AND NOT at EQUAL -1)
      math(EXPR found "${found} + 1")
    endif()
  endforeach()
  if(found EQUAL 0)
    message(FATAL_ERROR "'${words}' is in no error:\n${text}")
  endif()
endforeach()
