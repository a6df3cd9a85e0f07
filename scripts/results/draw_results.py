#!/usr/bin/env python3
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Draws the plots of docs/results from the tables of its pages, which are the data that is kept.

    python3 scripts/results/draw_results.py            # all of them
    python3 scripts/results/draw_results.py host gpu   # those of these pages

Needs matplotlib 3 (requirements/tools.txt), and for plans the program sucl in build/default.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
sys.path.insert(0, str(ROOT / "python" / "sucl" / "plot"))  # the package itself wants a build

import style  # noqa: E402

LIBRARIES = {"impi": ("Intel MPI", style.PURPLE), "mpich": ("MPICH", style.GREEN),
             "openmpi": ("Open MPI", style.ORANGE), "oneccl": ("oneCCL", style.GREY)}
MEMORIES = {"device": "ordinary memory", "symmetric": "memory of allocate()"}
WITH_COUNTS = ("allgatherv", "alltoallv", "gatherv", "scatterv", "reduce_scatter")


def bytes_of(text):
    """Bytes of "64 Ki", "64 KiB" or "64Ki"."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?)(?:i?B?)?", text.strip())
    return float(match[1]) * 1024 ** " KMG".index(match[2] or " ") if match else None


def number(text):
    """The number in a cell, or the middle of a range as in "0.6 to 0.7"; None without one."""
    found = [float(n) for n in re.findall(r"\d+(?:\.\d+)?", text)]
    return sum(found[:2]) / len(found[:2]) if found else None


def tables(path):
    """The tables of a page: (heading above, columns, rows of cells)."""
    heading, lines, found = "", [], []
    for line in [*path.read_text(encoding="utf-8").splitlines(), ""]:
        if line.startswith("|"):
            lines.append([cell.strip() for cell in line.strip("|").split("|")])
            continue
        if lines:
            found.append((heading, lines[0], lines[2:]))
            lines = []
        if line.startswith("#"):
            heading = line.lstrip("# ")
    return found


def columns(table):
    """{column: {bytes: number}} of a table whose first column is the size."""
    _, titles, rows = table
    return {title: {bytes_of(row[0]): number(row[i]) for row in rows if number(row[i])}
            for i, title in enumerate(titles) if i > 0}


def panels(count, wide, size):
    """A figure with axes for so many panels."""
    plt = style.pyplot()
    rows = -(-count // wide)
    figure, axes = plt.subplots(rows, wide, figsize=(size[0] * wide, size[1] * rows),
                                squeeze=False, layout="constrained")
    for axis in axes.flat[count:]:
        axis.axis("off")
    return figure, list(axes.flat[:count])


def draw_ratios(axis, title, lines):
    """`lines`: (points, look) of how many times faster SuCL is."""
    sizes = sorted({size for points, _ in lines for size in points})
    for points, look in lines:
        axis.plot(*zip(*sorted(points.items())), **look)
    style.set_ratio_axis(axis, [y for points, _ in lines for y in points.values()])
    style.set_size_axis(axis, sizes)
    style.set_look(axis)
    axis.set_title(title, loc="left", fontweight="bold")
    axis.set_ylabel("times faster", fontsize=8)


def bandwidths(folder, ranks, memory):
    """The rows of these ranks and this memory in the table of bandwidths."""
    name = "usm" if memory == "device" else memory
    return [row for t in tables(folder / "tables.md") if "GB/s" in t[1] for row in t[2]
            if row[1:3] == [str(ranks), name]]


def draw_bandwidth(axis, rows):
    """Bars of the bytes that all ranks move in a second, and a line at what copying reaches."""
    axis.barh([row[0].split()[0] for row in rows], [float(row[4]) for row in rows], 0.6,
              color=style.BLUE)
    axis.axvline(number(rows[0][5].split(" of ")[1]), color="#333333", linewidth=0.8,
                 linestyle=":")
    axis.invert_yaxis()
    style.set_look(axis)
    axis.set_title("bandwidth of SuCL, 64 MiB", loc="left", fontweight="bold")
    axis.set_xlabel("GB/s of all ranks; dotted: all ranks copying", fontsize=8)


def draw_host(folder, ranks, memory):
    """One panel a collective, from the tables of ratios, which are SuCL's time by the other's."""
    found = []
    for table in tables(folder / "tables.md"):
        if not table[0].endswith(f", {ranks} ranks") or table[0].startswith("barrier"):
            continue
        lines = []
        for title, points in columns(table).items():
            name, _, rest = title.partition(",")
            if name in LIBRARIES and (rest.strip() or "device") == memory:
                label, colour = LIBRARIES[name]
                look = dict(color=colour, label=label, linewidth=1.4)
                lines.append(({s: 1 / ratio for s, ratio in points.items()}, look))
        if lines:
            found.append((table[0].split(",")[0], lines))
    rows = bandwidths(folder, ranks, memory)
    figure, axes = panels(len(found) + bool(rows), 3, (4.3, 2.5))
    for axis, (title, lines) in zip(axes, found):
        draw_ratios(axis, title, lines)
    if rows:
        draw_bandwidth(axes[-1], rows)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), frameon=False,
                  fontsize=9)
    figure.suptitle(f"{ranks} ranks, {MEMORIES.get(memory, memory)}: SuCL is so many times faster "
                    "than", x=0.01, ha="left", fontsize=11)
    style.save(figure, folder / f"{ranks}-ranks{'' if memory == 'device' else '-' + memory}.svg")


def draw_host_times(folder, ranks, memory):
    """One panel a collective: times of each library. Forms with counts look like those without."""
    found = [table for table in tables(folder / "times.md")
             if table[0].endswith(f", {ranks} ranks, {memory}")
             and not table[0].startswith(("barrier", *(f"{name}," for name in WITH_COUNTS)))]
    figure, axes = panels(len(found), 3, (4.3, 2.5))
    for axis, table in zip(axes, found):
        lines = []
        for name, points in columns(table).items():
            label, colour = LIBRARIES.get(name, ("SuCL", style.BLUE))
            lines.append((points, dict(color=colour, label=label,
                                       linewidth=1.8 if name == "sucl" else 1.2)))
        draw_times(axis, table[0].split(",")[0], lines, legend=0)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), frameon=False,
                  fontsize=9)
    figure.suptitle(f"{ranks} ranks, {MEMORIES.get(memory, memory)}: time of a blocking call",
                    x=0.01, ha="left", fontsize=11)
    suffix = "" if memory == "device" else f"-{memory}"
    style.save(figure, folder / f"{ranks}-ranks{suffix}-times.svg")


def host():
    for ranks in (2, 4):
        for memory in MEMORIES:
            draw_host(RESULTS / "host", ranks, memory)
            draw_host_times(RESULTS / "host", ranks, memory)


def draw_gpu(folder, ranks, page="tables.md"):
    """Above the times of SuCL and NCCL by the device's clock, below how many times faster."""
    plt = style.pyplot()
    # The forms with counts look like those without.
    found = [t for t in tables(folder / page)
             if t[0].endswith(f", {ranks} GPUs") and "SuCL, device" in t[1]
             and t[0].split(",")[0] not in WITH_COUNTS]
    rows = -(-len(found) // 2)
    figure = plt.figure(figsize=(10, 3.9 * rows))
    grid = figure.add_gridspec(rows, 2, left=0.085, right=0.97, top=1 - 0.25 / rows,
                               bottom=0.14 / rows, hspace=0.38, wspace=0.24)
    for cell, table in zip(grid, found):
        data = columns(table)
        parts = cell.subgridspec(2, 1, height_ratios=(1.8, 1), hspace=0.12)
        top, below = figure.add_subplot(parts[0]), figure.add_subplot(parts[1])
        ours, theirs = data["SuCL, device"], data["NCCL, device"]
        top.plot(*zip(*sorted(ours.items())), color=style.BLUE, label="SuCL", linewidth=1.8)
        top.plot(*zip(*sorted(theirs.items())), color=style.GREY, label="NCCL", linewidth=1.4)
        times = [*ours.values(), *theirs.values()]
        style.set_time_axis(top, min(times) / 1.3, max(times) * 1.3)
        style.set_size_axis(top, sorted(ours), labelled=False)
        style.set_look(top)
        top.set_title(table[0].split(",")[0], loc="left", fontweight="bold",
                      pad=style.legend_above(top))
        ratios = {size: theirs[size] / time for size, time in ours.items() if size in theirs}
        draw_ratios(below, "", [(ratios, dict(color=style.BLUE, linewidth=1.8))])
    figure.suptitle(f"{ranks} GPUs, back to back by their clock: time of an operation, and how "
                    "many times faster than NCCL SuCL is", x=0.03, y=0.99, ha="left", fontsize=11)
    style.save(figure, folder / f"{ranks}-gpus.svg")


def draw_times(axis, title, lines, legend=4):
    """`lines`: (points, look) of microseconds over the size."""
    for points, look in lines:
        axis.plot(*zip(*sorted(points.items())), **look)
    times = [y for points, _ in lines for y in points.values()]
    style.set_time_axis(axis, min(times) / 1.3, max(times) * 1.3)
    style.set_size_axis(axis, sorted({size for points, _ in lines for size in points}))
    style.set_look(axis)
    pad = style.legend_above(axis, legend) if legend else None
    axis.set_title(title, loc="left", fontweight="bold", pad=pad)
    axis.set_ylabel("time of an operation", fontsize=8)


def slashed(table, name):
    """The numbers of a row whose cells are as "2.88 / 5.88 / 11.9": [{bytes: number}, ...]."""
    _, titles, rows = table
    row = next(row for row in rows if row[0] == name)
    cells = [(bytes_of(title), [float(n) for n in cell.split(" / ")])
             for title, cell in zip(titles, row) if " / " in cell]
    return [dict((size, numbers[i]) for size, numbers in cells) for i in range(len(cells[0][1]))]


def draw_replays(folder):
    """Times on the left, how many times faster a replay is on the right."""
    table = next(t for t in tables(folder / "replay.md") if "NCCL issued" in t[1][0])
    figure, axes = panels(4, 2, (4.8, 3.0))
    for (left, right), name in zip((axes[:2], axes[2:]), ("allreduce", "alltoall")):
        replay, graph, issued = slashed(table, name)
        others = ((graph, "NCCL's graph", style.GREY), (issued, "NCCL, issued", style.ORANGE))
        draw_times(left, f"{name}, 2 H200", [
            (replay, dict(color=style.BLUE, label="SuCL, replay", linewidth=1.8)),
            *((points, dict(color=colour, label=label, linewidth=1.4))
              for points, label, colour in others)])
        draw_ratios(right, "", [
            ({size: points[size] / time for size, time in replay.items()},
             dict(color=colour, label=f"than {label}", linewidth=1.6))
            for points, label, colour in others])
        right.set_title(f"{name}: a replay is faster", loc="left", fontweight="bold",
                        pad=style.legend_above(right))
    style.save(figure, folder / "replay.svg")


def draw_staging(folder):
    """Times by the size of the staging memory, one line for each."""
    _, titles, rows = next(t for t in tables(folder / "experiments.md")
                           if t[1][0].startswith("staging memory"))
    looks = (style.PURPLE, style.GREEN, style.BLUE, style.ORANGE, style.GREY)
    figure, axes = panels(2, 2, (4.8, 3.2))
    for axis, name in zip(axes, ("reduce_scatter_block", "allgather")):
        first = next(i for i, title in enumerate(titles) if title.startswith(name))
        sizes = [bytes_of(title.split(",")[-1]) for title in titles[first:first + 5]]
        draw_times(axis, f"{name}, 4 H100, by staging memory", [
            (dict(zip(sizes, map(float, row[first:first + 5]))),
             dict(color=colour, label=row[0].split(",")[0], marker="o", markersize=3.5))
            for row, colour in zip(rows, looks)], 5)
    style.save(figure, folder / "staging.svg")


def draw_unlike(folder):
    """Times of operations by the devices of the ranks; the page has them in milliseconds."""
    _, titles, rows = next(t for t in tables(folder / "unlike-devices.md")
                           if t[1][0] == "devices of the ranks" and len(t[1]) == 9)
    looks = (style.BLUE, style.GREY, style.GREEN, style.ORANGE)
    figure, axes = panels(2, 2, (4.8, 3.2))
    for axis, name in zip(axes, ("allreduce", "broadcast")):
        first = next(i for i, title in enumerate(titles) if title.startswith(name))
        sizes = [bytes_of(title.split(",")[-1]) for title in titles[first:first + 4]]
        draw_times(axis, f"{name}, devices of the ranks", [
            (dict(zip(sizes, (1000 * float(n) for n in row[first:first + 4]))),
             dict(color=colour, label=row[0], marker="o", markersize=3.5))
            for row, colour in zip(rows, looks)])
    style.save(figure, folder / "unlike-devices.svg")


def gpu():
    draw_gpu(RESULTS / "gpu", 2)
    draw_gpu(RESULTS / "gpu", 4, "tables-4.md")
    draw_replays(RESULTS / "gpu")
    draw_staging(RESULTS / "gpu")
    draw_unlike(RESULTS / "gpu")


def interposer():
    """IMB under the interposer: times of both ways, and how many times faster it is interposed."""
    folder = RESULTS / "interposer"
    found = tables(folder / "index.md")
    ratios = next(t for t in found if t[1][0] == "bytes" and " / " not in t[2][0][1])
    both = next(t for t in found if t[1][0] == "bytes" and " / " in t[2][0][1])
    colours = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE)
    figure, (left, right) = panels(2, 2, (5.6, 3.6))
    lines = []
    for i, (title, colour) in enumerate(zip(both[1][1:], colours), 1):
        cells = {bytes_of(row[0]): row[i].split(" / ") for row in both[2]}
        for at, line, width in ((0, "-", 1.6), (1, ":", 1.2)):
            label = {} if at else {"label": title}
            lines.append(({size: float(cell[at]) for size, cell in cells.items()},
                          dict(label, color=colour, linestyle=line, linewidth=width)))
    draw_times(left, "IMB on Intel MPI, 2 ranks; dotted: alone", lines)
    draw_ratios(right, "", [({s: 1 / ratio for s, ratio in points.items()},
                             dict(color=colour, label=title, linewidth=1.6))
                            for (title, points), colour in zip(columns(ratios).items(), colours)])
    right.set_title("interposed, times faster than alone", loc="left", fontweight="bold",
                    pad=style.legend_above(right))
    style.save(figure, folder / "imb.svg")
    draw_device_memory(folder)


