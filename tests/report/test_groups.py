"""Which runs are seeds of the same thing, and what groups are called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from raceway.errors import RunFolderError
from raceway.report.groups import group_runs
from tests.report.logged import line, log_run


def labels(path: Any) -> list[tuple[str, str, int]]:
    return [(group.env, group.label, len(group.runs)) for group in group_runs(path).groups]


def test_seeds_are_one_group_whatever_cannot_change_results(tmp_path: Path) -> None:
    for seed in (3, 1, 2):
        settings: dict[str, Any] = {
            "num_workers": seed,
            "preset": seed == 1,
            "evaluation": {"times": seed},
            "checkpoint": {"keep": 7},
        }
        log_run(tmp_path / str(seed), seed=seed, **settings)
    (group,) = group_runs(tmp_path).groups
    assert (group.env, group.label) == ("CartPole-v1", "ppo")
    assert [run.seed for run in group.runs] == [1, 2, 3]


def test_a_label_says_only_what_differs(tmp_path: Path) -> None:
    for schedule in ("concurrent", "serial"):
        for seed in (1, 2):
            log_run(tmp_path / f"a/{schedule}{seed}", seed=seed, schedule=schedule)
    assert labels(tmp_path / "a") == [("CartPole-v1", "concurrent", 2), ("CartPole-v1", "serial", 2)]
    for rate in (0.001, 0.01):
        log_run(tmp_path / f"b/{rate}", ppo={"learning_rate": rate})
    log_run(tmp_path / "b/wide", network={"hidden": [256, 256]})
    assert [label for _, label, _ in labels(tmp_path / "b")] == [
        "learning_rate=0.001, hidden=64x64",
        "learning_rate=0.01, hidden=64x64",
        "learning_rate=0.001, hidden=256x256",
    ]


def test_algorithms_are_told_by_name_and_not_by_what_only_one_of_them_has(tmp_path: Path) -> None:
    log_run(tmp_path / "1")
    log_run(tmp_path / "2", algo="a2c", a2c={"gamma": 0.9, "delay": 1})
    log_run(tmp_path / "3", algo="a2c", a2c={"gamma": 0.9, "delay": 0})
    assert [label for _, label, _ in labels(tmp_path)] == ["ppo", "a2c, delay=1", "a2c, delay=0"]


def test_environments_are_told_apart_without_their_presets_in_the_label(tmp_path: Path) -> None:
    for number, schedule in enumerate(("concurrent", "serial")):
        log_run(tmp_path / f"{number}a", schedule=schedule)
        log_run(tmp_path / f"{number}b", schedule=schedule, env="Ant-v5", ppo={"gamma": 0.9}, total_steps=7)
    assert labels(tmp_path) == [
        ("CartPole-v1", "concurrent", 1),
        ("CartPole-v1", "serial", 1),
        ("Ant-v5", "concurrent", 1),
        ("Ant-v5", "serial", 1),
    ]


def test_arguments_of_the_environment_are_told_and_those_not_given_are_its_defaults(tmp_path: Path) -> None:
    log_run(tmp_path / "1")
    log_run(tmp_path / "2", env_args={"gravity": 3.0})
    assert [label for _, label, _ in labels(tmp_path)] == ["gravity=default", "gravity=3"]


def test_a_long_list_of_differences_is_cut_but_still_tells_apart(tmp_path: Path) -> None:
    for number in range(4):
        ppo = {f"p{each}": number // 2 for each in range(6)} | {"last": number % 2}
        log_run(tmp_path / str(number), ppo=ppo)
    found = [label for _, label, _ in labels(tmp_path)]
    assert found[0] == "p0=0, last=0, p1=0, 4 more"
    assert len(set(found)) == 4


def test_labels_of_the_users_own_separate_what_the_settings_do_not(tmp_path: Path) -> None:
    for folder in ("old", "new"):
        for seed in (1, 2):
            log_run(tmp_path / folder / str(seed), seed=seed)
    found = labels({"before": tmp_path / "old", "after": tmp_path / "new"})
    assert found == [("CartPole-v1", "before", 2), ("CartPole-v1", "after", 2)]


def test_the_same_run_twice_counts_once_the_one_that_came_farthest(tmp_path: Path) -> None:
    log_run(tmp_path / "1", line(1.0, last=300))
    log_run(tmp_path / "2", line(1.0, last=900))
    log_run(tmp_path / "3", line(1.0, last=200))
    found = group_runs(tmp_path)
    assert [run.path.name for group in found.groups for run in group.runs] == ["2"]
    assert [note.split()[0] for note in found.notes] == [str(tmp_path / "1"), str(tmp_path / "3")]
    for number in (1, 2):
        log_run(tmp_path / f"async/{number}", schedule="async")
    assert labels(tmp_path / "async") == [("CartPole-v1", "ppo", 2)]  # not reproducible: two samples


def test_runs_of_equal_settings_and_other_bits_are_both_counted(tmp_path: Path) -> None:
    chains = {"1": "a\nb\nc\n", "2": "a\nb\n", "3": "a\nx\n", "4": "a\nb\nc\nd\n"}  # rows are fewer than rounds
    for name, chain in chains.items():
        log_run(tmp_path / name, line(1.0, last=300 if name in "14" else 200))
        (tmp_path / name / "chain.jsonl").write_text(chain)
    found = group_runs(tmp_path)
    assert [run.path.name for group in found.groups for run in group.runs] == ["1", "3"]
    assert [note.split(" ", 1)[0] for note in found.notes] == [str(tmp_path / name) for name in "423"]
    assert all("is left out" in note for note in found.notes[:2])
    assert "have the same settings and seed but other results" in found.notes[2]


def test_runs_without_metrics_are_left_out_and_if_none_has_any_that_is_an_error(tmp_path: Path) -> None:
    (log_run(tmp_path / "1") / "metrics.jsonl").unlink()
    with pytest.raises(RunFolderError, match="1 has no metrics yet"):
        group_runs(tmp_path)
    log_run(tmp_path / "2", seed=2)
    found = group_runs(tmp_path)
    assert len(found.groups) == 1
    assert "1 is left out" in found.notes[0]


def test_groups_that_no_setting_tells_apart_have_their_folders_in_the_label(tmp_path: Path) -> None:
    for name, gamma in (("one", 1), ("two", 1.0)):
        log_run(tmp_path / name, ppo={"gamma": gamma})
    assert [label for _, label, _ in labels(tmp_path)] == ["ppo, one", "ppo, two"]


def test_settings_of_a_real_run_are_understood(tmp_path: Path) -> None:
    from raceway.training.resolve import resolve

    for seed, gamma in ((1, 0.9), (2, 0.9), (1, 0.8)):
        config = resolve("CartPole-v1", seed=seed, gamma=gamma).to_dict()
        path = log_run(tmp_path / f"{seed}-{gamma}")
        (path / "config.json").write_text(json.dumps(config))
    assert labels(tmp_path) == [("CartPole-v1", "gamma=0.8", 1), ("CartPole-v1", "gamma=0.9", 2)]
