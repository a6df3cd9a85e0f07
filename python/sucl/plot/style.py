# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""How every plot of SuCL looks: sizes in KiB and MiB, times in µs, ratios as "times faster" with a
line at 1, legends above the axes, and small SVG files.
"""

import math
import re

BLUE, GREY, ORANGE, GREEN, PURPLE, RED = (
    "#1f5fa8", "#6b6b6b", "#c8641b", "#2f8f4e", "#8250b4", "#c4161c")
FRAME = "#999999"


def pyplot():
    """matplotlib's pyplot, set up for files: the same results give the same file."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({
        "svg.hashsalt": "sucl", "svg.fonttype": "none", "font.size": 9,
        "font.family": ["DejaVu Sans", "sans-serif"], "axes.titlesize": 10})
    from matplotlib import pyplot as plt

    return plt


def size_text(size):
    """Bytes as in "64 KiB"."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size:g} B"


def time_text(microseconds):
    """A round number of microseconds with the unit that suits it."""
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:g} s"
    if microseconds >= 1e3:
        return f"{microseconds / 1e3:g} ms"
    return f"{microseconds:g} µs"


def set_look(axes):
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FRAME)
    axes.tick_params(labelsize=8, color=FRAME, length=3)
    axes.grid(True, color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)


def set_size_axis(axes, sizes, labelled=True, most=5):
    """Sizes on a logarithmic axis, with a label at about `most` of them."""
    axes.set_xscale("log", base=2)
    apart = math.log(sizes[-1] / sizes[0]) / most if len(sizes) > 1 else 0
    ticks = []
    for size in reversed(sizes):
        if not ticks or math.log(ticks[-1] / size) >= apart * 0.99:
            ticks.append(size)
    axes.set_xticks(ticks)
    axes.set_xticklabels([size_text(size) for size in ticks] if labelled else [])
    axes.minorticks_off()
    if len(sizes) > 1:
        axes.set_xlim(sizes[0] / 1.15, sizes[-1] * 1.15)
    if labelled:
        axes.set_xlabel("message size", fontsize=8)


def set_time_axis(axes, low, high):
    """Times from `low` to `high` microseconds on a logarithmic axis."""
    from matplotlib.ticker import FixedLocator, FuncFormatter

    axes.set_yscale("log")
    axes.minorticks_off()
    steps = (1,) if high / low > 300 else (1, 2, 5)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    axes.yaxis.set_major_locator(FixedLocator([step * 10.0**power for power in powers
                                               for step in steps]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: time_text(value)))
    axes.set_ylim(low, high)


def set_ratio_axis(axes, values):
    """How many times faster, on a logarithmic axis with a line at 1."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.axhline(1, color="#333333", linewidth=0.8)
    low, high = min([*values, 1 / 1.5]), max([*values, 1.5])
    axes.set_yscale("log", base=2)
    powers = range(math.floor(math.log2(low)), math.ceil(math.log2(high)) + 1)
    step = max(1, math.ceil(len(powers) / 5))
    between = (1, 1.25, 1.5) if high / low < 4 else (1,)
    axes.yaxis.set_major_locator(FixedLocator([m * 2.0**p for p in powers if p % step == 0
                                               for m in between]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}×"))
    axes.set_ylim(low / 1.12, high * 1.12)


def legend_above(axes, columns=4):
    """The names of the lines above the axes, where no line is; the title goes above them."""
    handles, labels = axes.get_legend_handles_labels()
    rows = math.ceil(len(labels) / columns)
    axes.legend(handles, labels, loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncol=columns,
                frameon=False, fontsize=8, borderpad=0, borderaxespad=0.2, handlelength=1.6,
                columnspacing=1.2)
    return 14 * rows + 4  # points that the title has to be raised


def without_bare_groups(svg):
    """An SVG without the groups that have no attributes, which change nothing."""
    kept, bare = [], []
    for part in re.split(r"(<g\b[^>]*>|</g>)", svg):
        if part == "</g>":
            if bare.pop():
                continue
        elif re.match(r"<g\b", part):
            empty = part.endswith("/>")
            if not empty:
                bare.append(part == "<g>")
            if empty or bare[-1]:
                continue
        kept.append(part)
    return "".join(kept)


def shrink(svg):
    """An SVG of matplotlib's with one decimal a coordinate, and each look written once."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.S)
    numbers = re.compile(r"(?<![\w#.])(-?\d+\.\d)\d+(?![\w.])")
    svg = re.sub(r"<[^>]*>", lambda tag: numbers.sub(r"\1", tag[0]), svg)  # not in texts
    svg = re.sub(r' d="([^"]*)"', lambda m: ' d="' + " ".join(m[1].split()) + '"', svg)
    svg = without_bare_groups(re.sub(r'<g id="[^"]*"', "<g", svg))
    looks = {}

    def named(match):
        name = looks.setdefault(match[1], f"s{len(looks)}")
        return f' class="{name}"'

    svg = re.sub(r' style="([^"]*)"', named, svg)
    rules = "".join(f".{name}{{{look}}}" for look, name in looks.items())
    svg = svg.replace("</style>", rules + "</style>", 1)
    return re.sub(r"\n\s*", "\n", svg)


def save(figure, path):
    """Writes the figure; the format follows from the name of the file."""
    path = str(path)
    if not path.endswith(".svg"):
        figure.savefig(path, dpi=130)
        return
    figure.savefig(path, metadata={"Date": None})
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(shrink(text))
