"""The table of docs/process-lane.md: what everybody reaches on Python environments, beside the limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.paired import ratios_by_round, short_number
from benchmarks.python_contestants import LIMIT
from benchmarks.table import machine_line, markdown_table, versions_line


def rates_tables(sections: Sequence[Mapping[str, Any]]) -> str:
    """A row for each contestant, a column for each setting: steps per second, and the share of the limit."""
    experiments = [found for section in sections for found in section["experiments"] if found["limit"] == LIMIT]
    names = list(dict.fromkeys(name for found in experiments for name in found["contestants"]))
    names.sort(key=lambda name: name == LIMIT)
    rows = [[name, *(_cell(found, name) for found in experiments)] for name in names]
    header = ["", *(found["setting"] for found in experiments)]
    machines = dict.fromkeys(machine_line(section["machine"]) for section in sections)
    return "\n\n".join([markdown_table(header, rows), " ".join(machines), versions_line(sections)])


def _cell(experiment: Mapping[str, Any], name: str) -> str:
    """`61.2k (0.87)`; nothing where it took no part."""
    contestants = experiment["contestants"]
    if name not in contestants:
        return ""
    rate = short_number(contestants[name]["rate"])
    if name == LIMIT:
        return rate
    return f"{rate} ({median(ratios_by_round(contestants[name]['rates'], contestants[LIMIT]['rates'])):.2f})"
