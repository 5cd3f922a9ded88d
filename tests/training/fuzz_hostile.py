"""Hostile settings, links and marks of trust: refused within bounds, nothing outside a run's folder is changed.

`python -m tests.training.fuzz_hostile AREA FIRST COUNT` tries cases by number.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from raceway.algos.rollout import Weights
from raceway.errors import SettingError, UserError
from raceway.files import cut, open_to_append, write_json
from raceway.report.metrics import MetricsLog
from raceway.report.video import write_video
from raceway.training.checkpoints import Checkpoints, lock
from raceway.training.config import TrainConfig
from raceway.training.dump import write_dump
from raceway.training.environments import EnvSource
from raceway.training.evaluation import Evaluation
from raceway.training.folder import RunFolder
from raceway.training.policy_files import Best, PolicyFile
from raceway.training.resolve import resolve
from raceway.training.resuming import rewind
from raceway.training.run import _set_up
from raceway.training.trust import check_code, remember_code
from tests.training.fuzz_run_folders import BYTES, HOSTILE, at_most, is_plain, mutate_json

LONGEST_S = 10.0
MOST_BYTES = 1 << 30
_LONGEST_MESSAGE = 2500

# --- settings: whatever a config.json says, a run is set up or refused, without hanging or filling the memory

_EXTREME: list[Any] = [0, -1, 1, 2, 3, 7, 1000, 65_537, 10**6, 2**24, 2**31 - 1, 2**31, 2**32, 2**53, 10**17, 2**63,
                       2**64, 10**400, 1e-320, 1e300, 1e308, 0.5, None, True, "1e9", [1] * 1000, [10**6, 10**6],
                       "x" * 100_000, {"number": "inf"}, [[8]] * 100]  # fmt: skip


def try_settings(run: Path, scratch: Path, rng: random.Random) -> str:
    """The fault, if there was one."""
    config = json.loads((run / "config.json").read_text())
    changes = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        group = rng.choice([config, config, *(each for each in config.values() if isinstance(each, dict) and each)])
        name = rng.choice(list(group))
        if group is config and isinstance(config[name], dict):
            continue
        group[name] = rng.choice([*_EXTREME, *HOSTILE])
        changes.append(f"{name}={str(group[name])[:40]}")
    folder = scratch / "run"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))

    def as_run() -> TrainConfig:
        return RunFolder.open(folder).read_config()

    def as_file() -> TrainConfig:
        return resolve(None, folder / "config.json")

    for read in (as_run, as_file):
        try:
            found = read()
            if ":" not in found.env:  # code is not run without being asked for
                _set_up(found, EnvSource(found.env, found.env_args), None)
        except UserError as error:
            if len(str(error)) > _LONGEST_MESSAGE:
                return f"{changes}: a long message"
        except Exception as error:
            return f"{changes}: {read.__name__}: {type(error).__name__}: {str(error)[:200]}"
    return ""


# --- links: whatever is a link in a run's folder, what it leads to stays as it is


def try_links(run: Path, scratch: Path, rng: random.Random) -> str:
    precious, mine = scratch / "precious", scratch / "mine"
    for folder in (precious, mine):
        shutil.copytree(run, folder)
    for name in ("policy-3.safetensors", "checkpoint-000000002.json", ".checkpoint-x", "events", "round-1.npz"):
        (precious / name).write_text("years of work")
    before = _content(precious)
    names = ["best", "final", "checkpoints", "tensorboard", "videos", "dumps", "lock", "metrics.jsonl", "chain.jsonl",
             "outcome.json", "config.json", "system.json", "resumed.jsonl", "evaluations.jsonl", "best/policy.json",
             "checkpoints/checkpoint-000000011.json", "final/policy-12.safetensors", "videos/policy-1.mp4",
             "videos/.policy-1.part.mp4"]  # fmt: skip
    changes = []
    for name in rng.sample(names, rng.choice([1, 1, 2, 4])):
        above = (mine / name).parent
        if above.is_dir() and not above.is_symlink():  # or that would change what the link leads to
            changes.append(_link(mine / name, precious, rng))
    acts = _writers(mine)
    rng.shuffle(acts)
    for act in acts:
        try:
            act()
        except (UserError, OSError):
            pass
        except Exception as error:
            return f"{changes}: {type(error).__name__}: {str(error)[:200]}"
    return "" if _content(precious) == before else f"{changes}: something outside was changed"


def _link(path: Path, precious: Path, rng: random.Random) -> str:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    inside = sorted(each for each in precious.rglob("*") if each.is_dir() or is_plain(each))
    target = rng.choice([precious, rng.choice(inside), precious / path.name, precious / "nowhere", path])
    if target.is_file() and rng.random() < 0.3:
        os.link(target, path)
        return f"{path.name} = {target.name}"
    path.symlink_to(os.path.relpath(target, path.parent) if rng.random() < 0.5 else target)
    return f"{path.name} -> {target.name}"


def _content(folder: Path) -> dict[str, Any]:
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*")}
    return {name: path.read_bytes() if path.is_file() else path.is_dir() for name, path in files.items()}


def _writers(path: Path) -> list[Callable[[], Any]]:
    """All that a run writes and deletes in its folder."""
    import gymnasium

    space = gymnasium.spaces.Discrete(2)
    weights = Weights(99, np.zeros(3, np.float32), None)
    evaluation = Evaluation(99, 1, (1e9,), (1,))
    folder = RunFolder(path)

    def write_checkpoint() -> None:
        checkpoints = Checkpoints(folder.checkpoints, keep=1)
        found = checkpoints.newest()
        assert found is not None
        checkpoints.write(found.snapshot, found.facts)

    def locked() -> None:
        with lock(path):
            pass

    def log() -> None:
        with MetricsLog(path, tensorboard=True) as metrics:
            metrics.write(1, {"x": 1.0})

    def append() -> None:
        with open_to_append(folder.resumed) as file:
            file.write(b"x")

    return [
        write_checkpoint,
        locked,
        log,
        append,
        lambda: cut(folder.chain, 3),
        lambda: rewind(folder, None, 128),
        lambda: write_json(folder.outcome, {}),
        lambda: PolicyFile(folder.final, space, space).write(weights),
        lambda: Best(PolicyFile(folder.best, space, space)).offer(weights, evaluation),
        lambda: write_dump(folder.dumps, 1, {"x": np.zeros(3)}),
        lambda: folder.begin(folder.read_config()),
        lambda: write_video(folder.videos / "policy-1.mp4", [np.zeros((16, 16, 3), np.uint8)], 30),
    ]


# --- marks of trust: code runs only if the mark says, untouched by others, that these very files were trained with


def try_marks(run: Path, scratch: Path, rng: random.Random) -> str:
    os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
    header = scratch / "task.hpp"
    header.write_text("// mine")
    folder = RunFolder(run)
    config = folder.read_config()
    config = type(config)(env=str(header))
    remember_code(config)
    place = scratch / "cache/raceway/trusted"
    (mark,) = place.iterdir()
    check_code(folder, config, trust=False)
    how = rng.randrange(6)
    good = mark.read_bytes()
    if how == 0:
        mark.write_bytes(rng.choice(BYTES)(good, rng))
    elif how == 1:
        with contextlib.suppress(ValueError, RecursionError):  # no JSON any more
            mark.write_text(json.dumps(mutate_json(json.loads(good), rng)))
    elif how == 2:
        os.chmod(rng.choice([mark, place]), rng.choice([0o666, 0o777, 0o722, 0o620]))
    elif how == 3:
        mark.rename(scratch / "mark")
        mark.symlink_to(scratch / "mark")
    elif how == 4:
        header.write_bytes(rng.choice(BYTES)(b"// mine", rng))
    else:
        mark.unlink()
        (mark.mkdir if rng.random() < 0.5 else lambda: os.mkfifo(mark))()
    is_same = header.read_bytes() == b"// mine" and is_plain(mark) and _means(mark, good)
    try:
        check_code(folder, config, trust=False)
    except SettingError as error:
        return f"{how}: a long message" if len(str(error)) > _LONGEST_MESSAGE else ""
    except Exception as error:
        return f"{how}: {type(error).__name__}: {str(error)[:200]}"
    return "" if is_same and how not in (2, 3, 5) else f"{how}: trusted"


def _means(mark: Path, good: bytes) -> bool:
    with contextlib.suppress(ValueError, RecursionError):
        return bool(json.loads(mark.read_bytes()) == json.loads(good))
    return False


AREAS: dict[str, Callable[[Path, Path, random.Random], str]] = {
    "settings": try_settings,
    "links": try_links,
    "marks": try_marks,
}


def try_cases(area: str, run: Path, scratch: Path, numbers: range) -> list[str]:
    """What went wrong: an unexpected error, a hang, too much memory, or what the area is about."""
    faults = []
    peak = 0
    for number in numbers:
        place = scratch / f"case-{number}"
        place.mkdir()
        try:
            with at_most(LONGEST_S):
                fault = AREAS[area](run, place, random.Random(number))
        except BaseException as error:  # of the clock, too
            fault = f"{type(error).__name__}: {str(error)[:200]}"
        before, peak = peak, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if before and peak - before > MOST_BYTES:
            fault += f" and {(peak - before) >> 20} MiB"
        if fault:
            faults.append(f"{area} {number}: {fault}")
        shutil.rmtree(place)
    return faults


def main(area: str, first: int, count: int) -> None:
    from tests.training.fuzz_run_folders import template

    with tempfile.TemporaryDirectory() as directory:
        run = template(Path(directory) / "runs")
        began = time.monotonic()
        faults = try_cases(area, run, Path(directory), range(first, first + count))
        print("\n".join(faults[:20]))
        print(f"{count} cases in {time.monotonic() - began:.0f} s, {len(faults)} faults")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:4]))
