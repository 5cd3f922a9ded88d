"""What a run is played, evaluated and resumed with, if its folder alone does not lead to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import raceway
from raceway.callbacks import Curriculum
from raceway.errors import RunFolderError, SettingError
from raceway.training.outcome import Run
from raceway.training.user_network import name_of_network, network_of
from tests.training.drawing import PAIR, Drawn, Undrawn, apply, init
from tests.training.small_runs import SMALL

pytestmark = pytest.mark.usefixtures("compiled_without_optimizing")

MODULE = "tests.training.drawing"


def train(env: Any, directory: Path, **settings: Any) -> Run:
    log = {"directory": str(directory), "quiet": True}
    short: dict[str, Any] = {"total_steps": 64, "lane": "inline", "log": log, "evaluation": {"enabled": False}}
    return raceway.train(env, **{**SMALL, **short, **settings})


@pytest.fixture(scope="module")
def of_local(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of a class that no name leads to."""

    class Local(Drawn):
        pass

    return train(Local, tmp_path_factory.mktemp("local"), env_args={"length": 5})


@pytest.fixture(scope="module")
def of_network(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(f"{MODULE}:Drawn", tmp_path_factory.mktemp("own"), network=f"{MODULE}:PAIR")


WAYS_IN: list[Any] = [
    Drawn,
    f"{MODULE}:Drawn",
    lambda length, **more: Drawn(length, **more),
    partial(Drawn, tell="something"),
    [Drawn, Drawn],
    SyncVectorEnv([partial(Drawn, 5, render_mode="rgb_array")] * 2),
    SyncVectorEnv([partial(Drawn, 5, render_mode="rgb_array")], autoreset_mode=AutoresetMode.SAME_STEP),
    SyncVectorEnv([partial(Drawn, 5, render_mode="rgb_array")], autoreset_mode=AutoresetMode.DISABLED),
]


@pytest.mark.parametrize("env", WAYS_IN, ids=lambda env: type(env).__name__)
def test_play_and_evaluate_take_what_train_takes(of_local: Run, env: Any, tmp_path: Path) -> None:
    found = raceway.evaluate(of_local.directory, 3, env=env)
    assert (found.returns, found.lengths) == ((25.0,) * 3, (5,) * 3)
    played = raceway.play(of_local.directory, env=env, episodes=2, video=tmp_path / "a.mp4")
    assert (played.returns, played.lengths) == ([25.0] * 2, [5] * 2)


@pytest.mark.slow
def test_an_id_that_the_script_has_registered_trains_plays_and_resumes(tmp_path: Path) -> None:
    gymnasium.register("Local-v0", lambda **args: Drawn(**args), max_episode_steps=3)
    try:
        run = train("Local-v0", tmp_path, lane="auto", evaluation={"times": 1, "episodes": 1})  # in other processes
        assert run.evaluation is not None
        assert run.evaluation.lengths == (3,)
        assert raceway.play(run.directory, episodes=1, video=tmp_path / "a.mp4").lengths == [3]
        assert raceway.resume(run.directory, total_steps=128).steps == 128
    finally:
        del gymnasium.registry["Local-v0"]
    with pytest.raises(SettingError, match=r'cannot be found by name\. .*raceway\.play\("[^"]+", env="Local-v0"\)'):
        raceway.play(run.directory)


def test_arguments_go_over_those_of_the_run(of_local: Run, tmp_path: Path) -> None:
    args = {"length": 2}
    assert raceway.evaluate(of_local.directory, 1, env=Drawn, env_args=args).lengths == (2,)
    assert raceway.play(of_local.directory, env=Drawn, env_args=args, video=tmp_path / "a.mp4").lengths == [2] * 3
    with pytest.raises(SettingError, match="Did you mean 'length'"):
        raceway.evaluate(of_local.directory, 1, env=Drawn, env_args={"lenght": 2})
    vector = SyncVectorEnv([Drawn])
    for act in (raceway.evaluate, raceway.play, raceway.resume):
        with pytest.raises(SettingError, match="the vector environment that was given is there already"):
            act(of_local.directory, env=vector, env_args=args)


@pytest.mark.parametrize("act", [raceway.evaluate, raceway.play, raceway.resume], ids=lambda act: act.__name__)
def test_without_the_class_the_call_that_works_is_told(of_local: Run, act: Any) -> None:
    call = rf'raceway\.{act.__name__}\("{of_local.directory}", env=\.\.\.\)\.'
    with pytest.raises(
        SettingError, match=rf"The environment of {of_local.directory} .* cannot be found by name\. .*{call}"
    ):
        act(of_local.directory)


@pytest.mark.parametrize("trust", [False, True])
def test_a_class_of_a_script_is_not_a_question_of_trust(of_local: Run, tmp_path: Path, trust: bool) -> None:
    config = json.loads((of_local.directory / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "env": "__main__:Mine"}))
    call = rf'Give it in Python: raceway\.play\("{tmp_path}", env=Mine\)\. Or .*: --env my_task:MyTask\.$'
    with pytest.raises(
        SettingError, match=rf"^The environment of {tmp_path} \(__main__:Mine\) cannot be found by name\. {call}"
    ):
        raceway.play(tmp_path, trust=trust)


