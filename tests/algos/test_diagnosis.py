from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces

from raceway.algos.configs import NetworkConfig, PPOConfig
from raceway.algos.ppo import PPO
from tests.algos.rollouts import random_rollout

SPACE = spaces.Dict({"camera": spaces.Box(0, 255, (2,), np.uint8), "place": spaces.Box(-1, 1, (3,))})
ACTIONS = spaces.Box(-1, 1, (2,))


@pytest.fixture(scope="module")
def ppo() -> PPO:
    return PPO(PPOConfig(n_steps=8, batch_size=16, n_epochs=1), SPACE, ACTIONS, NetworkConfig(hidden=(4,)))


def _culprit(ppo: PPO, state, rollout) -> str:
    _, metrics = ppo.update(state, rollout, 0.0, 1, 0)
    return ppo.culprit(state, rollout, metrics)


@pytest.mark.parametrize(
    ("name", "place", "expected"),
    [
        ("rewards", (2, 1), "rewards holds nan at step 2 of environment 1"),
        ("actions", (2, 1, 1), "actions holds nan at step 2 of environment 1, entry (1,)"),
        ("values", (8, 3), "values holds nan at step 8 of environment 3"),
        ("log_probs", (0, 0), "log_probs holds nan at step 0 of environment 0"),
    ],
)
def test_what_came_in_is_named_with_its_place(ppo, name, place, expected):
    rollout = random_rollout(SPACE, ACTIONS, 8, 4)
    getattr(rollout, name)[place] = np.nan
    assert _culprit(ppo, ppo.init(1), rollout) == expected


def test_an_observation_is_named_by_its_leaf(ppo):
    rollout = random_rollout(SPACE, ACTIONS, 8, 4)
    rollout.obs["place"][3, 2, 1] = np.inf
    assert _culprit(ppo, ppo.init(1), rollout) == "obs['place'] holds inf at step 3 of environment 2, entry (1,)"


def test_parameters_are_named_by_their_layer(ppo):
    state = ppo.init(1)
    offset = ppo.network.layout.blocks["critic0.bias"].offset
    state = state._replace(params=state.params.at[offset].set(np.nan))
    rollout = random_rollout(SPACE, ACTIONS, 8, 4)
    assert _culprit(ppo, state, rollout) == "the parameters critic0.bias are not finite"


def test_a_loss_that_overflows_is_named_with_the_layers_it_reaches(ppo):
    rollout = random_rollout(SPACE, ACTIONS, 8, 4)
    found = _culprit(ppo, ppo.init(1), replace(rollout, log_probs=np.full((8, 4), -200, np.float32)))
    assert found.startswith(
        "policy_loss is not finite from minibatch 0 of the round on, and so is the gradient of actor0"
    )
    assert "critic" not in found


def test_nothing_is_blamed_when_all_is_finite(ppo):
    assert _culprit(ppo, ppo.init(1), random_rollout(SPACE, ACTIONS, 8, 4)) == "everything is finite"
