"""Settings: where they come from, which wins, and what is said about those that are wrong."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raceway.algos.configs import PPOConfig
from raceway.cli import main
from raceway.errors import SettingError, UserError
from raceway.training.config import ALGORITHMS, EvaluationConfig, TrainConfig
from raceway.training.environments import name_of
from raceway.training.presets import preset_for
from raceway.training.resolve import GROUPS, resolve, with_whole_paths
from raceway.training.settings import paths_of


def test_without_anything_there_are_the_defaults() -> None:
    config = resolve("FrozenLake-v1")
    assert config == TrainConfig(env="FrozenLake-v1")
    assert (config.algo, config.schedule, config.seed, config.ppo) == ("ppo", "concurrent", 1, PPOConfig())


def test_the_preset_goes_over_defaults_a_file_over_it_and_arguments_over_all(tmp_path: Path) -> None:
    preset = preset_for("CartPole-v1", "ppo")
    assert preset is not None
    config = resolve("CartPole-v1")
    assert config.total_steps == preset.settings["total_steps"] != TrainConfig("x").total_steps
    assert config.ppo.gamma == preset.settings["ppo"]["gamma"]
    file = tmp_path / "mine.toml"
    file.write_text("total_steps = 5000\nseed = 7\n[ppo]\nn_epochs = 3\n")
    config = resolve("CartPole-v1", file, seed=9)
    assert (config.total_steps, config.seed, config.ppo.n_epochs) == (5000, 9, 3)
    assert config.ppo.gamma == preset.settings["ppo"]["gamma"]  # what the file leaves out stays


def test_a_preset_can_be_left_out(tmp_path: Path) -> None:
    assert resolve("CartPole-v1", preset=False) == TrainConfig("CartPole-v1", preset=False)
    file = tmp_path / "mine.json"
    file.write_text('{"preset": false}')
    assert resolve("CartPole-v1", file).ppo == PPOConfig()


@pytest.mark.parametrize(
    "settings",
    [
        {"learning_rate": 0.5},
        {"ppo": {"learning_rate": 0.5}},
        {"ppo.learning_rate": 0.5},
        {"ppo": PPOConfig(learning_rate=0.5)},
        {"lr": 0.5},
    ],
    ids=["flat", "nested", "dotted", "as a dataclass", "as others call it"],
)
def test_a_hyperparameter_can_be_given_in_several_ways(settings: dict[str, Any]) -> None:
    assert resolve("FrozenLake-v1", **settings).ppo.learning_rate == 0.5


def test_names_of_sb3_and_cleanrl_mean_ours() -> None:
    config = resolve(
        "FrozenLake-v1",
        total_timesteps=1e5,
        n_envs=4,
        num_steps=128,
        num_minibatches=4,
        update_epochs=3,
        clip_coef=0.1,
        anneal_lr=True,
    )
    ppo = config.ppo
    assert (config.total_steps, config.num_envs) == (100_000, 4)
    assert isinstance(config.total_steps, int)
    assert (ppo.n_steps, ppo.batch_size, ppo.n_epochs) == (128, 128, 3)
    assert (ppo.clip_range, ppo.lr_schedule) == (0.1, "linear")


def test_minibatches_are_counted_with_what_lower_layers_say(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text('{"num_minibatches": 4, "num_steps": 64, "num_envs": 2}')
    assert resolve("FrozenLake-v1", file).ppo.batch_size == 32
    assert resolve("FrozenLake-v1", file, num_envs=8).ppo.batch_size == 128
    assert resolve("FrozenLake-v1", num_minibatches=2).ppo.batch_size == 8 * 256 // 2


def test_a_batch_size_that_nobody_asked_for_is_made_to_fit() -> None:
    preset = resolve("CartPole-v1").ppo
    fitted = resolve("CartPole-v1", num_envs=3).ppo
    assert (3 * fitted.n_steps) % preset.batch_size != 0
    assert (3 * fitted.n_steps) % fitted.batch_size == 0
    assert preset.batch_size // 2 < fitted.batch_size < preset.batch_size
    with pytest.raises(SettingError, match=r"batch_size=7: .* is not a multiple of 7\. Use batch_size"):
        resolve("CartPole-v1", batch_size=7)


def test_a_network_may_have_no_hidden_layers() -> None:
    assert resolve("CartPole-v1", hidden=[]).network.hidden == ()
    assert resolve("CartPole-v1", gru=None).network.gru is None


def test_env_arguments_replace_as_a_whole_and_are_checked() -> None:
    assert resolve("Hopper-v5", env_args={"frame_skip": 2}).env_args == {"frame_skip": 2}
    assert resolve("Hopper-v5", env_kwargs={"max_episode_steps": 10}).env_args == {"max_episode_steps": 10}
    with pytest.raises(SettingError, match="Did you mean 'frame_skip'"):
        resolve("Hopper-v5", env_args={"framskip": 2})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"leaning_rate": 1}, "No setting 'leaning_rate'. Did you mean 'ppo.learning_rate'"),
        ({"ppo": {"gama": 1}}, "No setting 'ppo.gama'. Did you mean 'ppo.gamma'"),
        ({"log.directry": "x"}, "Did you mean 'log.directory'"),
        ({"episodes": 3}, "Did you mean 'evaluation.episodes'"),
        ({"num_worker": 3}, "Did you mean 'num_workers'"),
        (
            {"zzz": 3},
            "No setting 'zzz'. All settings: raceway train --help. An argument of the environment is given as",
        ),
        ({"ppo": 3}, "ppo=3 is not a dict of settings"),
        ({"gamma": 0.9, "ppo": {"gamma": 0.8}}, "'gamma' and 'ppo.gamma' are the same setting"),
        ({"batch_size": 64, "num_minibatches": 4}, "are the same setting"),
        ({"num_envs": 2.5}, "num_envs=2.5 is not a whole number"),
        ({"num_envs": "8"}, "num_envs='8' is not a whole number"),
        ({"num_envs": True}, "num_envs=True is not a whole number"),
        ({"num_envs": 0}, "num_envs=0 is out of range. Use a number from 1 to 16,777,216"),
        ({"seed": -1}, "seed=-1 is out of range"),
        ({"seed": 2**64}, "out of range"),
        ({"schedule": "concurent"}, "not one of concurrent, serial, async. Did you mean 'concurrent'"),
        ({"algo": "pppo"}, "No algorithm 'pppo'. Did you mean 'ppo'"),
        ({"group_size": 3, "num_envs": 8}, "groups of group_size=3. Use 1, 2, 4 or 8"),
        ({"gamma": 1.5}, "gamma=1.5 must be from 0 to 1"),
        ({"gamma": float("nan")}, "ppo.gamma=nan is not a number"),
        ({"network": {"hidden": 64}}, "network.hidden=64 is not a list"),
        ({"network": {"hidden": [64, 0.5]}}, "network.hidden=0.5 is not a whole number"),
        ({"log": {"quiet": "yes"}}, "log.quiet='yes' is not a flag"),
        ({"log": {"name": "a/b"}}, "no name for a folder"),
        ({"log": {"interval_s": 0}}, "must be above 0"),
        ({"evaluation": {"times": 0}}, "evaluation.times=0 is out of range"),
        ({"evaluation": {"times": 0}}, "to do without evaluations, --evaluation.no-enabled"),
        ({"checkpoint": {"keep": 0}}, "to do without checkpoints, --checkpoint.no-enabled"),
        ({"num_workers": 0}, "num_workers=0 is out of range. Use a number from 1 to 4,096, or None"),
        (
            {"gru": 0},
            "network.gru=0 is out of range. Use a width from 1 to 16,777,216, such as 64",
        ),
        ({"network": {"gru": -3}}, "network.gru=-3 is out of range"),
        ({"gru": 0}, "leave it out, or give None"),
        ({"hidden": [64, 0]}, "network.hidden=[64, 0] has a layer of width 0. Use widths from 1 to"),
        ({"hidden": [-64]}, "network.hidden=[-64] has a layer of width -64"),
        ({"n_steps": 0}, "n_steps=0 must be a whole number from 1"),
        ({"batch_size": -1}, "batch_size=-1 must be a whole number from 1"),
        ({"algo": "sac"}, "No algorithm 'sac'. There are: ppo, a2c, impala, pqn"),
        ({"stop_at_return": float("nan")}, "stop_at_return=nan is not a number"),
        ({"init_from": 3}, "init_from=3 is not a text"),
    ],
)
def test_what_is_wrong_is_named_with_the_way_out(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError) as raised:
        resolve("FrozenLake-v1", **settings)
    assert message in str(raised.value)
    assert isinstance(raised.value, UserError)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "{", "a.json: this is not JSON"),
        ("a.json", "[1]", "must be names with values, not a list"),
        ("a.toml", "x =", "a.toml: this is not TOML"),
        ("a.yaml", "x: 1", "read from .json or .toml files, not from .yaml"),
        ("a.json", '{"ppo": {"gama": 1}}', "a.json: No setting 'ppo.gama'. Did you mean 'ppo.gamma'"),
    ],
)
def test_a_file_that_is_wrong_is_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(SettingError) as raised:
        resolve("CartPole-v1", tmp_path / name)
    assert message in str(raised.value)
    assert str(tmp_path / name) in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"The settings in .*none\.json cannot be read: No such file"):
        resolve("CartPole-v1", tmp_path / "none.json")


def test_a_model_of_the_users_own_is_named_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "robot.xml").write_text("<mujoco/>")
    monkeypatch.chdir(tmp_path)
    assert resolve("Ant-v5", env_args={"xml_file": "./robot.xml"}).env_args == {"xml_file": str(tmp_path / "robot.xml")}
    assert resolve("Ant-v5", env_args={"xml_file": "ant.xml"}).env_args == {"xml_file": "ant.xml"}  # Gymnasium's


def test_a_model_that_is_not_there_is_one_message() -> None:
    with pytest.raises(SettingError, match="there is no file"):
        with_whole_paths(resolve("Ant-v5"), {"xml_file": "./nowhere.xml"})


def test_the_settings_of_a_run_are_a_file_to_start_the_same_run_from(tmp_path: Path) -> None:
    config = resolve("Hopper-v5", seed=5, gamma=0.9, network={"hidden": (32, 16)}, env_args={"frame_skip": 2})
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config.to_dict()))
    assert resolve(config_file=file) == config
    assert resolve("Hopper-v5", file, seed=6) == dataclasses.replace(config, seed=6)


def test_an_environment_must_be_named() -> None:
    with pytest.raises(SettingError, match="No environment is named"):
        resolve()
    with pytest.raises(SettingError, match="env is empty"):
        resolve("")


def make_something() -> None: ...


def test_environments_that_are_no_names_get_one() -> None:
    import raceway

    assert resolve(make_something).env == f"{__name__}:make_something"
    assert name_of(raceway.make("CartPole-v1", 2)) == "raceway/CartPole-v1"


@given(
    st.builds(
        TrainConfig,
        env=st.sampled_from(["CartPole-v1", "mine:make"]),
        env_args=st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)),
        seed=st.integers(0, 2**64 - 1),
        num_envs=st.just(12),
        group_size=st.sampled_from([None, 1, 4]),
        num_workers=st.none() | st.integers(1, 64),
        evaluation=st.builds(EvaluationConfig, episodes=st.integers(1, 99), num_envs=st.none() | st.integers(1, 9)),
    )
)
def test_settings_survive_json(config: TrainConfig) -> None:
    assert TrainConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_a_dict_with_a_setting_that_there_is_not_is_refused() -> None:
    with pytest.raises(SettingError, match=r"No setting 'ppo.gama'\. Did you mean 'gamma'"):
        TrainConfig.from_dict({"env": "x", "ppo": {"gama": 1}})


@pytest.mark.parametrize(("decoupled", "correction"), [(False, "none"), (True, "decoupled")])
def test_runs_from_before_corrections_are_read(decoupled: bool, correction: str) -> None:
    assert TrainConfig.from_dict({"env": "x", "ppo": {"decoupled": decoupled}}).ppo.correction == correction
    with pytest.raises(SettingError, match="decoupled"):
        TrainConfig.from_dict({"env": "x", "ppo": {"decoupled": 3}})


def test_every_setting_has_a_help_text_and_every_group_a_field() -> None:
    import inspect

    source = inspect.getsource(sys.modules[TrainConfig.__module__]) + inspect.getsource(
        sys.modules[PPOConfig.__module__]
    )
    for path in paths_of(TrainConfig):
        name = path.rpartition(".")[2]
        place = source.index(f"    {name}: ")
        assert source[place:].splitlines()[1].strip().startswith('"""'), path
    groups = {
        field.name for field in dataclasses.fields(TrainConfig) if dataclasses.is_dataclass(field.default_factory)
    }
    assert groups == set(GROUPS)
    assert set(ALGORITHMS) <= groups


