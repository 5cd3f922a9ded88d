"""`raceway.plot`: learning curves over steps and over seconds, as one would put them in a paper."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from raceway.errors import MissingPackageError, RunFolderError, SettingError
from raceway.report.curves import Axis, Curve, curves_of
from raceway.report.groups import Groups, group_runs
from raceway.report.metrics import RETURN
from raceway.report.runs import RunsLike
from raceway.report.statistics import centre_name, interval_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAME = "returns"
_KINDS = (".png", ".svg", ".pdf")
_WIDTH = 6.75  # inches: both columns of a paper
_HEIGHT = 2.2
_LARGEST = 1e300
"""Matplotlib's margins and ticks around larger values are beyond the largest float."""
_HANDLE = 7
"""Letters that would fit where a legend's line and the space beside it are."""
_PER_ROW = 3
"""Panels in a row when there is one for each environment."""
# Okabe and Ito's colours, which those who see fewer can tell apart as well; their yellow is too faint on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES = ("-", "--", ":", "-.")
_STYLE: Any = {
    "font.size": 9,
    "axes.labelsize": 9,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "text.parse_math": False,  # a dollar in a name is a dollar
    "svg.fonttype": "none",  # text stays text
    "pdf.fonttype": 42,
    "svg.hashsalt": "raceway",  # the same runs give the same file
    "savefig.dpi": 300,
}


@dataclass(frozen=True)
class Plot:
    """A drawing of runs."""

    figure: Figure
    """Matplotlib's, to change or show."""
    files: tuple[Path, ...]
    """What was written."""
    notes: tuple[str, ...]
    """What was left out, and why."""


def plot(
    runs: RunsLike,
    out: str | os.PathLike[str] | None = None,
    *,
    x: Literal["steps", "seconds", "both"] = "both",
    metric: str = RETURN,
) -> Plot:
    """Draws learning curves: a panel for each environment, a curve for each group of runs that differ by seed only.

    runs: a run folder, a folder of runs, a pattern, what `raceway.train` returned, or several of these; a dict gives
        them labels.
    out: a .png, .svg or .pdf file, or a folder for returns.png and returns.svg. None: nothing is written.
    x: over environment steps, seconds of training, or both side by side.
    metric: any of the runs' metrics, such as evaluation/return.

    Runs, groups and panels that cannot be drawn are left out, and `Plot.notes` says which and why. If nothing at all
    can be drawn, a RunFolderError says so.
    """
    _need_matplotlib()
    if x not in ("steps", "seconds", "both"):
        raise SettingError(f"x={x!r} is not one of steps, seconds, both.")
    files = _files(out)
    groups = group_runs(runs)
    axes: tuple[Axis, ...] = ("steps", "seconds") if x == "both" else (x,)
    by_axis, notes = _curves(groups, metric, axes)
    return Plot(draw_to_files(by_axis, metric, files), tuple(files), tuple(notes))


def draw_to_files(by_axis: dict[Axis, list[Curve]], metric: str = RETURN, files: Sequence[Path] = ()) -> Figure:
    """Draws curves, wherever they come from, in the style of `plot`, and writes the figure to files."""
    _need_matplotlib()
    import matplotlib

    with matplotlib.rc_context(_STYLE):
        figure = draw(by_axis, metric)
        for file in files:
            _save(figure, file)
    return figure


def _curves(groups: Groups, metric: str, axes: Sequence[Axis]) -> tuple[dict[Axis, list[Curve]], list[str]]:
    """The curves over each axis that has any, and notes about all that is left out."""
    by_axis: dict[Axis, list[Curve]] = {}
    notes = list(groups.notes)
    for axis in axes:
        curves, said = curves_of(groups, metric, axis)
        notes += [note for note in said if note not in notes]
        if curves:
            by_axis[axis] = curves
    if not by_axis:
        raise RunFolderError(" ".join([f"No run can be drawn over {' or '.join(axes)}.", *notes]))
    missing = [axis for axis in axes if axis not in by_axis]
    notes += [f"There is no panel over {axis}: no group could be drawn in it." for axis in missing]
    if any(_is_beyond(curve) for curves in by_axis.values() for curve in curves):
        notes.append(f"Values beyond ±{_LARGEST:g} are drawn at that limit.")
    return by_axis, notes


def _is_beyond(curve: Curve) -> bool:
    return bool(max(np.abs(curve.low).max(), np.abs(curve.high).max()) > _LARGEST)


def _need_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingPackageError("Plots need matplotlib. pip install 'raceway[plot]'") from None


def _files(out: str | os.PathLike[str] | None) -> list[Path]:
    if out is None:
        return []
    path = Path(out)
    if path.suffix.lower() in _KINDS and not path.is_dir():
        return [path]
    if path.suffix and not path.is_dir():
        raise SettingError(f"{path}: a plot is a {', '.join(_KINDS)} file, or a folder for {_NAME}.png and .svg.")
    return [path / f"{_NAME}.png", path / f"{_NAME}.svg"]


