"""A result as one SVG drawing: bars for what is compared, JobSets over time, and growth.

Written without a library: a handful of rectangles, lines and words, in colours that can be told apart without colour
vision and on both light and dark pages.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from comparison.contenders import CONTENDERS
from comparison.measures import figure_of
from comparison.results import Result

COLOURS = {
    "reference": "#b0691c",
    "reference-lifted": "#e3a34f",
    "ours": "#2f7fc1",
    "ours-given-certificates": "#86b9e0",
    "nobody": "#8a8a8a",
}
BARS = (
    "burst-1000/seconds",
    "burst-1000/wait_p99",
    "burst-1000/requests_until",
    "burst-1000/cpu_ms",
    "burst-1000/rss_after",
    "burst-5000/rss_after",
    "burst-5000/restart_seconds",
    "complete-1000/complete_seconds",
    "single-100/wait_p50",
    "single-100/webhook_p99_ms",
)

WIDTH, MARGIN, LABEL = 860, 20, 300
BAR, GAP = 13, 4
PANEL = 220
STYLE = """\
text{font:12px sans-serif;fill:#666}
.title{font-weight:bold}
.tick{text-anchor:middle}
.axis{stroke:#999;stroke-width:1;fill:none}\
"""


def svg(result: Result) -> str:
    """All that the result has something for, one below the other."""
    parts: list[str] = []
    y = MARGIN
    for draw in (_legend, _bars, _starts, _growth):
        lines, height = draw(result, y)
        parts += lines
        y += height
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + MARGIN}" width="{WIDTH}">'
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>", ""])


Drawing = tuple[list[str], int]


def _legend(result: Result, y: int) -> Drawing:
    lines, x = [], MARGIN
    for name in result.contenders:
        about = CONTENDERS[name].title if name in CONTENDERS else "creators alone"
        lines += [_rectangle(x, y, 12, 12, COLOURS[name]), _text(x + 17, y + 11, about)]
        x += 30 + 7 * len(about)
    return lines, 34


def _bars(result: Result, y: int) -> Drawing:
    """One group for each measure, each on a scale of its own: only bars of one group can be compared."""
    lines: list[str] = []
    begin = y
    for measure in BARS if any(measure.partition("/")[0] in result.scenarios for measure in BARS) else ():
        scenario, _, figure = measure.partition("/")
        values = [(name, result.figure(scenario, name, figure)) for name in result.contenders]
        known = [(name, value) for name, value in values if value is not None]
        if not known:
            continue
        about = figure_of(figure)
        lines.append(_text(MARGIN, y + len(known) * BAR // 2 + 4, f"{scenario}: {about.title}"))
        longest = max(value for _, value in known) or 1.0
        for name, value in known:
            width = max(1.0, value / longest * (WIDTH - LABEL - 110))
            lines.append(_rectangle(LABEL, y, width, BAR - 2, COLOURS[name]))
            lines.append(_text(LABEL + width + 6, y + BAR - 3, f"{_short(value)} {about.unit}"))
            y += BAR
        y += 3 * GAP
    return lines, y - begin


def _starts(result: Result, y: int) -> Drawing:
    """Share of JobSets over time, of the first run of the largest burst."""
    bursts = [name for name in result.scenarios if name.startswith("burst-")]
    if not bursts:
        return [], 0
    scenario = "burst-1000" if "burst-1000" in bursts else bursts[-1]
    curves = {}
    for name in result.contenders:
        runs = result.of(scenario, name)
        if runs:
            curves[name] = [(second, percent + 1.0) for percent, second in enumerate(runs[0].outcome.curves["seen"])]
    title = f"{scenario}: % of the JobSets there after so many seconds"
    return list(_lines(title, curves, y, logarithmic=False)), PANEL + 60


def _growth(result: Result, y: int) -> Drawing:
    if "growth" not in result.scenarios:
        return [], 0
    lines: list[str] = []
    begin = y
    for figure in ("cpu_ms", "rss_kb"):
        curves: dict[str, list[tuple[float, float]]] = {}
        for name in result.contenders:
            for key in result.figures("growth"):
                step, _, last = key.partition("/")
                value = result.figure("growth", name, key)
                if last == figure and value is not None:
                    curves.setdefault(name, []).append((float(step), value))
        about = figure_of(figure)
        title = f"{about.title} ({about.unit}), by how many suspended TrainJobs there are"
        lines += _lines(title, curves, y, logarithmic=True)
        y += PANEL + 60
    return lines, y - begin


def _lines(title: str, curves: dict[str, list[tuple[float, float]]], y: int, *, logarithmic: bool) -> Iterator[str]:
    """Curves on common axes; the x axis from the smallest x (0 if not logarithmic) to the largest."""
    points = [point for curve in curves.values() for point in curve]
    if not points:
        return
    scale = math.log10 if logarithmic else float
    first = scale(min(x for x, _ in points)) if logarithmic else 0.0
    last = scale(max(x for x, _ in points))
    top = max(value for _, value in points) or 1.0
    left, right, bottom = MARGIN + 40, WIDTH - MARGIN - 20, y + 22 + PANEL

    def place(point: tuple[float, float]) -> str:
        x = left + (scale(point[0]) - first) / ((last - first) or 1.0) * (right - left)
        return f"{x:.1f},{bottom - point[1] / top * PANEL:.1f}"

    yield _text(MARGIN, y + 12, title, "title")
    yield f'<path class="axis" d="M{left} {y + 22}V{bottom}H{right}"/>'
    yield _text(MARGIN, y + 30, _short(top))
    yield _text(MARGIN, bottom, "0")
    for tick in _ticks(points, logarithmic=logarithmic):
        x = left + (scale(tick) - first) / ((last - first) or 1.0) * (right - left)
        yield _text(x, bottom + 16, f"{tick:,g}", "tick")
    for name, curve in curves.items():
        path = " ".join(place(point) for point in curve)
        yield f'<polyline points="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="2"/>'


def _ticks(points: Sequence[tuple[float, float]], *, logarithmic: bool) -> Sequence[float]:
    """Where the x axis is labelled: at the points themselves, or at round figures, at most eight."""
    if logarithmic:
        return sorted({x for x, _ in points})
    last = max(x for x, _ in points)
    rough = last / 8 or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= rough)
    return [step * number for number in range(int(last / step) + 1)]


def _rectangle(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" fill="{colour}"/>'


def _text(x: float, y: float, words: str, style: str = "") -> str:
    kind = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y}"{kind}>{escape(words)}</text>'


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
