"""Each finding is made where it should be, and nowhere else: one wrong environment for each, and right ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium
import pytest

from raceway.envs.checking import Finding, api, determinism, episodes, rendering, seeding, spaces, state
from raceway.envs.checking.board import Board
from raceway.envs.checking.notebook import Facts, Notebook
from raceway.envs.checking.subject import Subject
from raceway.envs.checking.targets import Target
from raceway.envs.checking.worker import is_whole
from tests.envs.checking import hostile_envs as hostile
from tests.envs.checking import right_envs as right
from tests.envs.checking import wrong_envs as wrong

API = (api.made, api.called)
ALL = (
    *API,
    spaces.seen,
    seeding.seeded,
    determinism.repeated,
    determinism.elsewhere,
    episodes.ended,
    episodes.kept,
    episodes.gone_on,
    api.early,
    state.saved,
)


def called_slow(subject: Subject, notes: Notebook, facts: Facts, steps_s: float) -> None:
    """Stands for a probe that has found steps to take so long, and episodes to be long."""
    facts.step_s, facts.mean_length = steps_s, 1000.0


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many steps are enough here, however long they take."""
    monkeypatch.setattr(determinism, "MOST_STEPS", 60)
    for module in (spaces, determinism):
        monkeypatch.setattr(module, "SECONDS", 60.0)


def examined(make: Callable[..., Any], probes: Sequence[Callable[..., None]]) -> list[Finding]:
    """What some probes find, in this process, until one of them cannot go on."""
    findings: list[Finding] = []
    notes, facts = Notebook(findings.append), Facts()
    board = Board()
    for probe in probes:
        notes.topic = probe.__module__.rpartition(".")[2] if hasattr(probe, "__module__") else ""
        if not is_whole(partial(probe, Subject(make, board), notes, facts), notes):
            break
    board.close()
    return findings


def remarkable(findings: Sequence[Finding]) -> dict[str, str]:
    """By code, the marks of all that are not ok."""
    return {finding.code: finding.mark for finding in findings if finding.mark != "ok"}


@pytest.mark.parametrize(
    "make",
    [
        right.Walk,
        right.SavingWalk,
        right.Nest,
        right.Masked,
        right.Pushed,
        lambda: gymnasium.make("FrozenLake-v1"),
        lambda: gymnasium.make("Acrobot-v1"),
        lambda: gymnasium.make("CartPole-v1"),
        lambda: gymnasium.make("Blackjack-v1"),
        Target("CartPole-v1").maker(),
        Target("Blackjack-v1").maker(),
        Target("Pendulum-v1", {"g": 5.0}).maker(),
    ],
)
@pytest.mark.filterwarnings("ignore:.*You are calling 'step:UserWarning")
def test_right_ones_come_out_clean(make: Callable[[], gymnasium.Env]) -> None:
    findings = examined(make, ALL)
    assert remarkable(findings) == {}
    assert {"api", "observation", "action", "seeding", "determinism", "episodes", "arrays", "state"} <= {
        finding.code for finding in findings
    }


