# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Installs the package and what lies inside it as a wheel has them, and tests that:
#   cmake -D build=... -D scratch=... -D python=... -D cases=... -P installed.cmake

function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed (${status}): ${ARGN}\n${said}")
  endif()
endfunction()

file(REMOVE_RECURSE "${scratch}")
foreach(component "" "--component;python")
  step("${CMAKE_COMMAND}" --install "${build}" --strip --prefix "${scratch}/sucl" ${component})
endforeach()
foreach(file sucl_torch_backend.py sucl/_core.pyi sucl/py.typed
    sucl/torch_extension/extension.cpp sucl/torch_extension/sucl/abi/backend.h)
  if(NOT EXISTS "${scratch}/${file}")
    message(FATAL_ERROR "${file} is not installed.")
  endif()
endforeach()
set(bare env -i PATH=/usr/bin:/bin "PYTHONPATH=${scratch}" PYTHONDONTWRITEBYTECODE=1)
step(${bare} "${python}" "${cases}/alone.py")
step(${bare} "${scratch}/sucl/bin/sucl" run --launcher local -n 2 -- "${python}" -c
  "import sucl; x = bytearray(3); sucl.world().blocking.allreduce(x); assert sucl.world().size == 2")
step(${bare} "${python}" -c "
from pathlib import Path
import contextlib, io, sys
from sucl._program import config
sys.argv = ['sucl-config', '--cmake-dir', '--include-dir', '--lib-dir']
said = io.StringIO()
with contextlib.redirect_stdout(said):
    config()
paths = [Path(line) for line in said.getvalue().split()]
assert (paths[0] / 'suclConfig.cmake').exists(), paths
assert (paths[1] / 'sucl' / 'sucl.hpp').exists(), paths
assert (paths[2] / 'libsucl.so').exists(), paths
")
