"""Exported policies act as the run's own do, and what cannot be exported says why."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from gymnasium import Space, spaces
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

import raceway
from raceway.algos.configs import NetworkConfig
from raceway.algos.spaces import observation_leaves
from raceway.envs.masks import MaskReader
from raceway.errors import MissingPackageError, RunFolderError, SettingError, UserError
from raceway.training.config import LogConfig, TrainConfig
from tests.examples import examples
from tests.training.exported import (
    ACTIONS,
    NETWORKS,
    NUM,
    OBSERVATIONS,
    VECTOR,
    act_of_the_page,
    actions,
    assert_close,
    begun,
    code_of_the_page,
    made,
    networks,
    observations,
)

pytestmark = pytest.mark.usefixtures("compiled_without_optimizing")


@pytest.mark.parametrize(
    ("kind", "normalised"),
    [(kind, False) for kind in OBSERVATIONS]
    + [
        (kind, True)
        for kind, space in OBSERVATIONS.items()
        if "box" in {leaf.kind for leaf in observation_leaves(space)}
    ],
)
def test_every_observation_gives_the_policys_action(kind: str, normalised: bool, tmp_path: Path) -> None:
    run = made(tmp_path, OBSERVATIONS[kind], ACTIONS["box"], normalised=normalised)
    expected = raceway.load(run.path).act(run.obs)
    assert len(np.unique(expected)) > 1
    assert_close(run.outputs()["action"], expected)
    assert_close(act_of_the_page(raceway.export(run.path, "safetensors"))(run.leaves), expected)


@pytest.mark.parametrize("kind", ACTIONS)
def test_every_action_is_as_the_environment_takes_it(kind: str, tmp_path: Path) -> None:
    space = ACTIONS[kind]
    run = made(tmp_path, VECTOR, space, normalised=True, seed=3)
    expected = raceway.load(run.path).act(run.obs)
    actions = run.outputs()["action"]
    assert_close(actions, expected)
    assert all(space.contains(np.asarray(action)) for action in actions)
    assert_close(act_of_the_page(raceway.export(run.path, "safetensors"))(run.leaves), expected)


@pytest.mark.parametrize(
    ("kind", "observation"),
    [
        # Each with one of them; the other is for those who have more time.
        pytest.param(kind, observation, marks=[] if at % 2 == turn else [pytest.mark.slow])
        for at, kind in enumerate(NETWORKS)
        for turn, observation in enumerate(("float32", "nested"))
    ],
)
def test_every_network_gives_its_distribution_and_value(kind: str, observation: str, tmp_path: Path) -> None:
    for action in ("discrete", "multi_binary", "box") if observation == "float32" else ("multi_discrete",):
        run = made(tmp_path, OBSERVATIONS[observation], ACTIONS[action], NETWORKS[kind], name=action)
        inputs, values = run.expected()
        outputs = run.outputs()
        np.testing.assert_allclose(outputs["value"], values, rtol=1e-5, atol=1e-5)
        names = ("mean", "log_std") if action == "box" else ("logits",)
        given = np.concatenate([outputs[name].reshape(NUM, -1) for name in names], axis=1)
        np.testing.assert_allclose(given, inputs, rtol=1e-5, atol=1e-5)
        assert_close(outputs["action"], raceway.load(run.path).act(run.obs))


@pytest.mark.parametrize("observation", ["float32", "image"])
def test_values_of_actions_are_exported_as_such(observation: str, tmp_path: Path) -> None:
    space = OBSERVATIONS[observation]
    run = made(tmp_path, space, ACTIONS["discrete from 3"], algo="pqn", normalised=True, has_masks=True)
    values, greatest = run.expected()
    outputs = run.outputs(np.ones((NUM, 4), bool))
    np.testing.assert_allclose(outputs["q_values"], values, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(outputs["value"], greatest, rtol=1e-5, atol=1e-5)
    expected = raceway.load(run.path).act(run.obs)
    assert_close(outputs["action"], expected)
    assert_close(act_of_the_page(raceway.export(run.path, "safetensors"))(run.leaves), expected)
    mask = np.eye(4, dtype=bool)[np.arange(NUM) % 4]
    outputs = run.outputs(mask)
    assert_close(outputs["action"], mask.argmax(axis=1) + 3)
    np.testing.assert_allclose(outputs["value"], values[mask], rtol=1e-5, atol=1e-5)


def test_images_may_be_flattened_instead(tmp_path: Path) -> None:
    run = made(tmp_path, OBSERVATIONS["image"], ACTIONS["box"], NetworkConfig(kind="mlp", hidden=(8,)))
    expected = raceway.load(run.path).act(run.obs)
    assert_close(run.outputs()["action"], expected)
    assert_close(act_of_the_page(raceway.export(run.path, "safetensors"))(run.leaves), expected)


@pytest.mark.parametrize("kind", ["discrete from 3", "multi_discrete", "multi_binary"])
def test_a_mask_forbids_as_it_does_in_the_policy(kind: str, tmp_path: Path) -> None:
    run = made(tmp_path, VECTOR, ACTIONS[kind], has_masks=True)
    policy, size = raceway.load(run.path), run.expected()[0].shape[1]
    rng = np.random.default_rng(1)
    changed = False
    for _ in range(4):
        mask = rng.random((NUM, size)) < 0.4
        mask[0] = False
        mask[MaskReader(ACTIONS[kind]).without_choice(mask)] = True  # a MultiBinary may do without
        actions = run.outputs(mask)["action"]
        assert_close(actions, policy.act(run.obs, action_mask=mask))
        changed |= bool((actions != policy.act(run.obs)).any())
    assert changed


@pytest.mark.parametrize("shared", [False, True])
def test_a_memory_goes_in_and_comes_out_as_the_policy_has_it(shared: bool, tmp_path: Path) -> None:
    network = NetworkConfig(hidden=(8,), gru=6, shared=shared)
    run = made(tmp_path, VECTOR, ACTIONS["box"], network, normalised=True)
    session, policy = onnxruntime.InferenceSession(raceway.export(run.path)), raceway.load(run.path)
    names = code_of_the_page(raceway.export(run.path, "safetensors"))
    about, forward = names["about"], names["run"]
    memory = remembered = np.zeros((NUM, 6), np.float32)
    seen = []
    for step in range(4):
        obs = np.roll(run.obs, step, axis=0)
        action, memory = session.run(["action", "next_memory"], {"obs": obs, "memory": memory})
        expected = policy.act(obs)
        assert_close(action, expected)
        remembered = names["remember"](names["features"](about["inputs"][0], obs), remembered)
        np.testing.assert_allclose(memory, remembered, rtol=1e-5, atol=1e-5)
        mean = forward(about["actor"], forward(about["trunk"], remembered)).reshape(expected.shape)
        assert_close(np.clip(mean, ACTIONS["box"].low, ACTIONS["box"].high), expected)  # type: ignore[attr-defined]
        seen.append(action)
    policy.reset()
    assert np.abs(seen[-1] - policy.act(np.roll(run.obs, 3, axis=0))).max() > 1e-3  # it did remember


def test_there_is_no_mask_to_give_where_the_environment_has_none(tmp_path: Path) -> None:
    session = onnxruntime.InferenceSession(raceway.export(made(tmp_path).path))
    assert [given.name for given in session.get_inputs()] == ["obs"]


def test_parts_whose_names_would_clash_are_told_apart(tmp_path: Path) -> None:
    space = spaces.Dict({"a.b": spaces.Discrete(2), "a": spaces.Dict({"b": VECTOR})})
    run = made(tmp_path, space, ACTIONS["box"])
    session = onnxruntime.InferenceSession(raceway.export(run.path))
    assert [given.name for given in session.get_inputs()] == ["obs['a']['b']", "obs['a.b']"]
    feed = {"obs['a']['b']": run.obs["a"]["b"], "obs['a.b']": run.obs["a.b"]}
    assert_close(session.run(["action"], feed)[0], raceway.load(run.path).act(run.obs))


def test_a_space_is_described_by_the_models_own_types(tmp_path: Path) -> None:
    run = made(tmp_path, OBSERVATIONS["nested"], ACTIONS["box of float64"])
    session = onnxruntime.InferenceSession(raceway.export(run.path))
    assert {given.name: (given.type, given.shape) for given in session.get_inputs()} == {
        "obs.camera": ("tensor(uint8)", ["batch", 36, 37, 1]),
        "obs.inner.choice": ("tensor(int64)", ["batch"]),
        "obs.inner.flags": ("tensor(int8)", ["batch", 3]),
        "obs.pair.0": ("tensor(int64)", ["batch", 2]),
        "obs.pair.1": ("tensor(uint8)", ["batch", 2, 2]),
        "obs.vector": ("tensor(double)", ["batch", 3]),
    }
    assert {given.name: (given.type, given.shape) for given in session.get_outputs()} == {
        "action": ("tensor(double)", ["batch", 2]),
        "mean": ("tensor(float)", ["batch", 2]),
        "log_std": ("tensor(float)", ["batch", 2]),
        "value": ("tensor(float)", ["batch"]),
    }


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(observations(), actions(), networks(), st.booleans(), st.integers(0, 1000))
def test_any_spaces_and_any_weights_give_the_policys_actions(
    tmp_path: Path, observation: Space, action: Space, network: NetworkConfig, normalised: bool, seed: int
) -> None:
    run = made(tmp_path, observation, action, network, normalised=normalised, seed=seed)
    expected = raceway.load(run.path).act(run.obs)
    assert_close(run.outputs()["action"], expected)
    assert_close(act_of_the_page(raceway.export(run.path, "safetensors"))(run.leaves), expected)


@pytest.mark.parametrize("env", ["Taxi-v3", "Pendulum-v1"])
def test_a_trained_policy_plays_the_same_episode_through_onnx(env: str, tmp_path: Path) -> None:
    args: dict[str, Any] = {"max_episode_steps": 40}
    small: dict[str, Any] = {
        "total_steps": 1024,
        "num_envs": 4,
        "n_steps": 64,
        "normalize_observations": True,
        "preset": False,
    }
    log = {"quiet": True, "directory": str(tmp_path), "tensorboard": False}
    run = raceway.train(env, env_args=args, **small, evaluation={"enabled": False}, log=log)
    session, policy = onnxruntime.InferenceSession(raceway.export(run.directory)), raceway.load(run.directory)
    envs = raceway.make(env, num_envs=3, seed=1, **args)
    obs, infos = envs.reset()
    for _ in range(40):
        masks = {"action_mask": infos["action_mask"].astype(bool)} if env == "Taxi-v3" else {}
        (action,) = session.run(["action"], {"obs": obs, **masks})
        assert_close(action, policy.act(obs, **masks))
        obs, _, _, _, infos = envs.step(action)


def test_the_model_says_what_it_is(tmp_path: Path) -> None:
    run = made(tmp_path)
    model = onnx.load(raceway.export(run.path))
    facts = {prop.key: prop.value for prop in model.metadata_props}
    assert (model.producer_name, model.producer_version) == ("raceway", raceway.__version__)
    assert (facts["env"], facts["algo"], facts["policy"], facts["updates"]) == ("Made-v0", "ppo", "final", "7")
    assert json.loads(facts["env_args"]) == {"length": 3}
    assert json.loads(facts["config"])["network"]["hidden"] == [16, 8]
    assert "jax" in json.loads(facts["versions"])
    assert json.loads(facts["action_space"]) == {"kind": "discrete", "n": 4, "start": 0}
    assert str(tmp_path) not in model.SerializeToString().decode(errors="replace")


def test_arrays_are_exported_under_their_names(tmp_path: Path) -> None:
    run = made(tmp_path, VECTOR, ACTIONS["box"], normalised=True)
    path = raceway.export(run.path, "safetensors")
    arrays, about = load_file(path), json.loads(path.with_suffix(".json").read_text())
    stacks = {
        f"{stack}{depth}.{part}" for stack in ("actor", "critic") for depth in range(3) for part in ("weights", "bias")
    }
    assert set(arrays) == stacks | {"log_std", "obs.mean", "obs.rate", "action.low", "action.high"}
    assert arrays["actor0.weights"].shape == (4, 16)
    assert about["arrays"] == "policy.safetensors"
    assert about["trained"]["env"] == "Made-v0"


def test_an_export_is_the_same_again_and_replaces_the_one_before(tmp_path: Path) -> None:
    run = made(tmp_path)
    for to in ("onnx", "safetensors"):
        out = tmp_path / f"mine.{to}"
        out.write_bytes(b"something else")
        assert raceway.export(run.path, to, out) == out
        first = out.read_bytes()
        raceway.export(run.path, to, out)
        assert out.read_bytes() == first
    assert {path.name for path in tmp_path.iterdir()} == {"Made-v0", "mine.onnx", "mine.safetensors", "mine.json"}


def test_a_full_disk_leaves_the_export_before_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = made(tmp_path)
    out = tmp_path / "mine.onnx"
    out.write_bytes(b"the one before")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"mine\.onnx cannot be written: No space left on device"):
        raceway.export(run.path, out=out)
    assert out.read_bytes() == b"the one before"
    assert {path.name for path in tmp_path.iterdir()} == {"Made-v0", "mine.onnx"}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"to": "onxx"}, SettingError, "to='onxx' is no format. Did you mean 'onnx'? There are: onnx, safetensors."),
        ({"which": "best"}, RunFolderError, "has no policy 'best'. There is: final."),
        ({"out": "nowhere/mine.onnx"}, SettingError, "there is no folder nowhere. Make it first."),
        ({"out": "."}, SettingError, ". is a folder. Name a file in it: policy.onnx."),
        ({"out": "mine.bin"}, SettingError, "files of the format onnx end with .onnx. Use 'mine.onnx'."),
        ({"out": "mine.safetensors"}, SettingError, "For that format: --to safetensors."),
    ],
)
def test_what_cannot_be_exported_says_why(
    arguments: dict[str, Any], error: type[Exception], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=re.escape(message)):
        raceway.export(run.path, **arguments)
    assert {path.name for path in tmp_path.iterdir()} == {"Made-v0"}


def test_a_run_without_a_policy_says_so(tmp_path: Path) -> None:
    config = TrainConfig("Made-v0", log=LogConfig(directory=str(tmp_path)))
    with pytest.raises(RunFolderError, match="has no policy yet"):
        raceway.export(begun(config).path)


def test_a_network_of_ones_own_is_refused_with_the_way_out(tmp_path: Path) -> None:
    run = made(tmp_path, has_own_network=True)
    with pytest.raises(UserError, match=r"only its init\(\) and apply\(\) know. .*jax.export.*policy-7.safetensors"):
        raceway.export(run.path)


def test_parameters_of_another_network_are_noticed(tmp_path: Path) -> None:
    run = made(tmp_path)
    config = json.loads((run.path / "config.json").read_text())
    config["network"]["hidden"] = [5]
    (run.path / "config.json").write_text(json.dumps(config))
    with pytest.raises(
        RunFolderError, match=r"do not belong together: params should be float32\[\d+\], but is float32\[\d+\]"
    ):
        raceway.export(run.path)


def test_without_onnx_the_error_has_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(tmp_path)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'raceway\[onnx\]'"):
        raceway.export(run.path)
    assert raceway.export(run.path, "safetensors").is_file()
