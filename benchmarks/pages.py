"""Puts what the code knows into the pages: `python -m benchmarks.pages`, or `--check` to see whether it is there.

Hyperparameters with their defaults, meanings and other names come from the dataclasses, results from presets.json,
benchmarks/results/learning and python_environments: nothing there that could grow old is typed.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import checkpoints
from benchmarks.learning.cost import cost_table
from benchmarks.learning.pictures import draw_study
from benchmarks.learning.presets import goals_table
from benchmarks.learning.records import of_study, speeds
from benchmarks.learning.sections import beside_sb3, compared, learning_in_brief, picture_of
from benchmarks.learning.studies import A2C, CORRECTIONS, IMPALA, SB3, SCHEDULES
from benchmarks.learning.tables import NOTHING
from benchmarks.python_tables import rates_tables
from benchmarks.results import RESULTS
from benchmarks.table import SUBFOLDER, load_results, markdown_table, with_tables
from raceway.algos.configs import A2CConfig, ImpalaConfig, NetworkConfig, PPOConfig, PQNConfig
from raceway.algos.hyperparameters import ALIASES
from raceway.report.words import clock, count, number
from raceway.training.presets import Preset, presets

PAGE = Path("docs/ppo.md")


def meanings(kind: type) -> Mapping[str, str]:
    """The text under each field of a dataclass."""
    (declared,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(declared, ast.ClassDef)
    found = {}
    for field, text in zip(declared.body, declared.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            assert isinstance(text, ast.Expr), f"{field.target.id} has no text under it"
            found[field.target.id] = str(ast.literal_eval(text.value))
    return found


def settings_table(kind: type, aliases: Mapping[str, tuple[str, Any]]) -> str:
    """Every field: its default, what it means, what else it may be called."""
    said, names = meanings(kind), {field.name for field in dataclasses.fields(kind)}
    header = ["name", "default", "meaning", "also understood"] if aliases else ["name", "default", "meaning"]
    rows = []
    for field in dataclasses.fields(kind):
        also = [f"`{alias}`" for alias, (meant, _) in aliases.items() if meant == field.name and alias not in names]
        default = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
        rows.append([f"`{field.name}`", default, said[field.name], ", ".join(also)][: len(header)])
    return markdown_table(header, rows)


def results_table(known: Sequence[Preset]) -> str:
    """What was measured. A preset that was not is left out."""
    found = [(each, each.result) for each in known if each.result is not None]
    if not found:
        return NOTHING
    header = ["", "return (95% interval)", "steps", "time", "seeds", "command"]
    rows = [
        [
            preset.env,
            f"**{number(result.evaluation)}**"
            + (f" ({number(result.low)} to {number(result.high)})" if result.seeds > 2 else ""),
            count(result.steps),
            clock(result.seconds),
            str(result.seeds),
            f"`{result.command}`",
        ]
        for preset, result in found
    ]
    machines = list(dict.fromkeys(result.machine for _, result in found if result.machine))
    measured = [f"Measured on {'; '.join(machines)}."] if machines else []
    return "\n\n".join([markdown_table(header, rows), *measured])


def renewed(page: str) -> str:
    """PPO's page with all that is generated."""
    page = _with_algorithm(page, PPOConfig, "ppo")
    page = with_tables(page, settings_table(NetworkConfig, {}), "network")
    page = with_tables(page, compared(CORRECTIONS), "corrections")
    page = with_tables(page, cost_table(), "cost")
    page = with_tables(page, goals_table(), "goals")
    return with_tables(page, beside_sb3(SB3), "learning")


def renewed_a2c(page: str) -> str:
    """A2C's."""
    return with_tables(_with_algorithm(page, A2CConfig, "a2c"), compared(A2C), "corrections")


def renewed_impala(page: str) -> str:
    """IMPALA's."""
    return with_tables(_with_algorithm(page, ImpalaConfig, "impala"), compared(IMPALA), "schedules")


def renewed_pqn(page: str) -> str:
    """PQN's."""
    return _with_algorithm(page, PQNConfig, "pqn")


def renewed_schedules(page: str) -> str:
    """That of the schedules."""
    return with_tables(page, compared(SCHEDULES), "schedules")


def renewed_resuming(page: str) -> str:
    """That of checkpoints."""
    record = _record(checkpoints.FILE)
    return with_tables(page, checkpoints.tables(record) if record else NOTHING, "checkpoints")


def renewed_process_lane(page: str) -> str:
    """That of Python environments in processes."""
    sections = load_results(RESULTS / SUBFOLDER)
    return with_tables(page, rates_tables(sections) if sections else NOTHING, "python")


def _with_algorithm(page: str, kind: type, algo: str) -> str:
    page = with_tables(page, settings_table(kind, ALIASES), "hyperparameters")
    return with_tables(page, results_table([each for each in presets() if each.algo == algo]), "results")


def _record(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


PAGES: Mapping[Path, Callable[[str], str]] = {
    Path("README.md"): lambda page: with_tables(page, learning_in_brief(SB3), "learning"),
    PAGE: renewed,
    Path("docs/a2c.md"): renewed_a2c,
    Path("docs/impala.md"): renewed_impala,
    Path("docs/pqn.md"): renewed_pqn,
    Path("docs/schedules.md"): renewed_schedules,
    Path("docs/resuming.md"): renewed_resuming,
    Path("docs/process-lane.md"): renewed_process_lane,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the pages, or with --check says whether they are up to date."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a page is out of date")
    options = parser.parse_args(argv)
    code = 0
    if not options.check:
        draw_pictures()
    for path, renew in PAGES.items():
        current = path.read_text(encoding="utf-8")
        wanted = renew(current)
        if wanted == current:
            continue
        if options.check:
            print(f"{path} is out of date. `python -m benchmarks.pages` renews it.", file=sys.stderr)
            code = 1
        else:
            path.write_text(wanted, encoding="utf-8")
    return code


def draw_pictures() -> None:
    """Draws the learning curves of every study that has data."""
    for study in (SCHEDULES, CORRECTIONS, A2C, IMPALA, SB3):
        if any(found for by_setting in of_study(study).values() for found in by_setting.values()):
            draw_study(study, picture_of(study), seconds=bool(speeds(study)))


if __name__ == "__main__":
    sys.exit(main())
