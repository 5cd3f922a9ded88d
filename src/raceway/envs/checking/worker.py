"""The program of a process that examines an environment, and may not live to the end."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from gymnasium.error import Error as GymnasiumError

from raceway._core import die_with_parent, guard_pools
from raceway.envs.checking import (
    api,
    determinism,
    episodes,
    generators,
    lanes,
    rendering,
    seeding,
    spaces,
    speed,
    state,
)
from raceway.envs.checking.board import Board
from raceway.envs.checking.notebook import Facts, Notebook
from raceway.envs.checking.returns import WrongReturnError
from raceway.envs.checking.subject import EnvBrokeError, Subject
from raceway.envs.checking.targets import Target
from raceway.envs.checking.values import shown
from raceway.errors import MissingPackageError, OutOfBoundsError, SettingError, UserError
from raceway.local_code import adopt_imports

Probe = Callable[[Subject, Notebook, Facts], None]

FIRST = ("made", "called", "seen")
"""Without these nothing else can be looked at."""

MEASURING = ("timed", "lanes")
"""These need pools as they are in training. For the others, a native environment that writes outside its own memory is
found out."""


@dataclass(frozen=True)
class Job:
    """What a worker is to do."""

    target: Target
    probes: Sequence[str]
    facts: Facts
    lanes: lanes.LaneSettings


def probes(job: Job, make: Callable[..., Any]) -> Mapping[str, tuple[str, Probe]]:
    """Every probe by name, with its topic."""
    return {
        "made": ("api", api.made),
        "called": ("api", api.called),
        "seen": ("spaces", spaces.seen),
        "seeded": ("seeding", seeding.seeded),
        "repeated": ("determinism", determinism.repeated),
        "ended": ("episodes", episodes.ended),
        "kept": ("episodes", episodes.kept),
        "saved": ("state", state.saved),
        "timed": ("speed", partial(speed.timed, target=job.target)),
        "gone_on": ("episodes", episodes.gone_on),
        "early": ("api", api.early),
        "elsewhere": ("determinism", determinism.elsewhere),
        "drawn": ("rendering", partial(rendering.drawn, make=make, takes_mode=job.target.takes("render_mode"))),
        "lanes": ("speed", partial(lanes.measured, target=job.target, settings=job.lanes)),
    }


def main() -> None:
    """Its arguments: the parent's pid, and the descriptors of the board and of a pipe."""
    die_with_parent(int(sys.argv[1]))
    board, pipe = Board(int(sys.argv[2])), Connection(int(sys.argv[3]), readable=False)
    adopt_imports(sys.stdin.buffer)
    board.enter("import")  # code of the user's may be loaded from here on
    try:
        job: Job = pickle.load(sys.stdin.buffer)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        job = replace(job, target=job.target.loaded())
        make = job.target.maker()
    except (UserError, GymnasiumError) as error:
        pipe.send(("refused", str(error)))
        return
    except BaseException as error:
        broke = EnvBrokeError("import", error)
        pipe.send(("broke", "import-raises", f"Importing it {broke.text.partition(' ')[2]}", broke.details))
        return
    board.leave()
    _examine(job, make, board, pipe)


def _examine(job: Job, make: Callable[..., Any], board: Board, pipe: Connection) -> None:
    notes = Notebook(lambda finding: pipe.send(("finding", finding)))
    known = probes(job, make)
    for name in job.probes:
        pipe.send(("probe", name))
        notes.topic, probe = known[name]
        guard_pools(name not in MEASURING)
        generators.scramble(0)  # reports of the same environment are the same, as far as it goes
        try:
            got_through = is_whole(partial(probe, Subject(make, board), notes, job.facts), notes)
        except (MissingPackageError, SettingError) as error:
            pipe.send(("refused", str(error)))
            return
        pipe.send(("facts", job.facts))
        if not got_through and name in FIRST:
            pipe.send(("stop",))
            return
    pipe.send(("done",))


def is_whole(probe: Callable[[], None], notes: Notebook) -> bool:
    """Whether a probe got to its end; what kept it from that is a finding."""
    try:
        probe()
        return True
    except EnvBrokeError as error:
        if isinstance(error.error, (MissingPackageError, SettingError)):  # it could not be made: the user can fix that
            raise error.error from None
        if isinstance(error.error, OutOfBoundsError):
            what = str(error.error).partition(" failed: ")[2].partition(". The others went on")[0]
            notes.problem("out-of-bounds", f"{error.call}: {what.rstrip('.')}.")
            return False
        exits = isinstance(error.error, SystemExit)
        fix = "raise an error instead" if exits else ""
        notes.problem("exits" if exits else f"{error.name}-raises", error.text, fix, error.details)
    except WrongReturnError as error:
        notes.problem(error.code, error.text, error.fix)
    except api.StopError:
        pass
    except Exception as error:  # what it returned was stranger than anything that was thought of
        lines = traceback.format_exc().splitlines()
        text = f"Looking at it failed: {type(error).__name__}: {shown(str(error), 200)}"
        notes.problem("check-failed", text, "", "\n".join(lines[-6:]))
    return False
