"""Metrics of a run: one JSON object a line in metrics.jsonl, TensorBoard events, and Weights & Biases if asked for."""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol

from raceway.errors import MissingPackageError, RunFolderError
from raceway.files import open_to_append, opened_folder, read_lines
from raceway.messages import quoted

RETURN = "episode/return"
EVALUATION = "evaluation/return"
STEPS_END = 2**63
_MOST_ROWS = 10**6
"""Rows that are read: a run writes about a thousand, and in memory a short one takes twenty times its bytes."""


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Reads a metrics.jsonl; a file that is not there has no rows.

    Every row has a step. The other values are finite numbers or None: what JSON reads as infinite (1e400) or as NaN
    counts as missing, just as `MetricsLog` writes null for it. An incomplete last line is skipped, because a run may be
    writing it or may have been killed then; any other damaged line raises a RunFolderError.
    """
    if not os.path.lexists(path):
        return []
    rows = []
    for number, (line, is_whole) in enumerate(read_lines(path), 1):
        if number > _MOST_ROWS:
            raise RunFolderError(
                f"{path} has more than {_MOST_ROWS:,} rows, the most that are read. Leave the run out."
            )
        try:
            rows.append(parse_row(line))
        except ValueError as error:
            if is_whole:
                raise RunFolderError(
                    f"{path}, line {number} is damaged: {error}. Remove the line, or leave the run out."
                ) from None
    return rows


def parse_row(line: bytes) -> dict[str, Any]:
    """Parses one line of a metrics.jsonl. Raises a ValueError if it is not a row of metrics."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(row, dict):
        raise ValueError("it is not a row of metrics")
    step: Any = row.get("step")
    if not _is_number(step) or not 0 <= step < STEPS_END:  # which NaN is not either
        raise ValueError(f"its step is {quoted(step)}, not a number of environment steps")
    return {name: step if name == "step" else _finite(name, value) for name, value in row.items()}


