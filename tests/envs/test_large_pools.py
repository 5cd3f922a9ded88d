"""Pools that cannot be are refused in a moment, in every lane."""

from __future__ import annotations

import resource
import time
from pathlib import Path

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


def group(path: Path, limit: str, used: int, **stat: int) -> None:
    path.mkdir(parents=True, exist_ok=True)
    (path / "memory.max").write_text(f"{limit}\n")
    (path / "memory.current").write_text(f"{used}\n")
    (path / "memory.stat").write_text("".join(f"{name} {value}\n" for name, value in stat.items()))


def test_limits_of_control_groups_are_known(tmp_path: Path) -> None:
    def left() -> list[int]:
        return list(memory._left(tmp_path, "/job/step", "memory.max", "memory.current", ""))

    group(tmp_path / "job/step", "max", 1_000_000)
    assert left() == []
    group(tmp_path / "job", "5000000", 2_000_000)  # neither the leaf nor the root
    assert left() == [3_000_000]
    group(tmp_path / "job", "5000000", 6_000_000)
    assert left() == [1]


def test_files_that_were_read_do_not_count_as_used(tmp_path: Path) -> None:
    """The kernel keeps what was read for as long as nothing else needs the memory."""
    group(tmp_path, "8000", 7990, anon=290, inactive_file=7000, active_file=700, shmem=0)
    assert list(memory._left(tmp_path, "/", "memory.max", "memory.current", "")) == [7710]


def test_the_limit_of_the_process_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    available = memory.available_bytes()
    assert available is not None
    assert 0 < available <= memory.memory_bytes()[0]
    monkeypatch.setattr(resource, "getrlimit", lambda which: (10**15, 10**15))
    assert 0 < memory._left_of_own_limit() < 10**15
