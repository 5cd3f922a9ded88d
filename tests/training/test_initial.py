"""Beginning with another run's weights: what is taken over, what must agree, and when the source is needed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import raceway
from raceway.algos.moments import Normaliser
from raceway.algos.rollout import Scaling, Weights
from raceway.cli import main
from raceway.errors import RunFolderError, SettingError
from raceway.training import run as run_module
from raceway.training.callbacks import Callback, Control, Round
from raceway.training.environments import EnvSource
from raceway.training.folder import RunFolder
from raceway.training.identity import identity_of
from raceway.training.initial import Initial, read_initial
from raceway.training.programs import build
from tests.training.small_runs import set_up

SMALL: dict[str, Any] = {
    "num_envs": 4, "n_steps": 8, "batch_size": 16, "n_epochs": 2, "hidden": (8, 8), "preset": False,
    "total_steps": 4 * 8 * 10, "evaluation": {"enabled": False}, "checkpoint": {"interval_s": 1e6},
}  # fmt: skip
NORMALISED = {**SMALL, "normalize_observations": True}


def train(directory: Path, env: Any = "CartPole-v1", name: str | None = "run", **settings: Any) -> Any:
    log = {"directory": str(directory), "name": name, "quiet": True}
    defaults = {name: value for name, value in NORMALISED.items() if settings.get("algo", "ppo") in ("ppo", "pqn")
                or name not in ("batch_size", "n_epochs")}  # fmt: skip
    return raceway.train(env, **{**defaults, "log": log, **settings})


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the best policy beside the last one."""
    evaluation = {"times": 1, "episodes": 2}
    run = train(tmp_path_factory.mktemp("source"), seed=5, evaluation=evaluation)
    return Path(run.directory)


def weights_of(policy: Path) -> Weights:
    return raceway.load(policy.parent, policy.name).weights


class FirstWeights(Callback):
    """Fails before the first round, so that nothing but the beginning is there."""

    def on_round(self, told: Round, control: Control) -> None:
        raise RuntimeError("that is enough")


def initial_of(run: Path) -> Initial:
    folder = RunFolder(run)
    config = folder.read_config()
    setup = run_module._set_up(config, EnvSource(config.env), None)
    return read_initial(folder, run_module._learner_shape(setup))


@pytest.mark.parametrize("which", ["", "best", "final"])
def test_parameters_and_statistics_are_those_of_the_source_to_the_bit(source: Path, tmp_path: Path, which: str) -> None:
    if which == "final":
        arrays = source / "final/policy-10.safetensors"
        original = arrays.read_bytes()
        save_file({**load_file(arrays), "params": load_file(arrays)["params"] + 1}, arrays)
    run = train(tmp_path, init_from=source / which)
    setup = set_up("CartPole-v1", **NORMALISED)
    first = build(setup, None, initial=initial_of(run.directory)).learner.current
    expected = weights_of(source / (which or "best"))
    assert first.version == 0
    np.testing.assert_array_equal(first.params, expected.params)
    assert first.scaling is not None
    assert expected.scaling is not None
    np.testing.assert_array_equal(first.scaling.mean, expected.scaling.mean)
    np.testing.assert_array_equal(first.scaling.rate, expected.scaling.rate)
    if which == "final":
        arrays.write_bytes(original)


def test_statistics_weigh_as_much_as_the_samples_they_are_of(source: Path, tmp_path: Path) -> None:
    run = train(tmp_path, init_from=source)
    initial = initial_of(run.directory)
    assert initial.samples == initial.version * 8 * 4
    assert initial.scaling is not None
    space = raceway.load(source).observation_space
    normaliser = Normaliser(space, 4, 0.99, observations=True, rewards=False)
    normaliser.begin_from(initial.scaling, initial.samples)
    state = normaliser.save()
    assert state["observations.0.count"] == initial.samples
    np.testing.assert_array_equal(state["observations.0.mean"], np.asarray(initial.scaling.mean, np.float64))


def test_a_part_that_never_varied_keeps_its_scale() -> None:
    space = raceway.make("CartPole-v1", 1).single_observation_space
    first = Normaliser(space, 1, 0.99, observations=True, rewards=False)
    scaling = Scaling(np.zeros(4, np.float32), np.array([1e4, 1.0, 0.5, 123.456], np.float32))
    first.begin_from(scaling, 1000.0)
    found = first.scaling()
    assert found is not None
    np.testing.assert_array_equal(found.rate, scaling.rate)


def test_the_same_seed_and_source_give_the_same_bits_and_others_do_not(source: Path, tmp_path: Path) -> None:
    digests = [
        train(tmp_path / str(number), init_from=init_from, num_workers=workers, seed=seed).digest
        for number, (init_from, workers, seed) in enumerate(
            [(source, 1, 1), (source / "best", 4, 1), (source, 1, 2), (None, 1, 1)]
        )
    ]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_a_run_itself_can_be_given(source: Path, tmp_path: Path) -> None:
    run = raceway.resume(source)
    assert train(tmp_path / "a", init_from=run).digest == train(tmp_path / "b", init_from=str(source)).digest