def draw_device_memory(folder):
    """Times with MPICH on the left, how many times faster with both libraries on the right."""
    _, _, rows = next(t for t in tables(folder / "devices.md") if t[1][0] == "kind")
    figure, axes = panels(4, 2, (4.8, 3.0))
    for (left, right), kind in zip((axes[:2], axes[2:]), ("allreduce", "reduce")):
        mpich, by_hand, openmpi, openmpi_by_hand = (
            {bytes_of(row[1]): float(row[i]) for row in rows if row[0] == kind}
            for i in (2, 3, 5, 6))
        draw_times(left, f"{kind}, MPICH, 2 ranks on an H200", [
            (mpich, dict(color=style.BLUE, label="interposed", linewidth=1.8)),
            (by_hand, dict(color=style.GREY, label="copies by hand", linewidth=1.4))])
        draw_ratios(right, "", [
            ({size: theirs[size] / time for size, time in ours.items()},
             dict(color=colour, label=label, linewidth=1.6))
            for ours, theirs, label, colour in (
                (mpich, by_hand, "MPICH", style.GREEN),
                (openmpi, openmpi_by_hand, "Open MPI", style.ORANGE))])
        right.set_title(f"{kind}: interposed is faster", loc="left", fontweight="bold",
                        pad=style.legend_above(right))
    style.save(figure, folder / "devices.svg")


