"""Values and text of unknown origin in messages: short, and nothing that a terminal would obey."""

from __future__ import annotations

import pickle
import traceback
from typing import Any

MOST_TRACEBACK = 20_000
"""Characters of a traceback that is sent from one process to another."""
_MOST = 200
_MOST_PICKLED = 1 << 20


def printable(text: str, most: int = _MOST) -> str:
    """`text` with control characters replaced. A text above `most` characters loses its middle, and says so."""
    kept = max(most // 2, 1)
    return "".join(each if each.isprintable() else "?" for each in _without_middle(text, most, kept, kept // 4))


def plain(text: str) -> str:
    """Lines of text with control characters replaced, but for tabs."""
    lines = text.split("\n")
    return "\n".join(line if line.isprintable() else _without_controls(line) for line in lines)


def _without_controls(line: str) -> str:
    return "".join(each if each.isprintable() or each == "\t" else "?" for each in line)


def shortened(text: str, most: int) -> str:
    """The first and the last lines of a text above `most` characters, and how long it was."""
    return _without_middle(text, most, most // 2, most // 2)


def words_of(error: BaseException, most: int = 2000) -> str:
    """`ValueError: its message`, of an exception from code that is not ours: it may be long, or refuse to be read."""
    try:
        said = str(error)
    except (Exception, SystemExit):
        said = "(its message cannot be read: __str__ raises)"
    return f"{type(error).__name__}: {shortened(said, most)}" if said else type(error).__name__


def portable(error: BaseException) -> BaseException:
    """The error itself if another process can make it again from what is sent, and it is not huge; else its words."""
    try:
        pickled = pickle.dumps(error)
        again = pickle.loads(pickled) if len(pickled) <= _MOST_PICKLED else None
        if isinstance(again, BaseException) and type(again) is type(error) and str(again) == str(error):
            return again
    except (Exception, SystemExit):  # of its own code
        pass
    return RuntimeError(words_of(error))


def traceback_of(error: BaseException, most: int = MOST_TRACEBACK) -> str:
    """As Python prints it, of `most` characters or so. A message above that is cut before it is formatted, which would
    take seconds if it has millions of lines."""
    chain: list[tuple[BaseException, str]] = []
    link, each = "", error
    while all(each is not known for known, _ in chain):
        chain.append((each, link))
        if each.__cause__ is not None:
            link, each = "The above exception was the direct cause of the following exception:", each.__cause__
        elif each.__context__ is not None and not each.__suppress_context__:
            link, each = "During handling of the above exception, another exception occurred:", each.__context__
    if not any(_is_long(each, most) for each, _ in chain):
        return shortened("".join(traceback.format_exception(error)).rstrip(), most)
    text = ""
    for each, link in reversed(chain):
        stack = "".join(traceback.format_tb(each.__traceback__))
        text += f"Traceback (most recent call last):\n{stack}{words_of(each)}\n" + (f"\n{link}\n\n" if link else "")
    return shortened(text.rstrip(), most)


def _is_long(error: BaseException, most: int) -> bool:
    try:
        return len(str(error)) + sum(len(str(note)) for note in getattr(error, "__notes__", ())) > most
    except (Exception, SystemExit):
        return False


def _without_middle(text: str, most: int, start: int, end: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:start]}... ({len(text):,} characters) ...{text[len(text) - end :]}"


def quoted(value: Any, most: int = _MOST) -> str:
    """`repr(value)`, short enough for a message."""
    try:
        text = repr(value)
    except Exception:  # such as an integer of more digits than Python writes
        return f"<a {type(value).__name__} that cannot be shown>"
    return printable(text, most)


def quantity(num_bytes: float) -> str:
    """`812 bytes`, `12.3 kB`, `1.5 GB`."""
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if num_bytes >= size:
            return f"{num_bytes / size:,.3g} {unit}" if num_bytes < 1000 * size else f"{num_bytes / size:,.0f} {unit}"
    return f"{num_bytes:.0f} bytes"


def first_line(text: str) -> str:
    """The first line of a text that is not empty, short enough for a message."""
    return printable(next((line.strip() for line in text.splitlines() if line.strip()), ""))
