# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""What MkDocs does beside rendering pages: it puts Doxygen's pages at api/, and the files of the
repository that pages link to, as examples, at source/, so that every link leads somewhere.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
API = ROOT / "build" / "docs" / "api"
LINK = re.compile(r"(\]\()([^)\s#]+)")


def outside(page, target):
    """The path in the repository that a link of a page leads to, if it leads out of docs/."""
    if re.match(r"[a-z]+:", target):
        return None
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
    return None if path == "docs" or path.startswith("docs/") else path


def on_files(files, config):
    linked = {outside(file.src_uri, target)
              for file in files.documentation_pages()
              for _, target in LINK.findall(Path(file.abs_src_path).read_text())}
    for path in sorted(filter(None, linked)):
        if (ROOT / path).is_file():
            # As text, which browsers show.
            files.append(File.generated(config, f"source/{path}.txt",
                                        content=(ROOT / path).read_text()))
    for path in sorted(API.rglob("*")):
        if path.is_file():
            uri = posixpath.join("api", path.relative_to(API).as_posix())
            files.append(File.generated(config, uri, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown, page, config, files):
    here = posixpath.dirname(page.file.src_uri) or "."

    def copied(match):
        path = outside(page.file.src_uri, match[2])
        if path is None:
            return match[0]
        return match[1] + posixpath.relpath(f"source/{path}.txt", here)

    return LINK.sub(copied, markdown)