@pytest.mark.parametrize(
    ("make", "probes", "code", "mark"),
    [
        (hostile.number, API, "not-an-env", "problem"),
        (wrong.Duck, API, "not-an-env", "problem"),
        (lambda: gymnasium.make_vec("CartPole-v1", 2), API, "not-an-env", "problem"),
        (hostile.broken_maker, API, "make-raises", "problem"),
        (wrong.OldGym, API, "not-an-env", "problem"),
        (wrong.NoSpace, API, "no-space", "problem"),
        (wrong.OldReset, API, "old-api", "problem"),
        (wrong.OldStep, API, "old-api", "problem"),
        (wrong.SeedlessReset, API, "reset-takes-no-seed", "problem"),
        (wrong.OptionlessReset, API, "reset-takes-no-options", "note"),
        (wrong.NoneReset, API, "reset-returns", "problem"),
        (wrong.ThreeStep, API, "step-returns", "problem"),
        (wrong.TwoActions, API, "step-signature", "problem"),
        (wrong.ListInfo, API, "info-kind", "problem"),
        (wrong.NanReward, API, "reward-not-finite", "problem"),
        (wrong.ArrayReward, API, "reward-kind", "problem"),
        (wrong.BoolReward, API, "reward-kind", "note"),
        (wrong.IntFlag, API, "flag-kind", "note"),
        (wrong.NoneFlag, API, "flag-kind", "problem"),
        (wrong.CloseRaises, API, "close-raises", "note"),
        (wrong.RaisesInReset, API, "reset-raises", "problem"),
        (wrong.RaisesLater, ALL, "step-raises", "problem"),
        (hostile.Exits, API, "exits", "problem"),
        (wrong.ShapeOff, (spaces.seen,), "observation-shape", "problem"),
        (wrong.KeysOff, (spaces.seen,), "observation-keys", "problem"),
        (wrong.PartsOff, (spaces.seen,), "observation-keys", "problem"),
        (wrong.Texts, (spaces.seen,), "observation-kind", "problem"),
        (hostile.Garbage, (spaces.seen,), "observation-kind", "problem"),
        (wrong.Lists, (spaces.seen,), "observation-kind", "note"),
        (wrong.WiderType, (spaces.seen,), "observation-dtype", "note"),
        (wrong.FloatBytes, (spaces.seen,), "observation-dtype", "problem"),
        (wrong.NanObservation, (spaces.seen,), "observation-not-finite", "problem"),
        (wrong.Outside, (spaces.seen,), "observation-outside", "note"),
        (wrong.OutOfRange, (spaces.seen,), "observation-range", "problem"),
        (wrong.Doubles, (spaces.seen,), "observation-float64", "note"),
        (wrong.Huge, (spaces.seen,), "observation-scale", "note"),
        (wrong.SmallImage, (spaces.seen,), "observation-image", "note"),
        (wrong.Variable, (spaces.seen,), "observation-unsupported", "problem"),
        (wrong.DictAction, (spaces.seen,), "action-unsupported", "problem"),
        (wrong.Unbounded, (spaces.seen,), "action-unbounded", "note"),
        (wrong.Strong, (spaces.seen,), "action-scale", "note"),
        (wrong.NoBounds, (spaces.seen,), "action-edge", "problem"),
        *(
            (make, probes, "action-mask", "problem")
            for make in (
                wrong.NothingAllowed,
                wrong.DictMask,
                wrong.AddedMask,
                wrong.MaskOnlyAtReset,
                wrong.FullMaskAtReset,
            )
            for probes in (API, (spaces.seen,))
        ),
        (wrong.MaskOnlyInSteps, (spaces.seen,), "action-mask", "problem"),
        (wrong.ContinuousMask, API, "action-mask", "problem"),
        (wrong.SeedIgnored, (seeding.seeded,), "seed-ignored", "note"),
        (wrong.SeedConstant, (seeding.seeded,), "seed-constant", "note"),
        (wrong.SeedKept, (seeding.seeded,), "seed-not-passed-on", "note"),
        (wrong.GlobalNumpy, (determinism.repeated,), "global-generator", "note"),
        (wrong.GlobalRandom, (determinism.repeated,), "global-generator", "note"),
        (wrong.Clock, (determinism.repeated,), "not-deterministic", "note"),
        (wrong.Leftover, (determinism.repeated,), "reset-leaves-state", "note"),
        (wrong.Endless, (spaces.seen, episodes.ended), "never-ends", "note"),
        (wrong.Instant, (spaces.seen, episodes.ended), "one-step-episodes", "note"),
        (wrong.Reused, (episodes.kept,), "observation-reused", "note"),
        (wrong.OwnState, (episodes.kept,), "observation-is-state", "note"),
        (wrong.WritesAction, (episodes.kept,), "action-changed", "note"),
        (wrong.Forgets, (state.saved,), "state-inexact", "problem"),
        (wrong.ClockState, (determinism.repeated, state.saved), "state-unknown", "note"),
        (right.SlowStart, (partial(called_slow, steps_s=0.1), state.saved), "state-replay-slow", "note"),
        (hostile.ExitsAfterEnd, ALL, "exits-after-end", "note"),
        (hostile.SpoiledByEnd, ALL, "reset-after-end", "note"),
        (hostile.ExitsEarly, (api.early,), "exits-before-reset", "note"),
        (wrong.ObjectState, (state.saved,), "state-not-plain", "problem"),
        (wrong.StateRaises, (state.saved,), "get_state-raises", "problem"),
        (wrong.Clock, (determinism.repeated, state.saved), "state-lost", "note"),
        (wrong.RenderRaises, (partial(rendering.drawn, make=wrong.RenderRaises),), "render-raises", "note"),
        (wrong.RenderFloats, (partial(rendering.drawn, make=wrong.RenderFloats),), "render-returns", "note"),
        (wrong.NoFps, (partial(rendering.drawn, make=wrong.NoFps),), "render-fps", "note"),
        (wrong.OtherMode, (partial(rendering.drawn, make=wrong.OtherMode),), "render-mode", "note"),
    ],
)
def test_what_is_wrong_is_found(
    make: Callable[..., Any], probes: Sequence[Callable[..., None]], code: str, mark: str
) -> None:
    findings = examined(make, probes)
    assert remarkable(findings).pop(code, None) == mark, findings
    assert set(remarkable(findings)) <= {code, "not-deterministic"}
    (finding,) = (finding for finding in findings if finding.code == code)
    assert finding.text.endswith((".", "!")), finding.text


