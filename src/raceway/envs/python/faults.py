"""Environments and workers that failed, told to whoever runs them."""

from __future__ import annotations

import os
import pickle
import traceback

from raceway.envs.python.stage import Fault
from raceway.errors import EnvError


def env_error(name: str, fault: Fault, worker: int | None = None, pid: int = 0) -> EnvError:
    """An environment raised: which, where, in what, with its traceback."""
    where = "" if worker is None else f" in worker {worker} (process {pid})"
    doing, comma, more = fault.doing.partition(",")
    when = (f"step {fault.step} of its episode" if doing == "step" else doing) + comma + more
    who = f"Environment {fault.env}" if fault.env >= 0 else "A worker"
    return EnvError(
        f"{who} of {name}{where} raised {fault.error}\n"
        f"during {when}. Where it happened:\n\n{_indented(fault.traceback)}\n\n"
        'To stop there with a debugger, use lane="inline". To go on without that episode, use on_error="restart".',
        env=fault.env,
        worker=worker,
    )


def lost_error(name: str, worker: int, envs: range, how: str, at: int | None) -> EnvError:
    """A worker process is gone."""
    doing = f" while environment {at} was at work" if at is not None else ""
    memory = " If nobody killed it, memory may have run out: see dmesg." if "SIGKILL" in how else ""
    return EnvError(
        f"Worker {worker} of {name}, with environments {envs.start} to {envs.stop - 1}, is gone: {how}{doing}.{memory} "
        'Make a new pool; with on_error="restart" such a worker is started again.',
        env=at,
        worker=worker,
    )


def hung_error(name: str, worker: int, pid: int, at: int | None, timeout: float) -> EnvError:
    """A worker process does not get on."""
    which = f"environment {at}" if at is not None else "what it was asked"
    return EnvError(
        f"Worker {worker} of {name} (process {pid}) has been busy with {which} for more than "
        f"worker_timeout={timeout:g} seconds, and was killed. Look at what it waits for, allow it more time, or use "
        'on_error="restart" to go on without that episode.',
        env=at,
        worker=worker,
    )


def sendable(error: BaseException, worker: int) -> Exception:
    """Itself, if another process can make it again from what is sent; else its words. Its traceback is a note."""
    try:
        again = pickle.loads(pickle.dumps(error))
    except Exception:
        again = None
    text = "".join(traceback.format_exception(error)).rstrip()
    is_whole = isinstance(error, Exception) and type(again) is type(error) and str(again) == str(error)
    sent = again if is_whole else RuntimeError(f"{type(error).__name__}: {error}")
    assert isinstance(sent, Exception)
    sent.add_note(f"In worker {worker} (process {os.getpid()}):\n{_indented(text)}")
    return sent


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
