# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Part of the installation: fills lib/sucl/runtime with what programs need of the virtual
# environment, to run and to be compiled. Reads sucl_venv, sucl_runtime and sucl_runtime_parts, which
# SuclRuntime.cmake sets. Files are hard links where that is possible and safe, else copies.

# Of the SYCL runtime: libsycl and what it loads, the CPU device and the compiler of kernels.
set(sucl_sycl_files
  include/CL/* include/std/* include/sycl/* include/unified-runtime/* licensing/*)
set(sucl_sycl_libraries
  cl.cfg clbltfn* cllibrary* libOpenCL.so* libcommon_clang.so* libhwloc.so* libimf.so
  libintelocl.so libintelocl.so.* libintlc.so* libirng.so libocl_svml_* libsvml.so libsycl.so
  libsycl.so.[0-9] libsycl.so.[0-9].[0-9].[0-9] libsycl-jit.so* libtbb.so* libtbbbind* libtbbmalloc.so*
  libtcm.so* libumf.so* libur_adapter_* libur_loader.so*)
set(sucl_sycl_packages intel_* tbb-* tcmlib-* umf-*)

# The licences of packages: sucl_licences(PREFIX RESULT PACKAGE...).
function(sucl_licences prefix result)
  set(found)
  foreach(package IN LISTS ARGN)
    set(about "${sucl_venv}/${prefix}lib/python*/site-packages/${package}.dist-info")
    file(GLOB_RECURSE files RELATIVE "${sucl_venv}" "${about}/LICENSE*" "${about}/METADATA"
      "${about}/licenses/*")
    list(APPEND found ${files})
  endforeach()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

# Relative names of the files of a part, the longer name of two that begin alike first.
function(sucl_files_of part result)
  if(part STREQUAL "sycl")
    list(TRANSFORM sucl_sycl_files PREPEND "${sucl_venv}/")
    file(GLOB_RECURSE files RELATIVE "${sucl_venv}" ${sucl_sycl_files})
    list(TRANSFORM sucl_sycl_libraries PREPEND "${sucl_venv}/lib/")
    file(GLOB libraries LIST_DIRECTORIES false RELATIVE "${sucl_venv}" ${sucl_sycl_libraries})
    sucl_licences("" licences ${sucl_sycl_packages})
  else()
    file(GLOB_RECURSE files RELATIVE "${sucl_venv}" "${sucl_venv}/${part}/*")
    # Not: benchmarks, Java, manual pages, static libraries, and what pip has noted.
    list(FILTER files EXCLUDE REGEX
      "/bin/IMB-|/share/(java|man)/|/libmpijava|[.]l?a$|/lib/python[^/]*/")
    set(libraries)
    sucl_licences("${part}/" licences "*")
  endif()
  list(APPEND files ${libraries} ${licences})
  list(SORT files ORDER DESCENDING)
  set(${result} "${files}" PARENT_SCOPE)
endfunction()

# A wheel has no links, so it has a library once for each of its names: of equal ones all but the
# first become links to it.
function(sucl_same_library file folder result)
  set(same "")
  if(file MATCHES "^(.*[.]so)([.].*)?$")
    string(MAKE_C_IDENTIFIER "sucl_first_${CMAKE_MATCH_1}" key)
    if(DEFINED ${key})
      file(SIZE "${sucl_venv}/${file}" size)
      file(SIZE "${sucl_venv}/${${key}}" first_size)
      set(different 1)
      if(size EQUAL first_size)
        execute_process(COMMAND "${CMAKE_COMMAND}" -E compare_files "${sucl_venv}/${file}"
          "${sucl_venv}/${${key}}" RESULT_VARIABLE different ERROR_QUIET)
      endif()
      if(different EQUAL 0)
        get_filename_component(same "${${key}}" NAME)
      endif()
    else()
      set(${key} "${file}" PARENT_SCOPE)
    endif()
  endif()
  set(${result} "${same}" PARENT_SCOPE)
endfunction()

# Links share owner and mode: the user who installs must be the only one that may write, and all may
# read.
function(sucl_may_link result)
  execute_process(COMMAND id -u OUTPUT_VARIABLE user OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND find "${sucl_venv}/lib" "${sucl_venv}/include" "${sucl_venv}/mpi"
      "(" -type f "(" -not -user "${user}" -o -not -perm -004 -o -perm /022 ")" ")" -print -quit
    OUTPUT_VARIABLE unfit ERROR_QUIET)
  if(user STREQUAL "" OR unfit)
    set(${result} FALSE PARENT_SCOPE)
  else()
    set(${result} TRUE PARENT_SCOPE)
  endif()
endfunction()

set(sucl_target "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${sucl_runtime}")
message(STATUS "Installing: ${sucl_target}")
# What an older installation had, and links that a copy would be written through.
file(REMOVE_RECURSE "${sucl_target}")
sucl_may_link(sucl_linking)
foreach(part IN LISTS sucl_runtime_parts)
  sucl_files_of("${part}" sucl_files)
  foreach(file IN LISTS sucl_files)
    get_filename_component(folder "${sucl_target}/${file}" DIRECTORY)
    file(MAKE_DIRECTORY "${folder}")
    sucl_same_library("${file}" "${sucl_target}" same)
    if(same)
      file(CREATE_LINK "${same}" "${sucl_target}/${file}" SYMBOLIC)
    elseif(sucl_linking AND NOT IS_SYMLINK "${sucl_venv}/${file}")
      file(CREATE_LINK "${sucl_venv}/${file}" "${sucl_target}/${file}" COPY_ON_ERROR)
    else()
      file(COPY "${sucl_venv}/${file}" DESTINATION "${folder}")
    endif()
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES "${CMAKE_INSTALL_PREFIX}/${sucl_runtime}/${file}")
  endforeach()
endforeach()
if(NOT sucl_linking)
  execute_process(COMMAND chmod -R a+rX,go-w "${sucl_target}")
endif()
