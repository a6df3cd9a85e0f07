#!/usr/bin/env python3
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Compares the table of components in docs/architecture.md with the folders of src.

    check_components.py [ROOT]

The rows `| `src/FOLDER` | ...` name every folder of src that has sources. A file may include files
of its own folder and of those in rows above, and a folder has 15 of them at most. Exit status: 0,
or 1 if something differs.
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
PAGE = ROOT / "docs/architecture.md"
MAX_FILES = 15


def folders_of(page):
    return re.findall(r"^\| `src/([\w/]+)` \|", page.read_text(), re.MULTILINE)


def sources():
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix in (".cpp", ".hpp"):
            yield path.relative_to(ROOT / "src")


def problems():
    rank = {folder: i for i, folder in enumerate(folders_of(PAGE))}
    present = collections.Counter(str(path.parent) for path in sources())
    yield from (f"src/{f} is in no row of {PAGE.name}"
                for f in sorted(present.keys() - rank.keys()))
    yield from (f"{PAGE.name} names src/{f}, which has no sources"
                for f in sorted(rank.keys() - present.keys()))
    yield from (f"src/{f} has {n} source files; a component has {MAX_FILES} at most"
                for f, n in sorted(present.items()) if n > MAX_FILES)
    for path in sources():
        own = str(path.parent)
        text = (ROOT / "src" / path).read_text()
        for header in re.findall(r'^\s*#\s*include "([^"]+)"', text, re.MULTILINE):
            other = str(pathlib.PurePath(header).parent)
            if not (ROOT / "src" / header).exists() or other == own or own not in rank:
                continue
            if rank.get(other, len(rank)) > rank[own]:
                yield f"src/{path} includes {header}, whose folder comes after its own"


def main():
    found = list(problems())
    for line in found:
        print(line, file=sys.stderr)
    if found:
        print(f"Folders depend on those above them in the table of {PAGE.name} alone.",
              file=sys.stderr)
        return 1
    print(f"{len(folders_of(PAGE))} folders of src depend on those above them alone.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
