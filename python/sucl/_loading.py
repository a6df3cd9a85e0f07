# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Loads sucl._core, with the SYCL runtime wherever pip has put it."""

import ctypes
import importlib
from importlib import metadata
from pathlib import Path

# Of the wheel intel-sycl-rt, in the order in which they need each other.
_RUNTIME = ("libsycl.so.9",)


def _files_of_runtime():
    try:
        files = metadata.files("intel-sycl-rt") or ()
    except metadata.PackageNotFoundError:
        return
    for file in files:
        if file.name in _RUNTIME:
            yield Path(file.locate()).resolve()


def _is_main_interpreter():
    for name in ("_interpreters", "_xxsubinterpreters"):  # from Python 3.13 on, and before
        try:
            interpreters = importlib.import_module(name)
        except ImportError:
            continue
        return interpreters.get_current() == interpreters.get_main()
    return True


def core():
    """The module sucl._core. Raises ImportError with what to do where the runtime is missing."""
    if not _is_main_interpreter():
        raise ImportError("SuCL's job is one of the process, and its module of the main "
                          "interpreter: import sucl there, not in a subinterpreter")
    try:
        return importlib.import_module("sucl._core")
    except ImportError as error:
        if not any(name in str(error) for name in _RUNTIME):
            raise
        first = error
    # In another prefix than this package, as that of the system below a virtual environment.
    for path in _files_of_runtime():
        try:
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
            return importlib.import_module("sucl._core")
        except (OSError, ImportError) as error:
            first = error
    raise ImportError(
        f"the SYCL runtime that SuCL needs cannot be loaded: {first}. "
        "Install it beside SuCL: pip install intel-sycl-rt intel-opencl-rt") from first