def _save(figure: Figure, file: Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        metadata = {"Date": None} if file.suffix.lower() == ".svg" else None
        figure.savefig(file, metadata=metadata)
    except OSError as error:
        raise RunFolderError(f"{file} cannot be written: {error.strerror}. Name another place: --out.") from None


def draw(by_axis: dict[Axis, list[Curve]], metric: str) -> Figure:
    """The figure: a row of both axes for each environment, or the environments side by side over one axis."""
    from matplotlib.figure import Figure

    everything = [curve for curves in by_axis.values() for curve in curves]
    envs = list(dict.fromkeys(curve.env for curve in everything))
    looks = _looks(list(dict.fromkeys(curve.label for curve in everything)))
    panels = [(env, axis) for env in envs for axis in by_axis]
    curves = {(env, axis): [each for each in by_axis[axis] if each.env == env] for env, axis in panels}
    columns = len(by_axis) if len(by_axis) > 1 else min(len(envs), _PER_ROW)
    rows = math.ceil(len(panels) / columns)
    legend = Legend.of(everything, _WIDTH if columns > 1 else _WIDTH / 2)
    figure = Figure(figsize=(legend.width, _HEIGHT * rows + legend.height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for panel in grid.flat:
        panel.set_visible(False)
    titled: set[str] = set()
    for index, (panel, (env, axis)) in enumerate(zip(grid.flat, panels, strict=False)):
        if not curves[env, axis]:
            continue
        panel.set_visible(True)
        _draw_panel(panel, curves[env, axis], axis, looks)
        if env not in titled:  # the first panel of each
            titled.add(env)
            panel.set_title(env)
        if index % columns == 0 or not grid.flat[index - 1].get_visible():
            panel.set_ylabel(_metric_name(metric))
    legend.add_to(figure, looks)
    small = textwrap.fill(_small_print(everything), int(legend.width * 20))
    figure.supxlabel(small, fontsize=7, color="#555555")
    return figure


def _looks(labels: Sequence[str]) -> dict[str, dict[str, Any]]:
    """A colour for each label, the same in all panels; when they run out, dashes."""
    count = len(_COLOURS)
    return {
        label: {"color": _COLOURS[place % count], "linestyle": _DASHES[place // count % len(_DASHES)]}
        for place, label in enumerate(labels)
    }


def _draw_panel(panel: Axes, curves: Sequence[Curve], axis: Axis, looks: dict[str, dict[str, Any]]) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    end = max((curve.x[-1] for curve in curves), default=1.0)
    unit, per_unit = _time_unit(end) if axis == "seconds" else ("", 1.0)
    for curve in curves:
        x, look = curve.x / per_unit, looks[curve.label]
        low, centre, high = (np.clip(each, -_LARGEST, _LARGEST) for each in (curve.low, curve.centre, curve.high))
        if curve.count > 1:
            panel.fill_between(x, low, high, color=look["color"], alpha=0.18, linewidth=0)
        marker = "o" if len(x) == 1 else None
        panel.plot(x, centre, **look, linewidth=1.5 if curve.count > 1 else 0.8, marker=marker, markersize=3)
    panel.set_xlim(0, end / per_unit * 1.01 or 1.0)
    panel.set_xlabel("environment steps" if axis == "steps" else f"time ({unit})")
    panel.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    panel.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def _time_unit(seconds: float) -> tuple[str, float]:
    """The unit that a time axis is readable in, and its seconds."""
    if seconds < 180:
        return "s", 1.0
    return ("min", 60.0) if seconds < 3 * 3600 else ("h", 3600.0)


def short(value: float) -> str:
    """`0`, `0.25`, `800`, `12.5k`, `-3k`, `1M`, `1e+15`."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size * (1 - 1e-9) <= abs(value) < 1e15:
            return f"{value / size:.4g}{letter}".replace("-", "−")
    return f"{value:.4g}".replace("-", "−")


def _metric_name(metric: str) -> str:
    return {RETURN: "training return", "evaluation/return": "evaluation return"}.get(metric, metric)


@dataclass(frozen=True)
class Legend:
    """Who is who, above the panels. A single group needs none."""

    names: list[str]
    columns: int
    width: float
    """Of a figure that it fits, in inches."""

    @classmethod
    def of(cls, curves: Sequence[Curve], width: float) -> Legend:
        labels = dict.fromkeys(curve.label for curve in curves)
        counts = {label: {curve.count for curve in curves if curve.label == label} for label in labels}
        differ = len({curve.count for curve in curves}) > 1
        names = [label + (f" ({_seeds(counts[label])})" if differ else "") for label in labels]
        if max(map(len, names)) > _letters(width) - _HANDLE:
            width = _WIDTH
        names = [textwrap.fill(name, _letters(width) - _HANDLE) for name in names]
        columns = _letters(width) // (max(map(len, names)) + _HANDLE)
        return cls(names if len(names) > 1 else [], max(1, min(len(names), columns)), width)

    @property
    def height(self) -> float:
        """In inches."""
        lines = max((name.count("\n") + 1 for name in self.names), default=0)
        return 0.2 * lines * math.ceil(len(self.names) / self.columns)

    def add_to(self, figure: Figure, looks: dict[str, dict[str, Any]]) -> None:
        from matplotlib.lines import Line2D

        if self.names:
            handles = [Line2D([], [], **look, linewidth=1.8) for look in looks.values()]
            place: Any = "outside upper center"
            figure.legend(handles, self.names, loc=place, ncols=self.columns, handlelength=1.6, columnspacing=1.6)


def _letters(width: float) -> int:
    """That fit side by side in so many inches."""
    return int(width * 15)


def _seeds(counts: set[int]) -> str:
    if counts == {1}:
        return "1 run"
    return f"{min(counts)} seeds" if len(counts) == 1 else f"{min(counts)} to {max(counts)} seeds"


def _small_print(curves: Sequence[Curve]) -> str:
    """What is drawn, for each number of seeds that occurs."""
    said = []
    for count in sorted({curve.count for curve in curves}, reverse=True):
        if count == 1:
            said.append("thin: a single run")
        else:
            said.append(f"{centre_name(count)} of {count} seeds with {interval_name(count)}")
    text = "; ".join(said)
    return text[0].upper() + text[1:]
