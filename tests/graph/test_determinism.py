"""The proof: random programs, run in every way there is, show every reaction exactly what the reference says.

A failure names the seed, the way of running and the first value that differs. To look into one:

    sample = random_graph(seed); check(sample, mode, run(sample, mode))
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.graph.campaign import Mode, check, continued, record, run
from tests.graph.random_graphs import Sample, expected, random_graph
from tests.graph.recording import first_difference
from tests.graph.reference import Edge, Kind

INLINE = Mode(inline=True)


def thread_mode(seed: int) -> Mode:
    return Mode(threads=1 + seed % 8, jitter=True)


def process_mode(seed: int) -> Mode:
    """One to three workers in one or two groups, and some threads here."""
    return Mode(threads=1 + seed % 3, processes=((1,), (2,), (1, 2), (3,))[seed % 4], jitter=True, deal=seed)


def prove(sample: Sample, mode: Mode) -> None:
    check(sample, mode, run(sample, mode))


def prove_snapshots(sample: Sample, mode: Mode, *others: Mode) -> None:
    """Snapshots in flight change nothing, and from each the rest follows, elsewhere too."""
    ran = run(sample, mode, snapshot_every=1 + sample.seed % 4)
    check(sample, mode, ran, ", with snapshots")
    for snapshot, other, more in continued(sample, ran, others):
        how = f", continued after round {snapshot.round} of a run with {mode}"
        check(sample, other, more, how)
        if sample.is_in_one_piece:
            ends = ran.outcome.rounds, more.outcome.rounds
            assert ends[0] == ends[1], f"seed {sample.seed}, {other}{how}: the ends differ: {ends}"


def prove_stops(sample: Sample, *modes: Mode) -> None:
    """A stop that a reaction asks for ends all runs at the same round."""
    ends = {}
    for mode in modes:
        ran = run(sample, mode)
        check(sample, mode, ran)
        ends[str(mode)] = ran.outcome.rounds
    # Parts that are not connected have no common rounds: there a stop is as soon as it can be.
    if sample.is_in_one_piece:
        assert len(set(ends.values())) == 1, f"seed {sample.seed}: the ends differ: {ends}"


def first(count: int, seeds: Sequence[int]) -> list[Any]:
    """So many of the seeds; the others are for those who have more time."""
    return [pytest.param(seed, marks=[] if at < count else [pytest.mark.slow]) for at, seed in enumerate(seeds)]


def stopping(seeds: range) -> list[int]:
    """Those of the seeds in whose graphs a reaction asks for the end."""
    samples = [sample for sample in map(random_graph, seeds) if sample.stops_from and sample.is_in_one_piece]
    return [sample.seed for sample in samples if expected(sample, sample.rounds).stops]


@pytest.mark.parametrize("seed", first(24, range(40)))
def test_inline_is_the_reference(seed):
    prove(random_graph(seed), INLINE)


@pytest.mark.parametrize("seed", first(24, range(100, 160)))
def test_threads_and_delays_change_no_value(seed):
    prove(random_graph(seed), thread_mode(seed))


@pytest.mark.parametrize("seed", first(3, range(200, 210)))
def test_worker_processes_change_no_value(seed):
    prove(random_graph(seed), process_mode(seed))


@pytest.mark.parametrize("seed", first(8, range(300, 320)))
def test_a_run_goes_on_from_any_snapshot(seed):
    prove_snapshots(random_graph(seed), thread_mode(seed), INLINE, thread_mode(seed + 3))


@pytest.mark.parametrize("seed", first(2, range(400, 403)))
def test_a_run_goes_on_from_any_snapshot_in_other_processes(seed):
    prove_snapshots(random_graph(seed), process_mode(seed), INLINE, thread_mode(seed), process_mode(seed + 1))


@pytest.mark.parametrize("seed", stopping(range(500, 580)))
def test_a_stop_is_at_the_same_round_with_any_threads(seed):
    prove_stops(random_graph(seed), INLINE, thread_mode(seed), thread_mode(seed + 5))


@pytest.mark.parametrize("seed", first(2, stopping(range(700, 718))))
def test_a_stop_is_at_the_same_round_in_any_processes(seed):
    prove_stops(random_graph(seed), INLINE, process_mode(seed))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(1000, 1400, 20))
def test_many_programs_with_threads(block):
    for seed in range(block, block + 20):
        prove_stops(random_graph(seed), INLINE, *(dataclasses.replace(thread_mode(n), threads=n) for n in (1, 2, 4, 8)))
        prove_snapshots(random_graph(seed), thread_mode(seed), INLINE, thread_mode(seed + 3))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(3000, 3100, 10))
def test_many_programs_in_processes(block):
    for seed in range(block, block + 10):
        prove_stops(random_graph(seed), process_mode(seed), process_mode(seed + 1), INLINE)
        if seed % 5 == 0:
            prove_snapshots(random_graph(seed), process_mode(seed), thread_mode(seed), process_mode(seed + 1))


# The proof can fail, and it covers what it should.


def changed_edge(sample: Sample, at: int, **change: Any) -> Sample:
    edges = [dataclasses.replace(edge, **change) if at == n else edge for n, edge in enumerate(sample.edges)]
    return dataclasses.replace(sample, edges=tuple(edges))


def changed_kinds(sample: Sample, change: Callable[[Kind], Kind]) -> Sample:
    nodes = [dataclasses.replace(node, kind=change(node.kind)) for node in sample.nodes]
    return dataclasses.replace(sample, nodes=tuple(nodes))


def longer_delay(sample: Sample, choice: random.Random) -> Sample:
    at = choice.randrange(len(sample.edges))
    edge = sample.edges[at]
    initial = (*(edge.initial or [None] * edge.after), None)
    return changed_edge(sample, at, after=edge.after + 1, initial=initial, capacity=None)


def lost_initial_values(sample: Sample, choice: random.Random) -> Sample:
    given = [at for at, edge in enumerate(sample.edges) if edge.initial and any(v is not None for v in edge.initial)]
    return changed_edge(sample, choice.choice(given), initial=None) if given else sample


def another_order_of_connecting(sample: Sample, choice: random.Random) -> Sample:
    return dataclasses.replace(sample, edges=sample.edges[::-1])


def another_order_of_reactions(sample: Sample, choice: random.Random) -> Sample:
    def change(kind: Kind) -> Kind:
        return dataclasses.replace(kind, reactions=kind.reactions[:-2] + kind.reactions[-2:][::-1])

    touched = {edge.source[0] for edge in sample.edges if edge.after == 0}
    # Outputs that are read within the round stay where they are: there must be no loop.
    nodes = [
        node if node.name in touched else dataclasses.replace(node, kind=change(node.kind)) for node in sample.nodes
    ]
    return dataclasses.replace(sample, nodes=tuple(nodes))


def later_timers(sample: Sample, choice: random.Random) -> Sample:
    def change(kind: Kind) -> Kind:
        return dataclasses.replace(
            kind, timers={name: (every, first + 1) for name, (every, first) in kind.timers.items()}
        )

    return changed_kinds(sample, change)


def uses_that_trigger(sample: Sample, choice: random.Random) -> Sample:
    def change(kind: Kind) -> Kind:
        reactions = [dataclasses.replace(each, triggers=each.triggers + each.uses, uses=()) for each in kind.reactions]
        return dataclasses.replace(kind, reactions=tuple(reactions))

    return changed_kinds(sample, change)


MUTATIONS = [
    longer_delay,
    lost_initial_values,
    another_order_of_connecting,
    another_order_of_reactions,
    later_timers,
    uses_that_trigger,
]


@pytest.mark.parametrize("mutate", MUTATIONS)
def test_a_program_that_means_something_else_leaves_another_record(mutate):
    noticed = tried = 0
    for seed in range(15):
        sample = random_graph(seed)
        mutant = mutate(sample, random.Random(seed)) if sample.edges else sample
        if (mutant.nodes, mutant.edges) != (sample.nodes, sample.edges):
            tried += 1
            truth, other = expected(sample, sample.rounds).record, expected(mutant, sample.rounds).record
            noticed += first_difference(truth, other) is not None
    # Not all: on some of these edges nothing ever comes, some timers start after the last round.
    assert tried > 5
    assert noticed > 0.6 * tried


@pytest.mark.parametrize("seed", range(8))
def test_a_runtime_that_delays_a_value_too_long_is_found_out(seed):
    sample = random_graph(seed)
    mutant = longer_delay(sample, random.Random(seed))
    if first_difference(expected(sample, sample.rounds).record, expected(mutant, sample.rounds).record) is None:
        pytest.skip("nothing comes on the edge that was changed")
    with pytest.raises(AssertionError, match=rf"(?s)seed {seed}, inline.*round \d+, reactor node.*expected.*got"):
        check(sample, INLINE, run(mutant, INLINE))


def test_a_snapshot_that_lacks_a_value_is_found_out():
    sample = random_graph(301)
    ran = run(sample, INLINE, snapshot_every=3)
    for snapshot in ran.snapshots:
        for values in snapshot.values.values():
            values[:] = [None] * len(values)
    _, _, more = next(continued(sample, ran, [INLINE]))
    with pytest.raises(AssertionError, match=r"(?s)seed 301.*round \d+, reactor"):
        check(sample, INLINE, more)


def test_every_snapshot_is_the_record_up_to_its_round():
    sample = random_graph(303)
    ran = run(sample, thread_mode(3), snapshot_every=2)
    assert ran.snapshots
    for snapshot in ran.snapshots:
        assert first_difference(expected(sample, snapshot.round + 1).record, record(sample, snapshot)) is None


def features(sample: Sample) -> set[str]:
    """What occurs in a graph."""
    found = {f"after {edge.after}" for edge in sample.edges}
    found |= {f"width {node.width}" for node in sample.nodes}
    found |= {"stop"} if sample.stops_from else set()
    found |= {"capacity" for edge in sample.edges if edge.capacity}
    found |= {"initial" for edge in sample.edges if edge.initial}
    return found.union(*(edge_features(sample, edge) for edge in sample.edges))


def edge_features(sample: Sample, edge: Edge) -> set[str]:
    source, target = sample.node(edge.source[0]), sample.node(edge.target[0])
    gathers = edge.target[1] in target.kind.gathers
    shape = f"{'bank' if source.width else 'one'} to {'bank' if target.width else 'one'}{' gather' if gathers else ''}"
    found = {shape}
    if gathers and sum(other.target == edge.target for other in sample.edges) > 1:
        found.add("several connections into one gather")
    if source is target:
        found.add("self loop" if edge.after else "self loop within a round")
    return found


def test_the_samples_have_everything():
    found = set().union(*(features(random_graph(seed)) for seed in range(100, 160)))
    assert found >= {
        *(f"after {delay}" for delay in range(4)),
        *(f"width {width}" for width in (None, 1, 2, 3, 4)),
        *("one to one", "one to bank", "bank to bank", "one to one gather", "one to bank gather"),
        *("bank to one gather", "bank to bank gather", "several connections into one gather"),
        *("self loop", "self loop within a round", "stop", "capacity", "initial"),
    }
    records = [entry[3] for seed in range(100, 160) for log in logs(seed) for entry in log]
    assert len(records) > 4000
    for sign in ("None", "Parcel(", "{'k0'", "[(", "nan", "float64[", "complex64[", "größe"):
        assert sum(sign in text for text in records) > 20, sign


def logs(seed: int) -> list[list[tuple[int, str, str, str]]]:
    return list(expected(random_graph(seed), random_graph(seed).rounds).record.values())
