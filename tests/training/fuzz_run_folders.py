"""Run folders that somebody has spoiled, by accident or on purpose, and all that reads them.

`python -m tests.training.fuzz_run_folders FIRST COUNT` tries cases by number and says what became of them.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import math
import os
import pickle
import random
import shutil
import signal
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raceway
from raceway.algos.build import build_algorithm
from raceway.algos.rollout import Weights
from raceway.errors import RunFolderError, UserError
from raceway.graph import GraphError
from raceway.report.runs import find_runs
from raceway.report.system import system_facts
from raceway.training import folder as folder_module
from raceway.training import policy as policy_module
from raceway.training import run as run_module
from raceway.training.array_files import pack_arrays, unpack_arrays
from raceway.training.checkpoints import Checkpoint, Checkpoints, MisfitError
from raceway.training.config import TrainConfig
from raceway.training.environments import EnvSource
from raceway.training.folder import RunFolder
from raceway.training.initial import read_source
from raceway.training.outcome import read_outcome
from raceway.training.programs import Report, Training
from raceway.training.seeds import last_row
from raceway.training.setup import Setup

LONGEST_S = 10.0
"""A case that takes longer hangs. Nearly all take milliseconds; the machine may be busy."""

SETTINGS: dict[str, Any] = {
    "preset": False,
    "num_envs": 4,
    "n_steps": 8,
    "batch_size": 16,
    "n_epochs": 1,
    "hidden": (8,),
    "total_steps": 4 * 8 * 12,
    "normalize_observations": True,
    "normalize_rewards": True,
    "evaluation": {"times": 2, "episodes": 2},
    "checkpoint": {"interval_s": 0.005, "keep": 2},
}


def template(directory: Path) -> Path:
    """A real run with checkpoints, which was stopped right before its end was noted."""
    log = {"directory": str(directory), "name": "run", "quiet": True}
    run = raceway.train("CartPole-v1", log=log, **SETTINGS)
    (run.directory / "outcome.json").rename(directory / "outcome.json")
    (run.directory / "resumed.jsonl").write_text('{"after_round": 3}\n')
    return run.directory


# --- mutations of bytes

Bytes = Callable[[bytes, random.Random], bytes]


def _flip(content: bytes, rng: random.Random) -> bytes:
    made = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 3, 20]) if made else 0):
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
    return bytes(made)


def _cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _insert(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.randbytes(rng.choice([1, 2, 8, 300])) + content[at:]


def _remove(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + content[at + rng.choice([1, 2, 8, 300]) :]


def _repeat(content: bytes, rng: random.Random) -> bytes:
    first, last = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return content[:last] + content[first:]


def _zeros(content: bytes, rng: random.Random) -> bytes:
    first, last = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return content[:first] + bytes(last - first) + content[last:]


class _Canary:
    """What unpickles this makes a file."""

    def __reduce__(self) -> Any:
        return os.mkdir, (str(CANARY),)


CANARY = Path(tempfile.gettempdir()) / f"raceway-canary-{os.getpid()}"
_NEST = b"[" * 100_000
_OTHER: list[bytes] = [b"", b"\n", b"{}", b"[]", b"null", b"NaN", b"1", b'"x"', b"\xff\xfe", b"\0" * 100, _NEST]


def _replace(content: bytes, rng: random.Random) -> bytes:
    return rng.choice([*_OTHER, pickle.dumps(_Canary()), rng.randbytes(200), b'{"a":' * 50_000])


BYTES: list[Bytes] = [_flip, _flip, _cut, _insert, _remove, _repeat, _zeros, _replace]


# --- mutations of what JSON says

HOSTILE: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 10**9, 2**31, 2**53, 2**63, 2**70, -(2**70), 10**400, 0.5, -0.0, 1e308, 1e-320,
    math.nan, math.inf, -math.inf, "", "x", "0", "\ud800", "\0", "../../../etc/passwd", "/dev/zero", "x" * 10_000,
    "CartPole-v1", "Taxi-v3", "os:system", "float64", "object", "O", "V8", "box", "dict", "tuple", "\x1b[2J", "é", [],
    {}, [[]], [None], [0], [1, 2, 3], ["x"], {"": None}, {"x": 1}, {"kind": "tuple", "parts": []},
    {"number": "nan"}, {"number": "inf"}, {"number": []}, {"not saved": "x"},
    {"$array": "0:reactors"}, {"$pickle": "gASVAAAA"}, {"$dict": []}, {"$tuple": []}, {"$record": []},
    {"$bytes": "x"}, {"$number": "x"}, {"$dict": [["x", 1], ["x", 2]]}, {"$record": [["version", 1], ["params", 2]]},
]  # fmt: skip


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every container with a key of it."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        found.append((value, key))
        _places(value[key], found)
    return found


def _nested(depth: int, rng: random.Random) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value] if rng.random() < 0.5 else {rng.choice(["$tuple", "x", "parts"]): value}
    return value


def mutate_json(value: Any, rng: random.Random) -> Any:
    """The value with one to three places changed."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        places = _places(value, [])
        if not places:
            return rng.choice(HOSTILE)
        where, key = rng.choice(places)
        how = rng.randrange(9)
        if how <= 3:
            where[key] = rng.choice(HOSTILE)
        elif how == 4:
            del where[key]
        elif how == 5:
            other, name = rng.choice(places)
            with contextlib.suppress(KeyError, IndexError):
                where[key] = copy.deepcopy(other[name])
        elif how == 6:
            where[key] = _nested(rng.choice([3, 120, 400]), rng)
        elif how == 7 and isinstance(where, dict):
            where[rng.choice([*HOSTILE[22:30], "extra"])] = where.pop(key)
        else:
            item = where[key]
            where[key] = [item] if rng.random() < 0.5 else {"x": item}
    return value


