"""Puts the measured numbers into README.md: `python -m benchmarks.table`, or `--check` to see whether they are there.

Tables are generated from benchmarks/results/*.json and those of python_environments beside them, and from nothing
else, so that no number is ever typed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.paired import short_number
from benchmarks.results import RESULTS

README = Path("README.md")
BLOCKS = ("benchmarks", "mujoco", "python", "graph", "train")
NOTHING = "Nothing is measured yet: `make bench`, `make bench-python` and `make bench-train` do it."
LIMIT_HEADING = "share of the limit"
HOW_TO_READ = """\
Numbers are environment steps per second with random actions, the Python call included. A cell is a ratio: how many \
times as fast the first is as the second, the median over rounds in which both took turns, with its 95% interval in \
brackets. *Share of the limit* compares with the same environments in a bare C++ loop, one thread per CPU and no pool \
at all. ✓ and ✗ say whether the goal beside them is reached."""
HOW_TO_READ_GRAPHS = """\
A cell is a ratio, as above. A digest of the first rounds verifies that all contestants compute the same thing. *Share \
of the limit* compares with that work in bare Python loops, one process per CPU (one for the policies), with nothing \
in between."""
HOW_TO_READ_TRAINING = """\
A cell is a ratio, as above. Everybody has the same hyperparameters and the same networks (64 x 64, tanh, actor and \
critic apart), and nothing is normalised or evaluated. *raceway* is the concurrent schedule."""
HOW_TO_READ_PYTHON = """\
A cell is a ratio, as above. Everybody steps the same Python environments; Raceway and PufferLib have two workers, \
Gymnasium's AsyncVectorEnv and SB3's SubprocVecEnv a process for each environment. *Share of the limit* compares with \
twice what one process does that steps the environments one by one in a bare Python loop, and nothing else."""
INTRODUCTIONS = {
    "benchmarks": HOW_TO_READ,
    "python": HOW_TO_READ_PYTHON,
    "graph": HOW_TO_READ_GRAPHS,
    "train": HOW_TO_READ_TRAINING,
}
SUBFOLDER = "python_environments"
"""Of the results: there, every section is one of these tables, too."""


def load_results(folder: Path) -> list[dict[str, Any]]:
    """All sections, in the order that they are shown in."""
    paths = [*folder.glob("*.json"), *(folder / SUBFOLDER).glob("*.json")]
    sections = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return sorted(sections, key=lambda section: (section["order"], section["name"]))


def render(sections: Sequence[dict[str, Any]], block: str = BLOCKS[0]) -> str:
    """The tables of one of README's blocks as Markdown."""
    sections = [section for section in sections if section.get("block", BLOCKS[0]) == block]
    if not sections:
        return NOTHING
    parts, shown = [INTRODUCTIONS[block]] if block in INTRODUCTIONS else [], ""
    for section in sections:
        # Once for all the tables that follow from the same machine.
        if (line := machine_line(section["machine"])) != shown:
            parts.append(line)
            shown = line
        parts.append(f"**{section['title']}.** {section['about']}")
        if section["experiments"]:
            found = section["experiments"]
            by_task, unit = section.get("by_task"), section.get("unit", "steps/s")
            parts.append(markdown_table(*(task_table(found) if by_task else ratio_table(found, unit))))
        if section["amounts"]:
            parts.append(
                markdown_table(["", "measured", "goal"], [_amount_row(amount) for amount in section["amounts"]])
            )
    if versions := versions_line(sections):
        parts.append(versions)
    return "\n\n".join(parts)


