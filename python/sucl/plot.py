# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Draws the results of `sucl bench`: python -m sucl.plot results.json results.svg

A row of panels for each collective, type, op and number of ranks; a column for each memory. Each
panel has the latency over the size, and below it SuCL's latency as a multiple of the others'.
"""

import json
import math
import sys
from collections import OrderedDict

BLUE, GREY, ORANGE, RED = "#1f5fa8", "#6b6b6b", "#c8641b", "#c4161c"

# How each implementation and form looks, and what it is called.
STYLES = {
    ("sucl", "blocking"): dict(label="SuCL", color=BLUE, linestyle="-", linewidth=2.0),
    ("sucl", "event"): dict(
        label="SuCL, event", color=BLUE, linestyle=(0, (4, 1.5)), linewidth=1.6),
    ("mpi", "blocking"): dict(label="MPI", color=GREY, linestyle="-", linewidth=1.6),
    ("host-accessor", "blocking"): dict(
        label="host_accessor + MPI", color=ORANGE, linestyle="-", linewidth=1.6),
}
MEMORY_NAMES = {"usm": "USM device", "device": "USM device", "shared": "USM shared",
                "host": "USM host", "system": "system memory", "buffer": "sycl::buffer", "none": ""}


def size_text(size):
    """Bytes as in "64 Ki"."""
    for unit, name in ((2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size:g}"


def time_text(microseconds):
    """A round number of microseconds with the unit that suits it."""
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:g} s"
    if microseconds >= 1e3:
        return f"{microseconds / 1e3:g} ms"
    return f"{microseconds:g} µs"


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


def label_lines(axes, lines):
    """Writes the name of each line at its left end, where they differ most: the lowest line's
    below it, the others' above theirs, without overlaps."""
    low, high = (math.log(limit) for limit in axes.get_ylim())
    per_point = (high - low) / (axes.get_window_extent().height / axes.figure.dpi * 72)
    lines = sorted((line for line in lines if line["y"]), key=lambda line: max(line["y"][:4]))
    place = -math.inf
    for i, line in enumerate(lines):
        if i == 0 and len(lines) > 1:
            place = math.log(min(line["y"][:4])) - 9 * per_point
        else:
            # Above its own line, and above the name below it.
            place = max(math.log(max(line["y"][:4])) + 7.5 * per_point, place + 10 * per_point)
        axes.annotate(line["label"], xy=(0, math.exp(place)), xycoords=("axes fraction", "data"),
                      xytext=(6, 0), textcoords="offset points", va="center", fontsize=8,
                      color=line["color"], annotation_clip=False, path_effects=halo())


