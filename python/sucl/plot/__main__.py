# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Draws the results of `sucl bench`: python -m sucl.plot results.json results.svg

A row of panels for each collective, type, op and number of ranks; a column for each memory. Each
panel has the latency over the size, and below it how many times faster than the others SuCL is.
"""

import json
import sys
from collections import OrderedDict

from . import style
from .style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED

# How each implementation and form looks, and what it is called.
STYLES = {
    ("sucl", "blocking"): dict(label="SuCL", color=BLUE, linestyle="-", linewidth=2.0),
    ("sucl", "event"): dict(
        label="SuCL, event", color=BLUE, linestyle=(0, (4, 1.5)), linewidth=1.6),
    ("sucl", "persistent"): dict(
        label="SuCL, persistent", color=BLUE, linestyle=(0, (1, 1)), linewidth=1.6),
    ("sucl", "stream"): dict(
        label="SuCL, stream", color=GREEN, linestyle="-", linewidth=1.6),
    ("sucl", "device"): dict(
        label="SuCL, device", color=PURPLE, linestyle="-", linewidth=1.6),
    ("mpi", "blocking"): dict(label="MPI", color=GREY, linestyle="-", linewidth=1.6),
    ("host-accessor", "blocking"): dict(
        label="host_accessor + MPI", color=ORANGE, linestyle="-", linewidth=1.6),
}
MEMORY_NAMES = {"device": "USM device", "shared": "USM shared",
                "host": "USM host", "system": "system memory", "buffer": "sycl::buffer", "none": ""}


def grouped(rows):
    """Rows by subject, memory, and implementation with form, each in order of appearance."""
    subjects = OrderedDict()
    for row in rows:
        subject = (row["collective"], row["type"], row["op"], row["ranks"])
        memories = subjects.setdefault(subject, OrderedDict())
        series = memories.setdefault(row["memory"], OrderedDict())
        series.setdefault((row["impl"], row["form"]), []).append(row)
    for memories in subjects.values():
        for series in memories.values():
            for points in series.values():
                points.sort(key=lambda row: row["bytes"])
    return subjects


def title_of(subject, memory):
    collective, kind, op, _ = subject
    parts = [collective] + [word for word in (kind, op) if word not in ("none", "bytes")]
    return " · ".join(parts + ([MEMORY_NAMES.get(memory, memory)] if memory != "none" else []))


def style_of(key):
    return STYLES.get(key, dict(label=", ".join(key), color=GREY))


def marks(sizes):
    """Few points are marked; a single one would be no line at all."""
    return dict(marker="o", markersize=3.5) if len(sizes) <= 6 else {}


def draw_latency(axes, series, sizes):
    """Medians as lines, from the median to p95 as a shade, wrong results as crosses."""
    medians = []
    for key, points in series.items():
        look = style_of(key)
        shown = [row for row in points if row["bytes"] > 0 and row["median_us"] > 0]
        x = [row["bytes"] for row in shown]
        y = [row["median_us"] for row in shown]
        axes.plot(x, y, **look, **marks(sizes))
        axes.fill_between(x, y, [row["p95_us"] for row in shown], color=look["color"], alpha=0.10,
                          linewidth=0)
        wrong = [row for row in shown if not row["valid"]]
        axes.plot([row["bytes"] for row in wrong], [row["median_us"] for row in wrong], "x",
                  color=RED, markersize=9, markeredgewidth=2)
        medians += y
    # The medians decide: one slow iteration must not flatten them.
    margin = max(1.3, (max(medians) / min(medians)) ** 0.05)
    style.set_time_axis(axes, min(medians) / margin, max(medians) * margin)
    style.set_size_axis(axes, sizes, labelled=False)
    style.set_look(axes)


def ratios(series):
    """How many times faster SuCL is than each other implementation, at the sizes both have."""
    lines = []
    for mine in series:
        for other in series:
            if mine[0] != "sucl" or other[0] == "sucl":
                continue
            theirs = {row["bytes"]: row["median_us"] for row in series[other]}
            points = [(row["bytes"], theirs[row["bytes"]] / row["median_us"])
                      for row in series[mine]
                      if row["bytes"] in theirs and row["bytes"] > 0 and row["median_us"] > 0]
            if points:
                lines.append((mine, points))
    return lines


def draw_ratio(axes, series, sizes):
    lines = ratios(series)
    for mine, points in lines:
        axes.plot([point[0] for point in points], [point[1] for point in points],
                  **{**style_of(mine), "label": None}, **marks(sizes))
    style.set_ratio_axis(axes, [value for _, points in lines for _, value in points])
    style.set_size_axis(axes, sizes)
    style.set_look(axes)
    axes.set_ylabel("times faster", fontsize=8)


def others_name(series):
    names = [style_of(key)["label"] for key in series if key[0] != "sucl"]
    return " or ".join(names)


def draw_panel(figure, cell, subject, memory, series):
    """The two panels of one subject and memory."""
    sizes = sorted({row["bytes"] for points in series.values() for row in points if row["bytes"]})
    if not sizes:
        return None
    compared = bool(ratios(series))
    parts = cell.subgridspec(2, 1, height_ratios=(2.2, 1), hspace=0.16) if compared else None
    top = figure.add_subplot(parts[0] if compared else cell)
    draw_latency(top, series, sizes)
    top.set_title(title_of(subject, memory), loc="left", fontweight="bold",
                  pad=style.legend_above(top))
    if compared:
        bottom = figure.add_subplot(parts[1])
        draw_ratio(bottom, series, sizes)
        bottom.set_title(f"than {others_name(series)}", fontsize=8, loc="right", pad=2,
                         color="#444444")
    else:
        style.set_size_axis(top, sizes)
    top.set_ylabel("median, slowest rank", fontsize=8)


def caption(header):
    """Where and how it was measured, in two lines."""
    what = [f"SuCL {header.get('sucl', '?')}", f"{header.get('ranks', '?')} ranks",
            f"{header.get('cores', '?')} cores of {header.get('cpu', '?')}"]
    how = [header.get("mpi", "").split(",")[0].split(" (")[0],
           f"{header.get('sycl', '?')} on {', '.join(header.get('devices', []))}",
           header.get("date", ""), "shade: to the 95th percentile"]
    return " · ".join(what) + "\n" + " · ".join(part for part in how if part)


def draw(results, path):
    """Draws a results document into a file; the format follows from its name."""
    plt = style.pyplot()
    subjects = [(subject, memories) for subject, memories in grouped(results["rows"]).items()
                if any(row["bytes"] for series in memories.values()
                       for points in series.values() for row in points)]
    if not subjects:
        raise SystemExit("there is nothing to draw: no result has a size above 0")
    columns = max(len(memories) for _, memories in subjects)
    width, height = 5.2 * columns + 0.5, 4.0 * len(subjects) + 0.9
    figure = plt.figure(figsize=(width, height))
    grid = figure.add_gridspec(len(subjects), columns, left=0.75 / width, right=1 - 0.3 / width,
                               top=1 - 1.05 / height, bottom=0.5 / height,
                               hspace=0.38, wspace=0.25)
    for i, (subject, memories) in enumerate(subjects):
        for j, (memory, series) in enumerate(memories.items()):
            draw_panel(figure, grid[i, j], subject, memory, series)
    figure.text(0.75 / width, 1 - 0.15 / height, caption(results["header"]), fontsize=8,
                color="#444444", va="top", linespacing=1.5)
    style.save(figure, path)


def main(arguments):
    if len(arguments) != 2:
        print("usage: python -m sucl.plot RESULTS.json PLOT.svg", file=sys.stderr)
        return 2
    source, target = arguments
    try:
        with open(source, encoding="utf-8") as file:
            results = json.load(file)
        draw(results, target)
    except ImportError as problem:
        print(f"{sys.executable} lacks {problem.name}: run 'make setup', or install matplotlib, or "
              "set SUCL_PYTHON to a Python that has it", file=sys.stderr)
        return 1
    except (OSError, ValueError, KeyError) as problem:
        print(f"cannot draw {source} into {target}: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