def _finite(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if not _is_number(value):
        raise ValueError(f"{quoted(name)} is {quoted(value)}, not a number")
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # an integer beyond the largest float
        return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class _Sink(Protocol):
    """Somewhere else that metrics go."""

    name: str

    def write(self, step: int, moment: float, values: Mapping[str, float]) -> None: ...

    def close(self) -> None: ...


class MetricsLog:
    """Writes metrics to a run's folder.

    A line of metrics.jsonl is strict JSON: `{"step": 2048, "time": 1794806400.123, "train/entropy": 0.69}`; the
    time is the seconds since 1970. What is not finite becomes `null`. It is on disk, or with the system, when `write`
    returns. TensorBoard and Weights & Biases are served by a thread of their own, some moments later.

    Lines that are there already, of a run that goes on, stay, and TensorBoard's events are made of them anew: whatever
    had been written after them is gone.
    """

    def __init__(self, directory: Path | str, tensorboard: bool = True, wandb_project: str | None = None) -> None:
        self._directory = Path(directory)
        self._directory.mkdir(parents=True, exist_ok=True)
        # Where a package is missing, that is said now, not by a thread later.
        sinks: list[_Sink] = [] if wandb_project is None else [_Wandb(self._directory, wandb_project)]
        path = self._directory / "metrics.jsonl"
        earlier = read_rows(path) if tensorboard else []
        self._file: IO[bytes] | None = open_to_append(path)
        self._thread = _Writer(self._directory / "tensorboard" if tensorboard else None, earlier, sinks)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """One line. Names with a slash are grouped by what is before it: `train/entropy`."""
        if self._file is None:
            raise ValueError("the metrics log is closed.")
        numbers = {name: float(value) for name, value in values.items()}
        line = {"step": int(step), "time": round(time.time(), 3)}
        finite = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
        self._file.write((json.dumps(line | finite, allow_nan=False) + "\n").encode())
        self._file.flush()
        self._thread.put(int(step), numbers)

    @property
    def num_bytes(self) -> int:
        """How long metrics.jsonl is by now."""
        if self._file is None:
            raise ValueError("the metrics log is closed.")
        return self._file.tell()

    @property
    def troubles(self) -> list[str]:
        """What kept TensorBoard or Weights & Biases from getting everything, in words."""
        return list(self._thread.troubles)

    def close(self) -> None:
        """Returns when everything is written. May be called again."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # only of a line that could not be written, which `write` has told
                self._file.close()
            self._file = None
            self._thread.close()

    def __enter__(self) -> MetricsLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Writer:
    """A thread that serves the sinks in turn. Training does not end because a disk is full: a sink that fails is left
    out from then on, and what it said is kept."""

    def __init__(self, tensorboard: Path | None, earlier: list[dict[str, Any]], sinks: list[_Sink]) -> None:
        self.troubles: list[str] = []
        self._earlier = earlier
        self._tensorboard = tensorboard
        self._sinks = sinks
        self._lines: queue.SimpleQueue[tuple[int, float, dict[str, float]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        if tensorboard is not None or sinks:
            self._thread = threading.Thread(target=self._serve, name="raceway.metrics", daemon=True)
            self._thread.start()

    def put(self, step: int, values: dict[str, float]) -> None:
        if self._thread is not None:
            self._lines.put((step, time.time(), values))

    def close(self) -> None:
        if self._thread is not None:
            self._lines.put(None)
            self._thread.join()
            self._thread = None

    def _serve(self) -> None:
        if self._tensorboard is not None:  # imported here, for that takes its time
            directory = self._tensorboard
            self._try("TensorBoard", lambda: self._sinks.append(_TensorBoard(directory, self._earlier)))
        while (line := self._lines.get()) is not None:
            for sink in list(self._sinks):
                if not self._try(sink.name, partial(sink.write, *line)):
                    self._sinks.remove(sink)
        for sink in self._sinks:
            self._try(sink.name, sink.close)

    def _try(self, name: str, act: Callable[[], Any]) -> bool:
        try:
            act()
        except Exception as error:
            self.troubles.append(f"{name} gets no metrics any more: {error}")
            return False
        return True


class _TensorBoard:
    """An event file. All values of a step make one event: an event each costs ten times as much."""

    name = "TensorBoard"

    def __init__(self, directory: Path, earlier: list[dict[str, Any]]) -> None:
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.proto.summary_pb2 import Summary

        self._event, self._summary = Event, Summary
        if directory.is_dir() and not directory.is_symlink():  # of a pipe, rmtree would wait for a writer
            shutil.rmtree(directory, ignore_errors=True)
        with opened_folder(directory, create=True):  # which a link is not
            pass
        # Without the library's own thread: when that has failed, writing blocks for ever.
        self._writer = EventsWriter(str(directory / "events"))
        for row in earlier:
            values = {name: math.nan if value is None else value for name, value in row.items()}
            self.write(int(values.pop("step")), values.pop("time", 0.0), values)

    def write(self, step: int, moment: float, values: Mapping[str, float]) -> None:
        points = [self._summary.Value(tag=name, simple_value=value) for name, value in values.items()]
        self._writer.write_event(self._event(wall_time=moment, step=step, summary=self._summary(value=points)))
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class _Wandb:
    """A run of Weights & Biases."""

    name = "Weights & Biases"

    def __init__(self, directory: Path, project: str) -> None:
        try:
            import wandb
        except ImportError:
            raise MissingPackageError(
                f"Weights & Biases is not installed, but log.wandb_project={quoted(project)} asks for it. "
                "pip install 'raceway[wandb]'"
            ) from None
        self._run: Any = wandb.init(project=project, name=directory.name, dir=str(directory))
        # Our steps are a metric among others: its own must never go back, and evaluations come late.
        self._run.define_metric("*", step_metric="step")

    def write(self, step: int, moment: float, values: Mapping[str, float]) -> None:
        self._run.log({**values, "step": step})

    def close(self) -> None:
        self._run.finish()
