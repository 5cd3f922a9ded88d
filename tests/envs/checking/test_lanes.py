"""What each lane makes of an environment is measured against a bare loop."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import pytest

import raceway
from raceway._core import usable_cpus
from raceway.envs.checking import Finding, lanes
from raceway.envs.checking.board import Board
from raceway.envs.checking.contestants import AsyncPool, BareLoop, NativeLoop, Pool, cpus_to_be_had
from raceway.envs.checking.lanes import how_many, how_many_native
from raceway.envs.checking.notebook import Facts, Notebook
from raceway.envs.checking.subject import Subject
from raceway.envs.checking.targets import Target
from tests.envs.checking import hostile_envs as hostile
from tests.envs.checking import right_envs as right

pytestmark = pytest.mark.alone


def test_every_lane_that_can_run_it_is_in_the_report() -> None:
    report = raceway.check(right.Nest, num_envs=6, num_workers=2)
    assert [lane.name for lane in report.lanes] == ["inline", "process", "process async"]
    assert [lane.num_workers for lane in report.lanes] == [1, 2, 2]
    assert {lane.num_envs for lane in report.lanes} == {6}
    assert report.limit is not None
    assert report.free_cpus is not None
    for lane in report.lanes:
        assert lane.limit == report.limit
        assert 0.01 < lane.of_limit < 2
        assert lane.steps_per_second == pytest.approx(lane.of_limit * lane.limit, rel=0.9)
    assert report.trains


def measured_here(env: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Facts, list[Finding]]:
    """The lanes of an environment, in this process and in short turns."""
    monkeypatch.setattr(lanes, "_TURN_S", 0.06)
    target, facts = Target(env), Facts(step_s=1e-5)
    findings: list[Finding] = []
    settings = lanes.LaneSettings(num_envs=8)
    lanes.measured(Subject(target.maker(), Board()), Notebook(findings.append), facts, target=target, settings=settings)
    return facts, findings


def test_a_native_task_has_its_own_limit_in_cpp(monkeypatch: pytest.MonkeyPatch) -> None:
    facts, findings = measured_here("CartPole-v1", monkeypatch)
    native, *others = facts.lanes
    assert findings == []
    assert native.name == "native"
    assert [lane.name for lane in others] == ["inline", "process", "process async"]
    assert native.limit > 10 * others[0].limit


def test_a_lane_that_cannot_run_it_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    facts, findings = measured_here(hostile.OnlyHere, monkeypatch)
    assert [lane.name for lane in facts.lanes] == ["inline"]
    assert [each.code for each in findings] == ["lane-fails-process-async", "lane-fails-process"]
    assert {each.mark for each in findings} == {"problem"}
    assert "may not be in a worker" in findings[0].details


@pytest.mark.parametrize("kind", [Pool, AsyncPool])
def test_turns_count_the_steps_that_were_taken(kind: type[Pool]) -> None:
    batch_size = 2 if kind is AsyncPool else 4
    pool = raceway.make(right.Slow, 4, lane="process", num_workers=2, batch_size=batch_size, autoreset="same_step")
    lane = kind("process", pool)
    for _ in range(2):  # 4 environments of 50 ms on 2 workers: 40 steps a second, fewer if others are at work
        assert 4 < lane.turn(0.3) < 41
        time.sleep(0.2)  # nothing is in flight meanwhile
    lane.close()


@pytest.mark.parametrize("kind", [Pool, AsyncPool])
def test_masks_are_used(kind: type[Pool]) -> None:
    size = 2 if kind is AsyncPool else 4
    lane = kind("inline", raceway.make(right.Masked, 4, lane="inline", batch_size=size, autoreset="same_step"))
    assert lane.turn(0.1) > 0
    assert lane.turn(0.1) > 0
    lane.close()


def test_a_bare_loop_is_the_environments_own_time() -> None:
    bare = BareLoop(Subject(right.Slow, Board()), Facts(step_s=0.05))
    assert 2 < bare.turn(0.3) < 20.1
    busy = NativeLoop(Target("Busy-v0", {"step_us": 100.0}))
    assert 500 < busy.turn(0.1) < 10_100


def test_as_many_environments_as_are_made_in_a_moment() -> None:
    assert how_many(Facts(step_s=1e-5, cpus=2)) == 64
    assert how_many(Facts(step_s=5e-3, cpus=2)) == 16
    assert how_many(Facts(step_s=1.0, cpus=2)) == 2
    assert how_many(Facts(step_s=1e-5, make_s=0.1, cpus=2)) == 20
    assert how_many(Facts(step_s=1e-5, make_s=10.0, cpus=2)) == 4
    assert how_many_native(Facts(step_s=5e-8, cpus=2)) == 4096
    assert how_many_native(Facts(step_s=1e-3, cpus=2)) == 64


def test_cpus_that_others_use_are_not_to_be_had() -> None:
    cpus = usable_cpus()
    alone = max(cpus_to_be_had(cpus) for _ in range(3))
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3 * cpus)]
    time.sleep(0.3)
    beside = min(cpus_to_be_had(cpus) for _ in range(3))
    for each in spinning:
        each.kill()
        each.wait()
    assert beside < min(alone, 0.7)