def ratio_table(experiments: Sequence[dict[str, Any]], unit: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows: a row per experiment, a column per pair, the limit's share last."""
    headings: list[str] = []
    for experiment in experiments:
        for found in experiment["comparisons"]:
            if (heading := _heading(experiment, found)) not in headings:
                headings.append(heading)
    headings.sort(key=lambda heading: heading == LIMIT_HEADING)
    rows = []
    for experiment in experiments:
        cells = {_heading(experiment, found): _ratio_cell(found) for found in experiment["comparisons"]}
        rows.append([experiment["setting"], _rate_cell(experiment), *(cells.get(name, "") for name in headings)])
    return ["", unit, *headings], rows


def task_table(experiments: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: a row per task, with all of its largest batch and the limit's share of every size."""
    sizes = sorted({experiment["num_envs"] for experiment in experiments}, reverse=True)
    cells: dict[str, dict[str, str]] = {}
    for experiment in experiments:
        size = experiment["num_envs"]
        row = cells.setdefault(experiment["task"], {})
        for found in experiment["comparisons"]:
            row[f"{_heading(experiment, found)}, {size} envs"] = _ratio_cell(found)
        row[f"steps/s, {size} envs"] = _rate_cell(experiment)
    pairs = {
        _heading(experiment, found): None
        for experiment in experiments
        for found in experiment["comparisons"]
        if _heading(experiment, found) != LIMIT_HEADING
    }
    header = [f"steps/s, {sizes[0]} envs", *(f"{LIMIT_HEADING}, {size} envs" for size in sizes)]
    header += [f"{pair}, {sizes[0]} envs" for pair in pairs]
    return ["", *header], [[task, *(row.get(name, "") for name in header)] for task, row in cells.items()]


def machine_line(machine: Mapping[str, Any]) -> str:
    """Where and when, in one sentence."""
    cpus = f"{machine['cpus']} CPU{'s' if machine['cpus'] != 1 else ''}"
    system = f"Linux {machine['kernel']}, Python {machine['python']}"
    return f"Measured on {machine['cpu']}, {cpus}, {machine['memory_gib']:.0f} GiB, {system}, {machine['date']}."


def versions_line(sections: Sequence[Mapping[str, Any]]) -> str:
    """Which versions of which libraries took part."""
    found = {
        f"{name} {version}"
        for section in sections
        for experiment in section["experiments"]
        for contestant in experiment["contestants"].values()
        for name, version in contestant.get("versions", {}).items()
        if name != "python"
    }
    return f"Versions: {', '.join(sorted(found))}." if found else ""


def marks(block: str) -> tuple[str, str]:
    """The lines between which a block of README's is written."""
    return f"<!-- {block}:begin -->", f"<!-- {block}:end -->"


def with_tables(readme: str, tables: str, block: str = BLOCKS[0]) -> str:
    """README's text with the tables between the block's two marks."""
    first, last = marks(block)
    before, begin, rest = readme.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"README has no place for the tables. Put the lines {first} and {last} where they belong.")
    return f"{before}{first}\n{tables}\n{last}{after}"


def _heading(experiment: dict[str, Any], found: dict[str, Any]) -> str:
    is_limit = found["below"] == experiment["limit"] and found["above"] == experiment["reference"]
    return LIMIT_HEADING if is_limit else f"{found['above']} / {found['below']}"


def _rate_cell(experiment: dict[str, Any]) -> str:
    """The reference's rate; its name too, where it is not plainly Raceway."""
    name = experiment["reference"]
    rate = short_number(experiment["contestants"][name]["rate"])
    return rate if name == "raceway" else f"{rate} ({name})"


def _ratio_cell(found: dict[str, Any]) -> str:
    interval = f"({_ratio(found['low'])} to {_ratio(found['high'])})"
    return f"**{_ratio(found['ratio'])}** {interval}{_goal('≥', found['target'], found['reached'])}"


def _amount_row(amount: dict[str, Any]) -> list[str]:
    most = amount["at_most"]
    goal = "" if most is None else f"≤ {most:g} {amount['unit']} {_mark(amount['reached'])}"
    return [f"{amount['setting']}: {amount['what']}", f"**{amount['value']:.2f}** {amount['unit']}", goal]


def _goal(bound: str, target: float | None, reached: bool | None) -> str:
    return "" if target is None else f", {bound} {target:.3g} {_mark(reached)}"


def _mark(reached: bool | None) -> str:
    return "✓" if reached else "✗"


def _ratio(value: float) -> str:
    """Two decimals where they mean something."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as Markdown has it."""

    def lines() -> Iterator[str]:
        yield f"| {' | '.join(header)} |"
        yield f"|{' --- |' * len(header)}"
        for row in rows:
            yield f"| {' | '.join(row)} |"

    return "\n".join(lines())


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the tables, or with --check says whether README has them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when README is out of date")
    parser.add_argument("--readme", type=Path, default=README, help="the file that has the marks")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder of results")
    options = parser.parse_args(argv)
    try:
        current = options.readme.read_text(encoding="utf-8")
        wanted, sections = current, load_results(options.results)
        for block in BLOCKS:
            wanted = with_tables(wanted, render(sections, block), block)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    if wanted == current:
        return 0
    if options.check:
        print(f"{options.readme} is out of date. `python -m benchmarks.table` renews it.", file=sys.stderr)
        return 1
    options.readme.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
