"""The limit of the benchmarks: slow, since compiling it takes a minute (`make test-all` does)."""

from collections.abc import Callable

import numpy as np
import pytest

from raceway import _core, list_envs, make
from tests.training.native_policies import Net

pytestmark = pytest.mark.slow


def quickest(measure: Callable[[], float]) -> float:
    """Of several: another process may have taken the CPU meanwhile."""
    return min(measure() for _ in range(10))


@pytest.mark.parametrize("task", [task for task in list_envs() if task != "MujocoTask-v0"])  # which needs a model
def test_every_task_has_a_bare_loop(task: str) -> None:
    from benchmarks.bare import bare_loop

    pool = make(task, 3, seed=1)
    actions = np.stack([pool.action_space.sample() for _ in range(50)])
    pool.close()
    assert bare_loop(task, 3, actions, num_threads=2) > 0


def test_the_bare_loop_does_all_the_steps_that_it_is_given() -> None:
    from benchmarks.bare import bare_loop

    def seconds(steps: int) -> float:
        return bare_loop("CartPole-v1", 16, np.zeros((steps, 16), np.int64), num_threads=1)

    assert seconds(10_000) > 20 * quickest(lambda: seconds(10)) > 0


def test_the_bare_loop_is_driven_by_a_policy() -> None:
    from benchmarks.bare import bare_policy_loop

    pool = make("CartPole-v1")
    policy = Net(pool).policy()
    pool.close()

    def seconds(steps: int) -> float:
        return bare_policy_loop("CartPole-v1", 16, policy, steps, num_threads=1, seed=0)

    assert seconds(10_000) > 20 * quickest(lambda: seconds(10)) > 0


def test_a_policy_without_weights_is_refused() -> None:
    from benchmarks.bare import bare_policy_loop

    pool = make("CartPole-v1")
    policy = _core.Policy(Net(pool).layout)
    pool.close()
    with pytest.raises(ValueError, match="no weights"):
        bare_policy_loop("CartPole-v1", 1, policy, 1, seed=0)
