#!/usr/bin/env python3
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Checks the pages in docs/ and at the root: lines of prose end at column 100, links lead to files
and headings that exist, pictures are small, commands are run by tests/docs/run_page.py, and the
navigation of the site has every page.

Tables, code and lines that a link makes long are excepted.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*sorted((ROOT / "docs").rglob("*.md")),
         *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md"))]
LONGEST = 100
LARGEST_PICTURE, ALL_PICTURES = 60 << 10, 1 << 20  # bytes of an SVG, and of all of them
LINK = re.compile(r"\]\(([^)\s]+)\)")
LINK_TARGET = re.compile(r"\]\([^)]*\)")  # what a reader does not see
MADE = "docs/api"  # by Doxygen, when the site is built


def prose(text):
    """Numbered lines outside code; code that is indented counts as code."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchors(path):
    """The names of a page's headings, as GitHub and MkDocs make them."""
    names = set()
    for _, line in prose(path.read_text(encoding="utf-8")):
        if match := re.match(r"#+\s+(.*)", line):
            title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1]).strip().lower()
            names.add(re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", title)))
    return names


def link_fault(page, link):
    if re.match(r"[a-z]+:", link):
        return None
    name, _, anchor = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    if not target.exists():
        made = target.is_relative_to(ROOT / MADE)
        return None if made else f"links to {link}, which does not exist"
    if anchor and target.suffix == ".md" and anchor not in anchors(target):
        return f"links to {link}, a heading that does not exist"
    return None


def page_faults(page):
    text = page.read_text(encoding="utf-8")
    for number, line in prose(text):
        table = line.lstrip().startswith("|")
        width = len(LINK_TARGET.sub("]", line))
        long = width > LONGEST and not (table or line.startswith("    "))
        if long:
            yield f"{number}: {width} columns; prose ends at {LONGEST}"
        for link in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if fault := link_fault(page, link):
                yield f"{number}: {fault}"


def commands_fault(page, run):
    """Commands of pages are run. Those of results are how figures were measured."""
    name = page.relative_to(ROOT).as_posix().removeprefix("docs/").removesuffix(".md")
    text = page.read_text(encoding="utf-8")
    has = re.search(r"^```sh$|\n\n    (?:\$ )?[a-z./]+ [^=(]*$", text, re.M)
    if name in run or name.startswith("results/") or not has or "<!-- page: none: " in text:
        return None
    return "its commands are not run; add it to tests/docs/CMakeLists.txt"


def picture_faults():
    sizes = {path: path.stat().st_size for path in (ROOT / "docs").rglob("*.svg")}
    for path, size in sizes.items():
        if size > LARGEST_PICTURE:
            yield f"{path.relative_to(ROOT)}: {size} bytes; draw fewer points"
    if sum(sizes.values()) > ALL_PICTURES:
        yield f"docs: {sum(sizes.values())} bytes of SVG in all"


def navigation_faults():
    """Pages that the site's navigation leaves out, which `make docs` refuses."""
    listed = set(re.findall(r"[\w./-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    for page in sorted((ROOT / "docs").rglob("*.md")):
        name = str(page.relative_to(ROOT / "docs"))
        if name not in listed:
            yield f"mkdocs.yml: nav does not have {name}"


def main():
    faults = [f"{page.relative_to(ROOT)}:{fault}" for page in PAGES for fault in page_faults(page)]
    run = (ROOT / "tests/docs/CMakeLists.txt").read_text(encoding="utf-8").split()
    run = [word.rstrip(")") for word in run]
    faults += [f"{page.relative_to(ROOT)}: {fault}" for page in PAGES
               if (fault := commands_fault(page, run))]
    faults += picture_faults()
    faults += navigation_faults()
    print(*faults, sep="\n", end="\n" if faults else "", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
