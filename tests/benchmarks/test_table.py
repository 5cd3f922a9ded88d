"""Results and the tables made of them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import environments, table
from benchmarks.paired import Measurement, Pair, Plan, compare
from benchmarks.results import (
    RESULTS,
    Amount,
    Experiment,
    Section,
    cpu_model,
    kernel_version,
    machine_facts,
    write_section,
)

MACHINE: dict[str, Any] = {
    "cpu": "Abacus 3000",
    "cpus": 2,
    "memory_gib": 7.8,
    "kernel": "6.1",
    "python": "3.11.7",
    "date": "2026-01-02",
    "commit": None,
    "modified": False,
}


def experiment(setting: str = "CartPole-v1, 64 envs", num_envs: int = 64) -> Experiment:
    rates = {"raceway": [9e6] * 3, "envpool": [3e5] * 3, "bare loop": [10e6] * 3}
    facts: dict[str, dict[str, Any]] = {name: {} for name in rates} | {"envpool": {"versions": {"envpool": "1.2.5"}}}
    measurement = Measurement(rates, dict.fromkeys(rates, 1000), facts)
    pairs = (Pair("raceway", "bare loop", 0.95), Pair("raceway", "envpool", 5.0))
    comparisons = [compare(rates, pair, limit="bare loop") for pair in pairs]
    return Experiment(setting, "raceway", "bare loop", measurement, comparisons, setting.split(",")[0], num_envs)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder with two sections."""
    folder = tmp_path / "results"
    grown = Amount("CartPole-v1", "growth", 0.25, "MiB", 1.0, True)
    write_section(Section("a-memory", "Memory", "What stays.", 2, amounts=[grown]), Plan(), MACHINE, folder)
    write_section(Section("z-first", "CartPole", "How fast.", 1, experiments=[experiment()]), Plan(), MACHINE, folder)
    return folder


def test_table_has_rate_ratio_interval_goal_and_share(results: Path):
    lines = table.render(table.load_results(results)).splitlines()
    assert "|  | steps/s | raceway / envpool | share of the limit |" in lines
    row = "| CartPole-v1, 64 envs | 9.00M | **30.0** (30.0 to 30.0), ≥ 5 ✓ | **0.90** (0.90 to 0.90), ≥ 0.95 ✗ |"
    assert row in lines
    assert "| CartPole-v1: growth | **0.25** MiB | ≤ 1 MiB ✓ |" in lines


def test_sections_come_in_their_order_and_the_machine_once(results: Path):
    text = table.render(table.load_results(results))
    assert text.index("**CartPole.**") < text.index("**Memory.**")
    assert text.count("Measured on Abacus 3000, 2 CPUs, 8 GiB, Linux 6.1, Python 3.11.7, 2026-01-02.") == 1
    assert "envpool 1.2.5" in text


def test_a_section_from_another_machine_says_so(results: Path):
    other = MACHINE | {"cpu": "Difference Engine"}
    write_section(Section("b", "Other", "Elsewhere.", 3, experiments=[experiment()]), Plan(), other, results)
    assert "Difference Engine" in table.render(table.load_results(results))


def test_a_section_stands_in_its_own_block(results: Path):
    section = Section("b", "Robots", "They walk.", 3, experiments=[experiment()], block="mujoco")
    write_section(section, Plan(), MACHINE, results)
    found = table.load_results(results)
    assert "Robots" not in table.render(found)
    assert table.render(found, "mujoco").startswith("Measured on Abacus 3000")
    assert "Robots" in table.render(found, "mujoco")


def test_a_section_has_its_own_unit(results: Path):
    section = Section("b", "Rounds", "They go on.", 3, experiments=[experiment()], block="graph", unit="rounds/s")
    write_section(section, Plan(), MACHINE, results)
    text = table.render(table.load_results(results), "graph")
    assert text.startswith(table.HOW_TO_READ_GRAPHS)
    assert "|  | rounds/s | raceway / envpool | share of the limit |" in text.splitlines()


def test_a_row_per_task_has_all_of_the_largest_batch_and_every_share(results: Path):
    experiments = [experiment("Ant-v5, 64 envs", 64), experiment("Ant-v5, 8 envs", 8), experiment("Pusher-v5", 8)]
    section = Section("b", "Robots", "They walk.", 3, experiments=experiments, block="mujoco", by_task=True)
    write_section(section, Plan(), MACHINE, results)
    lines = table.render(table.load_results(results), "mujoco").splitlines()
    share, ratio = "**0.90** (0.90 to 0.90), ≥ 0.95 ✗", "**30.0** (30.0 to 30.0), ≥ 5 ✓"
    shares = "share of the limit, 64 envs | share of the limit, 8 envs"
    assert f"|  | steps/s, 64 envs | {shares} | raceway / envpool, 64 envs |" in lines
    assert f"| Ant-v5 | 9.00M | {share} | {share} | {ratio} |" in lines
    assert f"| Pusher-v5 |  |  | {share} |  |" in lines


