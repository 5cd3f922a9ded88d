"""Pictures of runs."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import raceway
from raceway.errors import MissingPackageError, RunFolderError, SettingError
from raceway.report.plots import short
from tests.report.logged import line, log_run


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two schedules in two environments, three seeds of each."""
    for env in ("CartPole-v1", "Ant-v5"):
        for number, schedule in enumerate(("concurrent", "serial")):
            for seed in (1, 2, 3):
                points = line(seed + number, speed=10.0 * (number + 1))
                log_run(tmp_path / f"runs/{env}/{schedule}{seed}", points, seed=seed, schedule=schedule, env=env)
    return tmp_path / "runs"


def texts(svg: Path) -> list[str]:
    return [
        "".join(each.itertext()).strip() for each in ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")
    ]


def test_a_folder_gets_a_png_and_an_svg_and_a_file_itself(runs: Path, tmp_path: Path) -> None:
    drawn = raceway.plot(runs, tmp_path / "new/place")
    assert [file.name for file in drawn.files] == ["returns.png", "returns.svg"]
    assert drawn.files[0].read_bytes().startswith(b"\x89PNG")
    for name in ("a.png", "b.svg", "c.pdf"):
        assert raceway.plot(runs, tmp_path / name).files == (tmp_path / name,)
        assert (tmp_path / name).stat().st_size > 1000
    assert raceway.plot(runs).files == ()


def test_the_svg_has_text_that_says_what_is_shown(runs: Path, tmp_path: Path) -> None:
    raceway.plot(runs, tmp_path / "a.svg")
    said = texts(tmp_path / "a.svg")
    for text in ("CartPole-v1", "Ant-v5", "environment steps", "time (s)", "training return", "concurrent", "serial"):
        assert text in said, text
    assert "Mean of 3 seeds with 95% bootstrap interval" in said
    assert "1k" in said


def test_panels_lines_and_bands_are_those_of_the_groups(runs: Path) -> None:
    figure = raceway.plot(runs).figure
    assert len(figure.axes) == 4
    for panel in figure.axes:
        assert len(panel.lines) == 2
        assert len(panel.collections) == 2
        assert not panel.spines["top"].get_visible()
    first, second = (panel.lines[0].get_color() for panel in figure.axes[:2])
    assert first == second
    assert len(raceway.plot(runs, x="seconds").figure.axes) == 2


def test_one_run_is_one_thin_line_without_a_band(runs: Path) -> None:
    figure = raceway.plot(runs / "Ant-v5/serial1").figure
    for panel in figure.axes:
        assert len(panel.lines) == 1
        assert panel.lines[0].get_linewidth() < 1
        assert len(panel.collections) == 0
    assert "single run" in str(figure.texts[-1].get_text())


def test_groups_with_different_numbers_of_seeds_say_how_many(runs: Path, tmp_path: Path) -> None:
    raceway.plot([runs / "Ant-v5/concurrent*", runs / "Ant-v5/serial1"], tmp_path / "a.svg")
    said = texts(tmp_path / "a.svg")
    assert "concurrent (3 seeds)" in said
    assert "serial (1 run)" in said


def test_runs_that_share_no_seconds_are_drawn_over_steps_with_a_note(tmp_path: Path) -> None:
    for seed in (1, 2):
        log_run(tmp_path / str(seed), [(100, 10.0 * seed, 1.0), (200, 10.0 * seed + 1, 2.0)], seed=seed)
    drawn = raceway.plot(tmp_path, tmp_path / "a.svg")
    (panel,) = drawn.figure.axes
    assert (panel.get_xlabel(), panel.get_ylabel(), len(panel.lines)) == ("environment steps", "training return", 1)
    left_out, no_panel = drawn.notes
    assert f"({tmp_path / '1'} ends at 11.00, {tmp_path / '2'} begins at 20.00)" in left_out
    assert no_panel == "There is no panel over seconds: no group could be drawn in it."
    with pytest.raises(RunFolderError, match=r"No run can be drawn over seconds\. .* have none in common"):
        raceway.plot(tmp_path, x="seconds")


def test_an_environment_without_seconds_leaves_the_place_of_that_panel_empty(tmp_path: Path) -> None:
    log_run(tmp_path / "1", [(100, 0.0, 1.0), (200, 0.0, 2.0)], env="Ant-v5")
    log_run(tmp_path / "2", [(100, 1.0, 1.0), (200, 2.0, 2.0)])
    panels = raceway.plot(tmp_path).figure.axes
    assert [panel.get_visible() for panel in panels] == [True, False, True, True]
    assert [panel.get_title(loc="left") for panel in panels if panel.get_visible()] == ["Ant-v5", "CartPole-v1", ""]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("returns", [(1e308, -1.7e308), (1.7e308, 1.7e308), (0.0, 0.0), (5e-324, 0.0)])
def test_any_finite_returns_can_be_drawn(returns: tuple[float, float], tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        log_run(tmp_path / str(seed), [(100, 1.0, returns[0]), (200, 2.0, returns[1])], seed=seed)
    drawn = raceway.plot(tmp_path, tmp_path / "out")
    assert len(drawn.files) == 2
    is_beyond = max(map(abs, returns)) > 1e300
    assert drawn.notes == (("Values beyond ±1e+300 are drawn at that limit.",) if is_beyond else ())


@pytest.mark.filterwarnings("error")
def test_a_single_point_can_be_drawn(tmp_path: Path) -> None:
    log_run(tmp_path / "1", [(100, 1.0, 5.0)])
    drawn = raceway.plot(tmp_path, tmp_path / "out")
    assert [panel.lines[0].get_marker() for panel in drawn.figure.axes] == ["o", "o"]


def test_the_same_runs_give_the_same_svg(runs: Path, tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        raceway.plot(runs, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_more_groups_than_colours_differ_by_dashes(tmp_path: Path) -> None:
    for number in range(16):
        log_run(tmp_path / str(number), line(number), ppo={"gamma": number / 100})
    panel = raceway.plot(tmp_path, x="steps").figure.axes[0]
    assert len({(each.get_color(), each.get_linestyle()) for each in panel.lines}) == 16


def test_wrong_requests_are_refused_in_words(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="not one of steps, seconds, both"):
        raceway.plot(runs, x="time")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"a plot is a \.png, \.svg, \.pdf file"):
        raceway.plot(runs, tmp_path / "a.jpeg")
    (tmp_path / "file").touch()
    with pytest.raises(RunFolderError, match="cannot be written"):
        raceway.plot(runs, tmp_path / "file/a.png")


def test_without_matplotlib_the_command_that_installs_it_is_told(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingPackageError, match=re.escape("pip install 'raceway[plot]'")):
        raceway.plot(runs)


def test_numbers_on_axes_are_short() -> None:
    values = (0, 0.25, -3, 999, 1000, 2500, 1e6, 1.5e6, -12_500, 2e9)
    assert [short(value) for value in values] == ["0", "0.25", "−3", "999", "1k", "2.5k", "1M", "1.5M", "−12.5k", "2G"]
    assert short(-1e300) == "−1e+300"


def test_nothing_of_matplotlib_or_jax_is_loaded_for_a_comparison(runs: Path) -> None:
    script = f"import sys, raceway; raceway.compare({str(runs)!r}); print({{'matplotlib', 'jax'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "set()"
