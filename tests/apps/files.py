# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Reads the files that applications write, with nothing of theirs, and looks whether they hold what
they should."""

import json
import math
import pathlib
import re
import struct
import subprocess
import sys

sucl, programs, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])


def run(app, *arguments):
    command = [sucl, "run", "-n", "2", "--", programs / app, "--quiet", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.strip().splitlines()[-1]
    assert re.fullmatch(rf"RESULT {app} sucl 2 \d+\.\d+ check=passed", last), last


def read_vti(path):
    """The size, fastest dimension first, and the values of a .vti with one appended array."""
    data = path.read_bytes()
    head, _, rest = data.partition(b'<AppendedData encoding="raw">\n_')
    ends = re.search(rb'WholeExtent="0 (\d+) 0 (\d+) 0 (\d+)"', head).groups()
    (length,) = struct.unpack_from("<Q", rest)
    size = [int(e) + 1 for e in ends]
    assert length == 4 * math.prod(size)
    return size, struct.unpack_from(f"<{length // 4}f", rest, 8)


field = folder / "halo.vti"
result = folder / "halo.json"
run("halo", "--size", "7x5x6", "--iterations", 3, "--plot", field, "--json", result)
size, values = read_vti(field)
assert size == [6, 5, 7]
shrunk = 1.0
for n in size:
    shrunk *= ((1 + math.cos(2 * math.pi / n)) / 2) ** 5  # two iterations before the three
for at, value in enumerate(values):
    x, y, z = at % 6, at // 6 % 5, at // 30
    angle = 0.5 + 2 * math.pi * (x / 6 + y / 5 + z / 7)
    assert abs(value - 1 - shrunk * math.sin(angle)) < 1e-5, (at, value)
report = json.loads(result.read_text())
assert report["application"] == "halo" and report["ranks"] == 2 and report["passed"]
assert set(report["phases"]) == {"compute", "pack", "communicate", "wait"}

run("transpose", "--size", "4x3x5", "--iterations", 2, "--plot", field)
assert read_vti(field) == ([5, 3, 4], tuple(float(i) for i in range(60)))

run("cg", "--rows", 12, "--plot", field)
size, values = read_vti(field)
assert size == [4, 3, 1]
for at, value in enumerate(values):  # the five-point equation at every point
    x, y = at % 4, at // 4
    around = sum(values[b * 4 + a] for a, b in ((x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1))
                 if 0 <= a < 4 and 0 <= b < 3)
    assert abs(4 * value - around - 1) < 1e-5

film = folder / "comd.xyz"
run("comd", "--cells", "4x4x4", "--potential", "eam", "--iterations", 10, "--plot", film)
lines = film.read_text().splitlines()
assert len(lines) == 10 * 258 and lines[0] == "256"
assert 'Lattice="14.46 0 0 0 14.46 0 0 0 14.46"' in lines[1] and "pos:R:3" in lines[1]
assert len(lines[2].split()) == 7 and lines[2].startswith("Cu ")
