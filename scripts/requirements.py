# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""The lists of Python packages in requirements/: one version each, with what it takes to download.

    requirements.py check                every line has a version and a size
    requirements.py sizes PART...        MB that this Python downloads for them, each part and all
    requirements.py resolve [PYTHON...]  the package index has wheels of all that they list, for
                                         Python 3.10 to 3.14, for 3.9 of what `make bench` needs;
                                         docs.txt takes 3.11
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "requirements"
SYSTEMS = {"debian", "fedora", "rocky", "opensuse"}  # their packages are not Python's
PYTHONS = ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]
# With Python 3.9 there is `make bench`, and no Python package; MkDocs takes 3.11.
WITH_3_9, WITHOUT_3_10 = {"sycl", "plot", "mpi-openmpi"}, {"docs"}
LINE = re.compile(r'(?P<name>[\w.-]+)==(?P<version>[\w.]+)'
                  r'(?:; python_version (?P<than>>=|<) "(?P<python>3\.\d+)")?'
                  r'  # (?P<size>\d+(?:\.\d+)?) MB')


def parts():
    return {file.stem: file for file in sorted(FOLDER.glob("*.txt")) if file.stem not in SYSTEMS}


def lines_of(file):
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if line and not line.startswith("#"):
            yield number, line


def entries(file, python):
    """What the list names for a version of Python, as (minor)."""
    for _, line in lines_of(file):
        one = LINE.fullmatch(line)
        limit = int(one["python"].split(".")[1]) if one["than"] else 0
        if python < limit if one["than"] == "<" else python >= limit:
            yield one


def check():
    wrong = [f"{file.relative_to(FOLDER.parent)}:{number}: '{line}' is not NAME==VERSION, with "
             "'; python_version < \"3.N\"' or '>=' if need be, and '  # N MB' to download"
             for file in parts().values() for number, line in lines_of(file)
             if not LINE.fullmatch(line)]
    print("\n".join(wrong), end="\n" if wrong else "")
    return bool(wrong)


def in_words(size):
    return f"{size:.0f} MB" if size >= 1 else f"{size:.1f} MB"


def sizes(names):
    total, texts = 0, []
    for name in names:
        size = sum(float(one["size"]) for one in entries(parts()[name], sys.version_info[1]))
        total += size
        texts.append(f"{name} {in_words(size)}")
    print(f"{in_words(total)} to download: {', '.join(texts)}")
    return 0


def resolve(pythons):
    failed = 0
    for version in pythons:
        names = {"3.9": WITH_3_9, "3.10": set(parts()) - WITHOUT_3_10}.get(version, set(parts()))
        wanted = [f"{one['name']}=={one['version']}" for name in sorted(names)
                  for one in entries(parts()[name], int(version.split(".")[1]))]
        with tempfile.TemporaryDirectory() as folder:
            # pip would take the markers for those of the Python that it runs with.
            listed = Path(folder, "listed.txt")
            listed.write_text("\n".join(sorted(set(wanted))))
            done = subprocess.run(
                [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed",
                 "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--quiet",
                 "--target", folder, "--python-version", version, "-r", str(listed)],
                capture_output=True, text=True)
        if done.returncode:
            failed = 1
            said = [line for line in done.stderr.splitlines() if not line.startswith("WARNING")]
            print(f"Python {version}: {' '.join(said)}", file=sys.stderr)
        else:
            print(f"Python {version}: wheels of {len(set(wanted))} packages, {len(names)} lists")
    return failed


def main(command="", *words):
    if command == "check" and not words:
        return check()
    if command == "sizes" and words and set(words) <= set(parts()):
        return sizes(words)
    if command == "resolve" and set(words) <= set(PYTHONS):
        return resolve(words or PYTHONS)
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
