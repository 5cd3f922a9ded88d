"""Wrappers that keep something from episode to episode are named, and what is underneath is still looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import wrappers

import raceway
from raceway.envs.checking import Finding, determinism, episodes, seeding, spaces, state
from tests.envs.checking import wrong_envs as wrong
from tests.envs.checking.right_envs import SavingWalk, Walk
from tests.envs.checking.test_findings import examined, remarkable

PROBES = (spaces.seen, seeding.seeded, determinism.repeated, determinism.elsewhere, episodes.gone_on, state.saved)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(determinism, "MOST_STEPS", 60)
    for module in (spaces, determinism):
        monkeypatch.setattr(module, "SECONDS", 60.0)


class Moments:
    """As many libraries have them."""

    def __init__(self) -> None:
        self.mean, self.var, self.count = np.zeros(1), np.ones(1), 1e-4

    def update(self, value: Any) -> None:
        self.count += 1
        self.mean = self.mean + (np.asarray(value) - self.mean) / self.count


class NormalizeBoth(gymnasium.Wrapper):
    """Like SB3's VecNormalize, for one environment."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        self.obs_rms, self.ret_rms = Moments(), Moments()

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        obs, info = self.env.reset(**kwargs)
        return self._scaled(obs), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.ret_rms.update(reward)
        return self._scaled(obs), float(reward) - float(self.ret_rms.mean[0]), terminated, truncated, info

    def _scaled(self, obs: Any) -> Any:
        self.obs_rms.update(obs)
        return np.clip(obs - self.obs_rms.mean, -1, 1).astype(np.float32)


class Centred(gymnasium.ObservationWrapper):
    """Keeps a running mean of its own, until a reset if it is told so; or has one that does not run."""

    def __init__(self, env: gymnasium.Env, until_reset: bool = False, runs: bool = True) -> None:
        super().__init__(env)
        self.mean, self.count = np.zeros(1), 0
        self.until_reset, self.runs = until_reset, runs

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        if self.until_reset:
            self.mean, self.count = np.zeros(1), 0
        return super().reset(**kwargs)

    def observation(self, observation: Any) -> Any:
        if self.runs:
            self.count += 1
            self.mean = self.mean + (observation - self.mean) / (self.count + 1)
        return np.clip(observation - self.mean, -1, 1).astype(np.float32)


class Remembers(gymnasium.ObservationWrapper):
    """Keeps what it saw, under no name that tells."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        self.seen: list[Any] = []

    def observation(self, observation: Any) -> Any:
        self.seen.append(observation)
        return np.clip(observation - 0.1 * len(self.seen), -1, 1).astype(np.float32)


class DropsSeed(gymnasium.Wrapper):
    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return self.env.reset(options=options)


def note(findings: list[Finding], code: str) -> Finding:
    return next(finding for finding in findings if finding.code == code)


@pytest.mark.parametrize(
    ("make", "names", "settings"),
    [
        (lambda: wrappers.NormalizeObservation(Walk()), "NormalizeObservation keeps", ["observations"]),
        (lambda: wrappers.NormalizeReward(Walk()), "NormalizeReward keeps", ["rewards"]),
        (
            lambda: wrappers.NormalizeReward(wrappers.ClipReward(wrappers.NormalizeObservation(Walk()), -1, 1)),
            "NormalizeReward and NormalizeObservation keep",
            ["rewards", "observations"],
        ),
        (
            lambda: wrappers.TimeLimit(NormalizeBoth(SavingWalk()), 50),
            "NormalizeBoth keeps",
            ["observations", "rewards"],
        ),
        (lambda: Centred(gymnasium.make("CartPole-v1")), "Centred keeps", ["observations"]),
    ],
)
def test_running_statistics_are_named_with_the_settings_that_replace_them(
    make: Callable[[], gymnasium.Env], names: str, settings: list[str]
) -> None:
    findings = examined(make, PROBES[1:])
    assert remarkable(findings) == {"running-statistics": "note", "state-lost": "note"}
    found = note(findings, "running-statistics")
    assert found.text.startswith(f"{names} running statistics from episode to episode")
    assert f"the same seed gives other {' and '.join(settings)}." in found.text
    assert f"train with {' and '.join(f'normalize_{each}=True' for each in settings)}:" in found.fix
    assert {"seeding", "determinism"} <= {finding.code for finding in findings}


@pytest.mark.parametrize(
    ("env", "code"),
    [
        (wrong.SeedIgnored, "seed-ignored"),
        (wrong.SeedConstant, "seed-constant"),
        (wrong.SeedKept, "seed-not-passed-on"),
        (wrong.GlobalNumpy, "global-generator"),
        (wrong.Clock, "not-deterministic"),
        (wrong.Leftover, "reset-leaves-state"),
        (lambda: DropsSeed(Walk()), "seed-ignored"),
    ],
)
@pytest.mark.parametrize("wrapper", [wrappers.NormalizeObservation, wrappers.NormalizeReward, NormalizeBoth])
def test_what_is_wrong_underneath_is_found_all_the_same(env: Any, code: str, wrapper: Any) -> None:
    alone, wrapped = (remarkable(examined(make, PROBES[1:-1])) for make in (env, lambda: wrapper(env())))
    assert code in alone
    assert wrapped == alone | {"running-statistics": "note"}


@pytest.mark.parametrize(
    "make",
    [
        lambda: wrappers.RecordEpisodeStatistics(Walk()),
        lambda: Centred(Walk(), until_reset=True),
        lambda: Centred(Walk(), runs=False),
        lambda: frozen(wrappers.NormalizeObservation(Walk())),
    ],
)
def test_statistics_that_carry_nothing_over_are_no_matter(make: Callable[[], gymnasium.Env]) -> None:
    assert remarkable(examined(make, PROBES[1:])) == {}


def frozen(env: Any) -> Any:
    env.update_running_mean = False
    return env


def test_another_wrapper_that_keeps_something_is_named() -> None:
    findings = examined(lambda: wrappers.TimeLimit(Remembers(Walk()), 50), PROBES[1:4])
    assert remarkable(findings) == {"reset-leaves-state": "note"}
    found = note(findings, "reset-leaves-state")
    assert "the wrapper Remembers keeps something" in found.text
    assert "or leave the wrapper out" in found.fix
    findings = examined(lambda: wrappers.TimeLimit(wrong.Leftover(), 50), PROBES[1:4])
    assert "wrapper" not in note(findings, "reset-leaves-state").text


@pytest.mark.slow
def test_the_whole_check_names_the_wrapper() -> None:
    def make(render_mode: str | None = None) -> gymnasium.Env:
        return wrappers.NormalizeObservation(gymnasium.make("CartPole-v1", render_mode=render_mode))

    report = raceway.check(make, lanes=False)
    assert report.trains
    assert {finding.code for finding in report.notes} >= {"running-statistics", "state-lost"}
    assert report.find("seed-ignored") is None
    assert "NormalizeObservation keeps running statistics" in str(report).replace("\n    ", " ")
