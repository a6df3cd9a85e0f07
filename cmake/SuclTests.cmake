# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Helpers that register tests.

# They pass on values that may be empty, and take an empty one for none, which both settings do.
if(POLICY CMP0174)
  cmake_policy(SET CMP0174 NEW)
endif()

# What the sanitizers are to do when they find something; third-party code is not their business.
# Records of ranks that fail would only fill the disk; the tests of them set their own folder.
set(SUCL_TEST_ENVIRONMENT
  "SUCL_RECORD_DIR=set:none"
  "ASAN_OPTIONS=set:detect_leaks=1:halt_on_error=1"
  "UBSAN_OPTIONS=set:print_stacktrace=1:halt_on_error=1"
  "TSAN_OPTIONS=set:halt_on_error=1")

# A list that is passed on in quotes arrives as one value, of which CTest makes a single variable.
function(sucl_check_environment list)
  foreach(pair IN LISTS ${list})
    if(pair MATCHES ";")
      message(FATAL_ERROR "ENVIRONMENT: '${pair}' is several variables in one. Pass the list without quotes.")
    endif()
  endforeach()
endfunction()

# How the output of a GoogleTest program ends whose tests were all skipped: it is reported as skipped.
set(SUCL_TEST_ALL_SKIPPED "\\[  PASSED  \\] 0 tests\\.\n(\\[  SKIPPED \\][^\n]*\n)+$")

# Turns NAME=value lists into ENVIRONMENT_MODIFICATION entries.
function(sucl_environment_modifications set_list prepend_list result)
  set(entries)
  foreach(pair IN LISTS set_list)
    string(REGEX REPLACE "^([^=]*)=" "\\1=set:" entry "${pair}")
    list(APPEND entries "${entry}")
  endforeach()
  # The last one to be put in front comes first.
  list(REVERSE prepend_list)
  foreach(pair IN LISTS prepend_list)
    string(REGEX REPLACE "^([^=]*)=" "\\1=path_list_prepend:" entry "${pair}")
    list(APPEND entries "${entry}")
  endforeach()
  set(${result} "${entries}" PARENT_SCOPE)
endfunction()

sucl_environment_modifications("${SUCL_SYCL_SET}" "${SUCL_SYCL_PREPEND}" sucl_sycl_modifications)
list(APPEND SUCL_TEST_ENVIRONMENT ${sucl_sycl_modifications})

