"""What goes wrong for a reason that whoever runs Raceway can put right."""

from __future__ import annotations


class UserError(Exception):
    """Says what, which value, why, and what to do. The command line shows the message alone, without a traceback."""


class SettingError(UserError, ValueError):
    """A setting that is unknown, or has a value that makes no sense."""


class RunFolderError(UserError, FileNotFoundError):
    """A folder that is not, or not yet, what it is taken for."""

    def __str__(self) -> str:  # of the three parents, OSError would have its own way
        return str(self.args[0])


class MissingPackageError(UserError, ImportError):
    """An optional package that is needed now; the message has the command that installs it."""


class DivergedError(UserError, ArithmeticError):
    """Something in a run is not a finite number any more."""
