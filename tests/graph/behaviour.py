"""What the reactions of random programs do: a pure function of where they stand, what they remember and what they see.

The reactors and the reference both act by `behave`, so that their records differ only if they saw different things.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tests.graph.recording import Entry, brief, digest
from tests.graph.reference import Reaction

LARGE = 8192
"""Elements of eight bytes: from 64 KiB on, arrays go between processes by shared memory of their own."""


@dataclass
class Parcel:
    """A value that is a user's own class."""

    tag: int
    body: Any


class Mind(Protocol):
    """A reactor's private state."""

    memory: int
    kept: list[np.ndarray]
    written: dict[str, int]
    log: list[Entry]


@dataclass
class FreshMind:
    """A mind outside of a reactor."""

    memory: int = 0
    kept: list[np.ndarray] = field(default_factory=list)
    written: dict[str, int] = field(default_factory=dict)
    log: list[Entry] = field(default_factory=list)


Writes = tuple[tuple[str, Any], ...]
"""Outputs and what is written to them."""


@dataclass(frozen=True)
class Deeds:
    """What a reaction decided to do."""

    writes: Writes
    stops: bool


def behave(
    mind: Mind,
    who: tuple[str, int, int],
    reaction: Reaction,
    round_: int,
    seen: tuple[Any, ...],
    stops_from: int | None,
) -> Deeds:
    """Notes what is seen and decides, by the hash of it all. `who` is a name, an index and the width of the bank."""
    all_of_it = digest(who, reaction.name, round_, seen, mind.kept)
    mind.log.append((round_, reaction.name, all_of_it, brief((seen, mind.kept))))
    choice = random.Random(f"{all_of_it} {mind.memory}")
    mind.memory = choice.getrandbits(60)
    keep(mind, seen)
    writes = []
    for port in choice.sample(reaction.effects, len(reaction.effects)):
        # Several reactions may share an output: the first that decides to write has it, and is not second to itself.
        if mind.written.get(port) != round_ and choice.random() < 0.7:
            mind.written[port] = round_
            writes.append((port, value(choice, seen)))
    stops = stops_from is not None and round_ >= stops_from and choice.random() < 0.4
    return Deeds(tuple(writes), stops)


def keep(mind: Mind, seen: tuple[Any, ...]) -> None:
    """Remembers the last two arrays that came: they must stay as they are for as long as they are held."""
    flat = [each for entry in seen for each in (entry if isinstance(entry, tuple) else (entry,))]
    arrays = [each for each in flat if isinstance(each, np.ndarray)]
    mind.kept = [*mind.kept, *arrays][-2:]


def value(choice: random.Random, seen: tuple[Any, ...] = ()) -> Any:
    """Any value that may be sent, some of them made of what was seen."""
    whole = [each for each in seen if each is not None and size(each) < 16]
    if whole and choice.random() < 0.25:
        return forwarded(choice, choice.choice(whole))
    return choice.choices(tuple(MAKERS), tuple(MAKERS.values()))[0](choice)


def forwarded(choice: random.Random, what: Any) -> Any:
    wraps: tuple[Callable[[Any], Any], ...] = (lambda it: it, lambda it: [it, 1], lambda it: {"it": it})
    return choice.choice(wraps)(what)


def size(what: Any) -> int:
    """How many parts it has. Forwarding stops somewhere."""
    if isinstance(what, Parcel):
        return 1 + size(what.body)
    if isinstance(what, tuple | list):
        return 1 + sum(map(size, what))
    if isinstance(what, dict):
        return 1 + sum(map(size, what.values()))
    return 1


def plain(choice: random.Random) -> Any:
    return choice.choice(
        (0, True, False, -7, 2**70 + 1, choice.getrandbits(31), 0.1, -0.0, math.inf, math.nan, "", "größe", b"\0\xff")
    )


def containers(choice: random.Random) -> Any:
    inside = [choice.choice((plain, small_array, plain))(choice) for _ in range(choice.randrange(4))]
    wraps: tuple[Callable[[list[Any]], Any], ...] = (
        tuple,
        list,
        lambda it: {f"k{at}": each for at, each in enumerate(it)},
        lambda it: {at: [each] for at, each in enumerate(it)},
        lambda it: [tuple(it), {"deep": [it]}],
        lambda it: Parcel(len(it), it),
        lambda it: Parcel(0, {"inside": Parcel(1, tuple(it))}),
    )
    return choice.choice(wraps)(inside)


def small_array(choice: random.Random) -> np.ndarray:
    shape = choice.choice(((), (0,), (1,), (5,), (3, 4), (2, 0, 3), (2, 3, 2)))
    dtype = choice.choice(("f8", "f4", "i8", "i4", "u1", "?", "c16", "S3"))
    count = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.frombuffer(choice.randbytes(count), np.uint8) & (1 if dtype == "?" else 255)
    array = raw.astype(np.uint8).view(dtype).reshape(shape) if count else np.zeros(shape, dtype)
    return choice.choice((array, array.T, np.asfortranarray(array), array[..., ::2] if array.ndim else array))


def large_array(choice: random.Random) -> np.ndarray:
    array = np.arange(choice.randrange(LARGE, 2 * LARGE), dtype=np.float64) * choice.random()
    return choice.choice((array, array[::-1], array.astype(np.complex64)))


def large_things(choice: random.Random) -> Any:
    return {"one": large_array(choice), "many": [small_array(choice), Parcel(3, (large_array(choice), "end"))]}


MAKERS: dict[Callable[[random.Random], Any], int] = {
    plain: 30,
    containers: 40,
    small_array: 25,
    large_array: 4,
    large_things: 1,
}
"""How to make a value, and how often."""


def spoil(what: Any) -> None:
    """Changes all that may be changed in a value that a reaction received: it is nobody else's."""
    if isinstance(what, Parcel):
        spoil(what.body)
    elif isinstance(what, tuple | list):
        for each in what:
            spoil(each)
    elif isinstance(what, dict):
        for each in what.values():
            spoil(each)
    if isinstance(what, list):
        what.append("spoilt")
    elif isinstance(what, dict):
        what["spoilt"] = True
    elif isinstance(what, np.ndarray) and what.flags.writeable:
        raise AssertionError(f"an array arrived that can be written: {brief(what)}")
