"""What is refused while a program is built, at the line that is wrong."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, Union, get_args, get_origin

from raceway.graph.errors import GraphError
from raceway.graph.plan import Connection
from raceway.graph.ports import End, InputEnd, Inputs, InputsEnd, OutputEnd
from raceway.graph.reactor import Reactor


def check_reactors(reactors: Sequence[Reactor], known: Mapping[int, Any]) -> None:
    for reactor in reactors:
        if not isinstance(reactor, Reactor):
            raise GraphError(f"{reactor!r} is not a reactor. Add an instance of a subclass of Reactor.")
        if id(reactor) in known or sum(other is reactor for other in reactors) > 1:
            raise GraphError(f"This {type(reactor).__name__} is added twice. Make another instance.")
        if not any(declared.moment is None for declared in reactor.reactions):
            raise GraphError(f"{type(reactor).__name__} has no reaction to an input or a timer: it would do nothing.")


def check_ends(source: Any, target: Any, known: Mapping[int, Any]) -> None:
    if not isinstance(source, OutputEnd):
        raise GraphError(f"connect({source!r}, ...): the first is not an output of a reactor. Outputs come first.")
    if not isinstance(target, (InputEnd, InputsEnd)):
        raise GraphError(f"connect({source!r}, {target!r}): the second is not an input of a reactor.")
    for end in (source, target):
        for reactor in _reactors(end):
            if id(reactor) not in known:
                raise GraphError(f"{end!r}: this {type(reactor).__name__} is not in the program. Add it first.")
    if not _agree(source.port.type, target.port.type):
        raise GraphError(
            f"{source!r} gives {_type_name(source.port.type)}, but {target!r} takes {_type_name(target.port.type)}."
        )


def check_kind(
    source: End[Any],
    target: End[Any],
    after: int,
    initial: Sequence[Any] | None,
    capacity: int | None,
    queue: int | None,
    latest: bool,
) -> None:
    where = f"connect({source!r}, {target!r})"
    chosen = [name for name, given in (("after", after), ("queue", queue is not None), ("latest", latest)) if given]
    if len(chosen) > 1:
        raise GraphError(f"{where}: {' and '.join(chosen)} exclude each other. Choose one.")
    if after < 0:
        raise GraphError(f"{where}: after={after} would be an earlier round. Use 0 or more.")
    if (queue is not None or latest) and capacity is not None:
        raise GraphError(f"{where}: capacity is for connections with `after`.")
    if queue is not None and initial is not None:
        raise GraphError(f"{where}: initial is for connections with `after` or `latest`.")
    if latest and initial is not None and (len(initial) != 1 or initial[0] is None):
        raise GraphError(f"{where}: `latest` takes one initial value, which is the newest until another is written.")
    if queue is not None and queue < 1:
        raise GraphError(f"{where}: queue={queue} would hold nothing. Use at least 1.")
    if queue is not None and isinstance(target.port, Inputs):
        raise GraphError(f"{where}: a queue is read in the order of arrival, but Inputs gather by index. Use an Input.")
    if initial is not None and not latest and len(initial) != after:
        raise GraphError(f"{where}: after={after} takes {after} initial values, one a round, not {len(initial)}.")
    if capacity is not None and capacity < max(1, after):
        raise GraphError(f"{where}: capacity={capacity} is too small for after={after}. Use at least {max(1, after)}.")


def check_single_writer(connection: Connection, others: Sequence[Connection], names: Sequence[str]) -> None:
    if connection.slot is not None or not others:
        return
    if connection.kind == "queue" and all(other.kind == "queue" for other in others):
        return
    target = f"{names[connection.target]}.{connection.input}"
    writers = [f"{names[c.source]}.{c.output}" for c in (*others, connection)]
    raise GraphError(
        f"{target} would have several writers: {', '.join(writers)}. An Input has one. "
        "Gather them with Inputs, or let them share a queue: connect(..., queue=n) for each."
    )


def check_run(rounds: int | None, threads: int | None, snapshot_every: int | None) -> None:
    for name, value, least in (("rounds", rounds, 0), ("threads", threads, 1), ("snapshot_every", snapshot_every, 1)):
        if value is not None and value < least:
            raise GraphError(f"run({name}={value}): use at least {least}.")


def pairs(source: OutputEnd[Any], target: InputEnd[Any] | InputsEnd[Any]) -> Iterator[tuple[Reactor, Reactor]]:
    """Which reactor of the one side is connected to which of the other, readers in order and writers within."""
    writers, readers = _reactors(source), _reactors(target)
    if isinstance(target.port, Inputs) or len(writers) == 1:
        return ((writer, reader) for reader in readers for writer in writers)
    if len(readers) == 1:
        # Refused later unless it is a queue.
        return ((writer, readers[0]) for writer in writers)
    if len(writers) != len(readers):
        raise GraphError(
            f"connect({source!r}, {target!r}): a bank of {len(writers)} cannot be connected one to one to a bank of "
            f"{len(readers)}. Use banks of the same width, or Inputs, which gather."
        )
    return zip(writers, readers, strict=True)


def _reactors(end: End[Any]) -> Sequence[Reactor]:
    return (end.owner,) if isinstance(end.owner, Reactor) else end.owner.reactors


def _agree(given: Any, taken: Any) -> bool:
    """Whether a value of the one type may be read as the other; what cannot be known agrees."""
    if given == taken or any(t is Any or isinstance(t, (str, TypeVar)) for t in (given, taken)):
        return True
    if _is_union(given):
        return all(_agree(part, taken) for part in get_args(given))
    if _is_union(taken):
        return any(_agree(given, part) for part in get_args(taken))
    first, second = get_origin(given) or given, get_origin(taken) or taken
    if not (isinstance(first, type) and isinstance(second, type)):
        return True
    if not (issubclass(first, second) or (first, second) in _PROMOTED):
        return False
    arguments = get_args(given), get_args(taken)
    if first is not second or len(arguments[0]) != len(arguments[1]):
        return True
    return all(_agree(*both) for both in zip(*arguments, strict=True))


_PROMOTED = {(int, float), (int, complex), (float, complex)}


def _is_union(type_: Any) -> bool:
    return get_origin(type_) in (Union, types.UnionType)


def _type_name(type_: Any) -> str:
    return type_.__name__ if isinstance(type_, type) and not get_args(type_) else str(type_)