def test_an_environment_with_other_spaces_is_refused(of_local: Run) -> None:
    for act in (raceway.evaluate, raceway.play):
        with pytest.raises(SettingError, match=r"trained with observations of Box\(.*\(2,\).* has Box\(.*\(4,\)"):
            act(of_local.directory, env=lambda **args: gymnasium.make("CartPole-v1", render_mode="rgb_array"))


def test_a_run_that_is_resumed_with_something_else_stays_as_it_was(of_network: Run) -> None:
    before = (of_network.directory / "config.json").read_bytes()
    for given, network in ((f"{MODULE}:Drawn", lambda: None), ("CartPole-v1", PAIR)):
        with pytest.raises((SettingError, RunFolderError), match=r"is not a pair|does not fit"):
            raceway.resume(of_network.directory, env=given, network=network, total_steps=640, anyway=True)
    assert (of_network.directory / "config.json").read_bytes() == before
    assert (of_network.directory / "outcome.json").exists()


def test_other_arguments_make_another_run_unless_that_is_wanted(tmp_path: Path) -> None:
    run = train(Drawn, tmp_path, env_args={"length": 5})
    more: dict[str, Any] = {"env_args": {"length": 6}, "total_steps": 128}
    with pytest.raises(SettingError, match=r"env_args\.length 5 \(now 6\).*--anyway"):
        raceway.resume(run.directory, **more)
    assert raceway.resume(run.directory, env_args={"length": 5}, total_steps=96).steps == 96
    ended = raceway.resume(run.directory, **more, anyway=True)
    assert ended.config.env_args == {"length": 6}
    assert "env_args.length 5 (now 6)" in (run.directory / "resumed.jsonl").read_text()
    assert raceway.resume(run.directory, total_steps=160).config.env_args == {"length": 6}


@dataclass
class Part:
    size: int = 3


THINGS = [
    object(),
    [object(), object()],
    {"reward": abs, "sizes": [1, 2]},
    Part(),
    [Part()],
    {3: "keys that are no text"},
]


@pytest.mark.parametrize("thing", THINGS, ids=lambda thing: type(thing).__name__)
def test_arguments_that_no_file_holds_can_be_given_again(tmp_path: Path, thing: Any) -> None:
    run = train(Drawn, tmp_path, env_args={"tell": thing}, log={"directory": str(tmp_path), "name": "x", "quiet": True})
    raceway.load(run.directory)
    for act in (raceway.evaluate, raceway.play, raceway.resume):
        with pytest.raises(SettingError, match=r'that a file cannot hold: tell\. .*env_args=\{"tell": \.\.\.\}\)'):
            act(run.directory)
    assert raceway.evaluate(run.directory, 1, env_args={"tell": None}).lengths == (4,)
    assert raceway.resume(run.directory, env_args={"tell": thing}, total_steps=96).steps == 96
    again = {"total_steps": 96, "log": {"directory": str(tmp_path), "name": "x", "quiet": True}}
    assert train(Drawn, tmp_path, env_args={"tell": thing}, **again).steps == 96
    with pytest.raises(SettingError, match=r"config\.json names arguments .*a file cannot hold: tell\. .*env_args="):
        raceway.train(Drawn, config_file=run.directory / "config.json")


def test_what_draws_in_a_mode_of_its_own_is_played(of_local: Run, tmp_path: Path) -> None:
    def drawn(length: int) -> Drawn:
        return Drawn(length, render_mode="rgb_array")

    assert raceway.play(of_local.directory, env=drawn, video=tmp_path / "a.mp4").lengths == [5] * 3
    with pytest.raises(Exception, match="gives no pictures"):
        raceway.play(of_local.directory, env=lambda length: Drawn(length), video=tmp_path / "b.mp4")


def test_a_vector_environment_is_left_open_for_its_owner(of_local: Run, tmp_path: Path) -> None:
    envs = SyncVectorEnv([partial(Drawn, 5, render_mode="rgb_array")] * 2)
    raceway.evaluate(of_local.directory, 2, env=envs)
    raceway.play(of_local.directory, env=envs, episodes=1, video=tmp_path / "a.mp4")
    assert not envs.closed
    envs.reset()


# --- networks


