"""Scripts in processes of their own: plain files, what is typed in, and those that are watched while they run."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.envs.processes import ROOT, Ended
from tests.envs.python.watching import children, is_alive

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def run_python(*arguments: str, typed: str | None = None, cwd: Path = ROOT, timeout_s: float = 60.0) -> Ended:
    """Runs Python with these arguments, and with what is typed into it."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=ENVIRONMENT,
        input=typed,
        stdin=subprocess.DEVNULL if typed is None else None,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return Ended(done.returncode, done.stdout.strip(), done.stderr.strip(), time.perf_counter() - start)


def run_file(folder: Path, script: str, *arguments: str, timeout_s: float = 60.0) -> Ended:
    """Runs a script from a file, elsewhere than in the repository."""
    path = folder / "script.py"
    path.write_text(textwrap.dedent(script))
    return run_python(str(path), *arguments, cwd=folder, timeout_s=timeout_s)


class Running:
    """A script that runs; its lines are read as they come."""

    def __init__(self, script: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script)],
            cwd=ROOT,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def line(self) -> str:
        """Its next line; fails with its errors when it has none."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            assert self.process.stderr is not None
            raise AssertionError(self.process.stderr.read())
        return line.strip()

    def workers(self) -> list[int]:
        """The processes that it has started."""
        return [pid for pid in children(self.process.pid) if is_alive(pid)]

    def end(self, timeout_s: float = 10.0) -> tuple[int, str, str]:
        """Waits for its end: exit code, the rest of its output, its errors."""
        output, errors = self.process.communicate(timeout=timeout_s)
        return self.process.returncode, output.strip(), errors.strip()


@contextmanager
def running(script: str) -> Iterator[Running]:
    """Starts a script and, however the test ends, leaves none of it behind."""
    started = Running(script)
    try:
        yield started
    finally:
        for pid in [*started.workers(), started.process.pid]:
            if is_alive(pid):
                os.kill(pid, 9)
        started.process.wait()
        for pipe in (started.process.stdout, started.process.stderr):
            assert pipe is not None
            pipe.close()
