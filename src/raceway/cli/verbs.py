"""What the verbs do: each calls one public function and prints what it returns."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable
from contextlib import chdir, suppress
from typing import TYPE_CHECKING, Any

import raceway
from raceway.files import MOST_TEXT, read_whole
from raceway.interrupts import ending_on_sigterm
from raceway.messages import plain
from raceway.report.words import clock, count, number

if TYPE_CHECKING:
    from raceway.training.presets import Result


def resume(parsed: argparse.Namespace) -> None:
    raceway.resume(
        parsed.folder,
        anyway=parsed.anyway,
        total_steps=parsed.total_steps,
        stop_at_return=getattr(parsed, "stop_at_return", "as before"),
        **_own_code(parsed),
        quiet=parsed.quiet,  # a run of several seeds side by side was told to be, whoever watches this one was not
    )


def evaluate(parsed: argparse.Namespace) -> int:
    found = raceway.evaluate(parsed.folder, parsed.episodes, seed=parsed.seed, which=parsed.policy, **_own_code(parsed))
    spread = f"{number(found.mean)} ± {number(found.std)}"
    print(f"return {spread} over {len(found.returns)} episodes of {number(found.length)} steps")
    if (missing := parsed.episodes - len(found.returns)) > 0:
        tell([f"{missing} of {parsed.episodes} episodes are left out: evaluation.max_steps was up before they ended."])
    if parsed.at_least is None or found.mean >= parsed.at_least:
        return 0
    print(f"that is below {number(parsed.at_least)}")
    return 1


def play(parsed: argparse.Namespace) -> None:
    with ending_on_sigterm():  # from here on, for what comes next takes its time to be imported
        played = raceway.play(
            parsed.what,
            agent=parsed.agent,
            episodes=parsed.episodes,
            seed=parsed.seed,
            which=parsed.policy,
            video=parsed.video,
            quality=parsed.quality,
            quiet=parsed.quiet,
            **_own_code(parsed),
        )
    for index, (return_, length) in enumerate(zip(played.returns, played.lengths, strict=True), 1):
        print(f"episode {index}: return {number(return_)}, {count(length)} steps")
    if played.video is not None:
        print(f"video: {played.video}")


def _own_code(parsed: argparse.Namespace) -> dict[str, Any]:
    """What was given in place of what the folder of a run names."""
    return {
        "env": parsed.env,
        "env_args": parsed.given_args,
        "network": parsed.network,
        "trust": parsed.trust,
    }


def export(parsed: argparse.Namespace) -> None:
    path = raceway.export(parsed.folder, parsed.to, parsed.out, parsed.policy)
    print(path)
    if parsed.to == "safetensors":
        print(path.with_suffix(".json"))


def plot(parsed: argparse.Namespace) -> None:
    _import_matplotlib()
    drawn = raceway.plot(parsed.runs, parsed.out, x=parsed.x, metric=parsed.metric)
    tell(drawn.notes)
    for file in drawn.files:
        print(file)


def _import_matplotlib() -> None:
    """From a folder of the system's: it obeys a matplotlibrc in the current one, before any that the user names."""
    with suppress(ImportError, FileNotFoundError):  # the package, which is told later, or the current folder
        if name := os.environ.get("MATPLOTLIBRC"):
            os.environ["MATPLOTLIBRC"] = os.path.abspath(name)
        with chdir("/"):
            import matplotlib  # noqa: F401


def compare(parsed: argparse.Namespace) -> None:
    found = raceway.compare(parsed.runs, at=parsed.at, sort=parsed.sort)
    tell(found.notes)
    if parsed.json:
        print(json.dumps(found.to_dict(), indent=2, allow_nan=False))
    else:
        print(found.markdown() if parsed.markdown else found)


def tell(notes: Iterable[str]) -> None:
    """What was left out is told beside the output, not in it."""
    for note in notes:
        print(f"raceway: {plain(note)}", file=sys.stderr)


def new(parsed: argparse.Namespace) -> None:
    from raceway.envs.new import new as write

    written = write(parsed.kind, parsed.name)
    print("\n".join([f"{written.path} is written. It trains as it is:", *(f"  {each}" for each in written.commands)]))


def check(parsed: argparse.Namespace) -> int:
    from raceway.cli.check import check as run

    return run(parsed)


def list_(parsed: argparse.Namespace) -> None:
    if parsed.what == "envs":
        print("\n".join(raceway.list_envs()))
    elif parsed.what == "algos":
        from raceway.training.config import ALGORITHMS

        print("\n".join(f"{name:<8}{about}" for name, about in ALGORITHMS.items()))
    else:
        print("\n".join(preset_lines()))


def preset_lines() -> list[str]:
    """The presets as a table, with what was measured."""
    from raceway.training.presets import presets

    rows = [("environment", "algo", "steps", "return", "time")]
    for each in presets():
        found = each.result
        measured = (_return_of(found), clock(found.seconds)) if found else ("not measured", "")
        rows.append((each.env, each.algo, count(each.settings["total_steps"]), *measured))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _return_of(result: Result) -> str:
    interval = f" ({number(result.low)} to {number(result.high)})" if result.seeds > 2 else ""
    return f"{number(result.evaluation)}{interval}"


def graph(parsed: argparse.Namespace) -> None:
    from raceway.errors import RunFolderError
    from raceway.training.folder import RunFolder

    folder = RunFolder.open(parsed.folder)
    path = folder.mermaid if parsed.mermaid else folder.graph
    if not path.is_file():
        raise RunFolderError(f"{folder.path} has no {path.name}: the run did not get as far as drawing it.")
    if parsed.mermaid:
        print(plain(read_whole(path, MOST_TEXT).decode(errors="replace")), end="")
    else:
        print(path)


def doctor(parsed: argparse.Namespace) -> int:
    from raceway.report.doctor import examine, report

    findings = examine(parsed.directory)
    print(report(findings))
    return 1 if any(finding.is_bad for finding in findings) else 0
