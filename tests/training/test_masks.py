"""Action masks as environments give them: side by side, as tuples, and wrong in ways that are told."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

import raceway
from raceway.algos.rollout import Rollout
from raceway.envs.masks import MaskReader
from raceway.errors import EnvError
from tests.training.small_runs import collected

pytestmark = pytest.mark.usefixtures("compiled_without_optimizing")

LENGTH = 5


class Masked(gymnasium.Env[Any, Any]):
    """Asserts that its masks are followed. `kind`: how they are given, or what is wrong with them from step 2 on."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, kind: str = "flat", single: bool = False, render_mode: str | None = None) -> None:
        self.observation_space = spaces.Box(0, 1, (2,), np.float32)
        self.action_space = spaces.Discrete(3) if single else spaces.MultiDiscrete([2, 3])
        self.kind = kind
        self.single = single
        self.render_mode = render_mode

    def _parts(self) -> list[np.ndarray]:
        parts = [np.array([1, self.steps % 2], np.int8), np.array([self.steps % 2, 1, 0], np.int8)]
        return parts[1:] if self.single else parts

    def _info(self) -> dict[str, Any]:
        parts, late = self._parts(), self.steps >= 2
        if self.kind == "tuple":
            return {"action_mask": tuple(parts)}
        if self.kind == "lists":
            return {"action_mask": [part.tolist() for part in parts]}
        if self.kind == "nothing allowed" and late:
            parts[-1][:] = 0
        if self.kind == "nothing at the end" and self.steps == LENGTH:
            parts[-1][:] = 0
        if self.kind == "short" and late:
            return {"action_mask": np.concatenate(parts)[1:]}
        if self.kind == "one flag" and late:
            return {"action_mask": np.ones(1, np.int8)}
        if self.kind == "short tuple" and late:
            return {"action_mask": (parts[0], np.ones(4, bool))}
        if self.kind == "irregular" and late:
            return {"action_mask": [[[1, 0], [1]], [1, 1, 1]]}
        if self.kind == "dict" and late:
            return {"action_mask": {"first": parts[0], "rest": parts[1:]}}
        if self.kind == "text" and late:
            return {"action_mask": "all"}
        if self.kind == "added to logits" and late:
            return {"action_mask": np.where(np.concatenate(parts), 0.0, -np.inf)}
        if self.kind == "counts" and late:
            return {"action_mask": np.concatenate(parts) * np.int8(2)}
        if self.kind == "tuple of counts" and late:
            return {"action_mask": tuple(2 * part for part in parts)}
        if self.kind in ("only at reset", "all at reset") and self.steps:
            return {}
        if self.kind == "all at reset":
            return {"action_mask": np.ones(sum(map(len, parts)), np.int8)}
        return {"action_mask": np.concatenate(parts)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(2, np.float32), self._info()

    def step(self, action: Any) -> Any:
        chosen = [int(action)] if self.single else [int(each) for each in action]
        for part, choice in zip(self._parts(), chosen, strict=True):
            is_free = not part.any() or self.kind == "all at reset"
            assert part[choice] or is_free, f"{action} is masked in step {self.steps}"
        self.steps += 1
        return np.full(2, self.steps / 9, np.float32), 1.0, False, self.steps == LENGTH, self._info()

    def render(self) -> Any:
        return np.zeros((16, 16, 3), np.uint8)


def rollouts(collector: str, lane: str = "process", **arguments: Any) -> list[Rollout]:
    env = partial(Masked, **arguments)
    return [rollout for rollout, _ in collected(env, 2, collector=collector, lane=lane, n_steps=12, num_envs=4)]


COLLECTORS = pytest.mark.parametrize("collector", ["worker", "central"])


@COLLECTORS
@pytest.mark.parametrize("kind", ["tuple", pytest.param("lists", marks=pytest.mark.slow)])
def test_a_tuple_has_one_mask_for_each_component(collector: str, kind: str) -> None:
    for ours, flat in zip(rollouts(collector, kind=kind), rollouts(collector), strict=True):
        assert ours.action_mask is not None
        assert not ours.action_mask.all()
        np.testing.assert_array_equal(ours.action_mask, flat.action_mask)
        np.testing.assert_array_equal(ours.actions, flat.actions)


WRONG = {
    "nothing allowed": r"Environment \d in step 2 of its episode gave an action_mask that allows no action",
    "short": r"Environment \d in step 2 of its episode gave a mask of shape \({0},\).*needs shape \({1},\)",
    "one flag": r"Environment \d in step 2 of its episode gave a mask of shape \(1,\).*needs shape \({1},\)",
    "short tuple": r"Environment \d in step 2 .*shapes \(2,\), \(4,\).*needs shape \(5,\), or a tuple .*\(2,\), \(3,\)",
    "irregular": r"Environment \d in step 2 .*gave a mask of irregular shape.*needs shape",
    "dict": r"gave (a dict|\{.*\}) as its action_mask, which is not an array, .*MultiDiscrete and MultiBinary",
    "text": r"Environment \d in step 2 of its episode gave 'all' as its action_mask, which is not an array",
    "added to logits": r"Environment \d in step 2 .* with the value -inf. Give 1 for allowed, 0 for forbidden",
    "counts": r"Environment \d in step 2 .* with the value 2. Give 1 for allowed, 0 for forbidden",
    "tuple of counts": r"Environment \d in step 2 .* with the value 2. Give 1 for allowed, 0 for forbidden",
    "all at reset": r"Environment \d in step 1 of its episode gave no action_mask, though it gave one before",
    "only at reset": r"Environment \d in step 1 of its episode gave no action_mask, though it gave one before",
}


@COLLECTORS
@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("single", [False, True], ids=["multi-discrete", "discrete"])
def test_wrong_masks_name_environment_and_step(collector: str, kind: str, single: bool) -> None:
    if single and "tuple" in kind:
        pytest.skip("there is one component")
    said = WRONG[kind].replace("{0}", "2" if single else "4").replace("{1}", "3" if single else "5")
    with pytest.raises(EnvError, match=f"(?s){said}"):
        rollouts(collector, "inline", kind=kind, single=single)


@COLLECTORS
@pytest.mark.parametrize(
    ("lane", "kind"),
    [
        ("process", "short"),
        *(("inline", kind) for kind in ("short", "one flag", "added to logits", "text", "dict", "all at reset")),
    ],
)
def test_one_wrong_mask_among_right_ones_names_its_environment(collector: str, lane: str, kind: str) -> None:
    said = WRONG[kind].replace("{0}", "4").replace("{1}", "5").replace(r"Environment \d", "Environment 2")
    envs = [Masked, Masked, partial(Masked, kind), Masked]
    with pytest.raises(EnvError, match=f"(?s){said}"):
        collected(envs, 2, collector=collector, n_steps=12, num_envs=4, lane=lane, num_workers=2)


def test_masks_of_continuous_actions_are_refused_before_anything_is_compiled() -> None:
    class Continuous(Masked):
        def __init__(self) -> None:
            super().__init__()
            self.action_space = spaces.Box(-1, 1, (5,), np.float32)

    with pytest.raises(EnvError, match=r"masks work for Discrete, MultiDiscrete and MultiBinary .* Box\("):
        raceway.train(Continuous, total_steps=64, num_envs=2, n_steps=16, lane="inline", log={"quiet": True})


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32, object])
def test_ones_and_zeros_of_every_type_are_flags(dtype: Any) -> None:
    reader = MaskReader(spaces.Discrete(3))
    batch = np.array([[1, 0, 1], [0, 0, 1]]).astype(dtype)
    for given in (batch, list(batch), batch.tolist()):
        assert reader.read(given, [1, 0], str).tolist() == [[False, False, True], [True, False, True]]