def _text(value: Any) -> bytes:
    return json.dumps(value).encode()


def _json_file(content: bytes, rng: random.Random) -> bytes:
    return _text(mutate_json(json.loads(content), rng))


def _json_lines(content: bytes, rng: random.Random) -> bytes:
    lines = content.splitlines()
    at = rng.randrange(len(lines))
    lines[at] = _text(mutate_json(json.loads(lines[at]), rng))
    return b"\n".join(lines) + rng.choice([b"\n", b""])


# --- mutations of arrays


def _header(content: bytes, rng: random.Random) -> bytes:
    size = struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    text = _text(mutate_json(header, rng)) if rng.random() < 0.8 else rng.choice([*_OTHER, b'{"a":' * 50_000])
    length = len(text) if rng.random() < 0.9 else rng.choice([0, 1, 2**32, 2**63, 2**64 - 1])
    return struct.pack("<Q", length) + text + data


def _arrays(content: bytes, rng: random.Random) -> bytes:
    """Other arrays in a sound file."""
    arrays = unpack_arrays(content, Path("x"))
    for name in rng.sample(sorted(arrays), min(len(arrays), rng.choice([1, 1, 2, 5]))):
        array = arrays.pop(name)
        how = rng.randrange(8)
        if how == 0:
            continue
        if how == 1:
            arrays[rng.choice(["x", "", name + "x", *arrays])] = array
            continue
        if how == 2:
            array = array.astype(rng.choice([np.float64, np.float32, np.int64, np.uint8, np.bool_, np.float16]))
        elif how == 3:
            shape = rng.choice([(0,), (), (1,), (array.size + 1,), (2, 3, 4), (1, *array.shape), (7,) * 7])
            array = np.resize(array, shape)
        elif how == 4 and array.dtype.kind == "f":
            array = array.copy()
            array.reshape(-1)[: rng.choice([1, array.size])] = rng.choice([np.nan, np.inf, -np.inf, 1e30, -1.0, 0.0])
        elif array.dtype != bool:
            array = array.copy()
            raw = array.reshape(-1).view(np.uint8)
            for _ in range(rng.choice([1, 4, 50]) if raw.size else 0):
                raw[rng.randrange(raw.size)] = rng.randrange(256)
        arrays[name] = array
    return pack_arrays(arrays)


