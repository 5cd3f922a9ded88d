"""Refuses subinterpreters, before anything is imported that one of them would break for the main interpreter."""

from __future__ import annotations

import importlib


def require_main_interpreter() -> None:
    """Raises ImportError in a subinterpreter.

    The C++ core keeps its types once per process, and so does NumPy: a second interpreter that imports either takes
    them from the main one.
    """
    for name in ("_interpreters", "_xxsubinterpreters"):  # since Python 3.13, and before
        try:
            interpreters = importlib.import_module(name)
        except ImportError:
            continue
        if interpreters.get_current() == interpreters.get_main():
            return
        raise ImportError(
            "Raceway cannot be imported in a subinterpreter: its C++ core and NumPy exist once per process. Import it "
            "in the main interpreter, or use a process of its own (multiprocessing with the 'spawn' method). Under "
            "mod_wsgi, set WSGIApplicationGroup %{GLOBAL}."
        )
