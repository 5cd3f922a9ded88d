"""A native environment as a user would write it: the built-in CartPole, as a header of its own."""

from __future__ import annotations

from pathlib import Path

BUILT_IN = Path(__file__).parents[1] / "core/envs/classic/cart_pole.hpp"
LAST_LINE = 'RACEWAY_ENV(raceway::CartPole, "OwnCartPole-v0", 500)\n'


def own_cart_pole(folder: Path = Path()) -> Path:
    """Writes the header. It is the built-in one but for what it includes, and for its last line."""
    text = BUILT_IN.read_text(encoding="utf-8")
    include = '#include "../../env.hpp"'
    assert text.count(include) == 1, f"{BUILT_IN.name} does not have the line {include} once"
    path = folder / "own_cart_pole.hpp"
    path.write_text(text.replace(include, "#include <raceway/native.hpp>") + "\n" + LAST_LINE, encoding="utf-8")
    return path.absolute()
