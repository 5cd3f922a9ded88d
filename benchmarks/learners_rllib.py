"""PPO of RLlib, on its new API stack: `python -m benchmarks.learners_rllib <setting as JSON>`.

A style says how many other processes have the environments, and how many threads PyTorch has: `0 2` means none, so that
one process steps and learns, and two threads.
"""

from __future__ import annotations

import os
from typing import Any

from benchmarks.tasks import ACTIONS, Continuous
from benchmarks.train_settings import CLIP, ENTROPY, HIDDEN, MAX_GRADIENT, VALUE, Rounds, Setting, serve_rounds, timed
from benchmarks.turns import Turn

os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}

import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

OBJECT_STORE_BYTES = 2**30


def configuration(setting: Setting, runners: int) -> Any:
    """The same algorithm as everybody's: one clip, no penalty on divergence."""
    model = DefaultModelConfig(
        fcnet_hiddens=list(HIDDEN),
        fcnet_activation="tanh",
        vf_share_layers=False,
        free_log_std=isinstance(ACTIONS[setting.task], Continuous),
    )
    return (
        PPOConfig()
        .environment(setting.task, env_config={"disable_env_checker": True})
        .env_runners(
            num_env_runners=runners,
            num_envs_per_env_runner=setting.num_envs // max(1, runners),
            rollout_fragment_length=setting.num_steps,
        )
        .learners(num_learners=0)
        .rl_module(model_config=model)
        .training(
            train_batch_size_per_learner=setting.batch,
            minibatch_size=setting.minibatch,
            num_epochs=setting.epochs,
            lr=setting.learning_rate,
            gamma=setting.gamma,
            lambda_=setting.gae_lambda,
            clip_param=CLIP,
            use_kl_loss=False,
            vf_clip_param=float("inf"),
            vf_loss_coeff=VALUE,
            entropy_coeff=ENTROPY,
            grad_clip=MAX_GRADIENT,
            grad_clip_by="global_norm",
        )
        .reporting(min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=0)
        .debugging(log_level="ERROR", seed=0)
    )


def learn(setting: Setting) -> Rounds:
    """As many iterations of the algorithm as asked for."""
    ray.init(
        num_cpus=len(os.sched_getaffinity(0)),
        object_store_memory=OBJECT_STORE_BYTES,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
    )
    runners, threads = map(int, setting.style.split())
    torch.set_num_threads(threads)
    algorithm = configuration(setting, runners).build_algo()
    sampled = 0

    def rounds(count: int) -> None:
        nonlocal sampled
        for _ in range(count):
            found = int(algorithm.train()["num_env_steps_sampled_lifetime"])
            if not setting.batch <= found - sampled < setting.batch * 1.1:
                raise RuntimeError(f"An iteration is to have {setting.batch} steps and had {found - sampled}.")
            sampled = found

    return rounds


def set_up(setting: Setting) -> Turn:
    return timed(setting, learn(setting))


def main() -> None:
    """Serves the setting given as the only argument."""
    serve_rounds(set_up, lambda setting: ("gymnasium", "mujoco", "numpy", "ray", "torch"))


if __name__ == "__main__":
    main()
