# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0

# Runs COMMAND. Every one of RANKS ranks has to be right, and SuCL must have carried collectives.
execute_process(COMMAND ${COMMAND} OUTPUT_VARIABLE text ERROR_VARIABLE errors RESULT_VARIABLE status)
set(text "${text}${errors}")
if(NOT status STREQUAL "0")
  message(FATAL_ERROR "The program ended with ${status}:\n${text}")
endif()
math(EXPR last "${RANKS} - 1")
foreach(rank RANGE ${last})
  if(NOT text MATCHES "rank ${rank}: 0 failures")
    message(FATAL_ERROR "Rank ${rank} did not say that all is well:\n${text}")
  endif()
endforeach()
foreach(kind allreduce reduce broadcast allgather allgatherv gather scatter alltoall reduce_scatter
    reduce_scatter_block scan exscan barrier)
  if(NOT text MATCHES "\n *${kind} +[1-9]")
    message(FATAL_ERROR "No ${kind} was carried by SuCL:\n${text}")
  endif()
endforeach()
