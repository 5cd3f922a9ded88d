"""Training outlives its evaluator: killed, failing or hung, it changes no bit, no checkpoint and no exit code."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import raceway
from raceway.callbacks import Curriculum
from raceway.training.callbacks import Control, Round
from tests.training.probes import Probe
from tests.training.small_runs import SMALL

pytestmark = pytest.mark.usefixtures("compiled_without_optimizing")

ROUNDS = 30
WAITS_IN = 20
AGAIN = "the evaluator is started again, with all evaluations so far: process"
LEFT_OUT = "the evaluator is left out: "


class Watched(Probe):
    """Does what it is told in the evaluator's process, and nothing anywhere else."""

    def __init__(self, orders: str = "", times: int = 0, how: str = "kill", when: str = "step", level: int = 0) -> None:
        super().__init__("both", 5)
        self.orders, self.times, self.how, self.when = Path(orders), times, how, when

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.look("reset")
        return super().reset(seed=seed, options=options)

    def step(self, action: int) -> Any:
        self.look("step")
        return super().step(action)

    def look(self, when: str) -> None:
        main = getattr(sys.modules["__main__"], "__spec__", None)
        is_evaluator = main is not None and main.name == "raceway.graph.worker"
        is_at_end = self.how == "raise everywhere" and any(self.orders.glob("*/*/final/policy.json"))
        if (is_evaluator or is_at_end) and when == self.when:
            mark = self.orders / "count"
            count = int(mark.read_text()) if mark.exists() else 0
            if count < self.times or is_at_end:
                mark.write_text(str(count + 1))
                self.obey()

    def obey(self) -> None:
        if self.how.startswith("raise"):
            raise RuntimeError("the cable is loose")
        os.kill(os.getpid(), signal.SIGSTOP if self.how == "stop" else signal.SIGKILL)


class Until(raceway.Callback):
    """Holds training up in the middle until something has happened, so that nothing depends on timing."""

    def __init__(self, has_happened: Callable[[], bool]) -> None:
        self.has_happened = has_happened

    def on_round(self, told: Round, control: Control) -> None:
        deadline = time.monotonic() + 120
        while told.round == WAITS_IN and not self.has_happened():
            assert time.monotonic() < deadline
            time.sleep(0.01)


def train(
    directory: Path, env: Any, until: Callable[[str], bool], **settings: Any
) -> tuple[raceway.Run, str, list[dict[str, Any]]]:
    """A run, what it said, and its metrics."""
    said = io.StringIO()
    callbacks = [Until(lambda: until(said.getvalue())), *settings.pop("callbacks", ())]
    wanted: dict[str, Any] = {
        **SMALL,
        "total_steps": 4 * 8 * ROUNDS,
        "evaluation": {"times": ROUNDS, "episodes": 2},
        "checkpoint": {"interval_s": 0.5},
        "log": {"directory": str(directory), "interval_s": 1000.0},
    }
    with redirect_stdout(said):
        run = raceway.train(env, callbacks=callbacks, **{**wanted, **settings})
    rows = [json.loads(line) for line in (run.directory / "metrics.jsonl").read_text().splitlines()]
    return run, said.getvalue(), rows


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    run, said, _ = train(tmp_path_factory.mktemp("undisturbed"), Watched, lambda said: True)
    assert AGAIN not in said
    assert LEFT_OUT not in said
    return run.digest


def evaluated(rows: list[dict[str, Any]]) -> list[int]:
    return [row["step"] for row in rows if "evaluation/return" in row]


