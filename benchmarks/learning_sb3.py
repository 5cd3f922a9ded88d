"""One run of SB3's PPO on a MuJoCo task, for the comparison of returns. It runs in the virtual environment of peers.

    python -m benchmarks.learning_sb3 HalfCheetah-v5 --seed 1 --total-steps 1000000 --out curve.json

Hyperparameters are SB3's defaults; observations and rewards are normalised, as its own tuned settings do for MuJoCo.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import gymnasium
import stable_baselines3
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize


class Episodes(BaseCallback):  # type: ignore[misc]
    """Keeps (steps so far, return) of every episode that ended."""

    def __init__(self) -> None:
        super().__init__()
        self.curve: list[tuple[int, float]] = []

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info:
                self.curve.append((self.num_timesteps, float(info["episode"]["r"])))
        return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("env")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--total-steps", type=int, default=1_000_000)
    parser.add_argument("--num-envs", type=int, default=8)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    envs = VecNormalize(DummyVecEnv([lambda: Monitor(gymnasium.make(arguments.env))] * arguments.num_envs))
    model = PPO("MlpPolicy", envs, n_steps=2048 // arguments.num_envs, seed=arguments.seed, device="cpu")
    episodes = Episodes()
    start = time.perf_counter()
    model.learn(arguments.total_steps, callback=episodes)
    seconds = time.perf_counter() - start
    envs.training = False
    envs.norm_reward = False
    returns, _ = evaluate_policy(model, envs, n_eval_episodes=20, return_episode_rewards=True)
    result = {
        "env": arguments.env,
        "seed": arguments.seed,
        "total_steps": model.num_timesteps,
        "seconds": seconds,
        "curve": episodes.curve,
        "evaluation": returns,
        "versions": {"stable-baselines3": stable_baselines3.__version__, "torch": torch.__version__},
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