def test_settings_do_not_bring_in_jax() -> None:
    script = "import sys, raceway.training.resolve, raceway.training.folder; print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_flat_names_are_of_the_chosen_algorithm(algo: str) -> None:
    config = resolve("FrozenLake-v1", algorithm=algo, lr=0.5, num_steps=6, discount=0.9)
    assert config.algo == algo
    chosen = config.algorithm
    assert chosen is getattr(config, algo)
    assert (chosen.learning_rate, chosen.n_steps, chosen.gamma) == (0.5, 6, 0.9)
    for other in set(ALGORITHMS) - {algo}:
        assert getattr(config, other) == getattr(TrainConfig("x"), other)


def test_an_algorithm_has_the_schedule_it_is_made_for_unless_told_otherwise(tmp_path: Path) -> None:
    assert resolve("FrozenLake-v1", algo="impala").schedule == "async"
    assert resolve("FrozenLake-v1", algo="a2c").schedule == "concurrent"
    assert resolve("FrozenLake-v1", algo="impala", schedule="serial").schedule == "serial"
    file = tmp_path / "mine.json"
    file.write_text('{"algo": "impala", "schedule": "concurrent"}')
    assert resolve("FrozenLake-v1", file).schedule == "concurrent"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"clip_range": 0.1}, "No setting 'clip_range' in a2c: it is one of ppo"),
        ({"a2c.clip_coef": 0.1}, "No setting 'a2c.clip_coef' in a2c: it is one of ppo"),
        ({"num_minibatches": 4}, "No setting 'num_minibatches' in a2c"),
        ({"ppo": {"gamma": 0.9}}, "'ppo.gamma' is a setting of ppo, but the algorithm is a2c"),
        ({"gama": 0.9}, "Did you mean 'a2c.gamma'"),
        ({"correction": "rato"}, "Did you mean 'ratio'"),
    ],
)
def test_settings_of_another_algorithm_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError) as raised:
        resolve("FrozenLake-v1", algo="a2c", **settings)
    assert message in str(raised.value)


