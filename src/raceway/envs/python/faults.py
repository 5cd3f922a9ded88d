"""Environments and workers that failed, told to whoever runs them."""

from __future__ import annotations

import os

from raceway.envs.python.stage import MAKING, Fault
from raceway.errors import EnvError, UserError
from raceway.messages import portable, traceback_of, words_of


def env_error(name: str, fault: Fault, worker: int | None = None, pid: int = 0) -> UserError:
    """An environment raised: which, where, in what, with its traceback."""
    if fault.refusal is not None:
        return type(fault.refusal)(str(fault.refusal))
    where = "" if worker is None else f" in worker {worker} (process {pid})"
    doing, comma, more = fault.doing.partition(",")
    when = (f"step {fault.step} of its episode" if doing == "step" else doing) + comma + more
    who = f"Environment {fault.env}" if fault.env >= 0 else "A worker"
    place = f" Where it happened:\n\n{_indented(fault.traceback)}\n" if fault.traceback else ""
    # What cannot be made once is not made by another attempt.
    is_making = fault.doing.startswith(MAKING) or fault.env < 0
    advice = [] if worker is None else ['To stop there with a debugger, use lane="inline" (--lane inline).']
    if not is_making and not fault.was_restarted:
        advice.append('To go on without that episode, use on_error="restart" (--on-error restart).')
    return EnvError(
        f"{who} of {name}{where} raised {fault.error}\nduring {when}.{place}",
        env=fault.env,
        worker=worker,
        advice="\n" + " ".join(advice) if advice else "",
    )


def lost_error(name: str, worker: int, envs: range, how: str, at: int | None, restarts: bool) -> EnvError:
    """A worker process is gone."""
    doing = f" while environment {at} was at work" if at is not None else ""
    memory = " If nobody killed it, memory may have run out: see dmesg." if "SIGKILL" in how else ""
    restart = "" if restarts else '; with on_error="restart" (--on-error restart) such a worker is started again'
    return EnvError(
        f"Worker {worker} of {name}, with environments {envs.start} to {envs.stop - 1}, is gone: {how}{doing}.{memory}",
        env=at,
        worker=worker,
        advice=f" Make a new pool{restart}.",
    )


def hung_error(name: str, worker: int, pid: int, at: int | None, timeout: float, restarts: bool) -> EnvError:
    """A worker process makes no progress."""
    which = f"environment {at}" if at is not None else "what it was asked"
    restart = 'allow it more time, or use on_error="restart" (--on-error restart) to go on without that episode'
    return EnvError(
        f"Worker {worker} of {name} (process {pid}) has been busy with {which} for more than "
        f"worker_timeout={timeout:g} seconds, and was killed.",
        env=at,
        worker=worker,
        advice=f" Look at what it waits for, {'or allow it more time' if restarts else restart}.",
    )


def sendable(error: BaseException, worker: int) -> Exception:
    """Itself, if another process can make it again from what is sent; else its words. Its traceback is a note."""
    sent = portable(error)
    if not isinstance(sent, Exception):  # such as SystemExit, which would end the caller
        sent = RuntimeError(words_of(error))
    text = traceback_of(error)
    sent.add_note(f"In worker {worker} (process {os.getpid()}):\n{_indented(text)}")
    return sent


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
