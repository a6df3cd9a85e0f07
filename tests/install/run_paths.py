# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Checks the run paths of everything that was built or installed: run_paths.py [--without FOLDER]
FOLDER...

An empty or relative entry is the working directory, from which a library must not be loaded, and
none is below FOLDER. Libraries of others, in lib/sucl/runtime, are left as they are."""

import os
import re
import subprocess
import sys
from pathlib import Path


def files_of(folder):
    """All files below, but for what is taken away meanwhile: other tests have theirs there."""
    for where, subfolders, names in os.walk(folder):
        subfolders.sort()
        yield from (Path(where, name) for name in sorted(names))


def is_elf(path):
    try:
        with path.open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except FileNotFoundError:
        return False


def elf_files(folders):
    for path in (path for folder in folders for path in files_of(folder)):
        if path.is_symlink() or not path.is_file() or path.suffix in (".o", ".a", ".gch"):
            continue
        if "lib/sucl/runtime/" not in str(path) and is_elf(path):
            yield path


def run_paths(path):
    text = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True).stdout
    return re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text)


def is_bad(entry, folder):
    return not entry.startswith(("/", "$ORIGIN")) or (folder and entry.startswith(folder))


def main(folders):
    folder = None
    if folders[0] == "--without":
        folder, folders = folders[1], folders[2:]
    files, wrong = 0, 0
    for path in elf_files(folders):
        files += 1
        for run_path in run_paths(path):
            bad = [entry for entry in run_path.split(":") if is_bad(entry, folder)]
            if bad:
                wrong += 1
                print(f"{path}: the run path '{run_path}' has the entries {bad}")
    print(f"{files} files, {wrong} with a wrong run path")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
