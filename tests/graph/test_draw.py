"""The drawing as data, as Mermaid text and as files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings

from raceway.graph.draw import Arrow, Box, Drawing, Port, Reaction
from tests.graph.drawings import EXAMPLES, bank, drawings, loop, odd, training

BOX = re.compile(r'^ +(box\d+)\["([^"]*)"\]$')
ARROW = re.compile(r'^  (box\d+) (-->|==>|-\.->)\|"([^"]+)"\| (box\d+)$')
ENTITY = re.compile(r"#\d+;")


def labels(mermaid: str) -> str:
    """Everything that is shown, entities turned back into what they stand for."""
    shown = "\n".join(re.findall(r'"([^"]*)"', mermaid.split("\n", 3)[3]))
    return ENTITY.sub(lambda entity: chr(int(entity[0][1:-1])), shown)


def check_grammar(drawing: Drawing) -> None:
    """Every line is one that Mermaid knows; ids are unique, subgraphs closed, arrows join boxes that are there."""
    lines = drawing.mermaid.splitlines()
    assert [lines[0], lines[2], lines[3]] == ["---", "---", "flowchart LR"]
    assert json.loads(lines[1].removeprefix("title: ")) == drawing.title
    ids, depth, links = [], 0, 0
    for line in lines[4:]:
        if box := BOX.match(line):
            ids.append(box[1])
            shown = box[2]
        elif arrow := ARROW.match(line):
            assert {arrow[1], arrow[4]} <= set(ids)
            links += 1
            shown = arrow[3]
        elif line.startswith("  subgraph "):
            depth += 1
            shown = line.split('"')[1]
        elif line == "  end":
            depth -= 1
            shown = ""
        else:
            assert line.startswith("  linkStyle ")
            assert max(map(int, line.split()[1].split(","))) < links
            shown = ""
        assert depth in (0, 1)
        # Outside our own tags and entities there is nothing that could be taken for syntax.
        assert not re.search(r"[<>&#;|`*\[\]{}]", ENTITY.sub("", re.sub("</?[bi]>|<br/>", "", shown)))
    assert depth == 0
    assert sorted(ids) == sorted(f"box{index}" for index in range(len(drawing.boxes)))
    assert links == len(drawing.arrows)


@pytest.mark.parametrize("name", EXAMPLES)
def test_mermaid_keeps_to_the_grammar(name: str) -> None:
    check_grammar(EXAMPLES[name])


@settings(deadline=None)
@given(drawings())
def test_mermaid_of_any_drawing_keeps_to_the_grammar(drawing: Drawing) -> None:
    check_grammar(drawing)


def test_mermaid_shows_every_name_port_reaction_and_timing() -> None:
    for drawing in EXAMPLES.values():
        shown = labels(drawing.mermaid)
        for box in drawing.boxes:
            names = [box.name, box.kind, box.place, *(reaction.name for reaction in box.reactions)]
            names += [word for port in (*box.inputs, *box.outputs) for word in (port.name, port.type)]
            assert [name for name in names if name not in shown] == []
        assert [arrow for arrow in drawing.arrows if drawing.label(arrow) not in shown] == []


def test_mermaid_draws_each_kind_of_arrow_in_its_own_way() -> None:
    drawn = [line.split()[1].split("|")[0] for line in training().mermaid.splitlines() if "|" in line]
    assert drawn == ["-->", "-->", "-->", "-.->", "==>"]
    assert "linkStyle 1 stroke:#d9480f,stroke-dasharray:6 4" in training().mermaid


def test_mermaid_puts_boxes_of_a_place_into_one_subgraph() -> None:
    lines = training().mermaid.splitlines()
    start = lines.index('  subgraph place1["1 process"]')
    assert [line.split("<b>")[1].split("</b>")[0] for line in lines[start + 1 : start + 3]] == ["evaluator", "recorder"]
    assert lines[start + 3] == "  end"


def test_mermaid_marks_banks_and_what_arrows_do_with_them() -> None:
    shown = labels(bank().mermaid)
    assert "workers ×16" in shown
    assert "gather ×16" in shown
    assert "after 2, broadcast ×16" in shown


def test_an_arrow_says_that_values_of_a_bank_come_as_they_arrive() -> None:
    boxes = (Box("many", "M", 4, outputs=(Port("o"),)), Box("one", "O", inputs=(Port("i"),)))
    arrow = Arrow("many", "o", "one", "i", "queue 8", "queue")
    assert Drawing("queue", boxes, (arrow,)).label(arrow) == "queue 8, from ×4"


@pytest.mark.parametrize(
    ("arrow", "message"),
    [
        (Arrow("collector", "rollout", "lerner", "rollout"), r"no lerner.rollout to join: the boxes are \['coll"),
        (Arrow("collector", "rolout", "learner", "rollout"), r"no collector.rolout .*: its outputs are \['rollout'\]"),
    ],
)
def test_an_arrow_must_join_ports_that_are_there(arrow: Arrow, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Drawing("ppo", loop().boxes, (arrow,))


def test_two_boxes_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="Two boxes of 'twins' have the same name"):
        Drawing("twins", (Box("a", "A"), Box("a", "A")))


def test_a_reaction_writes_only_outputs() -> None:
    with pytest.raises(ValueError, match=r"a.go writes 'y', but the outputs of a are \['x'\]"):
        Drawing("effects", (Box("a", "A", outputs=(Port("x"),), reactions=(Reaction("go", effects=("y",)),)),))


def test_files_are_written_by_suffix(tmp_path: Path) -> None:
    drawing = odd()
    assert drawing.save(tmp_path / "graph.svg").read_text(encoding="utf-8") == drawing.svg
    assert drawing.save(str(tmp_path / "graph.MMD")).read_text(encoding="utf-8") == drawing.mermaid
    assert drawing.save(tmp_path / "graph.md").read_text(encoding="utf-8") == f"```mermaid\n{drawing.mermaid}```\n"


def test_another_suffix_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'graph.png': .svg is .* .mmd .* .md .* Use 'graph.svg'"):
        loop().save(tmp_path / "graph.png")
    assert list(tmp_path.iterdir()) == []


def test_notebooks_show_the_picture() -> None:
    assert loop()._repr_svg_() == loop().svg
