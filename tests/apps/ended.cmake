# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0

# Runs COMMAND, which has to end with the exit code STATUS, and looks for each of EXPECT. With code 2
# there is no result. The launcher may end a rank before it has printed its error.
execute_process(COMMAND ${COMMAND} OUTPUT_VARIABLE text ERROR_VARIABLE errors RESULT_VARIABLE status)
set(text "${text}${errors}")
if(NOT status EQUAL STATUS OR (STATUS EQUAL 2 AND text MATCHES "RESULT"))
  message(FATAL_ERROR "Exit code ${status} instead of ${STATUS}, or a result:\n${text}")
endif()
foreach(words IN LISTS EXPECT)
  string(FIND "${text}" "${words}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "'${words}' is in no error:\n${text}")
  endif()
endforeach()
