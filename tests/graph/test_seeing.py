"""Pictures, traces and summaries of programs."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from raceway.graph import Effect, Input, Output, Processes, Program, Reactor, Timer, reaction
from tests.graph.parts import Adder, Collector, Counter, Sink


class Slow(Reactor):
    inp = Input[np.ndarray]()
    out = Output[np.ndarray]()

    @reaction(inp, effects=out)
    def work(self, value: np.ndarray) -> Effect[np.ndarray]:
        time.sleep(0.003)
        return self.out(value + 1)


class Quick(Reactor):
    tick = Timer(every=2, first=1)
    inp = Input[np.ndarray]()
    out = Output[np.ndarray]()

    @reaction(inp, effects=out)
    def pass_on(self, value: np.ndarray) -> Effect[np.ndarray]:
        return self.out(value * 2)

    @reaction(tick)
    def rest(self) -> None: ...


def pair(placed: bool = False) -> Program:
    program = Program("pair")
    quick, slow = program.add(Quick()), program.add(Slow())
    program.connect(quick.out, slow.inp)
    program.connect(slow.out, quick.inp, after=2, initial=[np.zeros(1000), np.zeros(1000)])
    if placed:
        program.place(slow, Processes())
    return program


@pytest.mark.parametrize("placed", [False, True])
def test_a_trace_has_reactions_waits_and_rounds_per_worker(tmp_path, placed):
    program = pair(placed)
    program.run(20, trace=tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    work = [event for event in slices if event["name"] == "slow.work"]
    assert [event["args"]["round"] for event in sorted(work, key=lambda e: e["ts"])] == list(range(20))
    assert all(event["dur"] >= 3000 and event["pid"] == int(placed) for event in work)
    assert sorted(e["args"]["round"] for e in slices if e["name"] == "quick.rest") == list(range(1, 20, 2))
    assert any(event["name"] == "wait" for event in slices)
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    rounds = [e for e in slices if threads[e["pid"], e["tid"]] == "rounds of slow"]
    assert [event["name"] for event in rounds] == [f"round {i}" for i in range(20)]
    names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert names == ({"pair", "worker process 1"} if placed else {"pair"})
    assert all(event["ts"] >= 0 and event["dur"] >= 0 for event in slices)


def test_slices_of_one_thread_do_not_overlap(tmp_path):
    pair().run(20, trace=tmp_path / "trace.json")
    slices: dict[tuple[int, int], list[Any]] = {}
    for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]:
        if event["ph"] == "X":
            slices.setdefault((event["pid"], event["tid"]), []).append(event)
    for events in slices.values():
        events.sort(key=lambda event: event["ts"])
        for before, after in pairwise(events):
            assert before["ts"] + before["dur"] <= after["ts"] + 0.01


def test_a_run_that_fails_still_leaves_its_trace(tmp_path):
    class Fails(Reactor):
        tick = Timer()

        @reaction(tick)
        def fail(self) -> None:
            if self.round == 3:
                raise ValueError("no")

    program = Program()
    program.add(Fails())
    with pytest.raises(RuntimeError):
        program.run(trace=tmp_path / "trace.json")
    assert "fails.fail" in (tmp_path / "trace.json").read_text()


@pytest.mark.parametrize("placed", [False, True])
def test_a_summary_says_what_took_the_time_and_what_was_moved(placed):
    program = pair(placed)
    outcome = program.run(30)
    lines = program.summary().splitlines()
    assert lines[0].startswith("30 rounds in ")
    (work,) = [line for line in lines if line.startswith("slow.work")]
    assert work.split()[1] == "30"
    (moved,) = [line for line in lines if line.startswith("quick.out -> slow.inp")]
    assert "240 KB" in moved
    assert ("between processes" in moved) == placed
    assert lines[-1].startswith("Bottleneck: slow is at work ")
    assert "quick waits" in lines[-1]
    busy = {(r.reactor, r.reaction): r for r in outcome.reactions}
    assert busy["slow", "work"].calls == 30
    assert 0.09 <= busy["slow", "work"].seconds <= outcome.seconds


def test_reactors_that_take_turns_are_told_so():
    program = Program()
    first, second = program.add(Slow()), program.add(Slow())
    program.connect(first.out, second.inp)
    program.connect(second.out, first.inp, after=1, initial=[np.zeros(3)])
    program.run(20)
    assert "take turns" in program.summary().splitlines()[-1]


def test_banks_are_summed_up_once():
    program = Program()
    bank, collector = program.bank(Counter() for _ in range(3)), program.add(Collector())
    program.connect(bank.out, collector.all)
    program.run(10)
    lines = program.summary().splitlines()
    assert [line.split()[:3] for line in lines if line.startswith("counter.count")] == [["counter.count", "×3", "30"]]
    assert sum(line.startswith("counter.out -> collector.all") for line in lines) == 1


def test_a_picture_shows_what_was_built():
    program = Program("shown")
    counter, adders, sink = program.add(Counter()), program.bank(Adder() for _ in range(4)), program.add(Collector())
    watcher, drain = program.add(Sink(), name="watcher"), program.add(Sink(), name="drain")
    program.connect(counter.out, adders.inp, after=2, initial=[1, 2])
    program.connect(adders.out, sink.all)
    program.connect(counter.out, watcher.inp, latest=True)
    program.connect(counter.out, drain.inp, queue=8)
    program.place(adders, Processes(2))
    drawing = program.draw()
    assert [(box.name, box.kind, box.width, box.place) for box in drawing.boxes][1] == (
        "adder",
        "Adder",
        4,
        "2 processes",
    )
    arrows = {(arrow.target, arrow.label, arrow.kind) for arrow in drawing.arrows}
    assert arrows == {
        ("adder", "after 2", "after"),
        ("collector", "", "after"),
        ("watcher", "latest", "latest"),
        ("drain", "queue 8", "queue"),
    }
    for text in (drawing.svg, drawing.mermaid):
        for word in ("counter", "adder", "after 2", "latest", "queue 8", "2 processes", "every round"):
            assert word in text