@pytest.mark.parametrize(
    ("times", "when"),
    [(1, "step"), pytest.param(2, "step", marks=pytest.mark.slow), pytest.param(1, "reset", marks=pytest.mark.slow)],
)
def test_a_killed_evaluator_is_started_again(tmp_path: Path, undisturbed: str, times: int, when: str) -> None:
    def is_back(said: str) -> bool:
        return said.count(AGAIN) == times and any(tmp_path.glob("*/*/best/policy.json"))

    run, said, rows = train(tmp_path, partial(Watched, str(tmp_path), times, when=when), is_back)
    assert said.count("was killed by SIGKILL") == times
    assert run.digest == undisturbed
    assert len(evaluated(rows)) >= 2
    assert evaluated(rows)[-1] == run.steps
    assert LEFT_OUT not in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_an_evaluator_that_keeps_dying_is_left_out(tmp_path: Path, undisturbed: str) -> None:
    run, said, rows = train(tmp_path, partial(Watched, str(tmp_path), 99), lambda said: LEFT_OUT in said)
    assert said.count(AGAIN) == 3
    assert "evaluator   left out: process" in said, "it is told at the end too"
    assert run.digest == undisturbed
    assert evaluated(rows) == [run.steps], "the final policy is evaluated nevertheless"
    assert run.evaluation is not None
    assert raceway.resume(run, env=Watched, callbacks=[Until(lambda: True)]).digest == undisturbed


def test_an_environment_that_raises_in_evaluations_leaves_the_evaluator_out(tmp_path: Path, undisturbed: str) -> None:
    env = partial(Watched, str(tmp_path), 99, "raise")
    run, said, rows = train(tmp_path, env, lambda said: LEFT_OUT in said)
    assert AGAIN not in said
    assert "evaluator.evaluate failed in round 0" in said
    assert "the cable is loose" in said
    assert "Traceback" not in said
    assert run.digest == undisturbed
    assert evaluated(rows) == [run.steps]


@pytest.mark.slow
def test_a_final_policy_that_cannot_be_evaluated_does_not_cost_the_run(tmp_path: Path, undisturbed: str) -> None:
    env = partial(Watched, str(tmp_path), 99, "raise everywhere")
    run, said, rows = train(tmp_path, env, lambda said: LEFT_OUT in said)
    assert run.digest == undisturbed
    assert run.evaluation is None
    assert evaluated(rows) == []
    assert "evaluated   not at the end: " in said
    assert "the cable is loose" in said
    assert raceway.load(run, "final").weights.version == ROUNDS
    assert (run.directory / "outcome.json").exists()


@pytest.mark.slow
def test_a_hung_evaluator_does_not_hold_up_the_end(tmp_path: Path, undisturbed: str) -> None:
    def hangs(said: str) -> bool:
        return (tmp_path / "count").exists()

    run, said, _ = train(tmp_path, partial(Watched, str(tmp_path), 1, "stop"), hangs)
    assert LEFT_OUT + "it did not end within 30 s of the run, and was killed" in said
    assert run.digest == undisturbed
    assert run.evaluation is not None


def test_a_curriculum_by_evaluation_goes_on_without_an_evaluator(tmp_path: Path) -> None:
    levels = [{"level": 0}, {"level": 1}]
    run, _, _ = train(
        tmp_path,
        partial(Watched, str(tmp_path), 99, "raise"),
        lambda said: LEFT_OUT in said,
        callbacks=[Curriculum(levels, threshold=-10.0, by="evaluation")],
    )
    assert run.steps == 4 * 8 * ROUNDS
    assert run.evaluation is not None
    assert run.evaluation.env_args == {"level": 0}


@pytest.mark.slow
def test_checkpoints_taken_while_it_is_dead_are_resumed_from(tmp_path: Path, undisturbed: str) -> None:
    class Stop(raceway.Callback):
        def on_round(self, told: Round, control: Control) -> None:
            if told.round == WAITS_IN + 3:
                raise KeyboardInterrupt

    env = partial(Watched, str(tmp_path), 99, "raise")
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, env, lambda said: LEFT_OUT in said, callbacks=[Stop()], checkpoint={"interval_s": 0.01})
    (directory,) = tmp_path.glob("*/*/")
    run = raceway.resume(directory, env=Watched, callbacks=[Until(lambda: True), raceway.Callback()], quiet=True)
    assert run.digest == undisturbed
    assert (directory / "resumed.jsonl").exists()
