"""A run is a graph: reactors with typed ports, connected by channels that are fixed before it starts."""

from raceway.graph.errors import GraphError, PlaceLostError, ReactionError, StuckError
from raceway.graph.losses import Loss
from raceway.graph.places import Place, Processes, Threads
from raceway.graph.ports import Effect, Input, Inputs, Output, Timer, shutdown, startup
from raceway.graph.program import Program
from raceway.graph.reactor import Reactor, reaction
from raceway.graph.run import Outcome
from raceway.graph.snapshot import Snapshot

__all__ = [
    "Effect",
    "GraphError",
    "Input",
    "Inputs",
    "Loss",
    "Outcome",
    "Output",
    "Place",
    "PlaceLostError",
    "Processes",
    "Program",
    "ReactionError",
    "Reactor",
    "Snapshot",
    "StuckError",
    "Threads",
    "Timer",
    "reaction",
    "shutdown",
    "startup",
]