# sucl_add_test_program(NAME SOURCES... [LINK ...] [SYCL] [NO_MAIN]): a test program, not registered.
# SYCL: its sources use SYCL; it links libsucl. NO_MAIN: it brings its own main.
function(sucl_add_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SYCL;NO_MAIN" "" "LINK")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE sucl_options ${arg_LINK} GTest::gtest)
  if(NOT arg_NO_MAIN)
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
  endif()
  if(arg_SYCL)
    target_link_libraries(${name} PRIVATE sucl)
    sucl_enable_sycl(${name})
    sucl_precompile(${name} REUSE_FROM sucl_test_headers)
  elseif(NOT name MATCHES "_test_headers$")
    sucl_precompile(${name} REUSE_FROM sucl_plain_test_headers)
  endif()
endfunction()

# sucl_add_test_parts(NAME SOURCES... [LINK ...] [SYCL]): a static library of what several test
# programs share, compiled once.
function(sucl_add_test_parts name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SYCL" "" "LINK")
  add_library(${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name} PUBLIC sucl_options ${arg_LINK} GTest::gtest)
  # For programs alone, as the precompiled headers of the tests are.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIE)
  if(arg_SYCL)
    target_link_libraries(${name} PUBLIC sucl)
    sucl_enable_sycl(${name})
    sucl_precompile(${name} REUSE_FROM sucl_test_headers)
  else()
    sucl_precompile(${name} REUSE_FROM sucl_plain_test_headers)
  endif()
endfunction()

# sucl_leave_to_torture(TEST...): tests that repeat what others show, with another MPI or number of
# ranks. The presets leave them out; `make torture` runs them.
function(sucl_leave_to_torture)
  foreach(test IN LISTS ARGN)
    if(TEST ${test})
      set_property(TEST ${test} APPEND PROPERTY LABELS TORTURE)
    endif()
  endforeach()
endfunction()

# What AddressSanitizer is for: tests of one program, and ranks of the core without SYCL.
add_custom_target(sanitized)

# What ThreadSanitizer is for: the tests with THREADS, and nothing that they do not need.
add_custom_target(threads)

# sucl_mark_as_waiting(TEST...): tests of one process, or of programs, that sleep most of their time;
# see WAITS below.
function(sucl_mark_as_waiting)
  foreach(test IN LISTS ARGN)
    if(TEST ${test})
      set_property(TEST ${test} APPEND PROPERTY LABELS waits)
      set_property(TEST ${test} PROPERTY PROCESSORS 1)
    endif()
  endforeach()
endfunction()

# sucl_add_unit_test(NAME SOURCES... [LINK ...] [SYCL] [NO_MAIN] [THREADS] [ARGS ...] [TIMEOUT s]
#                    [ENVIRONMENT NAME=value...] [LABELS ...] [SHARDS n] [TORTURE filter]): a program
# that is one test. TORTURE: cases that repeat others are another one, NAME.more, left to `make torture`.
# THREADS: it has several, so that it gets the label of that name too, and the processors.
function(sucl_add_unit_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SYCL;NO_MAIN;THREADS" "TIMEOUT;SHARDS;TORTURE"
    "LINK;ARGS;ENVIRONMENT;LABELS")
  set(flags)
  foreach(flag SYCL NO_MAIN)
    if(arg_${flag})
      list(APPEND flags ${flag})
    endif()
  endforeach()
  sucl_add_test_program(${name} ${arg_UNPARSED_ARGUMENTS} ${flags} LINK ${arg_LINK})
  # Against hangs alone: a loaded machine and a sanitizer make minutes of what takes seconds.
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 400)
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if("unit" IN_LIST arg_LABELS)
    add_dependencies(sanitized ${name})
  endif()
  set(processors 1)
  if(arg_THREADS)
    add_dependencies(threads ${name})
    list(APPEND arg_LABELS threads)
    set(processors 2)
  endif()
  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  # With the sanitizers a variable chooses.
  set(filter)
  if(arg_TORTURE AND NOT SUCL_BUILD_SANITIZE)
    set(filter "--gtest_filter=-${arg_TORTURE}")
    add_test(NAME ${name}.more COMMAND ${name} ${arg_ARGS} "--gtest_filter=${arg_TORTURE}")
    set_tests_properties(${name}.more PROPERTIES
      TIMEOUT 600 PROCESSORS 2 LABELS "${arg_LABELS}" ENVIRONMENT "${arg_ENVIRONMENT}"
      ENVIRONMENT_MODIFICATION "${SUCL_TEST_ENVIRONMENT}")
    sucl_leave_to_torture(${name}.more)
  endif()
  foreach(shard RANGE 1 ${arg_SHARDS})
    set(test ${name})
    set(part)
    if(arg_SHARDS GREATER 1)
      math(EXPR index "${shard} - 1")
      set(test ${name}.${shard})
      set(part GTEST_TOTAL_SHARDS=${arg_SHARDS} GTEST_SHARD_INDEX=${index})
    endif()
    add_test(NAME ${test} COMMAND ${name} ${arg_ARGS} ${filter})
    set_tests_properties(${test} PROPERTIES
      TIMEOUT ${arg_TIMEOUT}
      PROCESSORS ${processors}
      LABELS "${arg_LABELS}"
      SKIP_REGULAR_EXPRESSION "${SUCL_TEST_ALL_SKIPPED}"
      ENVIRONMENT "${arg_ENVIRONMENT};${part}"
      ENVIRONMENT_MODIFICATION "${SUCL_TEST_ENVIRONMENT}")
  endforeach()
endfunction()

# sucl_add_ended_test(NAME COMMAND word... [STATUS number|failure|any] [MATCH regex] [REFUSE regex]
#                     [LINE regex] [EXPECT words...])
# A test that looks at how a command ends; see tests/support/ended.cmake. With none of the last five
# it is the command itself.
function(sucl_add_ended_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "STATUS;MATCH;REFUSE;LINE" "COMMAND;EXPECT")
  if("${arg_STATUS}${arg_MATCH}${arg_REFUSE}${arg_LINE}${arg_EXPECT}" STREQUAL "")
    add_test(NAME ${name} COMMAND ${arg_COMMAND})
    return()
  endif()
  if("${arg_STATUS}" STREQUAL "")
    set(arg_STATUS 0)
  endif()
  add_test(NAME ${name} COMMAND "${CMAKE_COMMAND}" "-DCOMMAND=${arg_COMMAND}"
    "-DSTATUS=${arg_STATUS}" "-DMATCH=${arg_MATCH}" "-DREFUSE=${arg_REFUSE}" "-DLINE=${arg_LINE}"
    "-DEXPECT=${arg_EXPECT}" -P "${PROJECT_SOURCE_DIR}/tests/support/ended.cmake")
  set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "SuCL test skipped: ")
endfunction()

