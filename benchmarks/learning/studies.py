"""The studies whose data is in benchmarks/results/learning. Their seeds are other ones than presets were tuned on."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.learning.presets import presets_study
from benchmarks.learning.sb3_zoo import ZOO
from benchmarks.learning.study import Setting, Study, Task

SERIAL = Setting("serial", {"schedule": "serial"})
CONCURRENT = Setting("concurrent", {"schedule": "concurrent"})
ASYNC = Setting("async", {"schedule": "async"}, alone=True)

SCHEDULES = Study(
    "schedules",
    "Does PPO learn as much per step under the concurrent schedule as under the serial one?",
    tasks=[
        # The presets of those with other seeds were changed after seeds 51 to 53 had been seen.
        Task("HalfCheetah-v5", 500_000, seeds=range(61, 66)),
        Task("Hopper-v5", 500_000),
        Task("Walker2d-v5", 500_000),
        Task("Swimmer-v5", 500_000),
        Task("Acrobot-v1", 300_000, seeds=range(61, 66)),
        Task("LunarLander-v3", 500_000, seeds=range(61, 66)),
    ],
    settings=[SERIAL, CONCURRENT, ASYNC],
    seeds=range(51, 56),
    speed_steps=100_000,
)


def _corrected(name: str, **options: object) -> Setting:
    return Setting(name, {"schedule": "concurrent", **options})


# SB3's hyperparameters: ten epochs of 2,048 rows move the policy far, so that a lag of one update matters.
_FAR = {"preset": False, "num_envs": 8, "normalize_observations": True, "normalize_rewards": True}
CORRECTIONS = Study(
    "corrections",
    "What makes up for the lag of one update in PPO, under hyperparameters that move the policy far?",
    tasks=[Task(env, 300_000, _FAR) for env in ("HalfCheetah-v5", "Hopper-v5")],
    settings=[
        SERIAL,
        _corrected("none", correction="none"),
        _corrected("decoupled", correction="decoupled"),
        _corrected("vtrace, c_bar 0", correction="vtrace", c_bar=0.0),
        _corrected("vtrace, c_bar 0.8", correction="vtrace", c_bar=0.8),
        _corrected("vtrace, c_bar 1", correction="vtrace", c_bar=1.0),
        _corrected("none, half rounds", correction="none", n_steps=128),
        _corrected("vtrace, half rounds", correction="vtrace", n_steps=128),
        _corrected("none, 4 epochs, 2x rate", correction="none", n_epochs=4, learning_rate=6e-4),
        _corrected("none, adaptive KL", correction="none", lr_schedule="adaptive_kl"),
    ],
    seeds=range(21, 24),
)

A2C = Study(
    "a2c",
    "Which correction does A2C need at a lag of one update?",
    tasks=[Task(env, 300_000, algo="a2c") for env in ("CartPole-v1", "Acrobot-v1", "HalfCheetah-v5")],
    settings=[
        Setting("serial", {"schedule": "serial", "correction": "none"}),
        *(_corrected(f"concurrent, {name}", correction=name) for name in ("delayed", "ratio", "none")),
        Setting("async, ratio", {"schedule": "async", "correction": "ratio"}, alone=True),
    ],
    seeds=range(21, 26),
    speed_steps=100_000,
)

IMPALA = Study(
    "impala",
    "Which schedule should IMPALA have?",
    tasks=[Task(env, 300_000, algo="impala") for env in ("CartPole-v1", "Acrobot-v1", "HalfCheetah-v5")],
    settings=[SERIAL, CONCURRENT, ASYNC],
    seeds=range(21, 26),
    speed_steps=100_000,
)

SB3 = Study(
    "sb3",
    "PPO's presets beside SB3's PPO with the hyperparameters of its zoo.",
    tasks=[Task(env, 500_000) for env in ZOO],
    settings=[
        Setting("sb3", trainer="sb3"),
        Setting("raceway"),
    ],
    seeds=range(31, 34),
    episodes=100,
    speed_steps=100_000,
)

STUDIES: Mapping[str, Study] = {
    study.name: study for study in (SCHEDULES, CORRECTIONS, A2C, IMPALA, SB3, presets_study())
}