@pytest.mark.parametrize("algo", ["a2c", "impala"])
def test_algorithms_with_the_same_network_can_follow_each_other(source: Path, tmp_path: Path, algo: str) -> None:
    run = train(tmp_path, init_from=source, algo=algo, schedule="serial", normalize_observations=True)
    assert run.steps == SMALL["total_steps"]


def test_pqn_begins_to_explore_anew(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"algo": "pqn", "batch_size": 16}
    first = train(tmp_path / "first", **settings)
    assert weights_of(first.directory / "final").params[-1] < 1
    run = train(tmp_path / "second", init_from=first, **settings)
    setup = set_up("CartPole-v1", **{**NORMALISED, **settings})
    params = build(setup, None, initial=initial_of(run.directory)).learner.current.params
    np.testing.assert_array_equal(params[:-1], weights_of(first.directory / "final").params[:-1])
    assert params[-1] == 1.0


_KILLED = """
import os, signal, sys
import raceway

class Kill(raceway.Callback):
    def on_round(self, told, control):
        if told.round == 3:
            os.kill(os.getpid(), signal.SIGKILL)

settings = {settings!r}
log = {{"directory": sys.argv[1], "name": "run", "quiet": True}}
raceway.train("CartPole-v1", init_from=sys.argv[2], log=log, callbacks=[Kill()], **settings)
"""


@pytest.mark.parametrize("how", ["resume", "the same command"])
def test_a_run_killed_before_its_first_checkpoint_begins_again_without_the_source(
    source: Path, tmp_path: Path, how: str
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(source, copy)
    script = _KILLED.format(settings=NORMALISED)
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "killed"), str(copy)], timeout=120, check=False)
    assert done.returncode == -9
    run = tmp_path / "killed/CartPole-v1/run"
    assert not list(run.glob("checkpoints/*"))
    whole = train(tmp_path / "whole", init_from=source)
    if how == "resume":
        shutil.rmtree(copy)  # it is gone
        again = raceway.resume(run)
    else:
        for arrays in copy.glob("*/policy-*.safetensors"):  # it has changed
            save_file({**load_file(arrays), "params": load_file(arrays)["params"] * 2}, arrays)
        again = train(tmp_path / "killed", init_from=copy)
    assert again.directory == run
    assert again.digest == whole.digest


def test_a_digest_is_recorded_and_a_copy_that_was_changed_is_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="that is enough"):
        train(tmp_path, init_from=source, callbacks=[FirstWeights()])
    run = tmp_path / "CartPole-v1/run"
    recorded = json.loads((run / "system.json").read_text())["initial_sha256"]
    space = raceway.load(source).observation_space
    assert recorded == initial_of(run).digest(space)
    (arrays,) = (run / "initial").glob("*.safetensors")
    save_file({**load_file(arrays), "params": load_file(arrays)["params"] + 1e-6}, arrays)
    with pytest.raises(RunFolderError, match="initial is not what the run was begun with"):
        raceway.resume(run, callbacks=[Callback()])
    save_file({**load_file(arrays), "params": np.zeros(3, np.float32)}, arrays)
    with pytest.raises(RunFolderError, match="does not fit the run that it is in: it has 3 parameters"):
        raceway.resume(run, callbacks=[Callback()])
    shutil.rmtree(run / "initial")
    with pytest.raises(RunFolderError, match=r"initial/policy.json cannot be read"):
        raceway.resume(run, callbacks=[Callback()])


def test_a_run_with_a_checkpoint_needs_no_initial_weights_any_more(source: Path, tmp_path: Path) -> None:
    run = train(tmp_path / "a", init_from=source)
    shutil.rmtree(run.directory / "initial")
    longer = raceway.resume(run.directory, total_steps=4 * 8 * 20)
    assert longer.digest == train(tmp_path / "b", init_from=source, total_steps=4 * 8 * 20).digest
    facts = json.loads((run.directory / "system.json").read_text())
    assert len(facts["initial_sha256"]) == 64


@pytest.mark.parametrize(
    ("env", "settings", "message"),
    [
        ("Pendulum-v1", {}, r"its observation space is Box\(\[4\], float32\), here it is Box\(\[3\], float32\)"),
        ("Pendulum-v1", {}, r"its action space is Discrete\(2\), here it is Box\(\[1\], float32\)"),
        ("CartPole-v1", {"hidden": (16,)}, r"its network.hidden is \(8, 8\), here it is \(16,\)"),
        ("CartPole-v1", {"activation": "relu"}, "its network.activation is tanh, here it is relu"),
        ("CartPole-v1", {"shared": True}, "its network.shared is False, here it is True"),
        ("CartPole-v1", {"gru": 4, "batch_size": 8}, "its network.gru is None, here it is 4"),
        ("CartPole-v1", {"algo": "pqn"}, "ppo learns a policy and values, pqn learns values of actions"),
        ("CartPole-v1", {"normalize_observations": False}, "it normalises observations, this run does not"),
        ("CartPole-v1", {"network": (lambda *_: {"w": np.zeros((4, 3), np.float32)},
                                     lambda params, obs: ((obs @ params["w"])[:, :2], (obs @ params["w"])[:, 2]))},
         "it has the built-in network, this run a network of its own"),
    ],
)  # fmt: skip
def test_what_does_not_agree_is_named_and_leaves_no_folder(
    source: Path, tmp_path: Path, env: str, settings: dict[str, Any], message: str
) -> None:
    if "network" in settings:
        settings = {**settings, "hidden": None}
    with pytest.raises(SettingError, match=message):
        train(tmp_path, env, init_from=source, **settings)
    assert not any(tmp_path.iterdir())