# --- checkpoints, with checksums that are right


def _read_told(path: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(path.read_bytes())
    return told


def _write_told(path: Path, told: Any) -> None:
    if isinstance(told, dict):
        told.pop("sha256", None)
    text = _text(told)
    rest = text[1:] if isinstance(told, dict) else text
    path.write_bytes(b'{"sha256": "%s",\n' % hashlib.sha256(rest).hexdigest().encode() + rest)


def _mend(directory: Path, round_: str) -> None:
    """Makes the checksums of a checkpoint fit what it is now, as far as there is anything to mend."""
    path = directory / f"checkpoint-{round_}.json"
    with contextlib.suppress(ValueError, OSError, TypeError, KeyError, AttributeError, RecursionError):
        told = _read_told(path) if is_plain(path) else {}
        if is_plain(arrays := directory / told["arrays"]):
            told["arrays_sha256"] = hashlib.sha256(arrays.read_bytes()).hexdigest()
            _write_told(path, told)


def _mutate_snapshot(path: Path, rng: random.Random) -> None:
    """What the checkpoint says of the run, in a file whose checksum is right."""
    told = _read_told(path)
    if rng.random() < 0.7:
        told["snapshot"] = json.dumps(mutate_json(json.loads(told["snapshot"]), rng))
    else:
        told = mutate_json(told, rng)
    _write_told(path, told)


# --- mutations of files and folders


def _remove_any(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def mutate_place(path: Path, rng: random.Random) -> None:
    """Something else in a file's or a folder's place."""
    how = rng.randrange(9)
    others = sorted(each for each in path.parent.parent.rglob("*") if is_plain(each) and each != path)
    other = rng.choice(others)
    content = other.read_bytes()
    _remove_any(path)
    if how == 0:
        path.mkdir()
    elif how == 1:
        os.mkfifo(path)
    elif how == 2:
        targets = [
            "no/where",
            path.name,
            "/etc/passwd",
            "/dev/zero",
            "/dev/null",
            ".",
            "..",
            "/proc/self/mem",
            str(other),
        ]
        path.symlink_to(rng.choice(targets))
    elif how == 3:
        path.write_bytes(content)
    elif how == 4:
        path.touch()
        os.truncate(path, rng.choice([1, 10**6, 2**43]))
    elif how == 5:
        path.write_bytes(b"")
    elif how == 6:
        path.write_bytes(content)
        path.chmod(0)
    elif how == 7 and path.parent.is_dir():
        path.symlink_to(path.parent)


@dataclass
class Mutant:
    """A spoiled copy of a run folder."""

    path: Path
    changes: list[str] = field(default_factory=list)


PLACES = (
    *("checkpoints", "best", "final", "initial", "tensorboard", "videos", "dumps", "lock"),
    *("metrics.jsonl", "chain.jsonl", "outcome.json", "resumed.jsonl", "evaluations.jsonl", "graph.svg"),
)


def spoil(folder: Path, rng: random.Random) -> Mutant:
    """Spoils one thing, or now and then several."""
    mutant = Mutant(folder)
    for _ in range(rng.choice([1, 1, 1, 1, 2, 4])):
        files = sorted(each for each in folder.rglob("*") if is_plain(each))
        weights = [6 if "checkpoint" in each.name else 0 if each.suffix in (".svg", ".mmd") else 2 for each in files]
        path = rng.choices(files, weights)[0]
        if rng.random() < 0.06:
            path = folder / rng.choice(PLACES)
            mutate_place(path, rng)
            mutant.changes.append(f"place of {path.name}")
        else:
            mutant.changes.append(f"{_spoil_file(path, rng)} {path.relative_to(folder)}")
    return mutant


def is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size < 10**7


def _spoil_file(path: Path, rng: random.Random) -> str:
    how = rng.random()
    if how < 0.1:
        mutate_place(path, rng)
        return "place of"
    name, content = path.name, path.read_bytes()
    in_checkpoint = name.startswith("checkpoint-")
    try:
        if in_checkpoint and path.suffix == ".json" and how < 0.75:
            _mutate_snapshot(path, rng)
            return "snapshot of"
        kinds: dict[str, list[Bytes]] = {
            ".json": [_json_file],
            ".jsonl": [_json_lines],
            ".safetensors": [_header, _arrays, _arrays],
        }
        mutation = rng.choice(kinds.get(path.suffix, BYTES) if how < 0.75 else BYTES)
        path.write_bytes(mutation(content, rng))
    except (LookupError, TypeError, ValueError, UserError, RecursionError, struct.error):  # it was spoiled already
        path.write_bytes(rng.choice(BYTES)(content, rng))
        return "again"
    if in_checkpoint and rng.random() < 0.85:
        _mend(path.parent, name.removeprefix("checkpoint-").split(".")[0])
    return mutation.__name__


# --- readers


class DifferentError(Exception):
    """The settings are others than the run's own, and good: that is another run."""


class HangError(BaseException):
    """It took too long."""


class Readers:
    """All that opens run folders. Where a run would be run, it is only made ready."""

    def __init__(self, folder: Path) -> None:
        config = RunFolder(folder).read_config()
        self._setup: Setup = run_module._set_up(config, EnvSource(config.env), None)
        algorithm = self._setup.algorithm()
        object.__setattr__(self._setup, "algorithm", lambda: algorithm)  # compiled once
        self._algorithms: dict[str, Any] = {}
        self._facts = system_facts()

    def all(self) -> list[Callable[[Path], Any]]:
        return [self.settings, self.policy, self.initial, self.plots, self.outcome, self.resume]

    def settings(self, path: Path) -> TrainConfig:
        return RunFolder.open(path).read_config()

    def policy(self, path: Path) -> None:
        patch = pytest.MonkeyPatch()
        patch.setattr(policy_module, "build_algorithm", self._build)
        try:
            for which in (None, "best", "final"):
                policy = raceway.load(path, which)
                action = policy.act(policy.observation_space.sample())
                assert policy.action_space.contains(action)
        finally:
            patch.undo()

    def initial(self, path: Path) -> None:
        """As the source of another run's weights."""
        found = read_source(str(path), run_module._learner_shape(self._setup))
        assert np.isfinite(found.params).all()

    def _build(self, *wanted: Any) -> Any:
        """Compiled once for those that are alike."""
        key = repr(wanted)
        if key not in self._algorithms:
            self._algorithms[key] = build_algorithm(*wanted)
        return self._algorithms[key]

    def plots(self, path: Path) -> None:
        last_row(path / "metrics.jsonl")
        for run in find_runs(path):
            for metric in run.metrics():
                run.series(metric)
            assert run.steps >= 0 or run.rows
            run.seconds_at(np.array([0.0, math.inf]))
        str(raceway.compare(path, at=20.0))

    def outcome(self, path: Path) -> None:
        read_outcome(RunFolder(path))

    def resume(self, path: Path) -> None:
        """`raceway.resume` up to the first round, everything that is loaded then included."""
        patch = pytest.MonkeyPatch()
        patch.setattr(run_module, "_set_up", self._set_up)
        patch.setattr(run_module, "_run", self._load_all)
        patch.setattr(folder_module, "system_facts", lambda: self._facts)
        try:
            with contextlib.suppress(DifferentError):
                raceway.resume(path)
        finally:
            patch.undo()

    def _set_up(self, config: TrainConfig, target: Any, network: Any) -> Setup:
        if config != self._setup.config:
            raise DifferentError
        return self._setup

    def _load_all(
        self,
        setup: Setup,
        report: Report,
        training: Training,
        checkpoints: Checkpoints,
        start: Checkpoint | None,
        has_callbacks: bool,
    ) -> None:
        program = training.program
        reactors = {reactor.name: reactor for _, reactor in program._members.values()}
        collector, reporter = reactors["collector"], reactors["reporter"]
        collector.open()  # type: ignore[attr-defined]
        try:
            begin = program._starting_point(program._plan()[0])
            reporter.open()  # type: ignore[attr-defined]
            reporter.close()  # type: ignore[attr-defined]
            for name, reactor in reactors.items():
                if start is not None:
                    reactor.load(start.snapshot.reactors[name])
            collector.save()
            for weights in (value for values in begin.values.values() for value in values):
                if isinstance(weights, Weights):
                    with contextlib.suppress(FloatingPointError):  # which ends a run as diverged
                        collector._sampler.collect(weights, 3, np.empty)  # type: ignore[attr-defined]
        except (GraphError, MisfitError) as error:
            assert start is not None
            raise RunFolderError(f"{start.path} does not fit the run that it is in: {error}") from None
        finally:
            collector.close()  # type: ignore[attr-defined]


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises HangError in what takes longer."""

    def ring(*_: Any) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass
class Tally:
    """What became of the cases."""

    readings: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    longest_s: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    """By reader."""


def try_cases(template_: Path, scratch: Path, numbers: range, is_heard: bool = False) -> Tally:
    """Each case: a spoiled copy, and everything that reads it. It is read, or it is refused with the file's name."""
    readers = Readers(template_)
    tally = Tally()
    for number in numbers:
        rng = random.Random(number)
        copy_ = scratch / f"case-{number}"
        shutil.copytree(template_, copy_, symlinks=True)
        if number % 2:  # nothing to fall back on
            for older in sorted((copy_ / "checkpoints").iterdir())[:-2]:
                older.unlink()
        mutant = spoil(copy_, rng)
        for read in readers.all():
            began = time.perf_counter()
            outcome = _fate(read, mutant.path)
            took = time.perf_counter() - began
            tally.seconds[read.__name__] = tally.seconds.get(read.__name__, 0.0) + took
            tally.longest_s = max(tally.longest_s, took)
            tally.readings[outcome if outcome in ("read", "refused") else "FAULT"] += 1
            if outcome not in ("read", "refused"):
                tally.faults.append(f"case {number} ({'; '.join(mutant.changes)}), {read.__name__}: {outcome}")
                if is_heard:
                    print(tally.faults[-1], flush=True)
        if CANARY.exists():
            tally.faults.append(f"case {number} ({'; '.join(mutant.changes)}): its code was run")
            CANARY.rmdir()
        shutil.rmtree(copy_)
    return tally


def _fate(read: Callable[[Path], Any], path: Path) -> str:
    try:
        with at_most(LONGEST_S):
            read(path)
    except UserError as error:
        message = str(error)
        names = str(path) in message and "\x1b" not in message and len(message) < 5000
        return "refused" if names else f"names no file: {message[:300]!r}"
    except (Exception, HangError) as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else ""
        return f"{type(error).__name__} at {where}: {str(error)[:200]}"
    return "read"


def main(first: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        run = template(Path(directory) / "runs")
        began = time.monotonic()
        tally = try_cases(run, Path(directory), range(first, first + count), is_heard=True)
        kinds = Counter(fault.partition("), ")[2].split(" at ")[0][:60] for fault in tally.faults)
        print(f"{count} cases in {time.monotonic() - began:.0f} s, the longest reading {tally.longest_s:.2f} s")
        print({name: round(seconds, 1) for name, seconds in tally.seconds.items()})
        print(f"{dict(tally.readings)}, {len(tally.faults)} faults: {dict(kinds)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
