"""What goes wrong for a reason that the user can put right."""

from __future__ import annotations

from typing import Any


class UserError(Exception):
    """Says what, which value, why, and what to do. The command line shows the message alone, without a traceback."""


class SettingError(UserError, ValueError):
    """A setting that is unknown, or has a value that makes no sense."""


class RunFolderError(UserError, FileNotFoundError):
    """A folder that is not, or not yet, what it is taken for."""

    def __str__(self) -> str:  # of the three parents, OSError would have its own way
        return str(self.args[0])


class VideoError(UserError, OSError):
    """A video that could not be written."""

    def __str__(self) -> str:
        return str(self.args[0])


class MissingPackageError(UserError, ImportError):
    """An optional package that is needed now; the message has the command that installs it."""


class NativeEnvError(UserError, ValueError):
    """A header or a library that is no native environment: it does not compile, or does not fit."""


class OutOfBoundsError(UserError, RuntimeError):
    """A native environment wrote outside its own memory: its rows, its state or its struct."""


class LimitError(UserError, RuntimeError):
    """The system does not allow what a run needs, such as address space."""


class DivergedError(UserError, ArithmeticError):
    """Something in a run is not a finite number any more."""


class EnvError(UserError, RuntimeError):
    """An environment in Python raised, or the process that it was in is gone or does not get on."""

    def __init__(self, message: str, env: int | None = None, worker: int | None = None, advice: str = "") -> None:
        super().__init__(message + advice)
        self.message = message
        self.advice = advice
        """The end of the message: arguments of `raceway.make` and `raceway.train` that help."""
        self.env = env
        """Its number, if it is known."""
        self.worker = worker
        """The number of the worker process; None in the calling thread."""

    def __reduce__(self) -> tuple[Any, ...]:
        return EnvError, (self.message, self.env, self.worker, self.advice)

    def without_advice(self) -> EnvError:
        """The same error for calls that do not have these arguments."""
        return EnvError(self.message, self.env, self.worker)


class SeedsError(Exception):
    """Some of the runs of several seeds failed, each in a process of its own; the message has their last words."""

    def __init__(self, message: str, runs: list[Any], code: int) -> None:
        super().__init__(message)
        self.runs = runs
        """What came of the others."""
        self.code = code
        """For the command line: 2 if all failed for a reason that the user can put right, else 1."""
