"""SB3's PPO under the hyperparameters of its zoo, in the virtual environment of peers.

    python -m benchmarks.learning.sb3_zoo Hopper-v5 --seed 1 --total-steps 500000 --out curve.json

The zoo tuned them for the -v3 and -v4 tasks and for LunarLander-v2; the -v5 tasks and LunarLander-v3 succeed those.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

_SMALL_STEPS: dict[str, Any] = {
    "log_std_init": -2,
    "ortho_init": False,
    "activation_fn": "relu",
    "net_arch": [256, 256],
}
ZOO: dict[str, dict[str, Any]] = {
    "HalfCheetah-v5": {
        "n_envs": 1,
        "normalize": True,
        "n_steps": 512,
        "batch_size": 64,
        "gamma": 0.98,
        "learning_rate": 2.0633e-05,
        "ent_coef": 0.000401762,
        "clip_range": 0.1,
        "n_epochs": 20,
        "gae_lambda": 0.92,
        "max_grad_norm": 0.8,
        "vf_coef": 0.58096,
        "policy_kwargs": _SMALL_STEPS,
    },
    "Hopper-v5": {
        "n_envs": 1,
        "normalize": True,
        "n_steps": 512,
        "batch_size": 32,
        "gamma": 0.999,
        "learning_rate": 9.80828e-05,
        "ent_coef": 0.00229519,
        "clip_range": 0.2,
        "n_epochs": 5,
        "gae_lambda": 0.99,
        "max_grad_norm": 0.7,
        "vf_coef": 0.835671,
        "policy_kwargs": _SMALL_STEPS,
    },
    "Walker2d-v5": {
        "n_envs": 1,
        "normalize": True,
        "n_steps": 512,
        "batch_size": 32,
        "gamma": 0.99,
        "learning_rate": 5.05041e-05,
        "ent_coef": 0.000585045,
        "clip_range": 0.1,
        "n_epochs": 20,
        "gae_lambda": 0.95,
        "max_grad_norm": 1,
        "vf_coef": 0.871923,
    },
    "LunarLander-v3": {
        "n_envs": 16,
        "n_steps": 1024,
        "batch_size": 64,
        "gae_lambda": 0.98,
        "gamma": 0.999,
        "n_epochs": 4,
        "ent_coef": 0.01,
    },
}


def train(env: str, seed: int, total_steps: int, episodes: int) -> dict[str, Any]:
    """Trains, evaluates, and returns (steps so far, return) of every episode that ended."""
    import gymnasium
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    ended: list[tuple[int, float]] = []

    class Episodes(BaseCallback):  # type: ignore[misc]
        def _on_step(self) -> bool:
            for info in self.locals["infos"]:
                if "episode" in info:
                    ended.append((self.num_timesteps, float(info["episode"]["r"])))
            return True

    torch.set_num_threads(1)  # with networks this small a second thread makes it slower
    settings = dict(ZOO[env])
    envs: Any = DummyVecEnv([lambda: Monitor(gymnasium.make(env))] * settings.pop("n_envs"))
    normalized = settings.pop("normalize", False)
    if normalized:
        envs = VecNormalize(envs, gamma=settings["gamma"])
    if "policy_kwargs" in settings:
        settings["policy_kwargs"] = {**settings["policy_kwargs"], "activation_fn": torch.nn.ReLU}
    model = PPO("MlpPolicy", envs, seed=seed, device="cpu", **settings)
    start = time.perf_counter()
    model.learn(total_steps, callback=Episodes())
    seconds = time.perf_counter() - start
    final = None
    if episodes:
        if normalized:
            envs.training = envs.norm_reward = False
        final = evaluate_policy(model, envs, n_eval_episodes=episodes)
    return {"total_steps": model.num_timesteps, "seconds": seconds, "episodes": ended, "final": final}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("env", choices=list(ZOO))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--total-steps", type=int, default=500_000)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    result = train(chosen.env, chosen.seed, chosen.total_steps, chosen.episodes)
    chosen.out.write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