@pytest.mark.parametrize("value", [2, -1, 0.5, float("nan"), float("-inf"), "1", None])
def test_other_values_are_quoted_with_their_row(value: Any) -> None:
    reader = MaskReader(spaces.Discrete(3))
    right = [1, 0, 1]
    for wrong in ([1, 0, value], np.array([1, 0, value])):
        with pytest.raises(EnvError, match=rf"^1 gave .* value '?{value}'?\. Give 1 for allowed, 0 for forbidden"):
            reader.read([right, wrong], [0, 1], str)
    if isinstance(value, (int, float)):
        with pytest.raises(EnvError, match=rf"^1 gave .* value {value}(\.0)?\. Give 1"):
            reader.read(np.array([right, [1, 0, value]]), [0, 1], str)


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_after_the_last_step_of_an_episode_nothing_need_be_allowed(mode: AutoresetMode) -> None:
    env = SyncVectorEnv([partial(Masked, "nothing at the end")] * 4, autoreset_mode=mode)
    (rollout, _), *_ = collected(env, 2, n_steps=12)
    assert rollout.action_mask is not None


def test_environments_with_and_without_masks_can_be_mixed() -> None:
    class Unmasked(Masked):
        def _info(self) -> dict[str, Any]:
            return {}

        def step(self, action: Any) -> Any:
            self.steps += 1
            return np.zeros(2, np.float32), 1.0, False, self.steps == LENGTH, {}

    (rollout, _), *_ = collected([Masked, Unmasked], 2, n_steps=12, num_envs=4)
    assert rollout.action_mask is not None
    assert rollout.action_mask[:, 1::2].all()
    assert not rollout.action_mask[:, ::2].all(axis=-1).any()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> raceway.Run:
    settings: dict[str, Any] = {"total_steps": 64, "num_envs": 2, "n_steps": 16, "batch_size": 16, "lane": "inline"}
    log: dict[str, Any] = {"directory": str(tmp_path_factory.mktemp("run")), "quiet": True}
    return raceway.train(partial(Masked, "tuple"), **settings, log=log, evaluation={"episodes": 2})


