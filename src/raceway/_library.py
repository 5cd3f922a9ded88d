"""Finds MuJoCo's library for the native core, where it is not beside it."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
from pathlib import Path


def load_or_explain(error: ImportError) -> None:
    """Loads the library out of the `mujoco` package, and the core with it.

    The core looks for it beside `raceway`; they are apart if they were installed into different places.
    """
    spec = importlib.util.find_spec("mujoco")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(
            "Raceway needs the package mujoco. Install it: pip install --force-reinstall raceway"
        ) from error
    for library in Path(spec.submodule_search_locations[0]).glob("libmujoco.so.*"):
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    try:
        importlib.import_module("raceway._core")
    except ImportError as still:
        raise ImportError(
            f"Raceway was built for another MuJoCo than the one that is installed ({still}). Install the right one: "
            "pip install --force-reinstall raceway"
        ) from error
