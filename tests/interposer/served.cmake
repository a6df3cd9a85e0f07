# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0

# Runs COMMAND. Every one of RANKS ranks has to say that it is right, unless OWN is -1: then it is a
# program of others. SuCL must have executed collectives of KINDS, and SUCL_TEST_EXPECT of the
# environment must be found in what is printed, SUCL_TEST_ABSENT must not.
execute_process(COMMAND ${COMMAND} OUTPUT_VARIABLE text ERROR_VARIABLE errors RESULT_VARIABLE status)
set(text "${text}${errors}")
if(NOT status STREQUAL "0")
  message(FATAL_ERROR "The program ended with ${status}:\n${text}")
endif()
if(text MATCHES "skipped: [^\n]*")
  message("SuCL test ${CMAKE_MATCH_0}")
  return()
endif()
math(EXPR last "${RANKS} - 1")
foreach(rank RANGE ${last})
  if(NOT OWN EQUAL -1 AND NOT text MATCHES "rank ${rank}: 0 failures")
    message(FATAL_ERROR "Rank ${rank} did not say that all is well:\n${text}")
  endif()
endforeach()
if(NOT text MATCHES "$ENV{SUCL_TEST_EXPECT}")
  message(FATAL_ERROR "There is no '$ENV{SUCL_TEST_EXPECT}':\n${text}")
endif()
if(NOT "$ENV{SUCL_TEST_ABSENT}" STREQUAL "" AND text MATCHES "$ENV{SUCL_TEST_ABSENT}")
  message(FATAL_ERROR "There is '${CMAKE_MATCH_0}':\n${text}")
endif()
string(REPLACE "," ";" KINDS "${KINDS}")
foreach(kind IN LISTS KINDS)
  if(NOT text MATCHES "\n *${kind} +[1-9]")
    message(FATAL_ERROR "No ${kind} was executed by SuCL:\n${text}")
  endif()
endforeach()
