# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# The logic of SuCL builds without SYCL and without MPI. Two checks keep it so: no source of these
# folders includes their headers, and none of these targets links them, not even through others.

# Every target that TARGET links, directly or not.
function(sucl_links_of target result)
  set(seen)
  set(open ${target})
  while(open)
    list(POP_FRONT open one)
    if(one IN_LIST seen OR NOT TARGET ${one})
      continue()
    endif()
    list(APPEND seen ${one})
    foreach(property LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
      get_target_property(links ${one} ${property})
      if(links)
        string(REGEX REPLACE "\\$<[A-Z_:]*[:,]([A-Za-z0-9_:.+-]+)>" "\\1" links "${links}")
        list(APPEND open ${links})
      endif()
    endforeach()
  endwhile()
  set(${result} "${seen}" PARENT_SCOPE)
endfunction()

# Fails the configuration if a part of the core, or the core itself, links SYCL or MPI.
function(sucl_check_links)
  get_property(targets GLOBAL PROPERTY SUCL_PARTS)
  if(TARGET sucl_core)
    list(APPEND targets sucl_core)
  endif()
  foreach(target IN LISTS targets)
    sucl_links_of(${target} links)
    foreach(link IN LISTS links)
      if(link MATCHES "^(sucl::sycl|sucl::mpi_|AdaptiveCpp::|MPI::)")
        message(FATAL_ERROR "${target} links ${link}, but the core must build without SYCL and "
          "without MPI. Move what needs it to src/sycl or to a module in backends.")
      endif()
    endforeach()
  endforeach()
endfunction()
