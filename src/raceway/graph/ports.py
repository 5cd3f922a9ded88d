"""What the body of a reactor's class declares: ports and timers. On an instance, ports are ends to be connected."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

import numpy as np
import numpy.typing as npt

from raceway.graph.errors import GraphError

if TYPE_CHECKING:
    from raceway.graph.reactor import Reactor

T = TypeVar("T")


class Effect(Generic[T]):
    """A value on its way to an output: what a reaction yields or returns."""

    __slots__ = ("output", "value")

    def __init__(self, output: str, value: T) -> None:
        self.output = output
        self.value = value

    def __repr__(self) -> str:
        return f"Effect({self.output}={self.value!r})"


class End(Generic[T]):
    """A port of a certain reactor, or the same port of all reactors of a bank: what `Program.connect` connects."""

    __slots__ = ("owner", "port")

    def __init__(self, owner: Any, port: Port[T]) -> None:
        self.owner = owner
        self.port = port

    def __repr__(self) -> str:
        return f"{self.owner.name or type(self.owner).__name__}.{self.port.name}"


class InputEnd(End[T]):
    """Where values arrive."""

    __slots__ = ()


class InputsEnd(End[T]):
    """Where values of several writers arrive together."""

    __slots__ = ()


class OutputEnd(End[T]):
    """Where values leave. Called in a reaction with a value, it gives the effect to yield or return."""

    __slots__ = ("_lease", "_name")

    def __init__(self, owner: Any, port: Port[T]) -> None:
        super().__init__(owner, port)
        self._name = port.name
        self._lease: Callable[[int], np.ndarray] | None = None

    def __call__(self, value: T) -> Effect[T]:
        return Effect(self._name, value)

    def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> np.ndarray:
        """An array to fill and send, with memory that is used again when its last reader has let go of it.

        It lies where the readers will read it, in other processes too: sending it copies nothing.
        """
        if self._lease is None:
            raise GraphError(f"{self!r}.empty() is for reactions of a running program.")
        kind = np.dtype(dtype)
        count = shape if isinstance(shape, int) else math.prod(shape)
        return self._lease(count * kind.itemsize).view(kind).reshape(shape)


class Port(Generic[T]):
    """A typed port, declared in the body of a reactor's class: `rollout = Input[Rollout]()`."""

    end: type[End[Any]] = End
    name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        if self.name:
            raise GraphError(f"{owner.__name__}.{name} is the same port as {self.name}. Make one for each name.")
        self.name = name

    @property
    def type(self) -> Any:
        """What was written in the brackets; Any if nothing was."""
        declared = getattr(self, "__orig_class__", None)
        return declared.__args__[0] if declared else Any

    def _bind(self, instance: Reactor) -> Any:
        # In the instance's own dictionary it is found without coming here again.
        bound = instance.__dict__[self.name] = self.end(instance, self)
        return bound

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name or 'unnamed'})"


class Input(Port[T]):
    """Receives at most one value a round, from one writer."""

    end = InputEnd

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Reactor, owner: type) -> InputEnd[T]: ...
    def __get__(self, instance: Reactor | None, owner: type) -> Any:
        return self if instance is None else self._bind(instance)


class Inputs(Port[T]):
    """Gathers: a tuple with one entry per writer, in the order of the bank, None where a writer wrote nothing."""

    end = InputsEnd

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Reactor, owner: type) -> InputsEnd[T]: ...
    def __get__(self, instance: Reactor | None, owner: type) -> Any:
        return self if instance is None else self._bind(instance)


class Output(Port[T]):
    """Sends at most one value a round, to any number of readers."""

    end = OutputEnd

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Reactor, owner: type) -> OutputEnd[T]: ...
    def __get__(self, instance: Reactor | None, owner: type) -> Any:
        return self if instance is None else self._bind(instance)


class Timer:
    """Triggers in round `first` and every so many rounds after it."""

    name = ""

    def __init__(self, every: int = 1, first: int = 0) -> None:
        if every < 1:
            raise GraphError(f"Timer(every={every}) never comes. Use a number of rounds of at least 1.")
        if first < 0:
            raise GraphError(f"Timer(first={first}) is before the first round. Use 0 or more.")
        self.every = every
        self.first = first

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def fires(self, round_: int) -> bool:
        return round_ >= self.first and (round_ - self.first) % self.every == 0

    def __str__(self) -> str:
        rate = "every round" if self.every == 1 else f"every {self.every} rounds"
        return f"{rate} from {self.first}" if self.first else rate


class Moment:
    """The start or the end of a run, as a trigger."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


startup = Moment("startup")
"""Before the reactor's first round of a run, where the reactor lives: for opening what a run needs."""
shutdown = Moment("shutdown")
"""After its last round, however the run ends: for closing it."""
