"""Going on with a run: what is told, what is refused, and what is the same as if it had never been stopped."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import raceway
from raceway.algos.rollout import Weights
from raceway.errors import RunFolderError, SettingError, UserError
from raceway.training.checkpoints import lock
from raceway.training.evaluation import Evaluation
from raceway.training.evaluator import Evaluator
from tests.training.interrupting import SMALL, StopAt, interrupted, train
from tests.training.killing import metrics, same
from tests.training.probes import SavedWalk


def test_ctrl_c_saves_first_and_the_run_goes_on_from_that_very_round(tmp_path: Path) -> None:
    run = interrupted(tmp_path / "stopped", checkpoint={"interval_s": 1000.0})
    rounds = len((run / "chain.jsonl").read_text().splitlines())
    assert 12 < rounds < 40
    whole = train(tmp_path / "whole", callbacks=[StopAt(-1)])
    ended = raceway.resume(run, callbacks=[StopAt(-1)])
    assert json.loads((run / "resumed.jsonl").read_text())["after_round"] == rounds - 1
    assert ended.digest == whole.digest
    assert same(run, whole.directory) == []
    assert ended.steps == whole.steps
    assert ended.seconds > 0


@pytest.mark.slow
def test_saving_does_not_wait_for_an_evaluation(tmp_path: Path) -> None:
    evaluation = {"times": 40, "episodes": 1_000_000, "num_envs": 1}  # minutes
    start = time.monotonic()
    run = interrupted(tmp_path, round_=1000, evaluation=evaluation, total_steps=4 * 8 * 2000)
    assert time.monotonic() - start < 45
    rounds = len((run / "chain.jsonl").read_text().splitlines())
    saved = [int(path.stem.removeprefix("checkpoint-")) for path in (run / "checkpoints").glob("*.json")]
    assert max(saved) == rounds - 1
    assert min(saved) > 500


def test_a_resumed_evaluator_tells_what_may_not_have_arrived() -> None:
    told = Evaluation(version=3, steps=96, returns=(1.0,), lengths=(1,))
    evaluator = Evaluator(make_sampler=None, best=None, log=None, trial=None, steps_per_round=32)  # type: ignore[arg-type]
    evaluator.load({"evaluations": [asdict(told)]})
    candidate = Weights(3, np.zeros(1, np.float32), None)
    first, again = evaluator.evaluate(candidate, None)
    assert first.value == [told]
    assert again.output == "goes_on"
    assert list(evaluator.evaluate(candidate, True)) == [], "it is not evaluated again"


def test_the_same_command_tells_that_a_run_is_finished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = {"directory": str(tmp_path), "name": "run"}
    first = train(tmp_path, log=log)
    chain = (first.directory / "chain.jsonl").read_bytes()
    capsys.readouterr()
    again = train(tmp_path, log=log)
    assert "finished before: 1,280 steps" in capsys.readouterr().out
    assert (again.digest, again.steps, again.evaluation) == (first.digest, first.steps, first.evaluation)
    assert raceway.resume(first.directory).digest == first.digest
    assert (first.directory / "chain.jsonl").read_bytes() == chain


def test_another_run_of_that_name_is_refused(tmp_path: Path) -> None:
    train(tmp_path)
    with pytest.raises(SettingError, match=r"settings: ppo.gamma=0.99 \(now 0.5\)\. .*another --log.name"):
        train(tmp_path, gamma=0.5)
    with pytest.raises(SettingError, match=r"total_steps=1280 \(now 6400\).*raceway resume .* --total-steps N"):
        train(tmp_path, total_steps=6400)
    with pytest.raises(SettingError, match=r"stop_at_return=None \(now 9\.0\).*raceway resume .* --stop-at-return R"):
        train(tmp_path, stop_at_return=9)


def test_what_makes_it_another_run_is_said_before_its_hyperparameters(tmp_path: Path) -> None:
    train(tmp_path)
    with pytest.raises(SettingError, match=r"already, and it is another one: seed=1 \(now 2\); other .*ppo.gamma=0.99"):
        train(tmp_path, seed=2, gamma=0.5)
    settings = {name: value for name, value in SMALL.items() if name not in ("batch_size", "n_epochs")}
    log = {"directory": str(tmp_path), "name": "run", "quiet": True}
    with pytest.raises(SettingError) as raised:
        raceway.train("CartPole-v1", **{**settings, "algo": "a2c", "num_envs": 2, "log": log})
    assert "and it is another one: algo='ppo' (now 'a2c'); other settings differ too: num_envs=4" in str(raised.value)
    assert "ppo." not in str(raised.value).replace(str(tmp_path), "")
    assert "a2c." not in str(raised.value).replace(str(tmp_path), "")


def test_what_does_not_show_in_results_may_change(tmp_path: Path) -> None:
    run = interrupted(tmp_path)
    ended = train(tmp_path, num_workers=1, checkpoint={"keep": 5}, callbacks=[StopAt(-1)])
    assert ended.directory == run
    assert ended.steps == SMALL["total_steps"]


def test_a_finished_run_goes_on_if_more_steps_are_wanted(tmp_path: Path) -> None:
    first = train(tmp_path)
    with pytest.raises(SettingError, match="has 1280 behind it already"):
        raceway.resume(first.directory, total_steps=1280)
    more = raceway.resume(first.directory, total_steps=1280 + 320)
    assert more.steps == 1600
    assert raceway.load(first.directory, "final").weights.version == 50
    longer = train(tmp_path / "at once", total_steps=1600)
    assert longer.digest == more.digest


def test_more_steps_that_are_refused_leave_a_finished_run_as_it_was(tmp_path: Path) -> None:
    first = train(tmp_path)
    change_system(first.directory, cpu="Z80")
    with pytest.raises(RunFolderError, match="Z80"):
        raceway.resume(first.directory, total_steps=1600)
    assert raceway.resume(first.directory) == first
    assert raceway.resume(first.directory).config.total_steps == SMALL["total_steps"]


def test_fewer_steps_than_are_behind_it_are_refused(tmp_path: Path) -> None:
    run = interrupted(tmp_path)
    with pytest.raises(SettingError, match=r"total_steps=64, but .* has \d+ behind it already"):
        raceway.resume(run, total_steps=64, callbacks=[StopAt(-1)])
    assert raceway.resume(run, callbacks=[StopAt(-1)]).steps == SMALL["total_steps"]


@pytest.mark.slow
def test_a_run_that_is_stopped_after_its_last_round_is_only_finished(tmp_path: Path) -> None:
    first = train(tmp_path, evaluation={"times": 1, "episodes": 2})
    (first.directory / "outcome.json").unlink()  # as if it had been killed in its last evaluation
    ended = raceway.resume(first.directory)
    assert (ended.digest, ended.evaluation) == (first.digest, first.evaluation)
    assert len(metrics(first.directory)[1]) == 1


def test_events_are_those_of_the_rows(tmp_path: Path) -> None:
    from tensorboardX.proto.event_pb2 import Event

    run = interrupted(tmp_path)
    raceway.resume(run, callbacks=[StopAt(-1)])
    steps = []
    for path in (run / "tensorboard").iterdir():
        content = path.read_bytes()
        while content:
            length = int.from_bytes(content[:8], "little")
            event = Event.FromString(content[12 : 12 + length])
            steps += [event.step] if event.summary.value else []
            content = content[16 + length :]
    rows = [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert steps == rows


def change_system(run: Path, **facts: Any) -> None:
    path = run / "system.json"
    told = json.loads(path.read_text())
    told["versions"] |= facts.pop("versions", {})
    path.write_text(json.dumps(told | facts))


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"versions": {"jaxlib": "0.1"}}, r"jaxlib 0\.1 \(here "),
        ({"cpu": "Z80"}, r"the CPU 'Z80' \(here "),
        ({"xla_threads": 99}, r"XLA threads 99 \(here "),
        ({"xla_flags": "--fast"}, r"XLA_FLAGS '--fast' \(here "),
    ],
)
def test_other_conditions_are_refused_unless_they_are_wanted(tmp_path: Path, facts: Any, words: str) -> None:
    run = interrupted(tmp_path)
    change_system(run, **facts)
    with pytest.raises(RunFolderError, match=words + r".*--anyway"):
        raceway.resume(run, callbacks=[StopAt(-1)])
    ended = raceway.resume(run, callbacks=[StopAt(-1)], anyway=True)
    assert ended.steps == SMALL["total_steps"]
    (told,) = [json.loads(line) for line in (run / "resumed.jsonl").read_text().splitlines()]
    assert len(told["differences"]) == 1


def test_a_torn_checkpoint_is_passed_over_for_the_one_before(tmp_path: Path) -> None:
    run = interrupted(tmp_path, round_=25)
    newest = max((run / "checkpoints").glob("*.safetensors"))
    newest.write_bytes(newest.read_bytes()[:-100])
    assert len(list((run / "checkpoints").glob("*.json"))) == 2
    whole = train(tmp_path / "whole", callbacks=[StopAt(-1)])
    ended = raceway.resume(run, callbacks=[StopAt(-1)])
    assert ended.digest == whole.digest
    assert same(run, whole.directory) == []


def test_nothing_is_done_if_no_checkpoint_is_good(tmp_path: Path) -> None:
    run = interrupted(tmp_path)
    for path in (run / "checkpoints").glob("*.json"):
        path.write_text("{}")
    chain = (run / "chain.jsonl").read_bytes()
    with pytest.raises(RunFolderError, match="None of the checkpoints"):
        raceway.resume(run, callbacks=[StopAt(-1)])
    assert (run / "chain.jsonl").read_bytes() == chain


def test_one_process_at_a_time_has_a_run(tmp_path: Path) -> None:
    run = interrupted(tmp_path)
    with lock(run), pytest.raises(RunFolderError, match=f"in use by process {os.getpid()}"):
        raceway.resume(run)
    with lock(run), pytest.raises(RunFolderError, match=f"in use by process {os.getpid()}"):
        train(tmp_path)


_SCRIPT = """
import sys
import raceway
raceway.train("CartPole-v1", total_steps=100_000_000, checkpoint={"interval_s": 1000.0},
              log={"directory": sys.argv[1], "name": "run", "interval_s": 0.2})
