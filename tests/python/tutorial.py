# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Runs the Python blocks of a page as one program: tutorial.py PAGE.

What needs a library that is not here is left out: the line before such a block is
`<!-- needs: NAME -->`."""

import importlib.util
import re
import sys
from pathlib import Path

BLOCK = re.compile(r"(?:<!-- needs: (\w+) -->\n+)?```python\n(.*?)```", re.DOTALL)


def main(page):
    names = {"__name__": "__main__"}
    text = Path(page).read_text()
    blocks = list(BLOCK.finditer(text))
    for block in blocks:
        needed, code = block.groups()
        if needed and importlib.util.find_spec(needed) is None:
            print(f"left out: a block that needs {needed}")
            continue
        line = text.count("\n", 0, block.start(2))
        exec(compile("\n" * line + code, page, "exec"), names)
    print(f"{len(blocks)} blocks of {Path(page).name}")
    return 0 if blocks else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
