"""Records how Gymnasium 1.2.3 plays Taxi-v3, which Gymnasium 1.4 has dropped: the file that test_parity.py reads.

Run it in an environment that has gymnasium==1.2.3:

    python tests/data/record_taxi_v3.py tests/data/taxi_v3.npz
"""

import sys
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import SyncVectorEnv

NUM_ENVS, STEPS, SEED = 8, 400, 2024
PLACES = np.array([(0, 0), (0, 4), (4, 0), (4, 3)])


def at_destination(obs: np.ndarray) -> np.ndarray:
    """Whether the taxi stands where its passenger wants to go."""
    return np.all(np.stack([obs // 100, obs // 20 % 5], axis=1) == PLACES[obs % 4], axis=1)


def record(is_rainy: bool, fickle_passenger: bool) -> dict[str, np.ndarray]:
    """What eight environments do in 400 steps (autoreset on the next step), small integers kept small."""
    envs = SyncVectorEnv(
        [
            lambda: gymnasium.make("Taxi-v3", is_rainy=is_rainy, fickle_passenger=fickle_passenger)
            for _ in range(NUM_ENVS)
        ]
    )
    rng = np.random.default_rng(SEED)
    obs, infos = envs.reset(seed=SEED)
    columns: dict[str, list[np.ndarray]] = {name: [] for name in ("actions", "rewards", "terminated", "truncated")}
    states, probabilities, masks = [obs], [infos["prob"]], [infos["action_mask"]]
    for _ in range(STEPS):
        mask, anything = infos["action_mask"], rng.integers(0, 6, NUM_ENVS)
        useful = np.select([(mask[:, 5] == 1) & at_destination(obs), mask[:, 4] == 1], [5, 4], anything)
        actions = np.where(rng.random(NUM_ENVS) < 0.8, useful, anything)
        obs, rewards, terminated, truncated, infos = envs.step(actions)
        for name, values in zip(columns, (actions, rewards, terminated, truncated), strict=True):
            columns[name].append(values)
        states.append(obs)
        probabilities.append(infos["prob"])
        masks.append(infos["action_mask"])
    narrow = {"actions": np.int8, "rewards": np.int8, "terminated": bool, "truncated": bool}
    return {
        **{name: np.array(values).astype(narrow[name]) for name, values in columns.items()},
        "obs": np.array(states, dtype=np.int16),
        "prob": np.array(probabilities, dtype=np.float64),
        "action_mask": np.array(masks, dtype=np.int8),
    }


if __name__ == "__main__":
    assert gymnasium.__version__ == "1.2.3", gymnasium.__version__
    recorded: dict[str, Any] = {"seed": np.array(SEED)}
    for rainy in (False, True):
        for fickle in (False, True):
            name = f"{'rainy' if rainy else 'dry'}_{'fickle' if fickle else 'constant'}"
            recorded |= {f"{name}.{key}": values for key, values in record(rainy, fickle).items()}
    np.savez_compressed(sys.argv[1], **recorded)
