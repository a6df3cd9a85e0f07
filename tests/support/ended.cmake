# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Runs COMMAND and looks at how it ended:
#   STATUS  its exit status: a number, `failure` (any but 0), or `any`, for launchers of which each
#           has its own after a rank was killed
#   MATCH   a regular expression that its output has to match
#   REFUSE  one that its output must not match
#   EXPECT  words, each of which has to be in some line of the output that matches LINE, if given.
#           One rank's line is enough: the launcher may end the others before they have printed theirs.
# A command that says `skipped: why`, ends as it has to and has no match of REFUSE is reported as
# skipped.
cmake_minimum_required(VERSION 3.25)
# Ranks meet in it by files; see tests/support/printed.hpp.
string(RANDOM LENGTH 16 folder)
set(folder "${CMAKE_CURRENT_BINARY_DIR}/meet-${folder}")  # of a script: the working directory
file(MAKE_DIRECTORY "${folder}")
set(ENV{SUCL_TEST_FOLDER} "${folder}")
execute_process(COMMAND ${COMMAND} OUTPUT_VARIABLE text ERROR_VARIABLE errors RESULT_VARIABLE status)
file(REMOVE_RECURSE "${folder}")
set(text "${text}${errors}")

set(failure)
if(STATUS STREQUAL "failure")
  if(status STREQUAL "0")
    set(failure "It ended without an error.")
  endif()
elseif(NOT STATUS STREQUAL "any" AND NOT status STREQUAL STATUS)
  set(failure "It ended with ${status} instead of ${STATUS}.")
endif()
if(NOT "${REFUSE}" STREQUAL "" AND text MATCHES "${REFUSE}")
  string(APPEND failure " Its output has '${CMAKE_MATCH_0}'.")
endif()
if(NOT failure AND text MATCHES "(^|\n)[^\n]*(skipped: [^\n]*)")
  message("SuCL test ${CMAKE_MATCH_2}")
  return()
endif()
if(NOT "${MATCH}" STREQUAL "" AND NOT text MATCHES "${MATCH}")
  string(APPEND failure " Its output does not match '${MATCH}'.")
endif()

string(REGEX REPLACE "[][;]" "," lines "${text}")
string(REPLACE "\n" ";" lines "${lines}")
foreach(words IN LISTS EXPECT)
  set(found FALSE)
  foreach(line IN LISTS lines)
    string(FIND "${line}" "${words}" at)
    if(NOT at EQUAL -1 AND ("${LINE}" STREQUAL "" OR line MATCHES "${LINE}"))
      set(found TRUE)
      break()
    endif()
  endforeach()
  if(NOT found)
    string(APPEND failure " '${words}' is in no line of its output.")
  endif()
endforeach()

message("${text}")
if(failure)
  message(FATAL_ERROR "${failure}")
endif()
