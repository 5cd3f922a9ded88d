"""Raceway: reinforcement learning as fast as the machine allows, and the same seed gives the same bits."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

try:
    from raceway._main_interpreter import require_main_interpreter as _require_main_interpreter

    _require_main_interpreter()
    import numpy as _numpy  # noqa: F401 (or the core imports it, which prints a traceback if it is interrupted)

    from raceway import _core  # noqa: F401 (tried first: everything below needs it)
except ImportError as error:
    if "libmujoco" not in str(error):
        raise
    from raceway._library import load_or_explain

    load_or_explain(error)

from raceway.envs import list_envs, load_native, make

if _TYPE_CHECKING:
    from raceway import callbacks as callbacks
    from raceway.envs.checking import check as check
    from raceway.report.comparison import compare as compare
    from raceway.report.plots import plot as plot
    from raceway.training.callbacks import Callback as Callback
    from raceway.training.export import export as export
    from raceway.training.play import play as play
    from raceway.training.policy import evaluate as evaluate
    from raceway.training.policy import load as load
    from raceway.training.run import resume as resume
    from raceway.training.run import train as train
    from raceway.training.seeds import train_seeds as train_seeds

__all__ = [
    "Callback",
    "__version__",
    "callbacks",
    "check",
    "compare",
    "evaluate",
    "export",
    "list_envs",
    "load",
    "load_native",
    "make",
    "play",
    "plot",
    "resume",
    "train",
    "train_seeds",
]
__version__ = "0.1.0"

# Imported when first used: users of the environments alone should not pay for JAX.
_LATER = {
    "Callback": "raceway.training.callbacks",
    "check": "raceway.envs.checking",
    "compare": "raceway.report.comparison",
    "evaluate": "raceway.training.policy",
    "export": "raceway.training.export",
    "load": "raceway.training.policy",
    "play": "raceway.training.play",
    "plot": "raceway.report.plots",
    "resume": "raceway.training.run",
    "train": "raceway.training.run",
    "train_seeds": "raceway.training.seeds",
}


def __getattr__(name: str) -> _Any:
    if name not in _LATER and name != "callbacks":
        raise AttributeError(f"module 'raceway' has no attribute {name!r}")
    import importlib

    if name == "callbacks":
        return importlib.import_module("raceway.callbacks")
    found = getattr(importlib.import_module(_LATER[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, "callbacks"})