def test_an_amount_without_a_goal_has_none(results: Path):
    peers = Amount("Ant-v5 (peer)", "resident", 3.5, "GB")
    write_section(Section("c", "Many", "Much.", 4, amounts=[peers]), Plan(), MACHINE, results)
    lines = table.render(table.load_results(results)).splitlines()
    assert "| Ant-v5 (peer): resident | **3.50** GB |  |" in lines


def test_results_keep_a_plan_of_an_experiments_own(tmp_path: Path):
    own = replace(experiment(), plan=Plan(rounds=7))
    path = write_section(Section("a", "A", "about", 1, experiments=[own, experiment()]), Plan(), MACHINE, tmp_path)
    first, second = json.loads(path.read_text())["experiments"]
    assert first["plan"]["rounds"] == 7
    assert "plan" not in second


def test_tables_replace_what_was_between_the_marks_and_nothing_else():
    for block in table.BLOCKS:
        begin, end = table.marks(block)
        readme = f"above\n{begin}\nold\n{end}\nbelow\n"
        changed = table.with_tables(readme, "new", block)
        assert changed == f"above\n{begin}\nnew\n{end}\nbelow\n"
        assert table.with_tables(changed, "new", block) == changed


def test_check_fails_until_the_tables_are_written(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    readme = tmp_path / "README.md"
    before = "\n".join(["# Raceway", *(mark for block in table.BLOCKS for mark in table.marks(block)), ""])
    readme.write_text(before, encoding="utf-8")
    options = ["--readme", str(readme), "--results", str(results)]
    assert table.main([*options, "--check"]) == 1
    assert readme.read_text(encoding="utf-8") == before
    assert "python -m benchmarks.table" in capsys.readouterr().err
    assert table.main(options) == 0
    assert table.main([*options, "--check"]) == 0
    assert "envpool" in readme.read_text(encoding="utf-8")


def test_readme_without_marks_is_an_error_that_says_what_to_do(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    readme = tmp_path / "README.md"
    readme.write_text("# Raceway\n", encoding="utf-8")
    assert table.main(["--readme", str(readme), "--results", str(results)]) == 2
    assert table.marks("benchmarks")[0] in capsys.readouterr().err


def test_no_results_yet_is_said_in_the_table(tmp_path: Path):
    assert table.render(table.load_results(tmp_path)) == table.NOTHING


def test_results_keep_every_round(results: Path):
    record = json.loads((results / "z-first.json").read_text())
    found = record["experiments"][0]["contestants"]["envpool"]
    assert found["rates"] == [3e5] * 3
    assert found["rate"] == 3e5
    assert record["plan"]["rounds"] == Plan().rounds


def test_committed_results_can_be_shown():
    table.render(table.load_results(RESULTS))


def test_machine_facts_name_no_host_and_no_path():
    facts = machine_facts()
    assert facts["cpus"] >= 1
    assert facts["memory_gib"] > 0
    text = json.dumps({key: value for key, value in facts.items() if key != "cpu"})
    assert "/" not in text
    assert Path("/proc/sys/kernel/hostname").read_text().strip() not in facts.values()


def test_kernel_and_cpu_are_read_off_what_linux_says():
    assert kernel_version("5.15.167.4-microsoft-standard-WSL2") == "5.15.167.4"
    assert kernel_version("6.8.0-45-generic") == "6.8.0"
    assert cpu_model("processor\t: 0\nmodel name\t: Abacus 3000\nflags : x\n") == "Abacus 3000"


def test_missing_peers_are_named_with_the_command_that_installs_them(capsys: pytest.CaptureFixture[str]):
    assert environments.main(["--quick", "--peers", "no/such/python"]) == 2
    assert "`make bench`" in capsys.readouterr().err


def test_summary_says_what_was_missed():
    section = Section("x", "X", "about", 1, experiments=[experiment()])
    missed, reached = environments.summary_lines(section)
    assert missed.endswith("raceway / bare loop = 0.9 (0.9 to 0.9); wanted at least 0.95: MISSED")
    assert reached.endswith("= 30 (30 to 30), 0.90 of limit; wanted at least 5: reached")