def test_a_file_may_have_settings_for_every_algorithm_and_a_run_keeps_its_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("seed = 4\n[ppo]\ngamma = 0.7\n[a2c]\ngamma = 0.8\n")
    config = resolve("FrozenLake-v1", file, algo="a2c")
    assert (config.seed, config.a2c.gamma, config.ppo) == (4, 0.8, PPOConfig())
    kept = config.to_dict()
    assert set(kept) & set(ALGORITHMS) == {"a2c"}
    assert TrainConfig.from_dict(kept) == config
    assert resolve("FrozenLake-v1", file).ppo.gamma == 0.7


DEEP = "[" * 800 + "]" * 800


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"env": ["x"]}', "env=['x'] is not a text"),
        ('{"algo": ["ppo"]}', "No algorithm ['ppo']"),
        ('{"algo": {"ppo": 1}}', "No algorithm {'ppo': 1}"),
        ('{"ppo": {"schedule": ["x"]}}', "ppo.lr_schedule=['x'] is not one of"),
        ('{"ppo": {"n_steps": "eight", "num_minibatches": 4}}', "ppo.n_steps='eight' is not a whole number"),
        ('{"num_envs": "eight", "ppo": {"num_minibatches": 4}}', "num_envs='eight' is not a whole number"),
        ('{"ppo": {"num_minibatches": "abc"}}', "num_minibatches='abc' is not a whole number"),
        ('{"ppo": {"num_minibatches": null}}', "num_minibatches=None is not a whole number"),
        ('{"ppo": {"anneal_lr": "maybe"}}', "'maybe' is not a flag"),
        (f'{{"env_args": {{"a": {DEEP}}}}}', "nested more than 50 deep"),
        (f'{{"env_args": {DEEP}}}', "nested more than 50 deep"),
    ],
    ids=lambda text: text[:40],
)
def test_a_malformed_file_is_one_message(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.json").write_text(text)
    env = [] if '"env"' in text else ["CartPole-v1"]
    assert main(["train", *env, "--config", str(tmp_path / "mine.json")]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told


def test_a_deep_toml_file_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(f"env_args = {{a = {'[' * 80}{']' * 80}}}")
    with pytest.raises(SettingError, match="nested more than 50 deep"):
        resolve("CartPole-v1", tmp_path / "mine.toml")


def test_an_alias_with_a_wrong_value_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "CartPole-v1", "--num-minibatches", "abc"]) == 2
    assert "num_minibatches='abc' is not a whole number" in capsys.readouterr().err
