"""Reactors: private state, typed ports, and reactions that declare what they read and write."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any, ClassVar, TypeVar

from raceway.graph.errors import GraphError
from raceway.graph.ports import Input, Inputs, Moment, Output, Port, Timer, shutdown, startup
from raceway.graph.values import Plain

F = TypeVar("F", bound=Callable[..., Any])
Trigger = Input[Any] | Inputs[Any] | Timer | Moment
Readable = Input[Any] | Inputs[Any]

_MARK = "__raceway_reaction__"


@dataclass(frozen=True)
class Reaction:
    """What a reaction declares."""

    name: str
    triggers: tuple[Trigger, ...]
    uses: tuple[Readable, ...]
    effects: tuple[Output[Any], ...]

    @property
    def reads(self) -> tuple[Readable, ...]:
        """The ports whose values are its arguments, in order."""
        return (*(t for t in self.triggers if isinstance(t, (Input, Inputs))), *self.uses)

    @property
    def timers(self) -> tuple[Timer, ...]:
        return tuple(t for t in self.triggers if isinstance(t, Timer))

    @property
    def moment(self) -> Moment | None:
        """startup or shutdown, if it is for one of these."""
        return next((t for t in self.triggers if isinstance(t, Moment)), None)


def reaction(
    triggers: Trigger | tuple[Trigger, ...],
    uses: Readable | tuple[Readable, ...] = (),
    effects: Output[Any] | tuple[Output[Any], ...] = (),
) -> Callable[[F], F]:
    """Marks a method of a reactor as a reaction.

    It runs in each round in which one of its triggers is present. Its arguments are the values of the triggers, then of
    `uses` (read, but no reason to run), None where absent. It may write to its effects: `yield self.weights(value)`,
    or `return` of one effect; a value goes out as soon as it is yielded.
    """

    def mark(function: F) -> F:
        declared = Reaction(function.__name__, _as_tuple(triggers), _as_tuple(uses), _as_tuple(effects))
        setattr(function, _MARK, declared)
        return function

    return mark


def _as_tuple(what: Any) -> tuple[Any, ...]:
    return tuple(what) if isinstance(what, (tuple, list)) else (what,)


class Reactor:
    """A component of a program: subclass it, declare ports, mark reactions.

    Its state is its own: nobody else reads or writes it, and its reactions never run at the same time, so there is
    nothing to lock. The constructor should only store settings; what cannot travel to another process (environments,
    files, devices) is opened by a startup reaction.
    """

    ports: ClassVar[dict[str, Port[Any]]] = {}
    reactions: ClassVar[tuple[Reaction, ...]] = ()

    name: str = ""
    """Its name in the program."""
    index: int = 0
    """Its place in its bank."""
    width: int = 1
    """How many there are in its bank."""
    round: int = 0
    """The round that its reaction runs in."""

    _stop: Callable[[Reactor], None] | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        members = {name: member for base in reversed(cls.__mro__) for name, member in vars(base).items()}
        cls.ports = {name: member for name, member in members.items() if isinstance(member, Port)}
        for name in cls.ports:
            if name in _RESERVED:
                raise GraphError(f"{cls.__name__}.{name}: a port cannot be named so, since every reactor has a {name}.")
        declared = {name: _declaration(cls, name) for name in members}
        cls.reactions = tuple(replace(found, name=name) for name, found in declared.items() if found)
        for reaction in cls.reactions:
            _check_declaration(cls, reaction, members[reaction.name])

    def stop(self) -> None:
        """Ends the run: from a reaction in round r, always at the same round, r or a few later.

        How many later is a property of the graph: as far as any reactor may have come by then.
        """
        if self._stop is None:
            raise GraphError(f"{type(self).__name__}.stop() is for reactions of a running program.")
        self._stop(self)

    def save(self) -> dict[str, Plain]:
        """The state, as plain arrays, numbers, strings, lists, tuples and dicts: for snapshots.

        By default all attributes. One that is not plain is an error: override `save` and `load` then.
        """
        return self._attributes()

    def load(self, state: dict[str, Plain]) -> None:
        """Takes over what `save` gave, after the startup reactions have run."""
        for name, value in state.items():
            setattr(self, name, value)

    def _attributes(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in self.ports and name not in _RUNTIME}

    def __getstate__(self) -> dict[str, Any]:
        """What travels with it to another process."""
        return {name: value for name, value in vars(self).items() if name not in self.ports and name != "_stop"}


_RESERVED = frozenset(name for name in (*vars(Reactor), *Reactor.__annotations__) if not name.startswith("__"))
# What the runtime keeps on a reactor: neither its state nor its settings.
_RUNTIME = frozenset({"name", "index", "width", "round", "_stop"})


def _declaration(cls: type[Reactor], name: str) -> Reaction | None:
    """What is declared of a method, here or where it was first defined: an override need not repeat it."""
    found = (getattr(vars(base).get(name), _MARK, None) for base in cls.__mro__)
    return next((declared for declared in found if declared is not None), None)


def _check_declaration(cls: type[Reactor], declared: Reaction, function: Callable[..., Any]) -> None:
    where = f"{cls.__name__}.{declared.name}"
    for role, ports, kinds in (
        ("trigger", declared.triggers, (Input, Inputs, Timer, Moment)),
        ("uses", declared.uses, (Input, Inputs)),
        ("effects", declared.effects, (Output,)),
    ):
        for port in ports:
            if not isinstance(port, kinds):
                wanted = " or ".join(kind.__name__ for kind in kinds if kind is not Moment)
                raise GraphError(f"{where}: {port!r} among its {role} is not an {wanted}.")
            if isinstance(port, Port) and cls.ports.get(port.name) is not port:
                raise GraphError(f"{where}: {port!r} among its {role} is not a port of {cls.__name__}.")
    if not declared.triggers:
        raise GraphError(f"{where} has no trigger, so it would never run. Timer() triggers in every round.")
    if declared.moment and (len(declared.triggers) > 1 or declared.uses or declared.effects):
        raise GraphError(
            f"{where}: a reaction to {declared.moment} has no other trigger, reads nothing and writes nothing, so that "
            "a run that is resumed sees the same values. Values for the first rounds are `initial=` of a connection."
        )
    _check_writes(cls, declared, function)
    _check_arguments(where, declared, function)


def _check_writes(cls: type[Reactor], declared: Reaction, function: Callable[..., Any]) -> None:
    """Finds outputs that the reaction's code names but does not declare, before anything runs."""
    effects = {port.name for port in declared.effects}
    for name in sorted(_own_attributes(inspect.unwrap(function).__code__)):
        if isinstance(cls.ports.get(name), Output) and name not in effects:
            raise GraphError(
                f"{cls.__name__}.{declared.name} writes {name}, which is not among its effects. "
                f"Declare it: @reaction(..., effects={_tuple_text(sorted([*effects, name]))})."
            )


def _tuple_text(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _own_attributes(code: CodeType) -> set[str]:
    """The names that follow `self.` in the code, that of functions within it included."""
    names: set[str] = set()
    before = None
    for instruction in dis.get_instructions(code):
        if before is not None and before.argval == "self" and instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            names.add(instruction.argval)
        before = instruction
    inner: Iterable[CodeType] = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return names.union(*map(_own_attributes, inner))


def _check_arguments(where: str, declared: Reaction, function: Callable[..., Any]) -> None:
    given = [port.name for port in declared.reads]
    try:
        inspect.signature(function).bind(None, *given)
    except TypeError as error:
        takes = f"({', '.join(['self', *given])})"
        raise GraphError(f"{where} is called with {takes}, by its triggers and uses, but: {error}.") from None


__all__ = ["Reaction", "Reactor", "Readable", "Trigger", "reaction", "shutdown", "startup"]