def test_an_error_is_told_with_the_line_that_raised_it() -> None:
    (finding,) = (each for each in examined(wrong.RaisesInReset, API) if each.mark == "problem")
    assert finding.text == "reset raises FileNotFoundError: 'level.dat'."
    assert "wrong_envs.py" in finding.details
    assert 'raise FileNotFoundError("level.dat")' in finding.details


def test_the_generator_that_was_used_is_named() -> None:
    for make, name in ((wrong.GlobalNumpy, "np.random"), (wrong.GlobalRandom, "the module random")):
        (finding,) = examined(make, (determinism.repeated,))
        assert name in finding.text


def test_an_environment_without_a_state_is_told_what_resuming_will_do() -> None:
    findings = examined(right.Walk, (spaces.seen, determinism.repeated, state.saved))
    assert "replays each episode from its seed" in findings[-1].text
    findings = examined(right.SavingWalk, (determinism.repeated, state.saved))
    assert "get_state and set_state are exact" in findings[-1].text


def test_what_was_not_thought_of_is_a_problem_too() -> None:
    codes = {finding.code: finding.mark for finding in examined(hostile.Trapped, (spaces.seen,))}
    assert codes == {"observation-kind": "problem", "check-failed": "problem"}


def test_an_old_environment_is_told_what_replaced_its_package() -> None:
    (finding,) = examined(wrong.OldGym, API)
    assert "of the package gym, which Gymnasium has replaced" in finding.text


def test_a_slow_first_step_does_not_make_it_slow() -> None:
    facts = Facts()
    for probe in (api.made, api.called, spaces.seen):
        probe(Subject(right.SlowStart, board := Board()), Notebook(lambda finding: None), facts)
        board.close()
    assert not facts.is_slow
    assert facts.steps_seen > 10


def test_where_it_is_drawn_the_size_is_told() -> None:
    (finding,) = examined(right.Picture, (partial(rendering.drawn, make=right.Picture),))
    assert (finding.mark, finding.text) == ("ok", "pictures of 16 x 8, 30 a second")


def test_a_time_limit_is_known_from_its_wrapper() -> None:
    facts = Facts()
    limited = gymnasium.wrappers.TimeLimit(wrong.Endless(), 77)
    api.made(Subject(lambda: limited, Board()), Notebook(lambda finding: None), facts)
    assert facts.time_limit == 77