"""


@pytest.mark.parametrize(
    "to_all", [pytest.param(False, marks=pytest.mark.slow), True], ids=["one process", "all processes"]
)
def test_sigterm_saves_first(tmp_path: Path, to_all: bool) -> None:
    """A service manager tells the evaluator's process as well."""
    process = subprocess.Popen([sys.executable, "-c", _SCRIPT, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    timer = threading.Timer(120, process.kill)
    timer.start()
    assert process.stdout is not None
    assert any("steps/s" in line for line in process.stdout)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for pid in children if to_all else []:
        os.kill(int(pid), signal.SIGTERM)
    process.terminate()
    told, _ = process.communicate(timeout=60)
    timer.cancel()
    assert process.returncode == 143
    assert "Terminated (SIGTERM) after" in told
    run = tmp_path / "CartPole-v1" / "run"
    assert f"raceway resume {run}" in told
    (checkpoint,) = (run / "checkpoints").glob("*.json")
    rounds = len((run / "chain.jsonl").read_text().splitlines())
    assert checkpoint.name == f"checkpoint-{rounds - 1:09d}.json"


def test_a_full_disk_costs_a_checkpoint_and_not_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from raceway.training.checkpoints import Checkpoints

    tried = []

    def full(self: Checkpoints, snapshot: Any, facts: Any) -> Path:
        tried.append(snapshot.round)
        raise RunFolderError("No space left on device")

    monkeypatch.setattr(Checkpoints, "write", full)
    ended = train(tmp_path)
    assert tried
    assert "the last one stays: No space left on device" in capsys.readouterr().err, "even a quiet run says it"
    assert ended.steps == SMALL["total_steps"]


def test_a_disk_that_is_full_from_the_start_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunFolderError, match=r"No run can be begun in .*: No space left on device.*--log.directory"):
        train(tmp_path)


def test_metrics_that_cannot_be_written_end_the_run_with_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from raceway.report.metrics import MetricsLog

    write = MetricsLog.write

    def full(self: MetricsLog, step: int, values: Any) -> None:
        if step > 600:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path / "metrics.jsonl"))
        write(self, step, values)

    monkeypatch.setattr(MetricsLog, "write", full)
    with pytest.raises(UserError, match=r"metrics.jsonl cannot be written: No space left on device.*raceway resume"):
        train(tmp_path)
    monkeypatch.undo()
    (run,) = (tmp_path / "CartPole-v1").iterdir()
    assert raceway.resume(run).digest == train(tmp_path / "whole").digest