@pytest.mark.parametrize("kind", ["flat", "tuple"])
def test_what_is_played_keeps_its_masks_when_another_environment_ends(
    tmp_path: Path, run: raceway.Run, kind: str
) -> None:
    drawn = partial(Masked, kind, render_mode="rgb_array")
    makers: list[Callable[[], gymnasium.Env[Any, Any]]] = [
        drawn,
        lambda: TimeLimit(drawn(), 2),
        lambda: TimeLimit(drawn(), 3),
    ]
    for env in (SyncVectorEnv(each, autoreset_mode=AutoresetMode.DISABLED) for each in (makers, makers[::-1])):
        played = raceway.play(run.directory, env=env, episodes=2, video=tmp_path / "a.mp4", quiet=True)
        assert len(played.lengths) == 2


def test_a_policy_plays_and_is_evaluated_by_tuples_and_tells_what_is_wrong(tmp_path: Path, run: raceway.Run) -> None:
    played = raceway.play(run.directory, env=partial(Masked, "tuple"), episodes=1, video=tmp_path / "a.mp4", quiet=True)
    assert played.lengths == [LENGTH]
    for kind in ("nothing allowed", "short", "only at reset", "all at reset"):
        said = re.sub(r"\\\(\{.\},\\\)", r"\\(.,\\)", WRONG[kind])
        with pytest.raises(EnvError, match=f"(?s){said}"):
            raceway.play(run.directory, env=partial(Masked, kind), episodes=1, video=tmp_path / "b.mp4", quiet=True)
        with pytest.raises(EnvError, match=f"(?s){said}"):
            raceway.evaluate(run.directory, env=partial(Masked, kind), episodes=1)
    policy = raceway.load(run.directory)
    obs = np.zeros(2, np.float32)
    assert policy.act(obs, action_mask=([0, 1], [0, 0, 1])).tolist() == [1, 2]
    assert policy.act([obs, obs], action_mask=[([0, 1], [0, 0, 1]), ([1, 0], [1, 0, 0])]).tolist() == [[1, 2], [0, 0]]
    with pytest.raises(ValueError, match="allows no action in row 0"):
        policy.act(obs, action_mask=[0, 1, 0, 0, 0])
    with pytest.raises(EnvError, match=r"irregular shape.*needs shape \(5,\)"):
        policy.act(obs, action_mask=[[[1, 0], [1]], [1, 1, 1]])
    with pytest.raises(EnvError, match=r"shape \(4,\).*needs shape \(5,\)"):
        policy.act(obs, action_mask=[0, 1, 0, 0])
    with pytest.raises(EnvError, match=r"The caller gave .* the value -inf\. Give 1 for allowed, 0 for forbidden"):
        policy.act(obs, action_mask=[0, 0, -np.inf, 0, 0])
    with pytest.raises(EnvError, match=r"The caller gave .* which is not an array"):
        policy.act(obs, action_mask={"first": [1, 1], "second": [1, 1, 1]})
