from dataclasses import fields

import pytest

from raceway.algos.configs import A2CConfig, ImpalaConfig, PPOConfig
from raceway.algos.hyperparameters import ALIASES, resolve_names

KNOWN = [field.name for field in fields(PPOConfig)]


def test_cleanrl_names_mean_the_same_as_ours():
    given = {
        "num_steps": 128,
        "num_minibatches": 4,
        "update_epochs": 3,
        "clip_coef": 0.1,
        "norm_adv": False,
        "clip_vloss": True,
        "anneal_lr": True,
        "gamma": 0.9,
    }
    assert resolve_names(given, KNOWN, num_envs=8) == {
        "gamma": 0.9,
        "n_steps": 128,
        "n_epochs": 3,
        "clip_range": 0.1,
        "normalize_advantage": False,
        "batch_size": 256,
        "clip_range_vf": 0.1,
        "lr_schedule": "linear",
    }


def test_every_alias_leads_to_a_field():
    known = {field.name for kind in (PPOConfig, A2CConfig, ImpalaConfig) for field in fields(kind)}
    assert {field for field, _ in ALIASES.values()} <= known
    assert not set(ALIASES) & known


def test_near_misses_are_suggested():
    with pytest.raises(ValueError, match=r"No hyperparameter 'learning_rte' in ppo\. Did you mean 'learning_rate'\?"):
        resolve_names({"learning_rte": 1}, KNOWN)
    with pytest.raises(ValueError, match="Did you mean 'update_epochs'"):
        resolve_names({"update_epoch": 1}, KNOWN)


def test_two_names_for_one_thing_are_refused():
    with pytest.raises(ValueError, match=r"clip_coef=0\.1 and clip_range=0\.2 say the same thing"):
        resolve_names({"clip_range": 0.2, "clip_coef": 0.1}, KNOWN)


def test_minibatches_need_the_size_of_a_round_and_must_divide_it():
    with pytest.raises(ValueError, match="num_envs must be known"):
        resolve_names({"num_steps": 128, "num_minibatches": 4}, KNOWN)
    with pytest.raises(ValueError, match=r"10 x num_envs=1 = 10 rows.*num_minibatches=4.*Use 1, 2, 5 or 10"):
        resolve_names({"num_steps": 10, "num_minibatches": 4}, KNOWN, num_envs=1)


def test_minibatches_that_do_not_divide_a_round_are_refused():
    config = PPOConfig(n_steps=100, batch_size=64)
    with pytest.raises(ValueError, match=r"100 x num_envs=3 = 300 rows.*batch_size 30, 50, 60 or 75"):
        config.check_num_envs(3)
    PPOConfig(n_steps=128, batch_size=64).check_num_envs(3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gamma", 1.1),
        ("n_steps", 0),
        ("learning_rate", 0),
        ("lr_schedule", "cosine"),
        ("target_kl", -1),
        ("vf_coef", -1),
    ],
)
def test_values_out_of_range_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name}={value!r} must be"):
        PPOConfig(**{name: value})