def test_bounds_may_differ(tmp_path: Path) -> None:
    first = train(tmp_path / "first", "Pendulum-v1", env_args={"max_episode_steps": 50})
    run = train(tmp_path / "second", "Pendulum-v1", init_from=first, env_args={"g": 3.0})
    assert run.steps == SMALL["total_steps"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere", "'nowhere' is not there"),
        ("{runs}", "is a folder of runs: name one, such as .*run"),
        ("{source}/config.json", "is not a run folder"),
        ("{lonely}", "is a policy without its run"),
        ("{empty}", "has no policy yet"),
    ],
)
def test_what_is_no_run_is_refused_with_what_to_give(source: Path, tmp_path: Path, path: str, message: str) -> None:
    shutil.copytree(source / "best", tmp_path / "lonely")
    (tmp_path / "empty").mkdir()
    shutil.copy(source / "config.json", tmp_path / "empty")
    places = {"runs": source.parent, "source": source, "lonely": tmp_path / "lonely", "empty": tmp_path / "empty"}
    with pytest.raises((SettingError, RunFolderError), match=message):
        train(tmp_path / "runs", init_from=path.format(**places))
    assert not (tmp_path / "runs").exists()


def test_the_source_is_read_strictly_and_its_code_is_never_run(source: Path, tmp_path: Path) -> None:
    hostile = tmp_path / "hostile"
    shutil.copytree(source, hostile)
    settings = json.loads((hostile / "config.json").read_text())
    (tmp_path / "danger.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef make(**_): raise SystemExit\n")
    (hostile / "config.json").write_text(json.dumps({**settings, "env": "danger:make"}))
    facts = json.loads((hostile / "best/policy.json").read_text())
    facts["run"] = identity_of(RunFolder(hostile).read_config())
    (hostile / "best/policy.json").write_text(json.dumps(facts))
    sys.path.insert(0, str(tmp_path))
    try:
        assert train(tmp_path / "a", init_from=hostile).steps == SMALL["total_steps"]
    finally:
        sys.path.remove(str(tmp_path))
    assert not (tmp_path / "ran").exists()
    assert "danger" not in sys.modules


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"params": np.nan}, "its parameters are not finite"),
        ({"rate.0": 0.0}, "its statistics make no sense"),
        ({"mean.0": np.inf}, "its statistics make no sense"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(
    source: Path, tmp_path: Path, change: dict[str, float], message: str
) -> None:
    spoiled = tmp_path / "spoiled"
    shutil.copytree(source, spoiled)
    (arrays,) = (spoiled / "best").glob("*.safetensors")
    found = load_file(arrays)
    for name, value in change.items():
        found[name][:1] = value
    save_file(found, arrays)
    with pytest.raises(RunFolderError, match=message):
        train(tmp_path / "runs", init_from=spoiled)


@pytest.mark.parametrize("version", [10**400, -5])
def test_versions_that_make_no_sense_are_refused(source: Path, tmp_path: Path, version: int) -> None:
    spoiled = tmp_path / "spoiled"
    shutil.copytree(source, spoiled)
    facts = json.loads((spoiled / "best/policy.json").read_text())
    (spoiled / "best/policy.json").write_text(json.dumps({**facts, "version": version}))
    with pytest.raises(RunFolderError, match=r"policy.json is damaged: no policy has .* updates behind it"):
        train(tmp_path / "runs", init_from=spoiled)
    assert not (tmp_path / "runs").exists()


def test_the_command_says_what_it_begins_with(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = "--no-preset --hidden 8 8 --normalize-observations --total-steps 2048 --evaluation.no-enabled"
    log = ["--log.directory", str(tmp_path), "--log.name", "run"]
    assert main(["train", "CartPole-v1", "--init-from", str(source), *options.split(), *log]) == 0
    assert f"begins with the weights of {source}/best" in capsys.readouterr().out
    assert json.loads((tmp_path / "CartPole-v1/run/config.json").read_text())["init_from"] == str(source)


@pytest.mark.slow
def test_seeds_begin_with_the_same_weights(source: Path, tmp_path: Path) -> None:
    log = {"directory": str(tmp_path), "name": "x", "quiet": True}
    runs = raceway.train_seeds("CartPole-v1", seeds=2, jobs=1, init_from=source, log=log, **NORMALISED)
    first, second = (json.loads((run.directory / "system.json").read_text())["initial_sha256"] for run in runs)
    assert first == second
    assert runs[0].digest != runs[1].digest
