"""Pools that cannot be are refused in a moment, in every lane."""

from __future__ import annotations

import resource
import time

import pytest

import raceway
from raceway import memory
from raceway.errors import SettingError


@pytest.mark.parametrize("num_envs", [2**31 - 1, 2**62, 10**4000])
@pytest.mark.parametrize("lane", ["native", "process", "inline"])
def test_a_pool_that_cannot_fit_is_refused(num_envs: int, lane: str) -> None:
    started = time.process_time()
    with pytest.raises(ValueError, match=r"would take .* of memory|out of range") as raised:
        raceway.make("CartPole-v1", num_envs, lane=lane)
    assert time.process_time() - started < 5
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("lane", ["native", "process"])
def test_workers_without_end_are_refused(lane: str) -> None:
    with pytest.raises(ValueError, match="num_workers"):
        raceway.make("CartPole-v1", 100_000, lane=lane, num_workers=100_000)


@pytest.mark.parametrize("lane", ["native", "process", "inline"])
def test_what_is_available_to_this_process_counts(monkeypatch: pytest.MonkeyPatch, lane: str) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**6)
    with pytest.raises(SettingError, match=r"num_envs=100000 environments .* would take .*, and 1 MB are available"):
        raceway.make("CartPole-v1", 100_000, lane=lane)


def test_limits_of_control_groups_and_of_the_process_are_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("cgroup")
    (root / "memory.max").write_text("5000000\n")
    (root / "memory.current").write_text("2000000\n")
    assert list(memory._left(root, "/", "memory.max", "memory.current")) == [3_000_000] * 2
    (root / "memory.max").write_text("max\n")
    assert list(memory._left(root, "/", "memory.max", "memory.current")) == []
    available = memory.available_bytes()
    assert available is not None
    assert 0 < available <= memory.memory_bytes()[0]
    monkeypatch.setattr(resource, "getrlimit", lambda which: (10**15, 10**15))
    assert 0 < memory._left_of_own_limit() < 10**15
