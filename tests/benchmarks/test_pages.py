"""What is generated on the pages says what the code has, and no more than was measured."""

from __future__ import annotations

import dataclasses

import pytest

from benchmarks.algorithm_tables import corrections_tables, schedules_tables
from benchmarks.pages import NOTHING, PAGES, main, meanings, results_table, settings_table
from raceway.algos.configs import A2CConfig, ImpalaConfig, NetworkConfig, PPOConfig, PQNConfig
from raceway.algos.hyperparameters import ALIASES
from raceway.training.presets import Preset, Result

RESULT = Result(
    evaluation=498.25, low=495.0, high=500.0, steps=100_000, seconds=4.6, seeds=3, command="raceway train X"
)


@pytest.mark.parametrize("kind", [PPOConfig, A2CConfig, ImpalaConfig, PQNConfig, NetworkConfig])
def test_every_setting_has_a_meaning(kind: type) -> None:
    assert list(meanings(kind)) == [field.name for field in dataclasses.fields(kind)]


def test_a_setting_is_shown_with_its_default_and_its_other_names() -> None:
    lines = settings_table(PPOConfig, ALIASES).splitlines()
    (line,) = [line for line in lines if line.startswith("| `clip_range` |")]
    assert line.startswith("| `clip_range` | 0.2 | How far the probability ratio")
    assert "`clip_coef`" in line.split(" | ")[3]
    assert len(lines) == 2 + len(dataclasses.fields(PPOConfig))


def test_every_other_name_is_on_a_page() -> None:
    pages = "".join(renew(path.read_text(encoding="utf-8")) for path, renew in PAGES.items())
    assert [alias for alias in ALIASES if f"`{alias}`" not in pages] == []


def test_presets_that_were_not_measured_are_left_out() -> None:
    table = results_table([Preset("X", "ppo", {}, RESULT), Preset("Y", "ppo", {})])
    assert "| X | **498.2** (495.0 to 500.0) | 100,000 | 0:05 | 3 | `raceway train X` |" in table
    assert "Y" not in table
    assert results_table([Preset("Y", "ppo", {})]) == NOTHING


def test_the_machine_is_named_once() -> None:
    here = dataclasses.replace(RESULT, machine="a CPU")
    table = results_table([Preset("X", "ppo", {}, here), Preset("Z", "ppo", {}, here)])
    assert table.endswith("\n\nMeasured on a CPU.")


MACHINE = {"cpu": "a CPU", "cpus": 2, "kernel": "6.1", "python": "3.11.2", "memory_gib": 8.0, "date": "2026-01-01"}


def test_schedules_are_compared_seed_by_seed() -> None:
    entry = {
        "env": "X",
        "total_steps": 1000,
        "moments_s": [2.0, 3.0],
        "at_equal_steps": {"concurrent": [100.0, 220.0], "async": [90.0, 190.0]},
        "at_equal_seconds": {"concurrent": [80.0, 180.0], "async": [90.0, 190.0]},
        "steps_per_second": {"concurrent": [960.0, 980.0], "async": [1000.0, 1000.0]},
        "lag_mean": {"concurrent": [1.0, 1.0], "async": [1.5, 1.7]},
        "lag_max": {"concurrent": [1, 1], "async": [2, 3]},
    }
    text = schedules_tables({"machine": MACHINE, "seeds": [1, 2], "entries": [entry]})
    ratio, steps, seconds = (
        "**0.97** (0.96 to 0.98), ≥ 0.95 ✓",
        "**+20.0** (+10.0 to +30.0) ✓",
        "**−10.0** (−10.0 to −10.0) ✗",
    )
    assert f"| X | {ratio} | {steps} | {seconds} |" in text
    assert "| X: lag (most) | 1.00 (1) | 1.60 (3) |" in text
    assert "| X: return, 1,000 steps | **160.0** (100.0 to 220.0) | **140.0** (90.00 to 190.0) |" in text
    assert text.endswith("Measured on a CPU, 2 CPUs, 8 GiB, Linux 6.1, Python 3.11.2, 2026-01-01.")


def test_corrections_are_shown_with_their_picture() -> None:
    entry = {"env": "X", "total_steps": 1000, "returns": {"a": [1.0, 3.0]}, "mean_returns": {"a": [4.0, 4.0]}}
    text = corrections_tables({"machine": MACHINE, "seeds": [1, 2], "entries": [entry]})
    assert "| X, after 1,000 steps | **2.00** (1.00 to 3.00) |" in text
    assert "(images/a2c-corrections.svg)" in text


def test_the_pages_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().err