def bars(axis, names, groups, title):
    """Horizontal bars, one group a line: {label: (colour, values)}."""
    height = 0.8 / len(groups)
    for i, (label, (colour, values)) in enumerate(groups.items()):
        axis.barh([y + i * height for y in range(len(names))], values, height, color=colour,
                  label=label)
    axis.set_yticks([y + 0.4 - height / 2 for y in range(len(names))], names)
    axis.invert_yaxis()
    style.set_look(axis)
    axis.set_title(title, loc="left", fontweight="bold", pad=style.legend_above(axis))


def ratio_bars(axis, names, groups, title):
    bars(axis, names, groups, title)
    axis.axvline(1, color="#333333", linewidth=0.8)
    axis.set_xlabel("times faster", fontsize=8)


def time_bars(axis, names, groups, title):
    """Bars of seconds on a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    bars(axis, names, groups, title)
    axis.set_xscale("log")
    axis.minorticks_off()
    times = [time for _, values in groups.values() for time in values]
    if max(times) < 100 * min(times):
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_xlim(left=min(min(values) for _, values in groups.values()) / 2)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: style.time_text(1e6 * value)))
    axis.set_xlabel("time of the whole run", fontsize=8)


def run_name(row):
    """The application and its size, of a cell with all its arguments."""
    name = re.sub(r" --(iterations|breakdown|solves|potential|tolerance) \S+", "", row[0])
    return re.sub(r"[`]|--\w+ |\.mtx", "", name).replace(", the latest build", "")


def draw_on_gpus(path):
    """Whole runs on two and four GPUs: seconds on the left, how many times faster on the right."""
    found = [t[2] for t in tables(path) if t[1][1:] == ["SuCL, s", "host_accessor, s",
                                                        "times faster"]]
    figure, axes = panels(4, 2, (5.6, 3.4))
    for (left, right), rows, gpus in zip((axes[:2], axes[2:]), found, (2, 4)):
        names = [run_name(row) for row in rows]
        ours, theirs = ([float(row[i]) for row in rows] for i in (1, 2))
        time_bars(left, names, {"SuCL": (style.BLUE, ours),
                                "host_accessor and MPI": (style.ORANGE, theirs)}, f"{gpus} H200")
        ratio_bars(right, names, {"than host_accessor and MPI": (
            style.BLUE, [their / our for our, their in zip(ours, theirs)])},
            f"{gpus} H200: SuCL is faster")
        right.tick_params(labelleft=False)
    style.save(figure, path.parent / "applications" / "gpus.svg")


def median(text):
    """The first number of a cell such as "1.18 (0.74 to 1.28)"."""
    return float(re.match(r"[\d.]+", text)[0])


def applications():
    """Whole runs against MPI, on GPUs and on the CPU device, where ratios are of more rounds."""
    path = RESULTS / "applications.md"
    draw_on_gpus(path)
    found = tables(path)
    times = next(t[2] for t in found if "MPI over USM, s" in t[1])
    ratios = {}
    for row in next(t[2] for t in found if t[1][1:3] == ["ranks", "rounds"]):
        if row[1] == "2":
            ratios.setdefault(run_name(row), row)
    figure, (left, right) = panels(2, 2, (5.6, 5.2))
    names = [run_name(row) for row in times]
    looks = {"MPI on USM": style.GREY, "host_accessor and MPI": style.ORANGE}
    time_bars(left, names, {
        label: (colour, [float(row[i]) for row in times])
        for i, (label, colour) in enumerate({"SuCL": style.BLUE, **looks}.items(), 2)},
        "CPU device, 2 ranks")
    ratio_bars(right, names, {label: (colour, [median(ratios[name][i]) for name in names])
                              for i, (label, colour) in enumerate(looks.items(), 3)},
               "times faster, medians of rounds in turn")
    right.tick_params(labelleft=False)
    style.save(figure, RESULTS / "applications" / "cpu.svg")


def first_light():
    """Times above, and below how many times faster than what a program would do without SuCL."""
    table = next(t for t in tables(RESULTS / "first-light.md") if len(t[2]) > 5)
    both = next(t for t in tables(RESULTS / "first-light.md") if " / " in t[2][0][1])
    figure, axes = panels(6, 3, (5.4, 3.3))
    looks = {"USM, blocking": (style.GREY, "-"), "USM, event": (style.GREY, "--"),
             "buffer, blocking": (style.ORANGE, "-"), "buffer, event": (style.ORANGE, "--")}
    baselines = {"USM, blocking": "raw MPI", "buffer, blocking": "host_accessor and MPI"}
    for above, below, name in zip(axes[:3], axes[3:], ("allreduce", "broadcast", "reduce")):
        times, ratios = [], []
        for rest, (colour, line) in looks.items():
            column = both[1].index(f"{name}, {rest}")
            cells = {bytes_of(row[0]): row[column].split(" / ") for row in both[2]}
            look = dict(color=colour, linestyle=line, linewidth=1.5)
            times.append(({s: float(ours) for s, (ours, _) in cells.items()},
                          dict(look, label=rest)))
            if rest in baselines:
                times.append(({s: float(theirs) for s, (_, theirs) in cells.items()},
                              dict(color=colour, linestyle=":", label=baselines[rest])))
            ratios.append(({s: 1 / ratio for s, ratio in
                            columns(table)[f"{name}, {rest}"].items()}, dict(look, label=rest)))
        draw_times(above, name, times, legend=3)
        draw_ratios(below, "", ratios)
        below.set_title(f"{name}: how many times faster SuCL is", loc="left",
                        fontweight="bold", pad=style.legend_above(below, 2))
    style.save(figure, RESULTS / "first-light" / "faster.svg")


def messages():
    """Times of the present build on the left, ratios of those before on the right."""
    before, now = tables(RESULTS / "messages.md")[:2]
    figure, (left, right) = panels(2, 2, (5.2, 3.4))
    times = columns(now)
    draw_times(left, "sendrecv, 2 ranks", [
        (times[f"{name}, us"], dict(color=colour, label=label, marker="o", markersize=3.5))
        for name, label, colour in (("blocking", "SuCL, blocking", style.BLUE),
                                    ("persistent", "SuCL, persistent", style.GREEN),
                                    ("Open MPI", "Open MPI", style.GREY))], legend=3)
    lines = []
    for i, (name, colour) in enumerate((("through the queue", style.GREY),
                                        ("past it, fast coherence", style.BLUE),
                                        ("past it, slow coherence", style.ORANGE))):
        points = {bytes_of(row[0]): float(row[i + 1].split(",")[0]) for row in before[2]
                  if row[i + 1]}
        lines.append((points, dict(color=colour, label=name, marker="o", markersize=3.5)))
    draw_ratios(right, "", lines)
    right.set_title("blocking: times faster than Open MPI", loc="left", fontweight="bold",
                    pad=style.legend_above(right, 2))
    style.save(figure, RESULTS / "messages" / "sendrecv.svg")


def of_libraries(table):
    """{library: {collective: {bytes: cell}}}; rows without a library are of the one above."""
    _, titles, rows = table
    sizes = [bytes_of(title) for title in titles[1:]]
    found = {}
    for row in rows:
        name, _, library = row[0].partition(", ")
        of = found.setdefault(library, {}) if library else found[list(found)[-1]]
        of[name] = dict(zip(sizes, row[1:]))
    return found


def fabric():
    """Times of both on the left, from cells "SuCL / MPI", how many times faster on the right."""
    ratios, both = (of_libraries(t) for t in tables(RESULTS / "fabric.md")[:2])
    colours = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE)
    figure, axes = panels(2 * len(both), 2, (4.8, 3.0))
    for left, right, (library, of) in zip(axes[::2], axes[1::2], both.items()):
        times, faster = [], []
        for colour, (name, cells) in zip(colours, of.items()):
            pairs = {size: cell.split(" / ") for size, cell in cells.items()}
            look = dict(color=colour, marker="o", markersize=3.5)
            times.append(({size: float(ours) for size, (ours, _) in pairs.items()},
                          dict(look, label=name)))
            times.append(({size: float(theirs) for size, (_, theirs) in pairs.items()},
                          dict(color=colour, linestyle=":")))
            faster.append(({size: 1 / float(ratio) for size, ratio in
                            ratios[library][name].items()}, dict(look, label=name)))
        draw_times(left, f"time; dotted: {library}", times)
        draw_ratios(right, "", faster)
        right.set_title(f"times faster than {library}", loc="left", fontweight="bold",
                        pad=style.legend_above(right))
    style.save(figure, RESULTS / "fabric" / "collectives.svg")


def shared_memory():
    """Times of staged alltoalls over the memory that the slots in use take."""
    _, titles, rows = tables(RESULTS / "shared-memory.md")[0]
    figure, axes = panels(1, 1, (7, 3.6))
    colours = (style.GREY, style.PURPLE, style.GREEN, style.ORANGE, style.BLUE)
    axis, times, sizes = axes[0], [], set()
    for row, colour in zip(rows, colours):
        each = bytes_of(row[0])
        points = {each * int(n): float(time) for n, time in zip(titles[1:], row[1:])}
        axis.plot(*zip(*sorted(points.items())), color=colour, marker="o", markersize=3.5,
                  label=style.size_text(each))
        times += points.values()
        sizes |= set(points)
    axis.axvline(2 << 20, color="#333333", linewidth=0.8, linestyle=":")
    style.set_time_axis(axis, min(times) / 1.2, max(times) * 1.2)
    style.set_size_axis(axis, sorted(sizes), most=6)
    style.set_look(axis)
    axis.set_xlabel("memory of all slots in use; dotted: 2 MiB", fontsize=8)
    axis.set_ylabel("time of a staged alltoall", fontsize=8)
    axis.set_title("2 threads, message size", loc="left", fontweight="bold",
                   pad=style.legend_above(axis, 5))
    style.save(figure, RESULTS / "shared-memory" / "ring.svg")


RING = ("broadcast", "16", "64Mi",
        "composed(hierarchy=4,4;pipeline=5;stripe=4;ring=4;stagger=1;via=mpi,ipc)")


def plans():
    """The timeline that `sucl plan simulate` draws, without its tooltips and with one path for all
    boxes of a colour."""
    collective, ranks, size, recipe = RING
    file = RESULTS / "plans" / "ring_time.svg"
    subprocess.run([ROOT / "build/default/bin/sucl", "plan", "simulate", "--machine", "perlmutter",
                    "--collective", collective, "--ranks", ranks, "--bytes", size, "--recipe",
                    recipe, "--timeline", file], check=True, stdout=subprocess.DEVNULL)
    text = re.sub(r"<title>.*?</title>", "", file.read_text(encoding="utf-8"))
    boxes, kept = {}, []
    for line in text.splitlines():
        box = re.match(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" '
                       r"(.*?)/?>", line)
        if box is None or float(box[3]) > 1000:
            kept.append(line)
        elif float(box[3]) >= 0.5:  # what is shorter cannot be seen
            x, y, width, height = (round(float(n), 1) for n in box.groups()[:4])
            boxes.setdefault(box[5], []).append(f"M{x:g} {y:g}h{width:g}v{height:g}h{-width:g}z")
    paths = [f'<path {look} d="{"".join(parts)}"/>' for look, parts in boxes.items()]
    texts = next(i for i, line in enumerate(kept) if line.startswith("<text"))
    file.write_text("\n".join([*kept[:texts], *paths, *kept[texts:]]) + "\n", encoding="utf-8")


PAGES = {"host": host, "gpu": gpu, "interposer": interposer, "applications": applications,
         "first-light": first_light, "messages": messages, "fabric": fabric,
         "shared-memory": shared_memory, "plans": plans}


def main(names):
    for name in names or PAGES:
        if name not in PAGES:
            print(f"no page '{name}'; there are {', '.join(PAGES)}", file=sys.stderr)
            return 2
        (RESULTS / name).mkdir(exist_ok=True)
        PAGES[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
