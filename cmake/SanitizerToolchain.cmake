# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# The compiler of the preset asan: clang where there is one with libFuzzer, as it builds the fuzzers
# too and takes half of GCC's time; otherwise, and where CXX names one, CMake's choice.
if(DEFINED ENV{CXX})
  return()
endif()
foreach(version IN ITEMS -19 "" -20 -18 -17 -16 -15 -14)
  find_program(SUCL_CLANGXX clang++${version})
  find_program(SUCL_CLANG clang${version})
  if(SUCL_CLANGXX AND SUCL_CLANG)
    foreach(library IN ITEMS fuzzer fuzzer-${CMAKE_HOST_SYSTEM_PROCESSOR})
      execute_process(COMMAND "${SUCL_CLANGXX}" --print-file-name=libclang_rt.${library}.a
        OUTPUT_VARIABLE file OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
      if(EXISTS "${file}")
        set(CMAKE_C_COMPILER "${SUCL_CLANG}")
        set(CMAKE_CXX_COMPILER "${SUCL_CLANGXX}")
        # The usual linker takes long for programs with sanitizers, and there are dozens.
        find_program(SUCL_LLD ld.lld${version})
        if(SUCL_LLD)
          foreach(kind IN ITEMS EXE SHARED MODULE)
            string(APPEND CMAKE_${kind}_LINKER_FLAGS_INIT " --ld-path=${SUCL_LLD}")
          endforeach()
        endif()
        return()
      endif()
    endforeach()
  endif()
  unset(SUCL_CLANGXX CACHE)
  unset(SUCL_CLANG CACHE)
endforeach()