def test_a_disk_that_is_really_full_ends_the_run_with_the_same_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from raceway.report.metrics import MetricsLog

    write = MetricsLog.write

    def full(self: MetricsLog, step: int, values: Any) -> None:
        if step > 600 and self._file is not None and self._file.name != "/dev/full":
            self._file.close()
            self._file = open("/dev/full", "wb")  # noqa: SIM115
        write(self, step, values)

    monkeypatch.setattr(MetricsLog, "write", full)
    with pytest.raises(
        UserError, match=r"cannot be written: No space left on device. Once it can.*raceway resume .*Car"
    ):
        train(tmp_path)


def walk() -> gymnasium.Env:
    return gymnasium.wrappers.TimeLimit(SavedWalk(), 20)


def test_arguments_that_no_file_can_hold_are_given_again_with_the_environment(tmp_path: Path) -> None:
    def told(tell: Any) -> gymnasium.Env:
        tell()
        return walk()

    run = interrupted(tmp_path / "stopped", told, env_args={"tell": lambda: None})
    whole = train(tmp_path / "whole", walk, callbacks=[StopAt(-1)])
    with pytest.raises(SettingError, match=r"that a file cannot hold: tell\. .*env_args=\{\"tell\": \.\.\.\}"):
        raceway.resume(run, callbacks=[StopAt(-1)])
    assert raceway.resume(run, env=lambda: told(lambda: None), callbacks=[StopAt(-1)]).digest == whole.digest


