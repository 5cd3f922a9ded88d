from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces

from raceway.algos.configs import NetworkConfig, PPOConfig
from raceway.algos.diagnosis import Culprit
from raceway.algos.ppo import PPO
from tests.algos.rollouts import random_rollout

SPACE = spaces.Dict({"camera": spaces.Box(0, 255, (2,), np.uint8), "place": spaces.Box(-1, 1, (3,))})
ACTIONS = spaces.Box(-1, 1, (2,))


@pytest.fixture(scope="module")
def ppo() -> PPO:
    return PPO(PPOConfig(n_steps=8, batch_size=16, n_epochs=1), SPACE, ACTIONS, NetworkConfig(hidden=(4,)))


def _culprit(ppo: PPO, state, rollout) -> Culprit:
    _, metrics = ppo.update(state, rollout, 0.0, 1, 0)
    return ppo.culprit(state, rollout, metrics, 0)


@pytest.mark.parametrize(
    ("name", "place", "expected"),
    [
        ("actions", (2, 1, 1), "actions[1] holds nan at step 2 of environment 1"),
        ("values", (8, 3), "values holds nan at step 8 of environment 3"),
        ("log_probs", (0, 0), "log_probs holds nan at step 0 of environment 0"),
    ],
)
def test_what_the_policy_computed_is_named_with_its_place(ppo, name, place, expected):
    rollout = random_rollout(SPACE, ACTIONS, 8, 4)
    getattr(rollout, name)[place] = np.nan
    assert _culprit(ppo, ppo.init(1), rollout) == (expected, False)


LARGEST = " (or a value beyond 3.4e38, the largest float32)"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_reward_is_blamed_on_the_environment(ppo, value):
    rollout = random_rollout(SPACE, ACTIONS, 8, 4)
    rollout.rewards[2, 1] = value
    also = "" if np.isnan(value) else LARGEST
    expected = f"environment 1 gave the reward {value}{also} in step 2 of the round"
    assert _culprit(ppo, ppo.init(1), rollout) == (expected, True)


@pytest.mark.parametrize(("time", "when"), [(3, "after step 2 of the round"), (0, "at the start of the round")])
def test_an_observation_is_blamed_on_the_environment_and_named_by_its_leaf(ppo, time, when):
    rollout = random_rollout(SPACE, ACTIONS, 8, 4)
    rollout.obs["place"][time, 2, 1] = np.inf
    rollout.values[time, 2] = np.nan  # the policy's answer to it
    assert _culprit(ppo, ppo.init(1), rollout) == (f"environment 2 gave inf{LARGEST} in obs['place'][1] {when}", True)


def test_of_several_the_first_in_time_is_blamed(ppo):
    rollout = random_rollout(SPACE, ACTIONS, 8, 4)
    rollout.obs["place"][5, 0, 0] = np.nan
    rollout.rewards[3, 3] = np.nan
    assert "environment 3 gave the reward nan in step 3" in _culprit(ppo, ppo.init(1), rollout).what
    rollout.obs["place"][2, 1, 0] = np.nan
    assert "environment 1 gave nan in obs['place'][0] after step 1" in _culprit(ppo, ppo.init(1), rollout).what


def test_the_last_observation_of_a_truncated_episode_is_blamed_if_nothing_else_is_wrong(ppo):
    rollout = random_rollout(SPACE, ACTIONS, 8, 4)
    rollout.terminated[:], rollout.truncated[4, 2], rollout.final_values[4, 2] = False, True, np.nan
    found = _culprit(ppo, ppo.init(1), rollout)
    assert found.is_environment
    assert found.what.startswith("environment 2 gave a last observation, of the episode that was truncated in step 4")
    broken = ppo.init(1)._replace(params=ppo.init(1).params * np.nan)
    assert not _culprit(ppo, broken, rollout).is_environment


def test_advice_is_for_whoever_is_to_blame():
    assert "learning_rate" not in str(Culprit("environment 0 gave the reward nan", is_environment=True))
    assert "Correct the environment" in str(Culprit("environment 0 gave the reward nan", is_environment=True))
    assert "learning_rate" in str(Culprit("policy_loss is not finite", is_environment=False))


def test_parameters_are_named_by_their_layer(ppo):
    state = ppo.init(1)
    offset = ppo.network.layout.blocks["critic0.bias"].offset
    state = state._replace(params=state.params.at[offset].set(np.nan))
    rollout = random_rollout(SPACE, ACTIONS, 8, 4)
    assert _culprit(ppo, state, rollout) == ("the parameters critic0.bias are not finite", False)


def test_a_loss_that_overflows_is_named_with_the_layers_it_reaches(ppo):
    rollout = random_rollout(SPACE, ACTIONS, 8, 4)
    found, _ = _culprit(ppo, ppo.init(1), replace(rollout, log_probs=np.full((8, 4), -200, np.float32)))
    assert found.startswith(
        "policy_loss is not finite from minibatch 0 of the round on, and so is the gradient of actor0"
    )
    assert "critic" not in found


def test_nothing_is_blamed_when_all_is_finite(ppo):
    assert _culprit(ppo, ppo.init(1), random_rollout(SPACE, ACTIONS, 8, 4)).what == "everything is finite"
