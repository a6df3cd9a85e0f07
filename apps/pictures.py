# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Draws what the applications write with --plot, as small pictures.

    python apps/pictures.py halo field.vti halo.png --grid 2x2x1
    python apps/pictures.py cg solution.vti cg.png
    python apps/pictures.py comd atoms.xyz comd.png --grid 2x2x1
    python apps/pictures.py transpose 2x2 transpose.png
"""

import argparse
import re

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402


def read_vti(path):
    """The array of a .vti with one appended array, its fastest dimension last."""
    with open(path, "rb") as file:
        head, _, rest = file.read().partition(b'<AppendedData encoding="raw">\n_')
    ends = re.search(rb'WholeExtent="0 (\d+) 0 (\d+) 0 (\d+)"', head).groups()
    extents = [int(e) + 1 for e in reversed(ends)]
    return np.frombuffer(rest, "<f4", int(np.prod(extents)), 8).reshape(extents)


def cuts(extent, parts):
    """Where parts of `extent` things begin, without the first."""
    return [extent // parts * i + min(i, extent % parts) for i in range(1, parts)]


def lines(axes, down, across, grid):
    for y in cuts(down, grid[0]):
        axes.axhline(y - 0.5, color="white", linewidth=1)
    for x in cuts(across, grid[1]):
        axes.axvline(x - 0.5, color="white", linewidth=1)


def halo(axes, source, grid):
    field = read_vti(source)
    plane = field[:, :, len(field[0][0]) // 2]
    axes.imshow(plane, cmap="viridis", interpolation="nearest")
    lines(axes, len(plane), len(plane[0]), grid)


def cg(axes, source, _):
    axes.imshow(read_vti(source)[0], cmap="inferno", interpolation="nearest")


def comd(axes, source, grid):
    with open(source, encoding="ascii") as file:
        text = file.read().splitlines()
    count = int(text[0])
    frame = text[-count - 2:]
    size = [float(x) for x in re.findall(r"[\d.]+", frame[1].split("Properties")[0])[::4]]
    atoms = np.array([[float(x) for x in line.split()[1:4]] for line in frame[2:]])
    atoms = atoms[atoms[:, 2] % size[2] < 4]
    part_of = [(atoms[:, d] % size[d] / size[d] * grid[d]).astype(int) for d in (0, 1)]
    axes.scatter(atoms[:, 0] % size[0], atoms[:, 1] % size[1], s=28, edgecolors="black",
                 linewidths=0.3, c=part_of[0] * grid[1] + part_of[1], cmap="Set2", vmin=0, vmax=7)
    axes.set_aspect("equal")


def transpose(figure, grid):
    rows, columns = grid
    n = 8
    cuttings = (("z whole", (rows, columns, 1)), ("y whole", (rows, 1, columns)),
                ("x whole", (1, rows, columns)))
    colours = plt.get_cmap("Set2")
    for number, (title, parts) in enumerate(cuttings):
        axes = figure.add_subplot(1, 3, number + 1, projection="3d")
        part_of = [np.arange(n) * p // n for p in parts]
        used = [p for p in range(3) if parts[p] > 1]
        owner = np.zeros((n, n, n), int)
        for d in used:
            extents = [1, 1, 1]
            extents[d] = n
            owner = owner * parts[d] + part_of[d].reshape(extents)
        axes.voxels(np.ones((n, n, n)), facecolors=colours(owner), edgecolor="none", shade=True)
        axes.set_title(title, fontsize=9)
        axes.set_axis_off()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("halo", "transpose", "cg", "comd"))
    parser.add_argument("source", help="the file of --plot; for transpose the grid of ranks")
    parser.add_argument("picture")
    parser.add_argument("--grid", default="1x1x1", help="the grid of ranks, as 2x2x1")
    wanted = parser.parse_args()
    grid = [int(x) for x in wanted.grid.split("x")]
    if wanted.what == "transpose":
        figure = plt.figure(figsize=(6, 2.2))
        transpose(figure, [int(x) for x in wanted.source.split("x")])
    else:
        figure, axes = plt.subplots(figsize=(3.2, 3.2))
        {"halo": halo, "cg": cg, "comd": comd}[wanted.what](axes, wanted.source, grid)
        axes.set_xticks([])
        axes.set_yticks([])
    figure.tight_layout()
    figure.savefig(wanted.picture, dpi=90)


main()
