# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""The extension of torch: compiled against the torch of the machine, once, and kept."""

import fcntl
import hashlib
import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import List

import torch

from .. import _core

_NAME = "_sucl_torch"
_SOURCES = Path(__file__).resolve().parents[1] / "torch_extension"


class CannotBuild(Exception):
    """Why there is no extension."""


def _compiler() -> str:
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        found = shutil.which(name.split()[0]) if name else None
        if found:
            return found
    raise CannotBuild("there is no C++ compiler: install g++ or clang++, or set CXX")


def _headers_of_python() -> str:
    folder = sysconfig.get_path("include")
    if not Path(folder, "Python.h").exists():
        raise CannotBuild(f"{folder} has no Python.h: install the headers of Python "
                          "(Debian: python3-dev)")
    return folder


def _flags() -> List[str]:
    root = Path(torch.__file__).parent
    flags = ["-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-w",
             f"-DSUCL_TORCH_MODULE={_NAME}",
             f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
    # How torch's own module was compiled, which pybind11 has to know where torch says it.
    for part in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI"):
        value = getattr(torch._C, f"_PYBIND11_{part}", None)
        if value is not None:
            flags.append(f'-DPYBIND11_{part}="{value}"')
    for folder in (root / "include", root / "include/torch/csrc/api/include"):
        flags += ["-isystem", str(folder)]
    flags += [f"-I{_SOURCES}", "-isystem", _headers_of_python()]
    return flags


def _libraries() -> List[str]:
    folder = Path(torch.__file__).parent / "lib"
    return [f"-L{folder}", "-lc10", "-ltorch", "-ltorch_cpu", "-ltorch_python"]


def _key(command: List[str]) -> str:
    text = hashlib.sha256()
    for part in (_core.version, torch.__version__, torch.version.git_version or "",
                 sysconfig.get_config_var("SOABI") or "", *command):
        text.update(part.encode() + b"\0")
    for file in sorted(f for f in _SOURCES.rglob("*") if f.is_file()):
        text.update(file.name.encode() + b"\0" + file.read_bytes())
    return text.hexdigest()[:24]


def _folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(base, "sucl", "torch")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise CannotBuild(f"{folder} cannot be made ({error.strerror}): set XDG_CACHE_HOME to a "
                          "folder that can be written") from None
    return folder


def _compile(command: List[str], to: Path) -> None:
    half = to.with_suffix(f".{os.getpid()}.part")
    try:
        done = subprocess.run([*command, "-o", str(half), *_libraries()], capture_output=True,
                              text=True, timeout=900)
        if done.returncode != 0:
            log = to.with_suffix(".log")
            log.write_text(done.stdout + done.stderr)
            raise CannotBuild(f"the compiler has failed on it: see {log}")
        os.replace(half, to)  # other processes see all of it or nothing
    except subprocess.TimeoutExpired:
        raise CannotBuild("the compiler was not done after 15 minutes") from None
    finally:
        half.unlink(missing_ok=True)


def built() -> Path:
    """Its file, compiled if there is none."""
    command = [_compiler(), *_flags(), str(_SOURCES / "extension.cpp")]
    folder = _folder()
    library = folder / f"{_NAME}-{_key(command)}.so"
    if library.exists():
        return library
    try:
        # One process of those that start together compiles; the others wait for it.
        with open(library.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not library.exists():
                _compile(command, library)
    except OSError as error:
        raise CannotBuild(f"{folder} cannot be written ({error.strerror}): set XDG_CACHE_HOME to "
                          "a folder that can be") from None
    return library


def load():
    """The extension. Raises CannotBuild with the reason where there is none."""
    library = built()
    loader = importlib.machinery.ExtensionFileLoader(_NAME, str(library))
    spec = importlib.util.spec_from_file_location(_NAME, library, loader=loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        raise CannotBuild(f"{library} cannot be loaded: {error}") from None
    return module
