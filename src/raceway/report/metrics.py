"""Metrics of a run: one JSON object a line in metrics.jsonl, TensorBoard events, and Weights & Biases if asked for."""

from __future__ import annotations

import contextlib
import json
import math
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
from raceway.training.folder import open_to_append, read_whole


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The lines of a metrics.jsonl. One that is torn at its end is passed over: its writer was killed."""
    rows = []
    lines = read_whole(path).split(b"\n")
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            if not isinstance(row, dict) or not {"step", "time"} <= row.keys():
                raise ValueError("it lacks a step or a time")
            rows.append(row)
        except (ValueError, RecursionError) as error:
            if number < len(lines):
                raise RunFolderError(f"{path} is damaged in line {number}: {error}.") from None
    return rows


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
        earlier = read_rows(path) if tensorboard and path.exists() else []
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
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True, exist_ok=True)
        # Without the library's own thread: when that has failed, whoever writes waits for ever.
        self._writer = EventsWriter(str(directory / "events"))
        for row in earlier:
            values = {name: math.nan if value is None else value for name, value in row.items()}
            self.write(int(values.pop("step")), values.pop("time"), values)

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
                f"Weights & Biases is not installed, but log.wandb_project={project!r} asks for it. "
                "pip install 'raceway[wandb]'"
            ) from None
        self._run: Any = wandb.init(project=project, name=directory.name, dir=str(directory))
        # Our steps are a metric among others: its own must never go back, and evaluations come late.
        self._run.define_metric("*", step_metric="step")

    def write(self, step: int, moment: float, values: Mapping[str, float]) -> None:
        self._run.log({**values, "step": step})

    def close(self) -> None:
        self._run.finish()
