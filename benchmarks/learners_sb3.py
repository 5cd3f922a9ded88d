"""PPO of Stable-Baselines3 and of SBX, its twin in JAX: `python -m benchmarks.learners_sb3 <setting as JSON>`.

A style is the vector of environments and, for SB3, the number of PyTorch's threads: `dummy 1`, `subproc 2`. As their
documentation has it, but for the checker of environments, which costs time and finds nothing here.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks import python_tasks
from benchmarks.train_settings import CLIP, ENTROPY, HIDDEN, MAX_GRADIENT, VALUE, Rounds, Setting, serve_rounds, timed
from benchmarks.turns import Turn


def make_envs(setting: Setting, vector: str) -> Any:
    """`make_vec_env`, whose environments know their episodes' returns."""
    task: str | type = setting.task
    kwargs: dict[str, Any] = {"disable_env_checker": True}
    if setting.work:
        task, kwargs = python_tasks.OWN[setting.task.rpartition(":")[2]], setting.env_kwargs
    make_vec_env = import_module("stable_baselines3.common.env_util").make_vec_env
    vectors = import_module("stable_baselines3.common.vec_env")
    # Forked, which is done at once: nobody has threads yet.
    chosen, how = {"dummy": (vectors.DummyVecEnv, {}), "subproc": (vectors.SubprocVecEnv, {"start_method": "fork"})}[
        vector
    ]
    return make_vec_env(
        task,
        n_envs=setting.num_envs,
        seed=0,
        env_kwargs=kwargs,
        vec_env_cls=chosen,
        vec_env_kwargs=how,
    )


def learn(setting: Setting) -> Rounds:
    """As many rounds of `model.learn` as asked for, each going on where the last one stopped."""
    vector, _, threads = setting.style.partition(" ")
    import_module("torch").set_num_threads(int(threads or 1))
    library = {"sb3": "stable_baselines3", "sbx": "sbx"}[setting.kind]
    model = import_module(library).PPO(
        "MlpPolicy",
        make_envs(setting, vector),
        n_steps=setting.num_steps,
        batch_size=setting.minibatch,
        n_epochs=setting.epochs,
        learning_rate=setting.learning_rate,
        gamma=setting.gamma,
        gae_lambda=setting.gae_lambda,
        clip_range=CLIP,
        ent_coef=ENTROPY,
        vf_coef=VALUE,
        max_grad_norm=MAX_GRADIENT,
        policy_kwargs={"net_arch": {"pi": list(HIDDEN), "vf": list(HIDDEN)}},
        device="cpu",
        seed=0,
    )

    def rounds(count: int) -> None:
        model.learn(count * setting.batch, reset_num_timesteps=False)

    return rounds


def set_up(setting: Setting) -> Turn:
    return timed(setting, learn(setting))


def packages(setting: Setting) -> tuple[str, ...]:
    own = ("torch",) if setting.kind == "sb3" else ("jax", "sbx-rl")
    return ("gymnasium", "mujoco", "numpy", "stable-baselines3", *own)


def main() -> None:
    """Serves the setting given as the only argument."""
    serve_rounds(set_up, packages)


if __name__ == "__main__":
    main()