# sucl_add_rank_test(NAME name TARGET program [RANKS n...] [FLAVOURS all|name...] [ARGS ...]
#                    [ENVIRONMENT NAME=value...] [TIMEOUT s] [LABELS ...] [SURVIVE] [WAITS] [BRIEF]
#                    [STATUS number|failure|any] [MATCH regex] [REFUSE regex])
# Registers the tests name.<flavour>.<ranks>, each the program under the launcher of that MPI.
# RANKS defaults to 1 2 3 4 7, FLAVOURS to all. SURVIVE: ranks live on when one of them dies;
# not registered for an MPI whose launcher cannot do that.
# WAITS: most of its time it sleeps, waiting for a timeout; it gets the label waits, and `make test`
# runs it beside the others.
# BRIEF: its ranks do little but start and end, and wait for no timeout; another test may run beside it.
# STATUS, MATCH, REFUSE: how it has to end, as tests/support/ended.cmake has it; usually with 0.
function(sucl_add_rank_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "SURVIVE;WAITS;BRIEF" "NAME;TARGET;TIMEOUT;STATUS;MATCH;REFUSE"
    "RANKS;FLAVOURS;ARGS;ENVIRONMENT;LABELS")
  if(NOT arg_NAME OR NOT TARGET "${arg_TARGET}" OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "sucl_add_rank_test needs NAME and an existing TARGET; got ${ARGV}.")
  endif()
  sucl_check_environment(arg_ENVIRONMENT)
  if(NOT arg_RANKS)
    set(arg_RANKS 1 2 3 4 7)
  endif()
  if(NOT arg_FLAVOURS OR arg_FLAVOURS STREQUAL "all")
    set(arg_FLAVOURS ${SUCL_MPI_FLAVOURS})
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 180)
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS ranks)
  endif()
  foreach(flavour IN LISTS arg_FLAVOURS)
    if(NOT flavour IN_LIST SUCL_MPI_FLAVOURS)
      continue()  # this build has no such MPI
    endif()
    sucl_environment_modifications("${SUCL_MPI_${flavour}_SET}" "${SUCL_MPI_${flavour}_PREPEND}"
      modifications)
    set(survive)
    if(arg_SURVIVE AND NOT SUCL_MPI_${flavour}_SURVIVE)
      continue()  # its launcher cannot do that
    elseif(arg_SURVIVE)
      set(survive ${SUCL_MPI_${flavour}_SURVIVE})
    endif()
    foreach(ranks IN LISTS arg_RANKS)
      set(test ${arg_NAME}.${flavour}.${ranks})
      set(command "${SUCL_MPI_${flavour}_LAUNCHER}" ${SUCL_MPI_${flavour}_ARGUMENTS} ${survive}
        -n ${ranks} $<TARGET_FILE:${arg_TARGET}> ${arg_ARGS})
      sucl_add_ended_test(${test} COMMAND ${command} STATUS "${arg_STATUS}" MATCH "${arg_MATCH}"
        REFUSE "${arg_REFUSE}")
      # As many processors as ranks: alone on a small machine, side by side on a large one.
      set(processors ${ranks})
      if(arg_BRIEF OR arg_WAITS)
        set(processors 1)
      endif()
      set(labels ${arg_LABELS} ${flavour})
      if(arg_WAITS)
        list(APPEND labels waits)
      endif()
      set_tests_properties(${test} PROPERTIES
        TIMEOUT ${arg_TIMEOUT}
        PROCESSORS ${processors}
        LABELS "${labels}"
        ENVIRONMENT "${arg_ENVIRONMENT}"
        # MPI libraries keep memory to their end.
        ENVIRONMENT_MODIFICATION
          "${SUCL_TEST_ENVIRONMENT};ASAN_OPTIONS=set:detect_leaks=0:halt_on_error=1;${modifications}")
    endforeach()
  endforeach()
endfunction()

# sucl_add_local_test(NAME name TARGET program RANKS n... [ARGS ...] [OPTIONS ...] [LABELS ...]
#                     [ENVIRONMENT NAME=value...] [STATUS ...] [MATCH regex] [REFUSE regex]): tests
# name.local.<ranks>, each the program as children of `sucl run` with these options, with no MPI on the
# path. The last three as above.
function(sucl_add_local_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TARGET;STATUS;MATCH;REFUSE"
    "RANKS;ARGS;OPTIONS;LABELS;ENVIRONMENT")
  sucl_check_environment(arg_ENVIRONMENT)
  foreach(ranks IN LISTS arg_RANKS)
    set(test ${arg_NAME}.local.${ranks})
    set(command "${CMAKE_COMMAND}" -E env PATH=/usr/bin:/bin
      "$<TARGET_FILE:sucl_tool>" run --launcher local ${arg_OPTIONS} -n ${ranks} --
      "$<TARGET_FILE:${arg_TARGET}>"
      ${arg_ARGS})
    sucl_add_ended_test(${test} COMMAND ${command} STATUS "${arg_STATUS}" MATCH "${arg_MATCH}"
      REFUSE "${arg_REFUSE}")
    set_tests_properties(${test} PROPERTIES LABELS "${arg_LABELS};tcp" TIMEOUT 180
      PROCESSORS ${ranks} ENVIRONMENT "${arg_ENVIRONMENT}"
      ENVIRONMENT_MODIFICATION "${SUCL_TEST_ENVIRONMENT}")
  endforeach()
endfunction()
