"""What is compiled here runs a few times on small arrays."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.compiling import without_optimizing


@pytest.fixture(scope="module", autouse=True)
def compiled_without_optimizing() -> Iterator[None]:
    with without_optimizing():
        yield