@pytest.mark.parametrize("network", [PAIR, f"{MODULE}:PAIR", f"{MODULE}:make_pair", f"{MODULE}:OBJECT"])
def test_a_network_is_given_as_a_pair_or_by_name(of_network: Run, network: Any, tmp_path: Path) -> None:
    assert network_of(network) == (init, apply)
    policy = raceway.load(of_network.directory, network=network)
    assert policy.act(np.zeros(2, np.float32)) in (0, 1)
    assert raceway.evaluate(of_network.directory, 1, network=network).lengths == (4,)
    assert raceway.play(of_network.directory, network=network, video=tmp_path / "a.mp4").lengths == [4] * 3


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ("drawing", "'drawing' does not name the network. Use package.module:attribute"),
        ("no_such:pair", "No module 'no_such' for the network"),
        (f"{MODULE}:PAIRS", "Did you mean 'PAIR'"),
        (f"{MODULE}:ONE", r"not a pair \(init, apply\) of functions, or a callable"),
        (f"{MODULE}:init", r"not a pair \(init, apply\) of functions, or a callable"),
        (f"{MODULE}:<init, apply>", "cannot be found by name"),
        (3, r"network=3 is not a pair \(init, apply\)"),
        ((init,), r"is not a pair \(init, apply\)"),
    ],
)
def test_what_is_no_network_is_refused(network: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=message):
        network_of(network)
    with pytest.raises(SettingError, match=message):
        train(Drawn, tmp_path, network=network)
    assert list(tmp_path.iterdir()) == []


def test_the_settings_tell_that_a_run_has_a_network_of_its_own(of_network: Run, tmp_path: Path) -> None:
    assert of_network.config.network.custom == f"{MODULE}:PAIR"
    given = train(Drawn, tmp_path, network=PAIR)
    assert given.config.network.custom == name_of_network(PAIR) == f"{MODULE}:<init, apply>"
    again = raceway.train(config_file=of_network.directory / "config.json", env=Drawn, log={"directory": str(tmp_path)})
    assert again.config.network.custom == f"{MODULE}:PAIR"


@pytest.mark.parametrize("act", [raceway.evaluate, raceway.play, raceway.resume], ids=lambda act: act.__name__)
def test_a_network_that_is_missing_is_named_with_the_command(of_network: Run, act: Any) -> None:
    verb = {"evaluate": "eval"}.get(act.__name__, act.__name__)
    command = f"raceway {verb} {of_network.directory} --network {MODULE}:PAIR"
    with pytest.raises(SettingError, match=rf"a network of your own \({MODULE}:PAIR\), .* To give it: {command}\."):
        act(of_network.directory)


def test_a_network_that_does_not_fit_is_refused(of_local: Run) -> None:
    with pytest.raises(SettingError, match=r"The policy has \d+ parameters, the network 6: it was trained"):
        raceway.evaluate(of_local.directory, 1, env=Drawn, network=PAIR)


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.splitlines()[-1]


def test_objects_among_the_arguments_are_in_the_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = {"tell": [abs]}
    run = train(Drawn, tmp_path, log={"directory": str(tmp_path)}, env_args=given)
    assert last_line(capsys) == f'watch       raceway.play("{run.directory}", env_args={{"tell": ...}})'
    raceway.resume(run.directory, env_args=given, total_steps=96)
    assert last_line(capsys) == f'watch       raceway.play("{run.directory}", env_args={{"tell": ...}})'


def test_a_resumed_run_advises_with_the_environment_that_it_has(
    of_local: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    for env, said in (
        (f"{MODULE}:Drawn", f"raceway play {of_local.directory} --env {MODULE}:Drawn"),
        (lambda **given: Drawn(**given), f'raceway.play("{of_local.directory}", env=...)'),
    ):
        raceway.resume(of_local.directory, env=env, quiet=False)
        assert last_line(capsys) == f"watch       {said}"


@pytest.mark.parametrize("evaluates", [True, False])
def test_the_last_level_of_a_curriculum_is_in_result_and_advice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], evaluates: bool
) -> None:
    curriculum = Curriculum([{"length": 2}, {"length": 3}], -1.0, by="training", episodes=1)
    log = {"directory": str(tmp_path), "name": "x"}
    evaluation = {"enabled": evaluates, "times": 1, "episodes": 2}
    run = train(Drawn, tmp_path, callbacks=[curriculum], total_steps=256, evaluation=evaluation, log=log)
    again = raceway.resume(run.directory, callbacks=[curriculum])
    for told in capsys.readouterr().out.split("finished before")[:2]:
        assert f"raceway play {run.directory} --env.length 3\n" in told
        assert ("9.0 ± 0.0 over 2 episodes with length=3\n" in told) == evaluates
    assert run.env_args == again.env_args == {"length": 3}


def test_only_what_draws_is_said_to_be_watchable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for env, line in ((Drawn, "watch       raceway play "), (Undrawn, "measure     raceway eval ")):
        run = train(env, tmp_path, log={"directory": str(tmp_path)})
        assert capsys.readouterr().out.splitlines()[-1] == f"{line}{run.directory}"