def halo():
    """Keeps text legible where it lies on lines."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2.5, foreground="white")]


def set_size_axis(axes, sizes, labelled):
    """Sizes on a logarithmic axis, with a label at about six of them."""
    axes.set_xscale("log", base=2)
    step = max(1, math.ceil(len(sizes) / 6))
    ticks = sizes[::-1][::step][::-1]
    axes.set_xticks(ticks)
    axes.set_xticklabels([size_text(size) for size in ticks] if labelled else [])
    axes.minorticks_off()
    if len(sizes) > 1:
        axes.set_xlim(sizes[0] / 1.15, sizes[-1] * 1.15)


def set_look(axes):
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color("#999999")
    axes.tick_params(labelsize=8, color="#999999", length=3)
    axes.grid(True, color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)


def marks(sizes):
    """Few points are marked; a single one would be no line at all."""
    return dict(marker="o", markersize=3.5) if len(sizes) <= 6 else {}


def draw_latency(axes, series, sizes):
    """Medians as lines, from the median to p95 as a shade, wrong results as crosses."""
    from matplotlib.ticker import FixedLocator, FuncFormatter

    lines = []
    for key, points in series.items():
        style = STYLES.get(key, dict(label="/".join(key), color="#444444"))
        shown = [row for row in points if row["bytes"] > 0 and row["median_us"] > 0]
        x = [row["bytes"] for row in shown]
        y = [row["median_us"] for row in shown]
        axes.plot(x, y, **{**style, "label": None}, **marks(sizes))
        axes.fill_between(x, y, [row["p95_us"] for row in shown], color=style["color"], alpha=0.10,
                          linewidth=0)
        wrong = [row for row in shown if not row["valid"]]
        axes.plot([row["bytes"] for row in wrong], [row["median_us"] for row in wrong], "x",
                  color=RED, markersize=9, markeredgewidth=2)
        lines.append(dict(label=style["label"], color=style["color"], y=y))
    axes.set_yscale("log")
    set_size_axis(axes, sizes, labelled=False)
    axes.minorticks_off()
    # The medians decide: one slow iteration must not flatten them. Room below is for a name.
    medians = [value for line in lines for value in line["y"]]
    margin = max(2.2, (max(medians) / min(medians)) ** 0.13)
    low, high = min(medians) / margin, max(medians) * margin**0.7
    steps = (1,) if high / low > 300 else (1, 2, 5)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    axes.yaxis.set_major_locator(FixedLocator([step * 10.0**power for power in powers
                                               for step in steps]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: time_text(value)))
    axes.set_ylim(low, high)
    set_look(axes)
    return lines


def ratios(series):
    """SuCL's medians as multiples of each other implementation's, at the sizes both have."""
    lines = []
    for mine in series:
        for other in series:
            if mine[0] != "sucl" or other[0] == "sucl":
                continue
            theirs = {row["bytes"]: row["median_us"] for row in series[other]}
            points = [(row["bytes"], row["median_us"] / theirs[row["bytes"]])
                      for row in series[mine]
                      if row["bytes"] > 0 and theirs.get(row["bytes"], 0) > 0]
            if points:
                lines.append((mine, points))
    return lines


def draw_ratio(axes, series, sizes):
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    lines = ratios(series)
    axes.axhline(1, color="#333333", linewidth=0.8)
    for mine, points in lines:
        style = STYLES[mine]
        axes.plot([point[0] for point in points], [point[1] for point in points],
                  **{**style, "label": None}, **marks(sizes))
    values = [value for _, points in lines for _, value in points]
    low = min(values + [1 / 1.5])
    high = max(values + [1.5])
    axes.set_yscale("log", base=2)
    powers = range(math.floor(math.log2(low)), math.ceil(math.log2(high)) + 1)
    step = max(1, math.ceil(len(powers) / 5))
    ticks = [2.0**power for power in powers if power % step == 0]
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:g}×" if value >= 1 else f"1/{1 / value:g}"))
    axes.set_ylim(low / 1.12, high * 1.12)
    set_size_axis(axes, sizes, labelled=True)
    set_look(axes)
    axes.set_xlabel("bytes", fontsize=8)
    return lines


def others_name(series):
    names = [STYLES.get(key, {}).get("label", key[0]) for key in series if key[0] != "sucl"]
    return " or ".join(names)


def draw_panel(figure, place, subject, memory, series):
    """The two panels of one subject and memory."""
    sizes = sorted({row["bytes"] for points in series.values() for row in points if row["bytes"]})
    if not sizes:
        return None
    compared = bool(ratios(series))
    parts = place.subgridspec(2, 1, height_ratios=(2.2, 1), hspace=0.09) if compared else None
    top = figure.add_subplot(parts[0] if compared else place)
    top.set_title(title_of(subject, memory), fontsize=10, loc="left", fontweight="bold")
    lines = draw_latency(top, series, sizes)
    if compared:
        bottom = figure.add_subplot(parts[1])
        draw_ratio(bottom, series, sizes)
        bottom.annotate(f"relative to {others_name(series)}", xy=(1, 1), xycoords="axes fraction",
                        xytext=(-3, -2), textcoords="offset points", ha="right", va="top",
                        fontsize=8, color="#444444", path_effects=halo())
    else:
        set_size_axis(top, sizes, labelled=True)
        top.set_xlabel("bytes", fontsize=8)
    top.set_ylabel("median, slowest rank", fontsize=8)
    return top, lines


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
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "sucl"  # the same results give the same file
    subjects = [(subject, memories) for subject, memories in grouped(results["rows"]).items()
                if any(row["bytes"] for series in memories.values()
                       for points in series.values() for row in points)]
    if not subjects:
        raise SystemExit("there is nothing to draw: no result has a size above 0")
    columns = max(len(memories) for _, memories in subjects)
    width, height = 5.2 * columns + 0.5, 3.8 * len(subjects) + 0.7
    figure = plt.figure(figsize=(width, height))
    grid = figure.add_gridspec(len(subjects), columns, left=0.75 / width, right=1 - 0.3 / width,
                               top=1 - 0.95 / height, bottom=0.5 / height,
                               hspace=0.28, wspace=0.2)
    panels = [draw_panel(figure, grid[i, j], subject, memory, series)
              for i, (subject, memories) in enumerate(subjects)
              for j, (memory, series) in enumerate(memories.items())]
    figure.text(0.75 / width, 1 - 0.22 / height, caption(results["header"]), fontsize=8,
                color="#444444", va="top", linespacing=1.5)
    figure.canvas.draw()  # places are known after this
    for panel in panels:
        if panel:
            label_lines(*panel)
    figure.savefig(path, dpi=130, metadata={"Date": None} if path.endswith(".svg") else None)


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
