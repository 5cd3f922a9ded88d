"""README's picture: made of the results, and only of them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from benchmarks.picture import draw, main

SECTION: dict[str, Any] = {
    "experiments": [
        {"setting": "CartPole-v1, 64 envs", "contestants": {"raceway": {"rate": 2e7}, "envpool": {"rate": 4e5}}},
        {"setting": "A & B, 1024 envs", "contestants": {"raceway": {"rate": 5e7}, "bare loop": {"rate": 6e7}}},
    ]
}
SVG = "{http://www.w3.org/2000/svg}"


def test_every_contestant_has_a_bar_and_faster_ones_longer_ones() -> None:
    drawing = ElementTree.fromstring(draw(SECTION))
    words = [text.text for text in drawing.iter(f"{SVG}text")]
    widths = [float(bar.get("width", 0)) for bar in drawing.iter(f"{SVG}rect")][1:]
    assert words.count("raceway") == 2
    assert "A & B, 1024 envs" in words
    assert widths[0] > widths[1]
    assert widths[2] == max(widths)


def test_check_notices_a_picture_that_is_missing_or_old(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, picture = tmp_path / "results.json", tmp_path / "images/picture.svg"
    results.write_text(json.dumps(SECTION))
    arguments = ["--picture", str(picture), "--results", str(results)]
    assert main(["--check", *arguments]) == 1
    assert "out of date" in capsys.readouterr().err
    assert main(arguments) == 0
    assert main(["--check", *arguments]) == 0
