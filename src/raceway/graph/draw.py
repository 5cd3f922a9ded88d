"""A program as a drawing: what is in the picture, the picture itself as SVG, and the same as Mermaid text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["after", "queue", "latest"]


@dataclass(frozen=True)
class Port:
    """An input or output; `type` is a short name such as "Rollout", or nothing."""

    name: str
    type: str = ""


@dataclass(frozen=True)
class Reaction:
    """A reaction by the names of its ports. A trigger that is no port is an event: "startup", "clock: every 2"."""

    name: str
    triggers: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()


@dataclass(frozen=True)
class Box:
    """A reactor of class `kind`, or a whole bank of `width` of them, drawn once.

    `place` is nothing for threads of this process, otherwise the words on the group of boxes that live there.
    """

    name: str
    kind: str
    width: int = 1
    place: str = ""
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    reactions: tuple[Reaction, ...] = ()


@dataclass(frozen=True)
class Arrow:
    """A connection. `label` tells its timing: "after 2", "queue 8", "latest"; nothing for a value of the same round."""

    source: str
    output: str
    target: str
    input: str
    label: str = ""
    kind: Kind = "after"

    @property
    def style(self) -> Literal["now", "later", "queue", "latest"]:
        """How the line is drawn: the kind, where `after` is told apart by whether it leaves the round."""
        if self.kind == "after":
            return "later" if self.label else "now"
        return self.kind

    def __str__(self) -> str:
        timing = f", {self.label}" if self.label else ""
        return f"{self.source}.{self.output} → {self.target}.{self.input}{timing}"


@dataclass(frozen=True)
class Drawing:
    """Boxes and arrows. A notebook shows it; `save` writes it to a file."""

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...] = ()

    def __post_init__(self) -> None:
        boxes = {box.name: box for box in self.boxes}
        if len(boxes) < len(self.boxes):
            raise ValueError(f"Two boxes of {self.title!r} have the same name: {[box.name for box in self.boxes]}.")
        for box in self.boxes:
            outputs = [port.name for port in box.outputs]
            for reaction in box.reactions:
                for name in set(reaction.effects).difference(outputs):
                    raise ValueError(
                        f"{box.name}.{reaction.name} writes {name!r}, but the outputs of {box.name} are {outputs}."
                    )
        for arrow in self.arrows:
            for name, port, side in (arrow.source, arrow.output, "outputs"), (arrow.target, arrow.input, "inputs"):
                ports = [each.name for each in getattr(boxes[name], side)] if name in boxes else []
                if port not in ports:
                    known = f"its {side} are {ports}" if name in boxes else f"the boxes are {list(boxes)}"
                    raise ValueError(f"Arrow {arrow} has no {name}.{port} to join: {known}.")

    def label(self, arrow: Arrow) -> str:
        """The words on an arrow: its timing, and what it does with a bank at one of its ends."""
        widths = {box.name: box.width for box in self.boxes}
        source, target = widths[arrow.source], widths[arrow.target]
        if source == target == 1:
            return arrow.label
        count = f"×{max(source, target)}"
        # Only values of known rounds are gathered by index; others come as they arrive.
        joining = f"gather {count}" if arrow.kind == "after" else f"from {count}"
        bank = joining if target == 1 else f"broadcast {count}" if source == 1 else count
        return f"{arrow.label}, {bank}" if arrow.label else bank

    @property
    def svg(self) -> str:
        """A picture that needs nothing else: no fonts, no script; light or dark as the reader's system is."""
        from raceway.graph.picture import picture

        return picture(self)

    @property
    def mermaid(self) -> str:
        """A Mermaid flowchart, which GitHub and many editors show as a picture."""
        return "\n".join(_flowchart(self)) + "\n"

    def save(self, path: str | Path) -> Path:
        """Writes the picture (.svg), Mermaid text (.mmd) or Mermaid in a Markdown page (.md)."""
        path = Path(path)
        writers = {
            ".svg": lambda: self.svg,
            ".mmd": lambda: self.mermaid,
            ".md": lambda: f"```mermaid\n{self.mermaid}```\n",
        }
        if path.suffix.lower() not in writers:
            raise ValueError(
                f"A drawing cannot be saved as {path.name!r}: .svg is the picture, .mmd Mermaid text, "
                f".md Mermaid in Markdown. Use {path.with_suffix('.svg').name!r}."
            )
        path.write_text(writers[path.suffix.lower()](), encoding="utf-8")
        return path

    def _repr_svg_(self) -> str:
        # No _repr_markdown_ beside it: JupyterLab would prefer that and show Mermaid's picture instead of ours.
        return self.svg


_LINKS = {"now": "-->", "later": "-->", "queue": "==>", "latest": "-.->"}


def _flowchart(drawing: Drawing) -> Iterator[str]:
    yield from ("---", f"title: {json.dumps(drawing.title, ensure_ascii=False)}", "---", "flowchart LR")
    ids = {box.name: f"box{index}" for index, box in enumerate(drawing.boxes)}
    places = dict.fromkeys(box.place for box in drawing.boxes)
    for index, place in enumerate(places):
        members = [f'{ids[box.name]}["{_box_label(box)}"]' for box in drawing.boxes if box.place == place]
        if place:
            yield f'  subgraph place{index}["{_escape(place)}"]'
            yield from (f"    {member}" for member in members)
            yield "  end"
        else:
            yield from (f"  {member}" for member in members)
    for arrow in drawing.arrows:
        yield f'  {ids[arrow.source]} {_LINKS[arrow.style]}|"{_arrow_label(drawing, arrow)}"| {ids[arrow.target]}'
    later = [str(index) for index, arrow in enumerate(drawing.arrows) if arrow.style == "later"]
    if later:
        yield f"  linkStyle {','.join(later)} stroke:#d9480f,stroke-dasharray:6 4"


def _box_label(box: Box) -> str:
    bank = f" ×{box.width}" if box.width > 1 else ""
    lines = [f"<b>{_escape(box.name)}{bank}</b>", f"<i>{_escape(box.kind)}</i>"]
    lines += [_escape(f"in {_typed(port)}") for port in box.inputs]
    lines += [_escape(f"out {_typed(port)}") for port in box.outputs]
    for number, reaction in enumerate(box.reactions, start=1):
        reads = ", ".join((*reaction.triggers, *(f"({name})" for name in reaction.uses)))
        writes = f" → {', '.join(reaction.effects)}" if reaction.effects else ""
        # "1." or "1)" would be read as a Markdown list, which Mermaid refuses.
        lines.append(_escape(f"#{number} {reaction.name}: {reads}{writes}"))
    return "<br/>".join(lines)


def _arrow_label(drawing: Drawing, arrow: Arrow) -> str:
    ports = arrow.output if arrow.output == arrow.input else f"{arrow.output} → {arrow.input}"
    return "<br/>".join(_escape(line) for line in (ports, drawing.label(arrow)) if line)


def _typed(port: Port) -> str:
    return f"{port.name}: {port.type}" if port.type else port.name


def _escape(words: str) -> str:
    """Every character that Mermaid, Markdown or HTML could take as its own becomes a numbered entity."""
    plain = " ".join(words.split())
    return "".join(each if each.isalnum() or each in " .,:_-()→×=/" else f"#{ord(each)};" for each in plain)
