# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""The program `sucl`, and where the package has what C++ programs need."""

import argparse
import os
import sys
from pathlib import Path

from .errors import UnavailableError

FOLDER = Path(__file__).resolve().parent


def program() -> str:
    """The path of the program `sucl`."""
    path = FOLDER / "bin" / "sucl"
    if not path.exists():
        raise UnavailableError.of(f"there is no {path}", "Install the package sucl again")
    return str(path)


def _path_of_environment() -> None:
    """Programs that `sucl run` starts, as python, are those of the environment that sucl is of,
    also where that has not been activated."""
    if sys.prefix == sys.base_prefix:
        return
    own, path = os.path.join(sys.prefix, "bin"), os.environ.get("PATH", os.defpath)
    if own not in path.split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join((own, path))


def main() -> None:
    """Becomes the program `sucl`, with the arguments of the command line."""
    os.environ.setdefault("SUCL_PYTHON", sys.executable)
    _path_of_environment()
    os.execv(program(), ["sucl", *sys.argv[1:]])


def config() -> None:
    """The program `sucl-config`: says where things are."""
    parser = argparse.ArgumentParser(
        prog="sucl-config", description="Says where the package has what C++ programs need.")
    folders = {
        "cmake-dir": (FOLDER / "lib" / "cmake" / "sucl", "the folder for CMake's sucl_DIR"),
        "include-dir": (FOLDER / "include", "the folder of the headers"),
        "lib-dir": (FOLDER / "lib", "the folder of the libraries"),
        "prefix": (FOLDER, "the folder of it all")}
    for option, (_, about) in folders.items():
        parser.add_argument(f"--{option}", action="store_true", help=about)
    parser.add_argument("--version", action="store_true", help="SuCL's version")
    given = vars(parser.parse_args())
    if not any(given.values()):
        parser.error("say what you want to know: " + ", ".join(f"--{o}" for o in folders))
    for option, (path, _) in folders.items():
        if given[option.replace("-", "_")]:
            print(path)
    if given["version"]:
        from . import __version__

        print(__version__)