def test_an_async_run_goes_on_too(tmp_path: Path) -> None:
    run = interrupted(tmp_path, schedule="async")
    ended = raceway.resume(run, callbacks=[StopAt(-1)])
    assert ended.steps == SMALL["total_steps"]
    rounds = [json.loads(line)["round"] for line in (run / "chain.jsonl").read_text().splitlines()]
    assert rounds == list(range(40))


def test_a_run_with_callbacks_needs_them_again(tmp_path: Path) -> None:
    run = interrupted(tmp_path)
    chain = (run / "chain.jsonl").read_bytes()
    with pytest.raises(UserError, match=r"begun with 1 callbacks, and now has 0.*callbacks=\[\.\.\.\]"):
        raceway.resume(run)
    assert (run / "chain.jsonl").read_bytes() == chain


def test_code_that_a_folder_names_is_not_called_unless_it_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run = interrupted(tmp_path / "runs", callable_walk)
    config = json.loads((run / "config.json").read_text())
    assert raceway.evaluate(run, 1, env=callable_walk).returns  # one's own is known
    raceway.evaluate(run, 1)
    config["env"], config["env_args"] = "subprocess:getoutput", {"cmd": f"touch {tmp_path / 'called'}"}
    (run / "config.json").write_text(json.dumps(config))
    for act in (
        lambda: raceway.resume(run, callbacks=[StopAt(-1)]),
        lambda: raceway.evaluate(run, 1),
        lambda: raceway.play(run, video=tmp_path / "video.mp4"),
    ):
        with pytest.raises(UserError, match=r"runs code .*subprocess:getoutput\(cmd='touch .*--trust"):
            act()
    assert not (tmp_path / "called").exists()


def callable_walk() -> gymnasium.Env:
    return walk()


def test_a_vector_environment_cannot_be_made_anew(tmp_path: Path) -> None:
    class Change(raceway.Callback):
        def on_round(self, told: Any, control: Any) -> None:
            control.env_args = {"render_mode": None}

    envs = gymnasium.vector.SyncVectorEnv([walk] * 4)
    with pytest.raises(SettingError, match="cannot be made again with others"):
        train(tmp_path, envs, callbacks=[Change()])


def test_what_differed_once_need_not_be_said_again(tmp_path: Path) -> None:
    run = interrupted(tmp_path)
    change_system(run, cpu="Z80")
    with pytest.raises(KeyboardInterrupt):
        raceway.resume(run, callbacks=[StopAt(25)], anyway=True)
    assert raceway.resume(run, callbacks=[StopAt(-1)]).steps == SMALL["total_steps"]


def test_a_finished_run_without_checkpoints_is_not_begun_again(tmp_path: Path) -> None:
    run = train(tmp_path, checkpoint={"enabled": False})
    rows = (run.directory / "metrics.jsonl").read_bytes()
    with pytest.raises(SettingError, match="has no checkpoint to go on from"):
        raceway.resume(run.directory, total_steps=10**6)
    assert (run.directory / "metrics.jsonl").read_bytes() == rows
    assert (run.directory / "outcome.json").exists()


def test_a_run_without_a_checkpoint_says_that_it_begins_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = interrupted(tmp_path, checkpoint={"enabled": False})
    capsys.readouterr()
    ended = raceway.resume(run, callbacks=[StopAt(-1)])
    assert "begins again" in capsys.readouterr().err
    assert ended.digest == train(tmp_path / "whole", callbacks=[StopAt(-1)]).digest
