"""What can be wrong with a graph, and what can go wrong in a run of it."""

from __future__ import annotations


class GraphError(Exception):
    """A reactor or a program that cannot be run as it is written."""


class ReactionError(RuntimeError):
    """A reaction failed. What it raised is the cause of this error, with its traceback, wherever it ran."""


class PlaceLostError(RuntimeError):
    """A worker process ended, or was killed, in the middle of a run."""


class StuckError(RuntimeError):
    """All reactors wait for each other, which queues that nobody writes to can bring about."""


class RemoteTracebackError(Exception):
    """The text of a traceback from a worker process: the cause of the exception that crossed."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n\n{self.text}"
