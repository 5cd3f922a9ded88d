"""What is generated on the pages says what the code has, and no more than was measured."""

from __future__ import annotations

import dataclasses

import pytest

from benchmarks.learning.tables import NOTHING
from benchmarks.pages import PAGES, main, meanings, results_table, settings_table
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


def test_the_pages_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().err
