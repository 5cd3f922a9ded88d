"""Infos, and observations without a fixed shape, on their way from a worker to the pool: they are pickled."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from raceway.encoding import dumps
from raceway.envs.python.pickled import InfoError, unreadable_in, unsendable_in
from raceway.envs.python.rows import Rows
from raceway.envs.python.stage import Fault, FaultError, Notes, Stage
from raceway.messages import quantity, words_of

Say = Callable[[str, Any, int], None]
"""Sends a message of some kind, with a number."""


class NoteSender:
    """Sends what environments gave. What cannot be sent is treated like an error in the step that gave it."""

    def __init__(self, say: Say, stage: Stage) -> None:
        self._say = say
        self._stage = stage
        self._number = 0
        self._sent: deque[tuple[int, Sequence[int], Notes]] = deque(maxlen=len(stage.envs))
        """What the pool may not have read yet: every environment waits for that before its next step."""

    def send(
        self,
        notes: Notes,
        which: Sequence[int],
        rows: Rows,
        before: Rows,
        options: dict[str, Any] | None = None,
    ) -> list[Fault]:
        """The faults of those environments of `which` that gave what cannot be sent, if they are not restarted."""
        first, faults = self._stage.first, []
        while notes or rows.objects:
            self._number += 1
            try:
                objects = {first + index: rows.objects[index] for index in which} if rows.objects else {}
                self._say("notes", ([(first + index, info) for index, info in notes], objects), self._number)
            except Exception as error:
                found = self._broken(notes, which, rows, words_of(error, 300), unsendable_in)
            else:
                if len(which) == self._sent.maxlen:
                    self._sent.clear()
                self._sent.append((self._number, which, notes))
                break
            notes, failed = self._taken_back(notes, found, rows, before, options)
            gone = [fault.env - first for fault in failed]
            which = [index for index in which if index not in gone]
            faults += failed
        return faults

    def send_again(
        self, number: int, why: str, rows: Rows, before: Rows, options: dict[str, Any] | None
    ) -> list[Fault]:
        """Takes back what the pool could not read of a message."""
        which, notes = next(((its, notes) for sent, its, notes in self._sent if sent == number), ([], []))
        if not which:
            return []  # it was said by a worker that is gone, and its environments with it
        found = self._broken(notes, which, rows, why, unreadable_in)
        notes, faults = self._taken_back(notes, found, rows, before, options)
        gone = [fault.env - self._stage.first for fault in faults]
        return faults + self.send(notes, [index for index in which if index not in gone], rows, before, options)

    def _broken(
        self,
        notes: Notes,
        which: Sequence[int],
        rows: Rows,
        why: str,
        look: Callable[[Any, str, str], InfoError | None],
    ) -> dict[int, tuple[dict[str, Any], InfoError]]:
        """By environment: the info that is wrong, and how."""
        found: dict[int, tuple[dict[str, Any], InfoError]] = {}
        observations = [(index, rows.objects[index]) for index in which] if rows.objects else []
        for index, info in notes:
            if index not in found and (error := look(info, "info", why)) is not None:
                found[index] = info, error
        for index, observation in observations:
            if index not in found and (error := look(observation, "the observation", why)) is not None:
                found[index] = {}, error
        if not found:  # all of it can be pickled, but it is too much
            size, index = max((len(dumps(given)), index) for index, given in [*notes, *observations])
            error = InfoError(f"what it gave, {quantity(size)}, cannot be sent to the pool: {why}.")
            found[index] = next((info for its, info in notes if its == index), {}), error
        return found

    def _taken_back(
        self,
        notes: Notes,
        found: dict[int, tuple[dict[str, Any], InfoError]],
        rows: Rows,
        before: Rows,
        options: dict[str, Any] | None,
    ) -> tuple[Notes, list[Fault]]:
        """What is to be told instead, and the faults of those that are not restarted."""
        faults: list[Fault] = []
        instead: Notes = []
        for index, (info, error) in found.items():
            try:
                instead += self._stage.take_back(index, info, error, options, rows, before)
            except FaultError as fault:
                faults.append(fault.fault)
        failed = [fault.env - self._stage.first for fault in faults]
        # The end of an episode is told though the reset after it failed; all else of that step is not.
        kept = [
            (index, info)
            for index, info in notes
            if index not in found or (index not in failed and "final_obs" in info and info is not found[index][0])
        ]
        return [*kept, *(note for note in instead if note[0] not in failed)], faults
