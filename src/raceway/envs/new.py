"""`raceway new`: an environment of one's own to begin with, that trains as it is."""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from raceway.envs.compile_errors import shown
from raceway.envs.compiler import include_directory
from raceway.errors import SettingError

Kind = Literal["env", "native-env"]


@dataclass(frozen=True)
class New:
    """What was written, and what can be done with it."""

    path: Path
    commands: tuple[str, ...]


def new(kind: Kind, name: str, directory: str | Path = ".") -> New:
    """Writes a short environment for the user to change. `name` may be spelled MyTask, my_task or my-task."""
    snake, camel = spellings(name)
    is_native = kind == "native-env"
    path = Path(directory) / f"{snake}.{'hpp' if is_native else 'py'}"
    if not path.exists():
        _check_free(snake, camel, is_native)
    template = Path(__file__).parent / "templates" / f"my_task{path.suffix}"
    text = template.read_text(encoding="utf-8").replace("my_task", snake).replace("MyTask", camel)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise SettingError(f"{shown(path)} is there already, and stays as it is. Choose another name.") from None
    except OSError as error:
        raise SettingError(f"{shown(path)} cannot be written: {error.strerror}.") from None
    target = path.name if is_native else f"{snake}:{camel}"
    folder = snake if is_native else target.replace(":", "-")
    return New(path, (f"raceway train {target}", f"raceway play runs/{folder}"))


def spellings(name: str) -> tuple[str, str]:
    """A name as files and modules have it, and as classes have it: ("my_task", "MyTask")."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)*", name):
        raise SettingError(
            f"{name!r} is no name for an environment. Use letters and digits, a letter first: MyTask or my-task."
        )
    # Words begin at a capital after a small letter or digit, and at the last capital of several: HTTPServer.
    words = re.split(r"[_-]|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", name)
    return "_".join(word.lower() for word in words), "".join(word[0].upper() + word[1:] for word in words)


def _check_free(snake: str, camel: str, is_native: bool) -> None:
    """Refuses names that mean something else already."""
    if is_native:
        taken, by = camel in _names_in_headers(), "raceway's headers"
    else:
        is_module = snake in sys.stdlib_module_names or importlib.util.find_spec(snake) is not None
        taken = is_module or keyword.iskeyword(snake)
        by = "Python or an installed package"
    if taken:
        raise SettingError(f"{snake!r} is a name that {by} has already. Choose another.")


def _names_in_headers() -> set[str]:
    names = {"Config", "Scalar", "Action"}
    defined = re.compile(r"^\s*(?:class|struct|concept|using|enum class) (\w+)", re.MULTILINE)
    for header in include_directory().joinpath("raceway").glob("*.h*"):
        names |= set(defined.findall(header.read_text(encoding="utf-8")))
    return names
